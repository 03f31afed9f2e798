"""The scheduler's reading: what an event costs it, how long it takes to begin, what it holds.

    python -m bench.reading [--check]

With --check it exits 1 if a figure that has a limit misses it.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import resource
import time
from collections.abc import Iterator
from typing import Any

import msgspec

from bench.figures import Figure, present, timed
from bench.paper import Paper
from bench.scenes import POLICY, seat
from posse.engine.policy import Policy
from posse.engine.view import View
from posse.kube.cache import Change
from posse.kube.connection import Connection
from posse.objects import keys
from posse.objects.groups import PodGroup
from posse.objects.kinds import NAMESPACE, NODE, POD, POD_GROUP, PRIORITY_CLASS, QUEUE
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.scheduler.abstaining import SilentRecords
from posse.scheduler.config import SchedulerConfig
from posse.scheduler.observing import Observer, Stopwatch
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.quarantine import Quarantine
from posse.scheduler.reading.reader import Reader
from posse.scheduler.suspecting import Suspects
from posse.scheduler.term import Term
from posse.world import World

_GANG = 20
_WHEN = "2026-01-01T00:00:00Z"
_ROOM = {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "16", "pods": "110"}
_ASKED = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
_TOKEN = {
    "name": "kube-api-access-x2b7q",
    "projected": {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "x"}}]}},
        ],
    },
}


# -- objects as a server sends them --------------------------------------------------------------


def meta(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    return (
        {
            "name": name,
            "uid": f"6f1c2d3e-{name}",
            "resourceVersion": "1",
            "creationTimestamp": _WHEN,
            "managedFields": [{"manager": "kubectl", "operation": "Update", "time": _WHEN}],
        }
        | ({"namespace": namespace} if namespace else {})
        | more
    )


def node(number: int) -> dict[str, Any]:
    name = f"node-{number:05}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "gpu-16",
        POLICY.tiers[0]: f"rack-{number // 16}",
        POLICY.tiers[1]: f"block-{number // 128}",
        POLICY.tiers[2]: f"zone-{number // 1024}",
    }
    return {
        "metadata": meta(name, labels=labels),
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "allocatable": _ROOM,
            "capacity": _ROOM,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _WHEN}],
        },
    }


def group(name: str, size: int, phase: str = "Running") -> dict[str, Any]:
    return {
        "metadata": meta(name, "team"),
        "spec": {"minMember": size, "queue": "default"},
        "status": {"phase": phase, "running": size if phase == "Running" else 0},
    }


def pod(gang: str, index: int, node_name: str = "") -> dict[str, Any]:
    name = f"{gang}-worker-{index}"
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": gang, "uid": gang}
    labels = {keys.JOB_NAME_LABEL: gang, keys.REPLICA_TYPE_LABEL: "worker", "team": "research"}
    container = {
        "name": "worker",
        "image": "registry.example.com/research/train:2026.1",
        "command": ["python", "-m", "train"],
        "env": [{"name": f"SETTING_{at}", "value": f"value {at}"} for at in range(6)],
        "resources": {"requests": _ASKED, "limits": _ASKED},
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets"}],
    }
    spec: dict[str, Any] = {
        "schedulerName": "posse",
        "priority": 0,
        "containers": [container],
        "volumes": [_TOKEN, {"name": "shm", "emptyDir": {"medium": "Memory"}}],
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists"},
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
        ],
    }
    status: dict[str, Any] = {"phase": "Pending"}
    if node_name:
        spec["nodeName"] = node_name
        met = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        status = {
            "phase": "Running",
            "podIP": "10.1.2.3",
            "startTime": _WHEN,
            "conditions": [
                {"type": each, "status": "True", "lastTransitionTime": _WHEN} for each in met
            ],
            "containerStatuses": [{"name": "worker", "state": {"running": {"startedAt": _WHEN}}}],
        }
    metadata = meta(
        name,
        "team",
        labels=labels,
        annotations={keys.GROUP_NAME: gang},
        ownerReferences=[owner | {"controller": True}],
    )
    return {"metadata": metadata, "spec": spec, "status": status}


def running(number: int, nodes: int) -> dict[str, Any]:
    """One of many pods in gangs of twenty."""
    return pod(f"job-{number // _GANG:05}", number % _GANG, f"node-{number % nodes:05}")


# -- an event ------------------------------------------------------------------------------------


def reader(nodes: int) -> tuple[View, Reader]:
    view = View()
    found = Reader(view, Claims(), Quarantine(SilentRecords()))
    for number in range(nodes):
        found.node(Change(None, msgspec.convert(node(number), Node)))
    return view, found


def arrival(size: int, batch: int) -> float:
    """Of a gang whose pods come a few at a time, with a cycle after each: the cost of a pod."""
    view, found = reader(1_000)
    found.group(Change(None, msgspec.convert(group("big", size, "Pending"), PodGroup)))
    pods = [msgspec.convert(pod("big", index), Pod) for index in range(size - 1)]

    def arrive() -> None:
        for at in range(0, len(pods), batch):
            for each in pods[at : at + batch]:
                found.pod(Change(None, each))
            found.refresh()
            seat(view, 0)

    return timed(arrive) / size


# -- a process of its own ------------------------------------------------------------------------


class _First(Observer):
    """Waits for the end of the first round."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    def round(self) -> Stopwatch:
        over = self.over

        class Watch(Stopwatch):
            def stop(self) -> None:
                over.set()

        return Watch()


