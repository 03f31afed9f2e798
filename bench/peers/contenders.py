"""Who is measured, each as a program of its own and at its best.

Peers get a client that is not throttled, no leader election, and otherwise what their own releases
set; Posse runs as a user starts it, with its lease.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from bench.peers.workload import Dialect
from posse.objects import crds
from tests.kubernetes import building
from tests.kubernetes.peers import building as peers
from tests.kubernetes.plane import GANG_GATES, SYSTEM, ControlPlane
from tests.kubernetes.programs import Program, free_port

# No throttling in the client: the API server sets the pace.
QPS, BURST = 50_000, 100_000

GROUPS = "podgroups.scheduling.volcano.sh"
_BASES = "config/crd/volcano/bases"

NULL, POSSE, NATIVE, VOLCANO = "null", "posse", "native", "volcano"


class Contender(msgspec.Struct, frozen=True):
    name: str
    title: str
    scheduler: str
    dialect: Dialect
    command: Callable[[ControlPlane], list[str]]
    groups: Callable[[], dict[str, Any]]
    """The definition of its PodGroups: a status of its own in one is part of the object in another,
    and whoever meets the wrong one writes in vain."""

    def program(self, plane: ControlPlane, *words: str) -> Program:
        """With these words after its own. Unavailable when it cannot be built."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(plane.directory)}
        command = [*self.command(plane), *words]
        return Program(self.name, command, plane.directory, environment)


def _null(plane: ControlPlane) -> list[str]:
    module = [sys.executable, "-m", "bench.peers.nullbinder"]
    return [*module, f"--kubeconfig={plane.kubeconfig()}", f"--claim={NULL}"]


def _posse(plane: ControlPlane) -> list[str]:
    posse = str(Path(sys.executable).parent / "posse")
    return [
        posse,
        "scheduler",
        f"--kubeconfig={plane.kubeconfig()}",
        f"--lease-namespace={SYSTEM}",
        "--claim=posse",
    ]


def _native(plane: ControlPlane) -> list[str]:
    settings = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(plane.kubeconfig()), "qps": QPS, "burst": BURST},
    }
    place = plane.directory / "kube-scheduler.yaml"
    place.write_text(yaml.safe_dump(settings))
    return [
        str(building.extra("kube-scheduler")),
        f"--config={place}",
        f"--feature-gates={GANG_GATES}",
        "--secure-port=0",
    ]


def _volcano(plane: ControlPlane) -> list[str]:
    program = peers.program("vc-scheduler")
    conf = peers.sources("vc-scheduler") / "installer/helm/chart/volcano/config"
    return [
        str(program),
        f"--kubeconfig={plane.kubeconfig()}",
        f"--scheduler-conf={conf / 'volcano-scheduler.conf'}",
        f"--kube-api-qps={QPS}",
        f"--kube-api-burst={BURST}",
        "--leader-elect=false",
        f"--listen-address=127.0.0.1:{free_port()}",
        f"--healthz-address=127.0.0.1:{free_port()}",
    ]


def definitions() -> list[Path]:
    """The kinds that Volcano's scheduler wants to see served, beyond those that we serve."""
    bases = peers.sources("vc-scheduler") / _BASES
    ours = ("scheduling.volcano.sh_podgroups.yaml", "scheduling.volcano.sh_queues.yaml")
    return [place for place in sorted(bases.glob("*.yaml")) if place.name not in ours]


def _our_groups() -> dict[str, Any]:
    (found,) = [d for d in crds.definitions() if d["metadata"]["name"] == GROUPS]
    return found


def _volcano_groups() -> dict[str, Any]:
    place = peers.sources("vc-scheduler") / _BASES / "scheduling.volcano.sh_podgroups.yaml"
    found: dict[str, Any] = yaml.safe_load(place.read_text())
    return found


CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender(NULL, "null binder", NULL, Dialect.ANNOTATION, _null, _our_groups),
        Contender(POSSE, "Posse", "posse", Dialect.ANNOTATION, _posse, _our_groups),
        Contender(
            NATIVE,
            "kube-scheduler, native gangs",
            "default-scheduler",
            Dialect.NATIVE,
            _native,
            _our_groups,
        ),
        Contender(VOLCANO, "Volcano", "volcano", Dialect.ANNOTATION, _volcano, _volcano_groups),
    )
}
