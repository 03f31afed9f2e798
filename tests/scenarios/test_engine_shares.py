"""How much each queue has when there is less than is asked for: many small gangs, and the sums.

Facts that theory and the tests of other schedulers agree on; who comes first is told elsewhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest

from posse.engine.cycle import cycle
from posse.engine.decisions import Evict, Start
from posse.engine.facts import QueueFacts, Shape
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import arrives, check_promises, gang, node, queue, shape


@dataclass(frozen=True)
class Ask:
    """So many gangs of one in a queue; the first `run` already."""

    queue: str
    number: int
    each: Shape
    run: int = 0


@dataclass(frozen=True)
class Shares:
    name: str
    queues: list[QueueFacts]
    asks: list[Ask]
    # How many have started in each queue.
    starts: dict[str, int]
    gpus: int = 0
    cores: int = 0


CORE, GPU, BOTH = shape(cores=1), shape(gpus=1, cores=0), shape(gpus=1, cores=1)


TABLE = [
    Shares(
        "by weight, of what is there",
        [queue("a", weight=1), queue("b", weight=3)],
        [Ask("a", 20, GPU), Ask("b", 20, GPU)],
        {"a": 4, "b": 12},
        gpus=16,
    ),
    Shares(
        "what one does not want, the others share by weight",
        [queue("a"), queue("b"), queue("c", weight=2)],
        [Ask("a", 1, GPU), Ask("b", 20, GPU), Ask("c", 20, GPU)],
        {"a": 1, "b": 5, "c": 10},
        gpus=16,
    ),
    Shares(
        "parts of a queue that ask for different things do not stand in each other's way",
        [queue("one"), queue("two"), queue("cpu", parent="two"), queue("gpu", parent="two")],
        [Ask("one", 10, BOTH), Ask("cpu", 10, CORE), Ask("gpu", 10, GPU)],
        {"one": 5, "cpu": 5, "gpu": 5},
        gpus=10,
        cores=10,
    ),
    Shares(
        "a part whose resource is used up does not hold up the part beside it",
        [
            *(queue(name) for name in ("a", "b", "c", "d")),
            queue("c-cpu", parent="c"),
            queue("c-gpu", parent="c"),
        ],
        [
            Ask("a", 30, CORE),
            Ask("b", 30, CORE),
            Ask("c-cpu", 30, CORE),
            Ask("c-gpu", 30, GPU),
            Ask("d", 30, GPU),
        ],
        {"a": 10, "b": 10, "c-cpu": 10, "c-gpu": 15, "d": 15},
        gpus=30,
        cores=30,
    ),
    Shares(
        "who has little so far comes first until all have the same",
        [queue("a"), queue("b")],
        [Ask("a", 20, GPU, run=6), Ask("b", 20, GPU, run=2)],
        {"a": 2, "b": 6},
        gpus=16,
    ),
    Shares(
        "what is deserved comes before what is borrowed, whatever is used already",
        [queue("a", deserved=12), queue("b", deserved=4)],
        [Ask("a", 20, GPU, run=8), Ask("b", 20, GPU, run=4)],
        {"a": 4, "b": 0},
        gpus=16,
    ),
    Shares(
        "what is guaranteed to one that wants nothing is nobody's",
        [queue("a"), queue("b", guarantee=4)],
        [Ask("a", 20, GPU)],
        {"a": 12},
        gpus=16,
    ),
    Shares(
        "a limit of the whole binds its parts, and who is beside it has the rest",
        [queue("one", gpus=6), queue("x", parent="one"), queue("y", parent="one"), queue("two")],
        [Ask("x", 20, GPU), Ask("y", 20, GPU), Ask("two", 20, GPU)],
        {"x": 3, "y": 3, "two": 10},
        gpus=16,
    ),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_shares(row: Shares) -> None:
    view = View()
    teams = [
        gang(
            f"{ask.queue}-{at}",
            roles={"worker": (1, ask.each)},
            on=["big"] if at < ask.run else (),
            queue=ask.queue,
            facts={"began": -10.0} if at < ask.run else {},
        )
        for ask in row.asks
        for at in range(ask.number)
    ]
    arrives(*row.queues, node("big", gpus=row.gpus, cores=row.cores or 64, pods=500), *teams)(view)
    started: Counter[str] = Counter({ask.queue: 0 for ask in row.asks})
    for decision in cycle(view, Policy(), 1.0):
        check_promises(view, decision)
        assert not isinstance(decision, Evict)
        if isinstance(decision, Start):
            started[decision.gang.removeprefix("team/").rpartition("-")[0]] += 1
    assert started == row.starts
