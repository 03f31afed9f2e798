"""Who takes from others does not take for somebody else, in vain, or to and fro."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from posse.engine.decisions import Reason
from posse.engine.facts import QueueFacts
from posse.engine.policy import Policy
from tests.scenarios.language import (
    GPU,
    Expectation,
    Happening,
    Scenario,
    Team,
    Turn,
    arrives,
    ends,
    evicts,
    gang,
    goes,
    keeps,
    member,
    node,
    nodes,
    queue,
    starts,
    waits,
)

RESERVED = Reason.RESERVED
QUOTA = Reason.QUOTA


def runs(name: str, of: str, gpus: int, on: str = "node-0", **like: Any) -> Team:
    return gang(name, workers=1, gpus=gpus, on=[on], queue=of, facts={"began": 0.0}, **like)


def new(name: str, of: str, gpus: int, **like: Any) -> Team:
    return gang(name, workers=1, gpus=gpus, queue=of, **like)


def taken(name: str, *victims: str) -> list[Expectation]:
    """These end for it, one pod each."""
    told = [waits(name, reason=RESERVED), *(ended(each) for each in victims)]
    return [evicts(name, dict.fromkeys(victims, 1)), *told]


def ended(name: str) -> Expectation:
    return waits(name, because="ended for team/", reason=Reason.INCOMPLETE)


def deserves(name: str, gpus: int, cores: int) -> QueueFacts:
    return QueueFacts(name, deserved=((GPU, gpus), ("cpu", 1000 * cores)))


def sits(uid: str, on: str) -> Happening:
    """It is confirmed that the pod has its node."""
    return lambda view: view.set_pod(replace(view.members[uid].facts, node=on))


def halves(**facts: Any) -> list[QueueFacts]:
    return [queue("a", deserved=2, **facts), queue("b", deserved=2)]


WOKEN = [
    Scenario(
        "of its queue nobody sits, and the borrower may be ended from now on",
        nodes=nodes(1, gpus=2),
        queues=[queue("a", deserved=2), queue("b", deserved=0)],
        gangs=[runs("old", "b", 2), new("new", "a", 2)],
        policy=Policy(min_runtime=60.0, backfill=False),
        expect=[waits("new")],
        then=[Turn([], taken("new", "old"), after=60.0)],
    ),
]

LAWFUL = [
    Scenario(
        "who insists stays within its due of all it asks for, and not only of what it lacks",
        nodes=[node("big", gpus=2, cores=4), node("rest", gpus=1, cores=3)],
        queues=[deserves("gpu", 2, 1), deserves("cpu", 0, 4)],
        gangs=[
            gang("z", workers=1, cores=0.5, on=["rest"], queue="gpu", facts={"began": 0.0}),
            gang("x", workers=1, gpus=2, cores=2, on=["big"], queue="gpu", facts={"began": 0.0}),
            gang("y", workers=1, gpus=1, cores=4, queue="cpu"),
        ],
        expect=[waits("y")],
    ),
    Scenario(
        "what others ended for in another's name goes to nobody who could not have ended them",
        nodes=nodes(1, gpus=3),
        queues=[queue("a", deserved=1), queue("b", deserved=2)],
        gangs=[
            gang("old", workers=3, gpus=1, on=["node-0"] * 3, queue="a", facts={"began": 0.0}),
            gang("big", workers=3, gpus=1, queue="b", priority=1),
            gang("small", workers=2, gpus=1, queue="b"),
        ],
        expect=[
            evicts("small", {"old": 3}),
            waits("big"),
            waits("small", reason=RESERVED),
            ended("old"),
        ],
        then=[
            Turn(
                [ends(*(f"old-worker-{at}" for at in range(3)))], [starts("small", 2), waits("big")]
            )
        ],
    ),
    Scenario(
        "who comes first in the queue has it, where it is due to it, too",
        nodes=nodes(1, gpus=4),
        queues=halves(),
        gangs=[
            *(runs(f"b{at}", "b", 1) for at in range(4)),
            new("first", "a", 2, priority=1),
            new("second", "a", 2),
        ],
        expect=[*taken("first", "b0", "b1"), waits("second", because="2 held for team/first")],
    ),
    Scenario(
        "no gang of its own ends only so that its queue has less: it would be back at once",
        nodes=[node("x", gpus=3), node("y", gpus=1)],
        queues=halves(),
        gangs=[
            runs("a0", "a", 1, "x"),
            runs("b0", "b", 1, "y"),
            runs("b1", "b", 2, "x", priority=1),
            new("a1", "a", 2, priority=1),
        ],
        expect=[waits("a1")],
    ),
    Scenario(
        "a borrower ends before a gang of its own, which would come back and end it",
        nodes=nodes(1, gpus=4),
        queues=halves(),
        gangs=[
            runs("low", "a", 1, priority=-1),
            runs("big", "b", 3),
            new("new", "a", 1, priority=1),
        ],
        expect=taken("new", "big"),
    ),
    *(
        Scenario(
            f"what is free is not counted against it, be it {what} that is short",
            nodes=[node("node-0", gpus=gpus, cores=64)],
            queues=[
                queue("all", gpus=8),
                QueueFacts("a", parent="all", deserved=((GPU, 4), ("cpu", 4000))),
                QueueFacts("b", parent="all", deserved=((GPU, 4), ("cpu", 4000))),
            ],
            gangs=[
                *(runs(f"b{at}", "b", 2) for at in range(4)),
                new("new", "a", 2, cores=8),
            ],
            expect=taken("new", "b0"),
        )
        for what, gpus in (("room", 8), ("quota", 16))
    ),
]

STARTS = [
    Scenario(
        "nobody ends for a quota that is reserved for another",
        nodes=nodes(1, gpus=16),
        queues=[queue("a", gpus=4)],
        gangs=[
            runs("low", "a", 2),
            runs("high", "a", 2, priority=9),
            new("wide", "a", 4, priority=5),
        ],
        policy=Policy(reserve_after=0.0),
        expect=[keeps("wide", ("worker", "node-0")), waits("wide", reason=QUOTA)],
        then=[Turn([arrives(new("new", "a", 2, priority=1))], [waits("new", reason=QUOTA)])],
    ),
    Scenario(
        "who has room made for it starts there, though one that keeps its order came before it",
        nodes=nodes(1, gpus=4),
        queues=[queue("a", gpus=4, fifo=True)],
        gangs=[
            runs("low", "a", 2),
            runs("top", "a", 2, priority=9),
            new("mid", "a", 2, priority=1),
        ],
        expect=taken("mid", "low"),
        then=[
            Turn([arrives(new("wide", "a", 4, priority=5))], [waits("wide", reason=QUOTA)]),
            Turn(
                [ends("low-worker-0")],
                [starts("mid", 1)],
            ),
        ],
    ),
    Scenario(
        "nobody ends for one that stands behind another in a queue that keeps its order",
        nodes=nodes(1, gpus=5),
        queues=[queue("a", deserved=4, fifo=True), queue("b", deserved=1)],
        gangs=[runs("a0", "a", 3, priority=2), new("b1", "b", 2)],
        expect=[starts("b1", 1)],
        then=[
            Turn([arrives(new("small", "a", 1))], [waits("small")]),
            Turn(
                [sits("b1-worker-0", "node-0"), arrives(new("first", "a", 3, age=99.0))],
                [
                    waits("first"),
                    waits("small", because="waits behind team/first", reason=RESERVED),
                ],
            ),
        ],
    ),
    Scenario(
        "who ends slowly for one does not keep out another for whom the one beside it has ended",
        nodes=nodes(1, gpus=2),
        gangs=[
            runs("low1", "default", 1),
            runs("low2", "default", 1),
            new("hi1", "default", 1, priority=1, age=9),
            new("hi2", "default", 1, priority=1),
        ],
        expect=[
            evicts("hi1", {"low1": 1}),
            evicts("hi2", {"low2": 1}),
            waits("hi1", because="waits for 1 pod of team/low1 to end", reason=RESERVED),
            ended("low1"),
            waits("hi2", because="waits for 1 pod of team/low2 to end", reason=RESERVED),
            ended("low2"),
        ],
        then=[
            Turn([ends("low1-worker-0"), goes("low2-worker-0", grace=3600.0)], [starts("hi1", 1)]),
            Turn([ends("low2-worker-0")], [starts("hi2", 1)]),
        ],
    ),
    Scenario(
        "what others end for in one's name is not taken by another, whose own end slowly",
        nodes=nodes(1, gpus=2),
        gangs=[
            runs("low1", "default", 1),
            runs("low2", "default", 1),
            new("hi1", "default", 1, priority=1, age=9),
            new("hi2", "default", 1, priority=1),
        ],
        expect=[
            evicts("hi1", {"low1": 1}),
            evicts("hi2", {"low2": 1}),
            waits("hi1", reason=RESERVED),
            ended("low1"),
            waits("hi2", reason=RESERVED),
            ended("low2"),
        ],
        then=[
            Turn([ends("low2-worker-0"), goes("low1-worker-0", grace=3600.0)], [starts("hi2", 1)]),
            Turn([ends("low1-worker-0")], [starts("hi1", 1)]),
        ],
    ),
    Scenario(
        "what others end for stays its own while one of its pods is made anew",
        nodes=nodes(1, gpus=2),
        gangs=[runs("old", "default", 2), gang("new", workers=2, gpus=1, priority=9)],
        expect=taken("new", "old"),
        then=[
            Turn([goes("old-worker-0", grace=30)]),
            Turn(
                [ends("new-worker-0"), arrives(gang("low", workers=1, gpus=1))],
                [waits("new", reason=Reason.INCOMPLETE), waits("low")],
            ),
            Turn([ends("old-worker-0")], [waits("low", because="2 held for team/new")]),
            Turn([arrives(member("new", "worker-0", gpus=1))], [starts("new", 2), waits("low")]),
        ],
    ),
    Scenario(
        "but not while none of them is there",
        nodes=nodes(1, gpus=2),
        gangs=[runs("old", "default", 2), new("new", "default", 2, priority=9)],
        expect=taken("new", "old"),
        then=[
            Turn([goes("old-worker-0", grace=30)]),
            Turn(
                [ends("new-worker-0"), arrives(gang("low", workers=1, gpus=1))],
                [waits("new", reason=Reason.INCOMPLETE), waits("low")],
            ),
            Turn([ends("old-worker-0")], [starts("low", 1)]),
        ],
    ),
]

TOLD = [
    Scenario(
        "what is reserved is not in use",
        nodes=nodes(1, gpus=8),
        queues=[queue("a", gpus=3)],
        gangs=[runs("old", "a", 2), new("wide", "a", 3, age=9), new("small", "a", 2)],
        policy=Policy(reserve_after=0.0),
        expect=[
            keeps("wide", ("worker", "node-0")),
            waits("wide", because="and 2 are in use; it can start when 2 more", reason=QUOTA),
            waits("small", because="and 2 are in use; it can start when 1 more", reason=QUOTA),
        ],
    ),
    Scenario(
        "who goes and what is kept on its room are not both in use",
        nodes=nodes(1, gpus=8),
        queues=[
            queue("all", gpus=4),
            queue("a", parent="all", deserved=2),
            queue("b", parent="all", deserved=2),
        ],
        gangs=[
            *(runs(f"a{at}", "a", 1) for at in range(4)),
            *(new(f"b{at}", "b", 1, age=9 - at) for at in range(3)),
        ],
        expect=[
            evicts("b0", {"a0": 1}),
            evicts("b1", {"a1": 1}),
            waits("b0", because="1 pod of team/a0 to end", reason=RESERVED),
            ended("a0"),
            waits("b1", because="1 pod of team/a1 to end", reason=RESERVED),
            ended("a1"),
            waits("b2", because="and 4 are in use; it can start when 1 more", reason=QUOTA),
        ],
    ),
]


@pytest.mark.parametrize(
    "scenario", WOKEN + LAWFUL + STARTS + TOLD, ids=lambda scenario: scenario.name
)
def test_takers(scenario: Scenario) -> None:
    scenario.play()
