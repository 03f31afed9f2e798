"""Nobody starts where another one would at once be ended for a third.

Who is blocked ends others in its turn, before anybody behind it is served: those would otherwise
start in the room that it lacks only a part of, and end for it a moment later; or stay, where they
must not be ended, and keep it from starting for as long as they run. And a queue does not borrow
what another wants of its own, which would take it back from whoever ran there before.
"""

from __future__ import annotations

from typing import Any

import pytest

from posse.engine.cycle import cycle
from posse.engine.decisions import Evict, Reason
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import (
    Expectation,
    Scenario,
    Team,
    Turn,
    arrives,
    ends,
    evicts,
    gang,
    goes,
    keeps,
    leaves,
    member,
    node,
    nodes,
    queue,
    starts,
    vanishes,
    waits,
)

RESERVED, INCOMPLETE = Reason.RESERVED, Reason.INCOMPLETE


def runs(name: str, *on: str, gpus: int = 1, **like: Any) -> Team:
    facts = {"began": -100.0, **like.pop("facts", {})}
    return gang(name, workers=len(on), on=on, gpus=gpus, facts=facts, **like)


def ended(name: str) -> Expectation:
    return waits(name, because="ended for team/", reason=INCOMPLETE)


def behind(name: str, gang: str) -> Expectation:
    return waits(name, because=f"held for team/{gang}")


def half_full(*behind: Team, policy: Policy | None = None, name: str) -> Scenario:
    """Two of four GPUs are in use; who comes first lacks those, who comes behind does not."""
    return Scenario(
        name,
        nodes=nodes(1, gpus=4),
        gangs=[
            runs("old", "node-0", "node-0"),
            gang("first", workers=4, gpus=1, priority=5),
            *behind,
        ],
        policy=policy or Policy(),
        expect=[
            evicts("first", {"old": 2}, on={"node-0": 4}),
            waits("first", because="2 pods of team/old", reason=RESERVED),
            ended("old"),
            *(waits(each.group.uid, because="held for team/first") for each in behind),
        ],
        then=[
            Turn([goes("old-worker-0", "old-worker-1")]),
            Turn(
                [ends("old-worker-0", "old-worker-1")],
                [starts("first", 4), *(waits(each.group.uid) for each in behind)],
            ),
        ],
    )


SCENARIOS = [
    Scenario(
        "who has begun and lost a member ends others before anybody new does",
        nodes=nodes(3, gpus=1),
        gangs=[runs("mine", "node-0", "node-1", priority=5), runs("old", "node-2")],
        then=[
            Turn(
                [ends("mine-worker-1"), leaves("node-1")],
                [keeps("mine", ("worker", "node-1")), waits("mine", reason=INCOMPLETE)],
            ),
            Turn(
                [
                    arrives(member("mine", "worker-1", gpus=1)),
                    arrives(gang("new", workers=1, gpus=1, priority=5, age=9.0)),
                ],
                [
                    keeps("mine"),
                    evicts("mine", {"old": 1}, on={"node-2": 1}),
                    waits("mine", because="1 pod of team/old", reason=RESERVED),
                    ended("old"),
                    waits("new"),
                ],
            ),
        ],
    ),
    half_full(
        gang("second", workers=2, gpus=1),
        name="room that it lacks a part of is not given to who comes behind, to be ended at once",
    ),
    half_full(
        gang("second", workers=2, gpus=1, facts={"preemptable": False}),
        name="nor to one that must not be ended, and would keep it out for good",
    ),
    half_full(
        gang("second", workers=2, gpus=1),
        policy=Policy(min_runtime=60.0),
        name="nor to one that nobody may end for a while",
    ),
    Scenario(
        "who finds nobody to end is passed, as ever",
        nodes=nodes(1, gpus=4),
        gangs=[
            runs("old", "node-0", "node-0", priority=9),
            gang("first", workers=4, gpus=1, priority=5),
            gang("second", workers=2, gpus=1),
        ],
        expect=[starts("second", 2), waits("first", because="0 of 4 are free")],
    ),
    Scenario(
        "a queue that takes back its due does so before another borrows more",
        nodes=nodes(2, gpus=4),
        queues=[queue("a", deserved=2), queue("b", deserved=6)],
        gangs=[
            *(runs(f"a{at}", "node-0", queue="a") for at in range(4)),
            gang("due", workers=6, gpus=1, queue="b"),
            gang("more", workers=4, gpus=1, queue="a", age=9.0),
        ],
        expect=[
            evicts("due", {"a0": 1, "a1": 1}),
            waits("due", reason=RESERVED),
            ended("a0"),
            ended("a1"),
            behind("more", "due"),
        ],
    ),
    Scenario(
        "who found nobody to end while room was kept for another looks again when less is kept",
        nodes=nodes(1, gpus=3),
        queues=[queue("l", deserved=1), queue("r", deserved=1), queue("m", deserved=0)],
        gangs=[
            runs("lo", "node-0", queue="l", priority=1),
            runs("r1", "node-0", queue="r"),
            runs("x", "node-0", queue="m"),
            gang("r2", workers=1, gpus=1, queue="r"),
        ],
        expect=[waits("r2")],
        then=[
            Turn(after=400, expect=[keeps("r2", ("worker", "node-0")), waits("r2")]),
            Turn(
                [
                    vanishes("x"),
                    arrives(
                        gang("hi", workers=1, gpus=1, queue="l", priority=3, age=-400),
                        gang("hi2", workers=1, gpus=1, queue="l", priority=2, age=-400),
                    ),
                ],
                [
                    starts("hi"),
                    evicts("hi2", {"lo": 1}),
                    waits("r2"),
                    waits("hi2", reason=RESERVED),
                    ended("lo"),
                ],
            ),
        ],
    ),
]


