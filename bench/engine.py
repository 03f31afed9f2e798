"""The engine alone: how fast it places gangs, and what it costs when there is nothing to do.

    python -m bench.engine [--check]

With --check it exits 1 if a figure that has a limit misses it.
"""

from __future__ import annotations

import argparse
import gc
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from posse.engine.cycle import cycle
from posse.engine.decisions import Evict, Start
from posse.engine.facts import (
    DEFAULT_QUEUE,
    Expected,
    GroupFacts,
    NodeFacts,
    PodFacts,
    QueueFacts,
    Shape,
    requests_of,
)
from posse.engine.policy import Policy
from posse.engine.view import View

GPU = "nvidia.com/gpu"
POLICY = Policy()


@dataclass(frozen=True)
class Figure:
    what: str
    seconds: float
    pods: int = 0
    limit: float | None = None

    @property
    def met(self) -> bool:
        return self.limit is None or self.seconds <= self.limit

    def row(self) -> tuple[str, str, str, str]:
        rate = f"{self.pods / self.seconds:,.0f} pods/s" if self.pods else ""
        limit = "" if self.limit is None else f"{self.limit * 1000:g} ms"
        mark = "" if self.met else "  MISSED"
        return self.what, f"{self.seconds * 1000:.2f} ms", rate, limit + mark


def cluster(nodes: int, gpus: int = 8) -> View:
    view = View()
    for number in range(nodes):
        room = {"cpu": 96_000, "memory": 1 << 40, GPU: gpus, "pods": 110}
        view.set_node(NodeFacts(f"node-{number:05}", room))
    return view


def gang(
    view: View,
    name: str,
    pods: int,
    gpus: int = 1,
    *,
    launcher: bool = False,
    priority: int = 0,
    queue: str = DEFAULT_QUEUE,
) -> None:
    shape = Shape(requests_of({GPU: gpus, "cpu": 4_000, "memory": 16 << 30}))
    expects: tuple[Expected, ...] = ()
    if launcher:
        expects = (Expected("launcher", 1, Shape(requests_of({"cpu": 1_000}))),)
    view.set_group(
        GroupFacts(f"team/{name}", name, queue, min_member=pods, expects=expects, priority=priority)
    )
    for number in range(pods):
        pod = f"{name}-worker-{number}"
        view.set_pod(PodFacts(pod, f"team/{pod}", shape, gang=f"team/{name}", role="worker"))


def timed(work: Callable[[], object]) -> float:
    """CPU seconds: on a busy machine the wall clock tells of its other work."""
    gc.collect()
    before = time.process_time()
    work()
    return time.process_time() - before


def decide(view: View, expect_pods: int) -> float:
    """Seconds of one whole cycle, which must seat so many pods."""
    seated = 0

    def run() -> None:
        nonlocal seated
        for decision in cycle(view, POLICY, 0.0):
            if isinstance(decision, Start):
                seated += len(decision.seats)

    seconds = timed(run)
    if seated != expect_pods:
        sys.exit(f"bench: {seated} pods seated, {expect_pods} expected")
    return seconds


def typical(rounds: int, prepare: Callable[[], View], pods: int) -> float:
    return median(decide(prepare(), pods) for _ in range(rounds))


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


def rationed(gangs: int) -> View:
    """A free cluster, and many gangs that wait for their queues; one pod's end is the event."""
    view = cluster(1_000)
    for number in range(20):
        view.set_queue(QueueFacts(f"queue-{number}", capability=((GPU, 8),)))
        gang(view, f"run-{number}", 1, gpus=8, queue=f"queue-{number}")
    decide(view, 20)
    for number in range(gangs):
        gang(view, f"wait-{number:05}", 2 + number // 20 % 50, queue=f"queue-{number % 20}")
    decide(view, 0)
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
    view = cluster(1_000)
    for number in range(1_000):
        shape = Shape(requests_of({GPU: 8, "cpu": 8_000}))
        name = f"other-{number}"
        view.set_pod(PodFacts(name, f"other/{name}", shape, node=f"node-{number:05}"))
    for number in range(gangs):
        gang(view, f"wait-{number:05}", 2 + number % 50, gpus=8)
    decide(view, 0)
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
    decide(view, 0)
    gang(view, "high", 512, gpus=8, priority=9)
    return view


def preempt(view: View) -> float:
    """Seconds of the cycle that ends others for the gang, none in vain."""
    ended = 0

    def run() -> None:
        nonlocal ended
        for decision in cycle(view, POLICY, 0.0):
            if isinstance(decision, Evict):
                ended += sum(len(victim.pods) for victim in decision.victims)

    seconds = timed(run)
    if ended != 512 * 8:
        sys.exit(f"bench: {ended} pods ended, {512 * 8} expected")
    return seconds


def figures() -> list[Figure]:
    placed = many_gangs(5_000, 500, 20)
    decide(placed, 10_000)
    idle = median(decide(placed, 0) for _ in range(20))
    waiting = crowd(10_000)
    quiet = median(decide(waiting, 0) for _ in range(20))
    waiting.remove_pod("other-7")
    event = decide(waiting, 0)
    stopped = rationed(10_000)
    stopped.remove_pod("run-7-worker-0")
    eased = decide(stopped, 7)
    return [
        Figure(
            "5,000 nodes x 8 GPUs, 500 gangs x 20",
            typical(5, lambda: many_gangs(5_000, 500, 20), 10_000),
            10_000,
            0.2,
        ),
        Figure(
            "the same in 20 queues with limits and guarantees",
            typical(5, lambda: many_queues(5_000, 500, 20), 10_000),
            10_000,
            0.2,
        ),
        Figure(
            "the same, each with a launcher's seat held",
            typical(3, lambda: many_gangs(5_000, 500, 20, launcher=True), 10_000),
            10_000,
        ),
        Figure("an idle cycle on it", idle, limit=0.005),
        Figure(
            "one gang of 10,000",
            typical(3, lambda: many_gangs(5_000, 1, 10_000), 10_000),
            10_000,
            0.5,
        ),
        Figure(
            "a fragmented cluster, 200 gangs x 20",
            typical(3, lambda: fragmented(5_000), 4_000),
            4_000,
        ),
        Figure(
            "a gang of 512 x 8 GPUs preempts across 5,000 full nodes",
            median(preempt(contested(5_000)) for _ in range(3)),
            512,
            1.0,
        ),
        Figure("10,000 waiting gangs, nothing new", quiet, limit=0.005),
        Figure("10,000 waiting gangs, one pod ends", event, limit=0.02),
        Figure("10,000 gangs that wait for their quota, one pod ends", eased, limit=0.02),
    ] + [
        Figure(
            f"{nodes:,} nodes, 100 gangs x 20",
            typical(3, lambda nodes=nodes: many_gangs(nodes, 100, 20), 2_000),  # type: ignore[misc]
            2_000,
        )
        for nodes in (500, 1_000, 2_000, 4_000, 8_000)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a limit is missed")
    check: bool = parser.parse_args().check
    measured = figures()
    machine = f"{platform.machine()} {platform.system()}, Python {platform.python_version()}"
    print(f"engine, CPU time of one core: {machine}")
    rows = [("what", "CPU time", "rate", "limit"), *(figure.row() for figure in measured)]
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    if check and not all(figure.met for figure in measured):
        sys.exit(1)


if __name__ == "__main__":
    main()
