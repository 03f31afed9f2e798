"""Clusters and gangs as the engine sees them, large enough to be measured."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from posse.engine.cycle import cycle
from posse.engine.decisions import Decision, Start
from posse.engine.facts import (
    DEFAULT_QUEUE,
    Expected,
    GroupFacts,
    NodeFacts,
    PodFacts,
    QueueFacts,
    Shape,
    Topology,
    requests_of,
)
from posse.engine.policy import Policy
from posse.engine.view import View

GPU = "nvidia.com/gpu"
POLICY = Policy()
# What `mixed` is made of.
_RACK, _BLOCK, _ZONE = 16, 128, 1024
_LEAVES = 8


def decisions(view: View) -> Iterator[Decision]:
    """One whole cycle."""
    return cycle(view, POLICY, 0.0)


def seat(view: View, expect_pods: int) -> None:
    """A cycle that must seat so many pods."""
    seated = sum(len(each.seats) for each in decisions(view) if isinstance(each, Start))
    if seated != expect_pods:
        sys.exit(f"bench: {seated} pods seated, {expect_pods} expected")


def cluster(nodes: int, gpus: int = 8, *, labelled: bool = False) -> View:
    view = View()
    for number in range(nodes):
        room = {"cpu": 96_000, "memory": 1 << 40, GPU: gpus, "pods": 110}
        labels = _labels(number) if labelled else {}
        view.set_node(NodeFacts(f"node-{number:05}", room, labels))
    return view


def _labels(number: int) -> dict[str, str]:
    rack, block, zone = POLICY.tiers
    return {
        "kubernetes.io/hostname": f"node-{number:05}",
        rack: f"rack-{number // _RACK}",
        block: f"block-{number // _BLOCK}",
        zone: f"zone-{number // _ZONE}",
    }


def gang(
    view: View,
    name: str,
    pods: int,
    gpus: int = 1,
    *,
    launcher: bool = False,
    priority: int = 0,
    queue: str = DEFAULT_QUEUE,
    topology: Topology | None = None,
    runs_for: float | None = None,
) -> None:
    shape = Shape(requests_of({GPU: gpus, "cpu": 4_000, "memory": 16 << 30}))
    expects: tuple[Expected, ...] = ()
    if launcher:
        expects = (Expected("launcher", 1, Shape(requests_of({"cpu": 1_000}))),)
    key = f"team/{name}"
    view.set_group(
        GroupFacts(
            key,
            name,
            queue,
            min_member=pods,
            expects=expects,
            priority=priority,
            topology=topology,
            runs_for=runs_for,
        )
    )
    for number in range(pods):
        pod = f"{name}-worker-{number}"
        view.set_pod(PodFacts(pod, f"team/{pod}", shape, gang=key, role="worker"))


def filled(view: View, nodes: int) -> View:
    """Every node is full of what is nobody's gang."""
    for number in range(nodes):
        shape = Shape(requests_of({GPU: 8, "cpu": 8_000}))
        name = f"other-{number}"
        view.set_pod(PodFacts(name, f"other/{name}", shape, node=f"node-{number:05}"))
    return view


def many_gangs(nodes: int, gangs: int, pods: int, *, launcher: bool = False) -> View:
    view = cluster(nodes)
    for number in range(gangs):
        gang(view, f"train-{number:05}", pods, launcher=launcher)
    return view