def shared(name: str, *teams: Team, expect: list[Expectation], **dues: int | None) -> Scenario:
    """Two of four GPUs are free; of the others each queue has one."""
    return Scenario(
        name,
        nodes=nodes(1, gpus=4),
        queues=[queue(each, deserved=due) for each, due in dues.items()],
        gangs=[*(runs(f"{each}0", "node-0", queue=each) for each in ("a", "b")), *teams],
        expect=expect,
    )


BORROWING = [
    shared(
        "who stays within its due comes before an older one that does not",
        gang("a1", workers=2, gpus=1, queue="a", age=9.0),
        gang("b1", workers=1, gpus=1, queue="b"),
        expect=[starts("b1", 1), waits("a1", because="1 of 4 is free")],
        a=2,
        b=2,
    ),
    shared(
        "so it is where their weights say what is due",
        gang("a1", workers=2, gpus=1, queue="a", age=9.0),
        gang("b1", workers=1, gpus=1, queue="b"),
        expect=[starts("b1", 1), waits("a1", because="1 of 4 is free")],
        a=None,
        b=None,
    ),
    shared(
        "what nobody else wants is borrowed at once",
        gang("a1", workers=2, gpus=1, queue="a"),
        expect=[starts("a1", 2)],
        a=2,
        b=2,
    ),
    shared(
        "and what the other could not use anyway",
        gang("a1", workers=2, gpus=1, queue="a"),
        gang("b1", workers=1, gpus=3, queue="b", age=9.0),
        expect=[starts("a1", 2), waits("b1")],
        a=2,
        b=2,
    ),
    shared(
        "of two that would both borrow the older is first",
        gang("a1", workers=2, gpus=1, queue="a", age=9.0),
        gang("b1", workers=2, gpus=1, queue="b"),
        expect=[starts("a1", 2), waits("b1")],
        a=2,
        b=2,
    ),
    shared(
        "members beyond a minimum come after a minimum within its due, whatever the shares",
        gang("a1", workers=3, least=1, gpus=1, queue="a", age=9.0, on=["node-0"]),
        gang("b1", workers=1, gpus=1, queue="b"),
        expect=[starts("b1", 1), waits("a1", because="beyond its minimum")],
        a=8,
        b=2,
    ),
]


@pytest.mark.parametrize("scenario", BORROWING, ids=lambda each: each.name)
def test_borrowing(scenario: Scenario) -> None:
    scenario.play()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_turns(scenario: Scenario) -> None:
    scenario.play()


def test_who_was_put_off_is_not_passed_by_who_came_later() -> None:
    """There is no time to look for all their victims at once; one is left, for the seventeenth."""
    view = View()
    first = [
        gang(f"first-{at:02}", workers=1, gpus=1, cores=1 + at / 8, priority=5, age=20.0 - at)
        for at in range(17)
    ]
    arrives(node("node-0", gpus=17, cores=64))(view)
    arrives(*(runs(f"old-{at:02}", "node-0") for at in range(17)), *first)(view)
    evicted = [each.gang for each in cycle(view, Policy(), 1.0) if isinstance(each, Evict)]
    assert evicted == [team.group.key for team in first[:16]]

    arrives(gang("later", workers=1, gpus=1, priority=3))(view)
    evicted = [each.gang for each in cycle(view, Policy(), 2.0) if isinstance(each, Evict)]
    assert evicted == ["team/first-16"]
