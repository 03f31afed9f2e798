"""This machine as a Node: its name, and what it has."""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from posse.local.node.manifests import DEFAULT_PODS, HOSTNAME_LABEL
from posse.local.node.processes.gpus import RESOURCE
from posse.objects.keys import ISOLATION_LABEL
from posse.objects.kinds import NODE
from posse.version import __version__

Manifest = dict[str, Any]

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


def node_name(hostname: str | None = None) -> str:
    """The host's name in lower case, cleaned until it is one that Kubernetes takes."""
    told = socket.gethostname() if hostname is None else hostname
    name = re.sub(r"[^a-z0-9.-]+", "-", told.lower())[:63]
    name = re.sub(r"[-.]*\.[-.]*", ".", name).strip("-.")
    return name or "localhost"


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
