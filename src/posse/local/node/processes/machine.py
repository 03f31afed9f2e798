"""This machine as a Node: its name, and what it has."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from posse.kube.connection import Connection
from posse.local.node.manifests import DEFAULT_PODS, HOSTNAME_LABEL
from posse.local.node.processes.gpus import RESOURCE, Inventory, Nvml
from posse.local.node.processes.isolation.modes import Isolation
from posse.local.node.processes.preparing import RuntimeConfig
from posse.local.node.processes.runtime import ProcessRuntime
from posse.local.node.processes.volumes import shared_directory
from posse.objects.keys import ISOLATION_LABEL, SHARED_DIRECTORY
from posse.objects.kinds import NODE
from posse.version import __version__
from posse.world import World

Manifest = dict[str, Any]

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """This machine, ready to run pods."""

    node: Manifest
    isolation: Isolation
    home: Path
    lifeline: Path
    allowed_host_paths: tuple[Path, ...]
    api_server: tuple[str, int]

    def runtime(self, connection: Connection, world: World) -> ProcessRuntime:
        allocatable = self.node["status"]["allocatable"]
        config = RuntimeConfig(
            home=self.home,
            lifeline=self.lifeline,
            allocatable=allocatable,
            gpus=tuple(range(int(allocatable.get(RESOURCE, "0")))),
            allowed_host_paths=self.allowed_host_paths,
            api_server=self.api_server,
        )
        return ProcessRuntime(config, connection, world, self.isolation)


def survey(name: str, home: Path, isolation: str, inventory: Inventory | None = None) -> Manifest:
    """The Node object of this machine as it is now."""
    gpus = (inventory or Nvml()).indices()
    return machine_node(name, home, gpus=gpus, isolation=isolation)


def machine_node(name: str, home: Path, *, gpus: Sequence[int], isolation: str) -> Manifest:
    memory = psutil.virtual_memory().total // 1024
    capacity = {
        "cpu": str(_cpus()),
        "memory": f"{memory}Ki",
        "pods": DEFAULT_PODS,
        "ephemeral-storage": f"{shutil.disk_usage(home).total // 1024}Ki",
    }
    if gpus:
        capacity[RESOURCE] = str(len(gpus))
    system = "darwin" if sys.platform == "darwin" else "linux"
    architecture = _ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.kind,
        "metadata": {
            "name": name,
            "labels": {
                HOSTNAME_LABEL: name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": architecture,
                ISOLATION_LABEL: isolation,
            },
            "annotations": {SHARED_DIRECTORY: str(shared_directory(home.resolve()))},
        },
        "status": {
            "capacity": capacity,
            "allocatable": dict(capacity),
            "nodeInfo": {
                "architecture": architecture,
                "bootID": "",
                "containerRuntimeVersion": f"posse://{__version__}",
                "kernelVersion": platform.release(),
                "kubeProxyVersion": "",
                "kubeletVersion": f"v{__version__}",
                "machineID": name,
                "operatingSystem": system,
                "osImage": platform.platform(terse=True),
                "systemUUID": "",
            },
        },
    }


def _cpus() -> int:
    """Those that this process may use; a container or taskset may have fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1
