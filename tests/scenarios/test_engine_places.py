"""Who is told its place in line, and when: the first ten of a queue, and nobody behind them."""

from __future__ import annotations

import pytest

from posse.engine.cycle import cycle
from posse.engine.decisions import Reason, Start, Wait
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import (
    Scenario,
    Team,
    Turn,
    arrives,
    asks_only,
    ends,
    gang,
    node,
    nodes,
    pod,
    queue,
    starts,
    vanishes,
    waits,
)


def line(number: int, **like: object) -> list[Team]:
    """So many gangs of one pod, g00 the oldest."""
    return [
        gang(f"g{at:02}", workers=1, gpus=1, age=100.0 - at, **like)  # type: ignore[arg-type]
        for at in range(number)
    ]


FULL = [pod("x", on="node-0", gpus=1)]

TABLE = [
    Scenario(
        "who left its place for another and is back stands there once",
        nodes=nodes(1, gpus=1),
        others=FULL,
        gangs=line(3),
        expect=[waits(f"g0{at}", place=at + 1) for at in range(3)],
        then=[
            Turn(
                [arrives(*line(3, priority=-1)[1:2])],
                [waits("g01", place=3), waits("g02", place=2)],
            ),
            Turn([arrives(*line(3)[1:2])], [waits("g01", place=2), waits("g02", place=3)]),
        ],
        places=True,
    ),
    Scenario(
        "who could never start stands in line once it can, and so do those that ask the same",
        nodes=nodes(1, gpus=2),
        queues=[queue("rich", guarantee=2)],
        gangs=line(3),
        expect=[
            waits(f"g0{at}", because="lower the guarantee", reason=Reason.QUOTA, place=0)
            for at in range(3)
        ],
        then=[
            Turn(
                [arrives(node("full", gpus=1), pod("x", on="full", gpus=1))],
                [
                    waits(f"g0{at}", because="1 more is free", reason=Reason.QUOTA, place=at + 1)
                    for at in range(3)
                ],
            )
        ],
        places=True,
    ),
    Scenario(
        "who waits alone is the first",
        nodes=nodes(1, gpus=1),
        others=FULL,
        gangs=line(1),
        expect=[waits("g00", place=1)],
        places=True,
    ),
    Scenario(
        "priority comes before age, and each queue has a line of its own",
        nodes=nodes(1, gpus=1),
        others=FULL,
        queues=[queue("other")],
        gangs=[
            *line(2),
            gang("urgent", workers=1, gpus=1, priority=5),
            gang("elsewhere", workers=1, gpus=1, queue="other"),
        ],
        expect=[
            waits("urgent", place=1),
            waits("g00", place=2),
            waits("g01", place=3),
            waits("elsewhere", place=1),
        ],
        places=True,
    ),
    Scenario(
        "the eleventh has no place until one before it starts",
        nodes=nodes(1, gpus=1),
        others=FULL,
        gangs=line(12),
        expect=[waits(f"g{at:02}", place=at + 1 if at < 10 else 0) for at in range(12)],
        then=[
            Turn(
                [ends("x")],
                [starts("g00"), *(waits(f"g{at:02}", place=at) for at in range(1, 11))],
            ),
        ],
        places=True,
    ),
    Scenario(
        "whoever leaves in the middle moves those behind it, and nobody before it",
        nodes=nodes(1, gpus=1),
        others=FULL,
        gangs=line(4),
        expect=[waits(f"g{at:02}", place=at + 1) for at in range(4)],
        then=[Turn([vanishes("g01")], [waits("g02", place=2), waits("g03", place=3)])],
        places=True,
    ),
    Scenario(
        "whoever comes in front moves all others back",
        nodes=nodes(1, gpus=1),
        others=FULL,
        gangs=line(2),
        expect=[waits("g00", place=1), waits("g01", place=2)],
        then=[
            Turn(
                [arrives(gang("urgent", workers=1, gpus=1, priority=5))],
                [waits("urgent", place=1), waits("g00", place=2), waits("g01", place=3)],
            ),
        ],
        places=True,
    ),
    Scenario(
        "who can never start on today's nodes stands in nobody's way",
        nodes=nodes(1, gpus=1),
        others=FULL,
        gangs=[gang("huge", workers=1, gpus=8, age=200.0), *line(1)],
        expect=[waits("huge", place=0), waits("g00", place=1)],
        places=True,
    ),
    Scenario(
        "nor does it behind the first",
        nodes=nodes(1, gpus=1),
        others=FULL,
        gangs=[*line(2), gang("huge", workers=1, gpus=8, age=99.5)],
        expect=[
            waits("g00", place=1),
            waits("huge", place=0),
            waits("g01", place=2),
        ],
        then=[
            Turn(
                [arrives(node("large", gpus=8), pod("y", on="large", gpus=8))],
                [
                    waits("g00", place=1),
                    waits("huge", because="it can start when", place=2),
                    waits("g01", place=3),
                ],
            ),
        ],
        places=True,
    ),
    Scenario(
        "a node that came makes the hopeless one the first in line",
        nodes=nodes(1, gpus=1),
        others=[*FULL, pod("y", on="large", gpus=8)],
        gangs=[gang("huge", workers=1, gpus=8, age=200.0), *line(1)],
        expect=[waits("huge", place=0), waits("g00", place=1)],
        then=[
            Turn(
                [arrives(node("large", gpus=8))],
                [waits("g00", place=2), waits("huge", place=1)],
            ),
        ],
        places=True,
    ),
    Scenario(
        "who waits for its pods or for its queue is in no line",
        nodes=nodes(1, gpus=1),
        others=FULL,
        gangs=[
            gang("few", workers=2, exist=1, gpus=1, age=200.0),
            gang("lost", workers=1, gpus=1, queue="nowhere", age=200.0),
            *line(1),
        ],
        expect=[
            waits("few", reason=Reason.INCOMPLETE, place=0),
            waits("g00", place=1),
            waits("lost", reason=Reason.QUEUE_MISSING, place=0),
        ],
        places=True,
    ),
    Scenario(
        "members beyond the minimum are in no line",
        nodes=nodes(1, gpus=2),
        others=FULL,
        gangs=[gang("elastic", workers=2, least=1, gpus=1, age=200.0), *line(1)],
        expect=[
            starts("elastic", 1),
            waits("g00", place=1),
            waits("elastic", because="beyond its minimum", place=0),
        ],
        places=True,
    ),
    Scenario(
        "a quota has a line, too",
        nodes=nodes(1, gpus=4),
        queues=[queue("small", gpus=1)],
        gangs=[
            gang("has", workers=1, gpus=1, on=["node-0"], queue="small"),
            *line(2, queue="small"),
        ],
        expect=[
            waits("g00", reason=Reason.QUOTA, place=1),
            waits("g01", reason=Reason.QUOTA, place=2),
        ],
        places=True,
    ),
    Scenario(
        "who asks for less and starts has no place any more",
        nodes=nodes(1, gpus=2),
        others=FULL,
        gangs=[gang("wide", workers=2, gpus=1, age=200.0), gang("late", workers=2, gpus=1)],
        expect=[waits("wide", place=1), waits("late", place=2)],
        then=[
            Turn(
                [asks_only("wide", 1)],
                [
                    starts("wide", 1),
                    waits("late", place=1),
                    waits("wide", because="beyond its minimum", place=0),
                ],
            ),
        ],
        places=True,
    ),
]


