"""The engine alone: how fast it places gangs, and what it costs when there is nothing to do.

    python -m bench.engine [--check]

With --check it exits 1 if a figure that has a limit misses it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

from bench.figures import Figure, present, timed
from bench.scenes import (
    contested,
    crowd,
    decisions,
    fragmented,
    many_gangs,
    many_queues,
    mixed,
    mixed_crowd,
    rationed,
    seat,
)
from posse.engine.decisions import Evict
from posse.engine.view import View

_ENDED = [f"other-{number}" for number in range(5, 10)]


def best(rounds: int, prepare: Callable[[], View], pods: int) -> float:
    """Of so many cycles, each on a view of its own, in which so many pods are to be seated."""

    def one() -> float:
        view = prepare()
        return timed(lambda: seat(view, pods))

    return min(one() for _ in range(rounds))


def again(rounds: int, view: View) -> float:
    """A cycle on a view on which everything was decided."""
    return min(timed(lambda: seat(view, 0)) for _ in range(rounds))


def after(view: View, *ended: str) -> float:
    """The cycle after one of these pods has ended, whoever starts in its place."""
    gc.collect()
    costs = []
    for uid in ended:
        view.remove_pod(uid)
        costs.append(timed(lambda: list(decisions(view)), tidy=False))
    return median(costs)


def preempt(view: View) -> float:
    """The cycle that ends others for the gang, none in vain."""
    ended = 0

    def run() -> None:
        nonlocal ended
        for decision in decisions(view):
            if isinstance(decision, Evict):
                ended += sum(len(victim.pods) for victim in decision.victims)

    seconds = timed(run)
    if ended != 512 * 8:
        sys.exit(f"bench: {ended} pods ended, {512 * 8} expected")
    return seconds


def placing() -> Iterator[Figure]:
    yield Figure(
        "5,000 nodes x 8 GPUs, 500 gangs x 20",
        best(30, lambda: many_gangs(5_000, 500, 20), 10_000),
        10_000,
        0.2,
    )
    yield Figure(
        "the same in 20 queues with limits and guarantees",
        best(30, lambda: many_queues(5_000, 500, 20), 10_000),
        10_000,
        0.2,
    )
    yield Figure(
        "the same of all kinds, in a tree of queues, on racks, blocks and zones",
        best(30, lambda: mixed(5_000, 500, 20), 10_000),
        10_000,
        0.2,
    )
    yield Figure(
        "the same, each with a launcher's seat held",
        best(3, lambda: many_gangs(5_000, 500, 20, launcher=True), 10_000),
        10_000,
    )
    yield Figure(
        "one gang of 10,000", best(3, lambda: many_gangs(5_000, 1, 10_000), 10_000), 10_000, 0.5
    )
    yield Figure(
        "a fragmented cluster, 200 gangs x 20", best(3, lambda: fragmented(5_000), 4_000), 4_000
    )
    yield Figure(
        "a gang of 512 x 8 GPUs preempts across 5,000 full nodes",
        min(preempt(contested(5_000)) for _ in range(3)),
        512,
        1.0,
    )


def waiting() -> Iterator[Figure]:
    placed = mixed(5_000, 500, 20)
    seat(placed, 10_000)
    yield Figure("5,000 nodes on which 10,000 pods run, nothing new", again(20, placed), 0, 0.005)
    full = crowd(10_000)
    yield Figure("10,000 waiting gangs, nothing new", again(20, full), 0, 0.005)
    yield Figure("10,000 waiting gangs, one pod ends", after(full, *_ENDED), 0, 0.02)
    yield Figure(
        "10,000 gangs that wait for their quota, one pod ends",
        after(rationed(10_000), *(f"run-{number}-worker-0" for number in range(5, 10))),
        0,
        0.02,
    )
    full = mixed_crowd(1_000, 10_000)
    yield Figure("10,000 waiting gangs of all kinds, nothing new", again(20, full), 0, 0.005)
    yield Figure(
        "10,000 waiting gangs of all kinds, one pod ends",
        after(full, *_ENDED),
        0,
        0.02,
    )


def growth() -> Iterator[Figure]:
    for nodes in (500, 1_000, 2_000, 4_000, 8_000):
        scene = partial(mixed, nodes, 50, 20)
        yield Figure(f"{nodes:,} nodes, 50 gangs x 20 of all kinds", best(3, scene, 1_000), 1_000)
    for gangs in (125, 250, 500, 750):
        scene = partial(mixed, 8_000, gangs, 20)
        pods = 20 * gangs
        yield Figure(f"8,000 nodes, {pods:,} pods of all kinds", best(3, scene, pods), pods)


def figures() -> Iterator[Figure]:
    yield from placing()
    yield from waiting()
    yield from growth()


if __name__ == "__main__":
    present("engine", __doc__, figures)
