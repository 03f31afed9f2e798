"""Real incidents of preemption in other schedulers: a state, and what must happen."""

from __future__ import annotations

import pytest
from msgspec import structs

from posse.engine.decisions import Reason
from posse.engine.facts import Keeps, Purpose, QueueFacts
from posse.engine.fit.terms import PodTerm, Relations, Requirement, Selector
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
    leaves,
    member,
    node,
    nodes,
    queue,
    starts,
    waits,
)

RESERVED = Reason.RESERVED


def runs(name: str, *on: str, gpus: int = 8, **like: object) -> Team:
    facts = {"began": -10.0, **like.pop("facts", {})}  # type: ignore[dict-item]
    return gang(name, workers=len(on), on=on, gpus=gpus, facts=facts, **like)  # type: ignore[arg-type]


def ended(name: str) -> Expectation:
    return waits(name, because="ended for team/", reason=Reason.INCOMPLETE)


def apart(team: Team) -> Team:
    """Each of its pods is labelled app=x, and never beside another one of them."""
    term = PodTerm("host", Selector((Requirement("app", "In", ("x",)),)), ("team",))
    pods = [
        structs.replace(
            each,
            labels={"app": "x"},
            shape=structs.replace(each.shape, relations=Relations(avoids=(term,))),
        )
        for each in team.pods
    ]
    return Team(team.group, pods)


