"""Members beyond a minimum where several queues want them: what is left is shared, too."""

from __future__ import annotations

from collections import Counter

import pytest

from posse.engine.cycle import cycle
from posse.engine.decisions import Start
from posse.engine.facts import NodeFacts, QueueFacts
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import Team, arrives, gang, node, queue

QUIET = Policy(preemption=False, reclaim=False, backfill=False)


def seats(nodes: list[NodeFacts], queues: list[QueueFacts], gangs: list[Team]) -> dict[str, int]:
    """How many pods of each gang have a seat after one cycle."""
    view = View()
    arrives(*queues, *nodes, *gangs)(view)
    seated: Counter[str] = Counter()
    for decision in cycle(view, QUIET, 0.0):
        view.validate()
        if isinstance(decision, Start):
            seated[decision.gang.removeprefix("team/")] += len(decision.seats)
    return dict(seated)


def grows(name: str, pods: int, least: int = 1, **like: object) -> Team:
    return gang(name, workers=pods, least=least, **{"gpus": 1, "queue": name, **like})  # type: ignore[arg-type]


CASES = [
    (
        "two queues have half of it each",
        [node("big", gpus=12)],
        [queue("a"), queue("b")],
        [grows("a", 12), grows("b", 12)],
        {"a": 6, "b": 6},
    ),
    (
        "by their weights",
        [node("big", gpus=12)],
        [queue("a", weight=2), queue("b")],
        [grows("a", 12), grows("b", 12)],
        {"a": 8, "b": 4},
    ),
    (
        "what one does not want, the other has",
        [node("big", gpus=12)],
        [queue("a"), queue("b")],
        [grows("a", 12), grows("b", 3)],
        {"a": 9, "b": 3},
    ),
    (
        "in the resource that each wants most of: who asks another one is not in the way",
        [node("big", gpus=10, cores=10)],
        [queue("both"), queue("gpus"), queue("cpus")],
        [
            grows("both", 10, cores=1),
            grows("gpus", 10, cores=0),
            grows("cpus", 10, cores=1, gpus=0),
        ],
        {"both": 5, "gpus": 5, "cpus": 5},
    ),
    (
        "within one queue the older has them all: that is the order there",
        [node("big", gpus=12)],
        [queue("a")],
        [grows("a", 12, age=5.0), grows("b", 12, queue="a")],
        {"a": 11, "b": 1},
    ),
    (
        "a minimum is not shared: it starts whole",
        [node("big", gpus=12)],
        [queue("a"), queue("b")],
        [grows("a", 12, least=8, age=5.0), grows("b", 12)],
        {"a": 8, "b": 4},
    ),
    (
        "many are seated in a few turns, near enough to equal",
        [node("big", gpus=640, pods=999)],
        [queue("a"), queue("b")],
        [grows("a", 640, cores=0), grows("b", 640, cores=0)],
        {"a": 320, "b": 320},
    ),
    (
        "up to what a queue may use",
        [node("big", gpus=12)],
        [queue("a", gpus=3), queue("b")],
        [grows("a", 12), grows("b", 12)],
        {"a": 3, "b": 9},
    ),
]


@pytest.mark.parametrize(
    ("name", "nodes", "queues", "gangs", "seated"), CASES, ids=[case[0] for case in CASES]
)
def test_members_beyond_the_minimum(
    name: str,
    nodes: list[NodeFacts],
    queues: list[QueueFacts],
    gangs: list[Team],
    seated: dict[str, int],
) -> None:
    found = seats(nodes, queues, gangs)
    if name.startswith("many"):
        assert sum(found.values()) == sum(seated.values())
        assert all(abs(found[each] - seated[each]) <= 40 for each in seated), found
    else:
        assert found == seated, name


def test_alone_it_has_them_in_one_go() -> None:
    view = View()
    arrives(queue("a"), node("big", gpus=12), grows("a", 12))(view)
    starts = [len(each.seats) for each in cycle(view, QUIET, 0.0) if isinstance(each, Start)]
    assert starts == [1, 11]