async def begin(nodes: int, pods: int) -> float:
    """A term of leadership over so many nodes and pods: CPU seconds until it has decided once."""
    began = time.process_time()
    server = Paper(
        {
            NODE: (nodes, node),
            POD: (pods, lambda number: running(number, nodes)),
            POD_GROUP: (pods // _GANG, lambda number: group(f"job-{number:05}", _GANG)),
            NAMESPACE: (1, lambda number: {"metadata": meta("team")}),
            QUEUE: (1, lambda number: {"metadata": meta("default"), "spec": {"weight": 1}}),
            PRIORITY_CLASS: (0, lambda number: {}),
        }
    )
    world, observer = World.real(), _First()
    config = SchedulerConfig(policy=Policy(frozen=True))
    serving = Term(config, Connection(server, world), world, observer, Suspects(world))
    term = asyncio.ensure_future(serving.serve())
    first = asyncio.ensure_future(observer.over.wait())
    await asyncio.wait({term, first}, return_when=asyncio.FIRST_COMPLETED)
    seconds = time.process_time() - began - server.spent
    if term.done():
        term.result()
    term.cancel()
    await asyncio.wait({term})
    return seconds


def _measure(nodes: int, pods: int, answers: Any) -> None:
    logging.disable(logging.WARNING)
    seconds = asyncio.run(begin(nodes, pods))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answers.put((seconds, peak))


def start(nodes: int, pods: int) -> tuple[float, float]:
    """CPU seconds until a process of its own has decided, and the most that it held in MiB."""
    processes = multiprocessing.get_context("spawn")
    answers = processes.Queue()
    process = processes.Process(target=_measure, args=(nodes, pods, answers))
    process.start()
    seconds, peak = answers.get()
    process.join()
    return float(seconds), float(peak)


def figures() -> Iterator[Figure]:
    for size in (1_000, 10_000):
        cost = arrival(size, size // 200)
        yield Figure(f"a gang of {size:,} arrives in 200 parts, each pod", cost, limit=0.001)
    for pods in (25_000, 50_000, 100_000):
        nodes = pods // 10
        seconds, peak = start(nodes, pods)
        where = f"{nodes:,} nodes and {pods:,} pods"
        yield Figure(f"a scheduler's beginning on {where}", seconds, pods)
        limit = 1024.0 if pods == 100_000 else None
        yield Figure(f"the most that it holds on {where}", peak, limit=limit, memory=True)


if __name__ == "__main__":
    present("reading", __doc__, figures)