def many_queues(nodes: int, gangs: int, pods: int, queues: int = 20) -> View:
    """Two departments, each with half of the queues: weights, limits and guarantees all over."""
    view = cluster(nodes)
    for number in range(2):
        view.set_queue(QueueFacts(f"dept-{number}", capability=((GPU, nodes * 7),)))
    for number in range(queues):
        view.set_queue(
            QueueFacts(
                f"queue-{number}",
                parent=f"dept-{number % 2}",
                weight=1 + number,
                capability=((GPU, nodes * 4),),
                guarantee=((GPU, nodes // 50),),
            )
        )
    for number in range(gangs):
        gang(view, f"train-{number:05}", pods, queue=f"queue-{number % queues}")
    return view


def departments(view: View, nodes: int) -> None:
    """A tree of two departments and eight queues: weights, priorities, guarantees, limits."""
    for number in range(2):
        view.set_queue(QueueFacts(f"dept-{number}", weight=1 + number, priority=number))
    for number in range(_LEAVES):
        view.set_queue(
            QueueFacts(
                f"queue-{number}",
                parent=f"dept-{number % 2}",
                weight=1 + number,
                priority=number % 3,
                capability=((GPU, nodes * 4), ("cpu", nodes * 90_000)),
                guarantee=((GPU, nodes // 20),) if number % 2 else (),
            )
        )


def mixed_gang(view: View, name: str, number: int, pods: int) -> None:
    """Sizes, priorities and queues of all kinds; one in ten must sit in one block, one in ten
    should sit together, one in three says how long it runs."""
    topology = {3: Topology(tier=2), 7: Topology(required=False)}.get(number % 10)
    gang(
        view,
        name,
        pods,
        (1, 2, 4, 2)[number % 4],
        priority=number % 5,
        queue=f"queue-{number * 7 % _LEAVES}",
        topology=topology,
        runs_for=3600.0 if number % 3 == 0 else None,
    )


def mixed(nodes: int, gangs: int, pods: int) -> View:
    """Gangs of all kinds in a tree of queues, on nodes in racks, blocks and zones."""
    view = cluster(nodes, labelled=True)
    departments(view, nodes)
    for number in range(gangs):
        mixed_gang(view, f"train-{number:05}", number, pods)
    return view


def mixed_crowd(nodes: int, gangs: int) -> View:
    """The same when all nodes are full: everybody waits, the first of each queue for what comes
    free."""
    view = filled(cluster(nodes, labelled=True), nodes)
    departments(view, nodes)
    for number in range(gangs):
        mixed_gang(view, f"wait-{number:05}", number, 2 + number % 50)
    seat(view, 0)
    return view


def rationed(gangs: int) -> View:
    """A free cluster, and many gangs that wait for their queues; one pod's end is the event."""
    view = cluster(1_000)
    for number in range(20):
        view.set_queue(QueueFacts(f"queue-{number}", capability=((GPU, 8),)))
        gang(view, f"run-{number}", 1, gpus=8, queue=f"queue-{number}")
    seat(view, 20)
    for number in range(gangs):
        gang(view, f"wait-{number:05}", 2 + number // 20 % 50, queue=f"queue-{number % 20}")
    seat(view, 0)
    return view


def fragmented(nodes: int) -> View:
    """Every node has between one and seven GPUs taken, so that no two pieces are alike."""
    view = cluster(nodes)
    for number in range(nodes):
        shape = Shape(requests_of({GPU: 1 + number * 7919 % 7, "cpu": 2_000}))
        name = f"other-{number}"
        view.set_pod(PodFacts(name, f"other/{name}", shape, node=f"node-{number:05}"))
    for number in range(200):
        gang(view, f"train-{number:05}", 20)
    return view


def crowd(gangs: int) -> View:
    """A full cluster and many gangs that wait; one pod's end is the event."""
    view = filled(cluster(1_000), 1_000)
    for number in range(gangs):
        gang(view, f"wait-{number:05}", 2 + number % 50, gpus=8)
    seat(view, 0)
    return view


def contested(nodes: int) -> View:
    """Every node is full of gangs of lower priority; one of 512 whole nodes comes."""
    view = cluster(nodes)
    shape = Shape(requests_of({GPU: 1, "cpu": 4_000, "memory": 16 << 30}))
    for number in range(nodes):
        name = f"low-{number:05}"
        began = -60.0 * (number * 7919 % 997)
        view.set_group(
            GroupFacts(f"team/{name}", name, priority=number % 3, min_member=8, began=began)
        )
        for at in range(8):
            pod, node = f"{name}-{at}", f"node-{(number * 8 + at) // 8:05}"
            view.set_pod(PodFacts(pod, f"team/{pod}", shape, f"team/{name}", "worker", node))
    seat(view, 0)
    gang(view, "high", 512, gpus=8, priority=9)
    return view
