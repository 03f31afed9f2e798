"""Real incidents about shares, quotas and whom they end for: a state, and what must happen."""

from __future__ import annotations

from typing import Any

import pytest

from posse.engine.decisions import Reason
from posse.engine.facts import QueueFacts
from tests.scenarios.language import (
    Expectation,
    Scenario,
    Team,
    Turn,
    arrives,
    asks_only,
    ends,
    evicts,
    gang,
    goes,
    member,
    node,
    nodes,
    queue,
    shape,
    starts,
    vanishes,
    waits,
)

QUOTA, RESERVED = Reason.QUOTA, Reason.RESERVED


def runs(name: str, *on: str, gpus: int = 1, **like: Any) -> Team:
    return gang(name, workers=len(on), on=on, gpus=gpus, facts={"began": -10.0}, **like)


def ended(name: str) -> Expectation:
    return waits(name, because="ended for team/", reason=Reason.INCOMPLETE)


def singles(queue: str, number: int, on: str = "node-0", **like: Any) -> list[Team]:
    return [runs(f"{queue}{at}", on, queue=queue, **like) for at in range(number)]


SCENARIOS = [
    Scenario(
        "scheduler-plugins#683: one team uses all there is: another has its minimum back",
        nodes=nodes(1, gpus=5),
        queues=[queue("a", gpus=5, deserved=4), queue("b", gpus=5, deserved=1)],
        gangs=[*singles("a", 5), gang("new", workers=1, gpus=1, queue="b")],
        expect=[evicts("new", {"a0": 1}), waits("new", reason=RESERVED), ended("a0")],
        then=[
            Turn([ends("a0-worker-0")], [starts("new", 1)]),
            Turn([arrives(member("a0", "worker-0", gpus=1))], [waits("a0")]),
        ],
    ),
    Scenario(
        "scheduler-plugins, capacity scheduling: beyond its minimum a team takes from nobody",
        nodes=nodes(1, gpus=4),
        queues=[queue(name, gpus=4, deserved=2) for name in "ab"],
        gangs=[
            *singles("a", 1),
            *singles("b", 3, priority=9),
            gang("new", workers=1, gpus=1, queue="b", priority=9),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "koordinator#2393: its minimum is also its most, and others use a half of that: all of it",
        nodes=nodes(1, gpus=16),
        queues=[queue("a", gpus=8, deserved=8), queue("b", gpus=16, deserved=8)],
        gangs=[
            runs("a1", *["node-0"] * 4, queue="a"),
            *singles("b", 3, gpus=4),
            gang("new", workers=4, gpus=1, queue="a"),
        ],
        expect=[evicts("new", {"b0": 1}), waits("new", reason=RESERVED), ended("b0")],
    ),
    Scenario(
        "kueue#804: two queues have back what one borrowed: each from another gang of it",
        nodes=nodes(1, gpus=12),
        queues=[queue(name, deserved=4) for name in "abc"],
        gangs=[
            runs("a1", *["node-0"] * 6, queue="a", least=2),
            runs("a2", *["node-0"] * 6, queue="a", least=2),
            gang("b1", workers=4, gpus=1, queue="b"),
            gang("c1", workers=4, gpus=1, queue="c"),
        ],
        expect=[
            evicts("b1", {"a1": 4}),
            evicts("c1", {"a2": 4}),
            waits("b1", reason=RESERVED),
            waits("c1", reason=RESERVED),
        ],
    ),
    Scenario(
        "volcano#3869: two of a queue would take back, and one of them is due: that one does",
        nodes=nodes(1, gpus=4),
        queues=[queue(name, deserved=2) for name in "ab"],
        gangs=[
            *singles("a", 4),
            gang("b1", workers=2, gpus=1, queue="b", age=2.0),
            gang("b2", workers=2, gpus=1, queue="b", age=1.0),
        ],
        expect=[
            evicts("b1", {"a0": 1, "a1": 1}),
            waits("b1", reason=RESERVED),
            ended("a0"),
            ended("a1"),
            waits("b2"),
        ],
    ),
    Scenario(
        "volcano#4949, volcano#561: who was ended comes back, and does not take it back",
        nodes=nodes(1, gpus=4),
        queues=[queue(name, deserved=2) for name in "ab"],
        gangs=[
            runs("a1", *["node-0"] * 3, queue="a"),
            gang("new", workers=2, gpus=1, queue="b"),
        ],
        expect=[evicts("new", {"a1": 3}), waits("new", reason=RESERVED), ended("a1")],
        then=[
            Turn([ends("a1-worker-0", "a1-worker-1", "a1-worker-2")], [starts("new", 2)]),
            Turn([arrives(gang("a1", workers=3, gpus=1, queue="a"))], [waits("a1")]),
        ],
    ),
    Scenario(
        "kueue#1974: beyond its due a queue's own lesser gangs end, and no more than are needed",
        nodes=nodes(1, gpus=12),
        queues=[queue(name, deserved=6) for name in "ab"],
        gangs=[
            *(runs(f"a{at}", "node-0", "node-0", queue="a") for at in range(5)),
            gang("new", workers=6, gpus=1, queue="a", priority=9),
        ],
        expect=[
            evicts("new", {"a0": 2, "a1": 2}),
            waits("new", reason=RESERVED),
            ended("a0"),
            ended("a1"),
        ],
    ),
    Scenario(
        "volcano#4808: a queue of higher priority has all four of a gang, not three",
        nodes=nodes(1, gpus=4),
        queues=[queue("high", gpus=4, deserved=4, priority=500), queue("low", gpus=4, deserved=4)],
        gangs=[
            runs("old", *["node-0"] * 4, queue="low"),
            gang("new", workers=4, gpus=1, queue="high"),
        ],
        expect=[evicts("new", {"old": 4}), waits("new", reason=RESERVED), ended("old")],
    ),
    Scenario(
        "volcano#921: two wait for a full quota and one ends: one starts, once it is gone",
        nodes=nodes(1, gpus=8),
        queues=[queue("a", gpus=2)],
        gangs=[
            *singles("a", 2),
            gang("first", workers=1, gpus=1, queue="a", age=2.0),
            gang("second", workers=1, gpus=1, queue="a", age=1.0),
        ],
        expect=[waits("first", reason=QUOTA), waits("second", reason=QUOTA)],
        then=[
            Turn([goes("a0-worker-0")]),
            Turn([vanishes("a0")], [starts("first", 1), waits("second", reason=QUOTA)]),
        ],
    ),
    Scenario(
        "volcano#4292: a queue deserves more than it may use: it takes back what it may use",
        nodes=nodes(1, gpus=4),
        queues=[queue("a", gpus=1, deserved=2), queue("b", deserved=2)],
        gangs=[
            *singles("b", 4),
            *(gang(f"a{at}", workers=1, gpus=1, queue="a", age=2.0 - at) for at in range(2)),
        ],
        expect=[
            evicts("a0", {"b0": 1}),
            waits("a0", reason=RESERVED),
            ended("b0"),
            waits("a1", because="may use 1 (capability)", reason=QUOTA),
        ],
    ),
    Scenario(
        "volcano PR#2173: a full quota's surplus makes way for a greater gang's minimum",
        nodes=nodes(1, gpus=20),
        queues=[queue("a", gpus=10)],
        gangs=[
            runs("old", *["node-0"] * 10, queue="a", least=5),
            gang("new", workers=10, least=5, gpus=1, queue="a", priority=1),
        ],
        expect=[evicts("new", {"old": 5}), waits("new", reason=RESERVED)],
    ),
    Scenario(
        "volcano#2627: others end for its minimum, not for all of it",
        nodes=nodes(1, gpus=4),
        gangs=[
            runs("old", *["node-0"] * 4, least=1),
            gang("new", workers=4, least=1, gpus=1, priority=9),
        ],
        expect=[evicts("new", {"old": 1}), waits("new", reason=RESERVED)],
        then=[
            Turn([ends("old-worker-3")], [starts("new", 1), waits("new", because="3 pods beyond")]),
            Turn(after=200.0),
        ],
    ),
    Scenario(
        "kueue#5243: enough could end, but on no node enough: nobody does, and others go on",
        nodes=nodes(4, gpus=8),
        gangs=[
            *(runs(f"high-{at}", *[f"node-{at}"] * 6, priority=9) for at in range(4)),
            *(runs(f"low-{at}", f"node-{at}", f"node-{at}") for at in range(4)),
            gang("big", workers=1, gpus=8, priority=9, age=1.0),
            gang("small", workers=2, gpus=1, priority=9),
        ],
        expect=[
            evicts("small", {"low-0": 2}),
            waits("big", because="needs 8 GPUs"),
            waits("small", reason=RESERVED),
            ended("low-0"),
        ],
    ),
    Scenario(
        "volcano#3207: a gang that has its nodes and never ran may be ended too",
        nodes=nodes(1, gpus=4),
        gangs=[
            gang("old", workers=4, on=["node-0"] * 4, gpus=1, started=False),
            gang("new", workers=4, gpus=1, priority=9),
        ],
        expect=[evicts("new", {"old": 4}), waits("new", reason=RESERVED), ended("old")],
    ),
    Scenario(
        "kai PR#964: the pods that end make room in the number of pods, too, once they are gone",
        nodes=[node("node-0", gpus=8, pods=2)],
        gangs=[runs("old", "node-0", "node-0"), gang("new", workers=2, gpus=1, priority=9)],
        expect=[evicts("new", {"old": 2}), waits("new", reason=RESERVED), ended("old")],
        then=[
            Turn([goes("old-worker-0", "old-worker-1")]),
            Turn([ends("old-worker-0", "old-worker-1")], [starts("new", 2)]),
        ],
    ),
    Scenario(
        "volcano#3670: a crowd waits for one node: who asks for another one starts",
        nodes=[node("one", gpus=8, labels={"at": "1"}), node("two", gpus=8, labels={"at": "2"})],
        queues=[QueueFacts("low"), QueueFacts("high", weight=100)],
        gangs=[
            runs("old", "one", gpus=8, queue="low"),
            gang("more", workers=9, gpus=8, queue="low", least=1, selector={"at": "1"}),
            gang("new", workers=1, gpus=8, queue="high", selector={"at": "2"}),
        ],
        expect=[starts("new", 1, on={"two": 1}), waits("more")],
    ),
    Scenario(
        "volcano#1086: the second in line fits nowhere: the third starts",
        nodes=nodes(1, gpus=8),
        gangs=[
            gang("first", workers=1, gpus=2, age=3.0),
            gang("second", workers=1, gpus=2, age=2.0, selector={"no": "such"}),
            gang("third", workers=1, gpus=2, age=1.0),
        ],
        expect=[starts("first"), starts("third"), waits("second", because="selector no=such")],
    ),
    Scenario(
        "kueue#2208: a member that fits nowhere is deleted: the one in its stead counts",
        nodes=nodes(1, gpus=2),
        gangs=[
            gang(
                "new",
                roles={
                    "worker": (1, shape(gpus=1)),
                    "ps": (1, shape(gpus=1, selector={"no": "such"})),
                },
            )
        ],
        expect=[waits("new", because="selector no=such")],
        then=[
            Turn(
                [ends("new-ps-0"), arrives(member("new", "ps-0", role="ps", gpus=1))],
                [starts("new", 2)],
            ),
        ],
    ),
    Scenario(
        "kai#1968: members succeed one after the other: the rest run on, however long",
        nodes=nodes(3, gpus=8),
        gangs=[runs("old", "node-0", "node-1", "node-2", gpus=8)],
        then=[
            Turn([ends("old-worker-0"), asks_only("old", 2)]),
            Turn(after=2_000.0),
            Turn([ends("old-worker-1"), asks_only("old", 1)]),
            Turn(after=2_000.0),
        ],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_incidents_of_queues(scenario: Scenario) -> None:
    scenario.play()
