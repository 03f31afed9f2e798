"""Programs of others that reconcile job kinds or answer to scheduler names, and how they look.

A program is recognised by its Deployment (its name, or the last part of its image) and by its
lease. What it owns is what it owns by default, or what its flags say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class Known(msgspec.Struct, frozen=True):
    """`kinds_flag`, `names_flag`: the flags that say otherwise. `lease_flag`: that of its lease."""

    program: str
    deployments: tuple[str, ...]
    images: tuple[str, ...]
    leases: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    kinds_flag: str = ""
    names_flag: str = ""
    lease_flag: str = ""


DEFAULT_SCHEDULER = "default-scheduler"
"""The name of pods that ask for nobody."""

KNOWN: tuple[Known, ...] = (
    Known(
        "training-operator",
        deployments=("training-operator", "kubeflow-training-operator"),
        images=("training-operator",),
        leases=("1ca428e5.training-operator.kubeflow.org",),
        kinds=("TFJob", "PyTorchJob", "XGBoostJob", "MPIJob", "PaddleJob", "JAXJob"),
        kinds_flag="enable-scheme",
        lease_flag="leader-election-id",
    ),
    Known(
        "tf-operator",
        deployments=("tf-job-operator", "tf-operator"),
        images=("tf_operator", "tf-operator"),
        leases=("tf-operator",),
        kinds=("TFJob",),
    ),
    Known(
        "mpi-operator",
        deployments=("mpi-operator",),
        images=("mpi-operator",),
        leases=("mpi-operator",),
        kinds=("MPIJob",),
    ),
    Known(
        "volcano",
        deployments=("volcano-scheduler",),
        images=("vc-scheduler",),
        leases=("vc-scheduler", "volcano"),
        names=("volcano",),
        names_flag="scheduler-name",
        lease_flag="leader-elect-resource-name",
    ),
    Known(
        "kube-batch",
        deployments=("kube-batch",),
        images=("kube-batch",),
        leases=("kube-batch",),
        names=("kube-batch",),
        names_flag="scheduler-name",
    ),
    # The cluster's own: no Deployment in most clusters, but a lease in all of them. Others are
    # made of the same image, for names that only their configuration knows.
    Known(
        "kube-scheduler",
        deployments=("kube-scheduler",),
        images=(),
        leases=("kube-scheduler",),
        names=(DEFAULT_SCHEDULER,),
    ),
    # Another Posse: in another namespace, or beside the cluster rather than in it.
    Known(
        "posse controllers",
        deployments=("posse-controllers",),
        images=(),
        leases=("posse-controllers",),
        kinds=("MPIJob", "TFJob"),
        kinds_flag="kinds",
    ),
    Known(
        "posse scheduler",
        deployments=("posse-scheduler",),
        images=(),
        leases=("posse-scheduler",),
        names=("posse",),
        names_flag="claim",
    ),
)


class Owner(msgspec.Struct, frozen=True):
    """Somebody who owns kinds or names today. `alive`: how that shows; "" for one that stands
    still."""

    program: str
    namespace: str
    deployment: str = ""
    lease: str = ""
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    alive: str = ""

    def __str__(self) -> str:
        return f"{self.program} ({self.namespace}/{self.deployment or self.lease})"

    @property
    def how_to_stop(self) -> str:
        if not self.deployment:
            return "stop it"
        return (
            f"stop it: kubectl -n {self.namespace} scale deployment {self.deployment} --replicas=0"
        )


def recognise(deployment: dict[str, Any]) -> tuple[Known, dict[str, list[str]]] | None:
    """Which program a Deployment runs, and with which flags; None when it is none of them."""
    name = (deployment.get("metadata") or {}).get("name")
    for known in KNOWN:
        for container in containers_of(deployment):
            image = image_name(str(container.get("image") or ""))
            if name in known.deployments or image.endswith(known.images):
                return known, flags_of(container)
    return None


def owned_kinds(known: Known, flags: dict[str, list[str]]) -> tuple[str, ...]:
    said = flags.get(known.kinds_flag) if known.kinds_flag else None
    if not said:
        return known.kinds
    wanted = {kind.lower() for kind in said}
    return tuple(kind for kind in known.kinds if kind.lower() in wanted)


def owned_names(known: Known, flags: dict[str, list[str]]) -> tuple[str, ...]:
    said = flags.get(known.names_flag) if known.names_flag else None
    return tuple(dict.fromkeys(said)) if said else known.names


def lease_names(known: Known, flags: dict[str, list[str]]) -> tuple[str, ...]:
    """The leases it may hold; Volcano's is called as the one name that it answers to."""
    said = flags.get(known.lease_flag, []) if known.lease_flag else []
    named = owned_names(known, flags) if known.program == "volcano" else ()
    return tuple(dict.fromkeys((*said, *known.leases, *named)))


def flags_of(container: dict[str, Any]) -> dict[str, list[str]]:
    """`--flag=a,b`, `--flag a` and `-flag=a` of a command line; a flag may come several times."""
    words = [str(word) for field in ("command", "args") for word in container.get(field) or []]
    found: dict[str, list[str]] = {}
    for flag, value in _pairs(words):
        found.setdefault(flag, []).extend(part for part in value.split(",") if part)
    return found


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    for place, word in enumerate(words):
        if not word.startswith("-"):
            continue
        flag, given, value = word.lstrip("-").partition("=")
        following = words[place + 1] if place + 1 < len(words) else ""
        yield flag, value if given else "" if following.startswith("-") else following


def image_name(reference: str) -> str:
    """The last part of an image's name, without tag and digest."""
    last = reference.partition("@")[0].rpartition("/")[2]
    return last.partition(":")[0]


def containers_of(deployment: dict[str, Any]) -> list[dict[str, Any]]:
    template = (deployment.get("spec") or {}).get("template") or {}
    found = (template.get("spec") or {}).get("containers") or []
    return [container for container in found if isinstance(container, dict)]