@pytest.mark.parametrize("scenario", TABLE, ids=lambda scenario: scenario.name)
def test_places(scenario: Scenario) -> None:
    scenario.play()


def test_one_start_is_news_to_ten_of_a_hundred() -> None:
    view = View()
    arrives(*nodes(1, gpus=1), *FULL, *line(100))(view)
    assert len(list(cycle(view, Policy(), 0.0))) == 100
    view.remove_pod("x")
    started, *told = cycle(view, Policy(), 1.0)
    assert isinstance(started, Start)
    assert [each.gang for each in told] == [f"team/g{at:02}" for at in range(1, 11)]
    assert all(isinstance(each, Wait) for each in told)


def test_those_that_overtook_leave_no_gaps() -> None:
    """The first stays; two hundred behind it start and are gone: the others' places are right."""
    view = View()
    arrives(*nodes(1, gpus=8), pod("x", on="node-0", gpus=7), pod("y", on="node-0", gpus=1))(view)
    arrives(gang("wide", workers=8, gpus=1, age=200.0), *line(220))(view)
    policy = Policy(most_overtakes=10_000, reserve_after=1e9)
    list(cycle(view, policy, 0.0))
    for at in range(200):
        view.remove_pod("y" if not at else f"g{at - 1:02}-worker-0")
        list(cycle(view, policy, 1.0 + at))
    verdicts = {key: each.verdict for key, each in view.gangs.items()}
    places = {key: told.position for key, told in verdicts.items() if told and told.position}
    left = ["team/wide", *(f"team/g{at}" for at in range(200, 209))]
    assert places == {key: at for at, key in enumerate(left, start=1)}
