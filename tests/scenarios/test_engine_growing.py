"""Members beyond a minimum for whom others end; groups whose members wait for nobody; groups that
end only as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from posse.engine.decisions import Reason
from posse.engine.facts import Topology
from posse.engine.policy import Policy
from tests.scenarios.language import (
    Expectation,
    Scenario,
    Team,
    Turn,
    arrives,
    but,
    ends,
    evicts,
    gang,
    goes,
    keeps,
    member,
    node,
    nodes,
    pod,
    queue,
    starts,
    waits,
)

RESERVED = Reason.RESERVED
RACKS = [
    node(name, gpus=8, labels={"rack": rack})
    for name, rack in [("a0", "a"), ("a1", "a"), ("b0", "b"), ("b1", "b")]
]


def runs(name: str, *on: str, gpus: int = 8, **like: Any) -> Team:
    facts = {"began": -100.0, **like.pop("facts", {})}
    return gang(name, workers=len(on), on=on, gpus=gpus, facts=facts, **like)


def grows(name: str, *on: str, workers: int, least: int = 1, **like: Any) -> Team:
    """The first of its workers run; others may be ended for those that wait."""
    facts = {"began": -100.0, "grows": True, **like.pop("facts", {})}
    like = {"gpus": 8, "priority": 5, "started": False, **like}
    return gang(name, workers=workers, least=least, on=on, facts=facts, **like)


def ended(name: str) -> Expectation:
    return waits(name, because="ended for team/", reason=Reason.INCOMPLETE)


SCENARIOS = [
    Scenario(
        "others of lower priority end for members beyond the minimum, all of them at once",
        nodes=nodes(3, gpus=8),
        gangs=[
            grows("new", "node-0", workers=3),
            runs("x", "node-1"),
            runs("y", "node-2"),
        ],
        expect=[
            evicts("new", {"x": 1, "y": 1}, on={"node-1": 1, "node-2": 1}),
            waits("new", because="waits for 2 pods of team/x, team/y to end", reason=RESERVED),
            ended("x"),
            ended("y"),
        ],
        then=[
            Turn([goes("x-worker-0", "y-worker-0")]),
            Turn(
                [ends("x-worker-0")],
                [waits("new", because="waits for 1 pod of team/y to end", reason=RESERVED)],
            ),
            Turn([ends("y-worker-0")], [starts("new", 2, on={"node-1": 1, "node-2": 1})]),
        ],
    ),
    Scenario(
        "nobody ends for them where the group does not say so",
        nodes=nodes(2, gpus=8),
        gangs=[grows("new", "node-0", workers=2, facts={"grows": False}), runs("x", "node-1")],
        expect=[waits("new", because="1 pod beyond its minimum")],
    ),
    Scenario(
        "nobody of equal priority ends for them",
        nodes=nodes(2, gpus=8),
        gangs=[grows("new", "node-0", workers=2), runs("x", "node-1", priority=5)],
        expect=[waits("new", because="1 pod beyond its minimum")],
    ),
    Scenario(
        "nor does anybody for whom it must not preempt",
        nodes=nodes(2, gpus=8),
        gangs=[
            grows("new", "node-0", workers=2, facts={"preempts": False}),
            runs("x", "node-1"),
        ],
        expect=[waits("new", because="1 pod beyond its minimum")],
    ),
    Scenario(
        "room is made for as many as can be helped, no more and no fewer",
        nodes=nodes(4, gpus=8),
        gangs=[
            grows("new", "node-0", workers=6),
            runs("x", "node-1"),
            runs("y", "node-2"),
            runs("lord", "node-3", priority=9),
        ],
        expect=[
            evicts("new", {"x": 1, "y": 1}),
            waits("new", reason=RESERVED),
            ended("x"),
            ended("y"),
        ],
        then=[
            Turn(
                [ends("x-worker-0", "y-worker-0")],
                [starts("new", 2), waits("new", because="3 pods beyond its minimum")],
            )
        ],
    ),
    Scenario(
        "what is free is taken first, and only for the others somebody ends",
        nodes=nodes(3, gpus=8),
        gangs=[grows("new", "node-0", workers=3), runs("x", "node-1")],
        expect=[
            starts("new", 1, on={"node-2": 1}),
            evicts("new", {"x": 1}, on={"node-1": 1}),
            waits("new", reason=RESERVED),
            ended("x"),
        ],
    ),
    Scenario(
        "the room is nobody else's until they sit there, though every minimum comes before them",
        nodes=nodes(2, gpus=8),
        gangs=[grows("new", "node-0", workers=2), runs("x", "node-1")],
        expect=[evicts("new", {"x": 1}), waits("new", reason=RESERVED), ended("x")],
        then=[
            Turn(
                [ends("x-worker-0"), arrives(member("x", "worker-0", gpus=8))],
                [starts("new", 1, on={"node-1": 1}), waits("x", because="needs 8 GPUs")],
            ),
        ],
    ),
    Scenario(
        "who does not wait any more needs no room, and what was kept for it is anybody's",
        nodes=nodes(2, gpus=8),
        gangs=[grows("new", "node-0", workers=2), runs("x", "node-1")],
        expect=[evicts("new", {"x": 1}), waits("new", reason=RESERVED), ended("x")],
        then=[
            Turn([ends("new-worker-1")], [keeps("new")]),
            Turn(
                [ends("x-worker-0"), arrives(member("x", "worker-0", gpus=8))],
                [starts("x", 1, on={"node-1": 1})],
            ),
        ],
    ),
    Scenario(
        "room that is being left already ends nobody more",
        nodes=nodes(3, gpus=8),
        gangs=[
            grows("new", "node-0", workers=2),
            runs("x", "node-1"),
            runs("y", "node-2", deleting=1),
        ],
        expect=[
            keeps("new", ("worker", "node-2"), until=301.0),
            waits("new", because="waits for 1 pod of team/y to end", reason=RESERVED),
        ],
    ),
    Scenario(
        "somebody ends in the rack that its members must sit in, however cheap others are",
        nodes=RACKS,
        gangs=[
            grows(
                "new", "a0", workers=2, facts={"topology": Topology(key="rack")}, recreated=False
            ),
            runs("x", "a1", priority=4),
            runs("y", "b0"),
        ],
        expect=[
            evicts("new", {"x": 1}, on={"a1": 1}),
            waits("new", reason=RESERVED),
            ended("x"),
        ],
    ),
    Scenario(
        "beyond its minimum it takes nothing back from other queues",
        nodes=nodes(3, gpus=8),
        queues=[queue("mine"), queue("theirs")],
        gangs=[
            grows("new", "node-0", workers=3, queue="mine"),
            runs("x", "node-1", queue="theirs"),
            runs("y", "node-2", queue="theirs"),
        ],
        expect=[waits("new", because="2 pods beyond its minimum")],
    ),
    # -- nobody waits for another
    Scenario(
        "a pod of a loose group is served by its priority, as a pod of its own would be",
        nodes=nodes(2, gpus=8),
        gangs=[
            grows("new", "node-0", workers=2, facts={"loose": True}),
            gang("x", workers=1, gpus=8, age=10.0),
        ],
        expect=[starts("new", 1), waits("x")],
    ),
    Scenario(
        "and not after every minimum, as members of a gang are",
        nodes=nodes(2, gpus=8),
        gangs=[grows("new", "node-0", workers=2), gang("x", workers=1, gpus=8, age=10.0)],
        policy=Policy(preemption=False),
        expect=[starts("x", 1), waits("new", because="1 pod beyond its minimum")],
    ),
    Scenario(
        "nor is it older than it is, because its group is",
        nodes=nodes(2, gpus=8),
        gangs=[
            but(
                grows("old", "node-0", workers=2, age=20.0, priority=0, facts={"loose": True}),
                "worker-1",
                created=-5.0,
            ),
            gang("x", workers=1, gpus=8, age=10.0),
        ],
        expect=[starts("x", 1), waits("old")],
    ),
    Scenario(
        "one of its pods may come before another one's, and the next after it",
        nodes=nodes(3, gpus=8),
        gangs=[
            but(
                but(
                    grows("old", "node-0", workers=3, age=20.0, priority=0, facts={"loose": True}),
                    "worker-1",
                    created=-15.0,
                ),
                "worker-2",
                created=-5.0,
            ),
            gang("x", workers=1, gpus=8, age=10.0),
        ],
        expect=[starts("old", 1), starts("x", 1), waits("old")],
    ),
    Scenario(
        "of a loose group nobody is told to be beyond a minimum",
        nodes=nodes(1, gpus=8),
        gangs=[grows("new", "node-0", workers=3, facts={"loose": True})],
        expect=[waits("new", because="2 pods without a node: ")],
    ),
    # -- all or nobody ends
    Scenario(
        "of a group that is not to be divided nobody ends alone, spare or not",
        nodes=nodes(1, gpus=3),
        gangs=[
            runs("old", "node-0", "node-0", "node-0", gpus=1, least=1, facts={"indivisible": True}),
            gang("new", workers=1, gpus=1, priority=5),
        ],
        expect=[evicts("new", {"old": 3}), waits("new", reason=RESERVED), ended("old")],
    ),
    Scenario(
        "one that can be spared ends instead where another group lets it go",
        nodes=nodes(2, gpus=2),
        gangs=[
            runs("old", "node-0", "node-0", gpus=1, least=1, facts={"indivisible": True}),
            runs("elastic", "node-1", "node-1", gpus=1, least=1),
            gang("new", workers=1, gpus=1, priority=5),
        ],
        expect=[evicts("new", {"elastic": 1}), waits("new", reason=RESERVED)],
    ),
    Scenario(
        "what is made for a member it lost stays kept, whatever comes free elsewhere meanwhile",
        nodes=[node("node-0", gpus=24), node("far")],
        others=[pod("other", on="far", cores=1)],
        gangs=[grows("new", "node-0", "node-0", workers=3, started=True), runs("old", "node-0")],
        expect=[
            evicts("new", {"old": 1}, on={"node-0": 1}),
            waits("new", because="waits for 1 pod of team/old", reason=RESERVED),
            ended("old"),
        ],
        then=[
            Turn([goes("old-worker-0"), ends("other")]),
            Turn([ends("old-worker-0")], [starts("new", 1)]),
        ],
    ),
    Scenario(
        "and is not passed to and fro with one of lower priority that it was taken from",
        nodes=[node("node-0", gpus=4), node("node-1", gpus=3), node("node-2", gpus=1)],
        queues=[queue("q", priority=1), queue("lower")],
        gangs=[
            grows("first", "node-0", "node-0", workers=3, gpus=2, started=True, queue="q"),
            gang("second", workers=1, gpus=2, queue="q"),
            runs("old", "node-1", gpus=1, queue="lower"),
            runs("older", "node-1", gpus=1, queue="lower", facts={"began": -200.0}),
        ],
        expect=[
            evicts("second", {"old": 1}),
            keeps("first", ("worker", "node-1")),
            keeps("second"),
            ended("old"),
            waits("first", because="waits for 1 pod of team/old", reason=RESERVED),
            waits("second", because="held for team/first"),
        ],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_growing(scenario: Scenario) -> None:
    scenario.play()