SCENARIOS = [
    Scenario(
        "volcano PR#5011, volcano#4926: the preemptor could not be placed whole: no evictions",
        nodes=[*nodes(3, gpus=8), node("other", gpus=8, labels={"pool": "b"})],
        gangs=[
            *(runs(f"low-{at}", f"node-{at}") for at in range(3)),
            gang("new", workers=2, gpus=8, priority=9, selector={"pool": "b"}),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "volcano#5984: one victim is enough, never ten",
        nodes=nodes(10, gpus=8),
        gangs=[
            *(runs(f"low-{at}", f"node-{at}") for at in range(10)),
            gang("new", workers=1, gpus=8, priority=9),
        ],
        expect=[evicts("new", {"low-0": 1}), waits("new", reason=RESERVED), ended("low-0")],
    ),
    Scenario(
        "volcano#377, volcano#4947: two jobs do not end each other in turn",
        nodes=nodes(1, gpus=8),
        gangs=[runs("first", "node-0"), gang("second", workers=1, gpus=8, priority=9)],
        expect=[evicts("second", {"first": 1}), waits("second", reason=RESERVED), ended("first")],
        then=[
            Turn([ends("first-worker-0")], [starts("second", 1)]),
            Turn([arrives(member("first", "worker-0", gpus=8))], [waits("first")]),
            Turn(after=200.0),
        ],
    ),
    Scenario(
        "kueue#3779, kueue#7101: nor do two queues that take back from each other",
        nodes=nodes(2, gpus=8),
        queues=[QueueFacts("a"), QueueFacts("b")],
        gangs=[
            runs("a1", "node-0", queue="a"),
            runs("a2", "node-1", queue="a"),
            gang("b1", workers=1, gpus=8, queue="b"),
        ],
        expect=[evicts("b1", {"a1": 1}), waits("b1", reason=RESERVED), ended("a1")],
        then=[
            Turn([ends("a1-worker-0")], [starts("b1", 1)]),
            Turn([arrives(gang("b1", workers=1, gpus=8, queue="b", on=["node-0"]))]),
            Turn([arrives(member("a1", "worker-0", gpus=8))], [waits("a1")]),
            Turn(after=200.0),
        ],
    ),
    Scenario(
        "kueue#3779: a gang that was ended often enough is spared",
        nodes=nodes(1, gpus=8),
        gangs=[
            runs("low", "node-0", facts={"evictions": 2}),
            gang("new", workers=1, gpus=8, priority=9),
        ],
        expect=[evicts("new", {"low": 1}), waits("new", reason=RESERVED), ended("low")],
        then=[
            Turn([ends("low-worker-0")], [starts("new", 1)]),
            Turn(
                [arrives(node("more", gpus=8)), arrives(member("low", "worker-0", gpus=8))],
                [starts("low", 1)],
            ),
            Turn(
                [
                    arrives(runs("low", "more", facts={"evictions": 3})),
                    arrives(gang("newest", workers=1, gpus=8, priority=9)),
                ],
                [waits("newest")],
            ),
        ],
    ),
    Scenario(
        "kubernetes#92600: the node that was to be used goes bad: planned again",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("a", "node-0", facts={"began": -1.0}),
            runs("b", "node-1"),
            gang("new", workers=1, gpus=8, priority=9),
        ],
        expect=[
            evicts("new", {"a": 1}, on={"node-0": 1}),
            waits("new", reason=RESERVED),
            ended("a"),
        ],
        then=[
            Turn(
                [goes("a-worker-0"), arrives(node("node-0", gpus=8, ready=False))],
                [
                    evicts("new", {"b": 1}, on={"node-1": 1}),
                    waits("new", because="team/b", reason=RESERVED),
                    ended("b"),
                ],
            ),
            Turn([ends("b-worker-0")], [starts("new", 1, on={"node-1": 1})]),
        ],
    ),
    Scenario(
        "kubernetes#95752: a victim never ends: others are found in time",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("a", "node-0", facts={"began": -1.0}),
            runs("b", "node-1"),
            gang("new", workers=1, gpus=8, priority=9),
        ],
        policy=Policy(preemption_hold=30.0),
        expect=[evicts("new", {"a": 1}), waits("new", reason=RESERVED), ended("a")],
        then=[
            Turn([goes("a-worker-0")]),
            Turn(
                after=60.0,
                expect=[
                    keeps("new"),
                    evicts("new", {"b": 1}, on={"node-1": 1}),
                    waits("new", because="team/b", reason=RESERVED),
                    ended("b"),
                ],
            ),
            Turn([ends("b-worker-0")], [starts("new", 1, on={"node-1": 1})]),
        ],
    ),
    Scenario(
        "kubernetes#95752: a victim was given an hour to end: nobody else ends meanwhile",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("a", "node-0", facts={"began": -1.0}),
            runs("b", "node-1"),
            gang("new", workers=1, gpus=8, priority=9),
        ],
        policy=Policy(preemption_hold=30.0, backfill=False),
        expect=[evicts("new", {"a": 1}), waits("new", reason=RESERVED), ended("a")],
        then=[
            Turn([goes("a-worker-0", grace=3600.0)]),
            Turn(after=3500.0),
            # It should have gone by now, and is waited for a little longer.
            Turn(
                after=200.0,
                expect=[
                    keeps("new"),
                    evicts("new", {"b": 1}, on={"node-1": 1}),
                    waits("new", because="team/b", reason=RESERVED),
                    ended("b"),
                ],
            ),
        ],
    ),
    Scenario(
        "so it is for who leads next",
        nodes=nodes(2, gpus=8),
        gangs=[
            but(runs("a", "node-0", deleting=1), "worker-0", grace=3600.0),
            runs("b", "node-1"),
            gang(
                "new",
                workers=1,
                gpus=8,
                priority=9,
                facts={"keeps": Keeps(Purpose.PREEMPTION, (("worker", "node-0"),), -1000.0)},
            ),
        ],
        expect=[waits("new", because="1 pod of team/a to end", reason=RESERVED)],
        then=[Turn([ends("a-worker-0")], [starts("new", 1, on={"node-0": 1})])],
    ),
    Scenario(
        "kai#2115: what stands against it are its victims themselves: it succeeds",
        nodes=[node(f"node-{at}", gpus=8, labels={"host": f"node-{at}"}) for at in range(2)],
        gangs=[
            apart(runs("low", "node-0", "node-1", gpus=1)),
            apart(gang("new", workers=2, gpus=1, priority=9)),
        ],
        expect=[
            evicts("new", {"low": 2}, on={"node-0": 1, "node-1": 1}),
            waits("new", reason=RESERVED),
            ended("low"),
        ],
        then=[
            Turn([ends("low-worker-0", "low-worker-1")], [starts("new", 2)]),
        ],
    ),
    Scenario(
        "volcano#2685: a gang that was ended says so, and does not seem to run",
        nodes=nodes(2, gpus=8),
        gangs=[runs("low", "node-0", "node-1"), gang("new", workers=2, gpus=8, priority=9)],
        expect=[
            evicts("new", {"low": 2}),
            waits("new", reason=RESERVED),
            waits("low", because="0 of 2 pods exist", reason=Reason.INCOMPLETE),
        ],
    ),
    Scenario(
        "all nodes of the plan leave: nothing is kept, and nobody ends in vain",
        nodes=nodes(1, gpus=8),
        gangs=[runs("low", "node-0"), gang("new", workers=1, gpus=8, priority=9)],
        expect=[evicts("new", {"low": 1}), waits("new", reason=RESERVED), ended("low")],
        then=[Turn([leaves("node-0")], [waits("new", because="no nodes")])],
    ),
    Scenario(
        "volcano#3291: one node is free and one is not: the free one is part of the plan",
        nodes=nodes(2, gpus=8),
        gangs=[runs("low", "node-0"), gang("new", workers=2, gpus=8, priority=9)],
        expect=[
            evicts("new", {"low": 1}, on={"node-0": 1, "node-1": 1}),
            waits("new", reason=RESERVED),
            ended("low"),
        ],
    ),
    Scenario(
        "volcano#2772: one large victim makes room for several small members",
        nodes=nodes(1, gpus=8),
        gangs=[runs("low", "node-0"), gang("new", workers=2, gpus=2, priority=9)],
        expect=[
            evicts("new", {"low": 1}, on={"node-0": 2}),
            waits("new", reason=RESERVED),
            ended("low"),
        ],
    ),
    Scenario(
        "kueue#2821: who was ended is older, and does not come back before whom it was ended for",
        nodes=nodes(1, gpus=8),
        gangs=[runs("low", "node-0", age=99.0), gang("new", workers=1, gpus=8, priority=9)],
        expect=[evicts("new", {"low": 1}), waits("new", reason=RESERVED), ended("low")],
        then=[
            Turn(
                [goes("low-worker-0"), arrives(member("low", "worker-0", gpus=8))], [waits("low")]
            ),
            Turn([ends("low-worker-0")], [starts("new", 1), waits("low")]),
        ],
    ),
    Scenario(
        "kueue#13662: victims go one after the other: what is free first is not theirs again",
        nodes=nodes(2, gpus=8),
        queues=[queue("a", deserved=0), queue("b", deserved=16)],
        gangs=[
            runs("one", "node-0", queue="a", priority=9),
            runs("two", "node-1", queue="a", priority=9),
            gang("due", workers=2, gpus=8, queue="b"),
        ],
        expect=[
            evicts("due", {"one": 1, "two": 1}),
            waits("due", reason=RESERVED),
            ended("one"),
            ended("two"),
        ],
        then=[
            Turn([goes("one-worker-0", "two-worker-0")]),
            Turn(
                [ends("one-worker-0"), arrives(member("one", "worker-0", gpus=8))],
                [
                    waits("due", because="1 pod of team/two", reason=RESERVED),
                    waits("one", because="held for team/due"),
                ],
            ),
            Turn(
                [ends("two-worker-0"), arrives(member("two", "worker-0", gpus=8))],
                [starts("due", 2), waits("one"), waits("two")],
            ),
        ],
    ),
    Scenario(
        "kueue#6947: the first asks for more than is there: others end for the next one alone",
        nodes=nodes(3, gpus=1),
        queues=[queue("a", deserved=3), queue("b", deserved=0)],
        gangs=[
            runs("lent", "node-0", gpus=1, queue="b"),
            gang("four", workers=4, gpus=1, queue="a", age=9.0),
            gang("three", workers=3, gpus=1, queue="a"),
        ],
        expect=[
            evicts("three", {"lent": 1}),
            waits("four", because="the cluster has 3"),
            waits("three", reason=RESERVED),
            ended("lent"),
        ],
    ),
    Scenario(
        "kueue#804: two queues that would both borrow what is left: one of them has it",
        nodes=nodes(1, gpus=6),
        queues=[
            queue("all", gpus=5),
            *(queue(name, parent="all", deserved=1) for name in ("a", "b", "c")),
        ],
        gangs=[
            runs("a0", "node-0", gpus=3, queue="a"),
            gang("b0", workers=1, gpus=2, queue="b", age=9.0),
            gang("c0", workers=1, gpus=2, queue="c"),
        ],
        expect=[starts("b0", 1), waits("c0", because="may use 5", reason=Reason.QUOTA)],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_incidents_of_preemption(scenario: Scenario) -> None:
    scenario.play()
