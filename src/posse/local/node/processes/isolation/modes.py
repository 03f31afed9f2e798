"""The two modes, and the choice between them."""

from __future__ import annotations

from typing import Any, Protocol

from posse.local.node.naming import NameBook, Reach
from posse.local.node.processes.launching import Arranged, Draft
from posse.local.node.processes.layout import AttemptPlace, PodPlace

Manifest = dict[str, Any]

NAMESPACES = "namespaces"
NONE = "none"

LACKS: dict[str, tuple[str, ...]] = {
    NAMESPACES: (
        "pods share this machine's network: two that listen on 0.0.0.0 and the same port collide",
        "pods cannot listen on ports below 1024",
        "CPU limits are not enforced; a memory limit is, within about a second",
    ),
    NONE: (
        "a pod can read and change whatever this user can: the files of other pods, the cluster's "
        "store and tokens, your kubeconfig",
        "the cluster's names are resolved in commands, variables and mounted ConfigMaps when a "
        "container starts, not while it runs",
        "every pod's address is 127.0.0.1: a declared port N arrives as another one, told in "
        "POSSE_PORT_N",
        "mounts are links: their paths are rewritten in commands and variables, not inside "
        "programs, and readOnly is not enforced",
        "the hostname is this machine's; hostAliases and another runAsUser wait",
        "CPU limits are not enforced; a memory limit is, within about a second",
    ),
}


class Isolation(Protocol):
    @property
    def name(self) -> str: ...

    def reach(self, pod: Manifest, known: Reach | None) -> Reach:
        """How the pod will be reached; what it was given before is kept."""
        ...

    def release(self, reach: Reach) -> None: ...

    def hindrance(self, pod: Manifest, container: Manifest) -> str | None:
        """What the pod needs and this mode lacks."""
        ...

    def variables(self, place: PodPlace, at: AttemptPlace, reach: Reach) -> dict[str, str]:
        """HOME and its like as the container sees them; POSSE_PORT_N is where port N really is."""
        ...

    def arrange(self, draft: Draft, names: NameBook, reach: Reach) -> Arranged:
        """Raises NotYet, also for names that lead nowhere yet."""
        ...


def refused_everywhere(pod: Manifest, container: Manifest) -> str | None:
    """What no process of this machine can be given, whatever the mode."""
    spec = pod["spec"]
    context = container.get("securityContext") or {}
    added = (context.get("capabilities") or {}).get("add") or []
    strong = sorted({"ALL", "SYS_ADMIN", "NET_ADMIN", "SYS_MODULE"} & set(added))
    if context.get("privileged"):
        return "securityContext.privileged is not given to pods on this machine"
    if strong:
        return f"the capability {strong[0]} is not given to pods on this machine"
    for field in ("hostPID", "hostIPC"):
        if spec.get(field):
            return f"{field} is not given to pods on this machine"
    if container.get("volumeDevices"):
        return "volumeDevices are not given to pods on this machine"
    if (spec.get("os") or {}).get("name", "linux") != "linux":
        return f"this machine runs no pods for {spec['os']['name']}"
    return None
