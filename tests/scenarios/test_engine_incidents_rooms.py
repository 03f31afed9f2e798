"""Real incidents about rooms, nodes and company: a state, and what must happen."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from posse.engine.decisions import Reason
from posse.engine.facts import BudgetFacts, NodeFacts, Taint
from posse.engine.fit.terms import HostPort, PodTerm, Relations, Requirement, Selector, Spread
from posse.engine.policy import Policy
from tests.scenarios.language import (
    Expectation,
    Scenario,
    Team,
    Turn,
    again,
    arrives,
    asks_only,
    ends,
    evicts,
    gang,
    keeps,
    leaves,
    member,
    node,
    nodes,
    pod,
    queue,
    refused,
    starts,
    vanishes,
    waits,
)

INCOMPLETE, RESERVED = Reason.INCOMPLETE, Reason.RESERVED
QUIET = Policy(backfill=False)
OURS = Selector((Requirement("app", "In", ("x",)),))


def runs(name: str, *on: str, gpus: int = 1, **like: Any) -> Team:
    facts = {"began": -10.0, **like.pop("facts", {})}
    return gang(name, workers=len(on), on=on, gpus=gpus, facts=facts, **like)


def ours(team: Team, relations: Relations | None = None) -> Team:
    """Its pods are labelled app=x, and say this of the company they keep."""
    pods = [
        replace(each, labels={"app": "x"}, shape=replace(each.shape, relations=relations))
        for each in team.pods
    ]
    return Team(team.group, pods)


def ended(name: str) -> Expectation:
    return waits(name, because="ended for team/", reason=INCOMPLETE)


def zones(*taints: Taint, **sizes: int) -> list[NodeFacts]:
    """The last zone has these taints."""
    return [
        node(f"{zone}-{at}", gpus=4, labels={"zone": zone}, taints=taints if zone == "z" else ())
        for zone, size in sizes.items()
        for at in range(size)
    ]


def even(**like: Any) -> Relations:
    return Relations(spreads=(Spread("zone", 1, OURS, **like),))


SCENARIOS = [
    # -- nodes that lose what they had
    Scenario(
        "volcano#1782, volcano#1818: two of eight devices vanish while all are in use",
        nodes=nodes(1, gpus=8),
        gangs=[runs("old", "node-0", gpus=8), gang("new", workers=1, gpus=6)],
        policy=QUIET,
        expect=[waits("new")],
        then=[
            Turn([arrives(node("node-0", gpus=6))], [waits("new", because="0 of 6 are free")]),
            # Somebody labels the node, and nothing else has changed.
            Turn([arrives(node("node-0", gpus=6, labels={"seen": "1"}))]),
            Turn([ends("old-worker-0")], [starts("new", 1)]),
        ],
    ),
    Scenario(
        "volcano#2965: all devices vanish: pods that bring them back still find the node",
        nodes=[node("node-0")],
        others=[pod("old", on="node-0", gpus=8)],
        gangs=[gang("plugin", workers=1)],
        expect=[starts("plugin", 1)],
    ),
    Scenario(
        "volcano#3301: others have bound more than the node has: it takes nobody until they end",
        nodes=nodes(2, gpus=8),
        others=[pod(f"theirs-{at}", on="node-0", gpus=4) for at in range(3)],
        gangs=[gang("a", workers=2, gpus=8)],
        expect=[waits("a")],
        then=[
            Turn([ends("theirs-0", "theirs-1")], [waits("a")]),
            Turn([ends("theirs-2")], [starts("a", 2, on={"node-0": 1, "node-1": 1})]),
        ],
    ),
    Scenario(
        "volcano#1052: a node says less than before: it is taken at its word",
        nodes=nodes(1, gpus=8),
        then=[
            Turn(
                [arrives(node("node-0", gpus=8, cores=2)), arrives(gang("a", workers=3, gpus=1))],
                [waits("a", because="the cluster has 2")],
            ),
            Turn([arrives(node("node-0", gpus=8))], [starts("a", 3)]),
        ],
    ),
    Scenario(
        "kai#306: where pods still end, there is room for as many as there is room for",
        nodes=nodes(1, gpus=8),
        gangs=[
            runs("going", "node-0", gpus=5, deleting=1),
            *(gang(f"new-{at}", workers=1, gpus=3, age=-float(at)) for at in range(3)),
        ],
        policy=QUIET,
        expect=[starts("new-0", 1), waits("new-1"), waits("new-2")],
        then=[
            Turn([ends("going-worker-0")], [starts("new-1", 1), waits("new-2")]),
        ],
    ),
    Scenario(
        "kubernetes#94437: a node is deleted under a gang that has just been given it",
        nodes=nodes(2, gpus=1),
        gangs=[gang("a", workers=1, gpus=1)],
        expect=[starts("a", 1, on={"node-0": 1})],
        then=[
            Turn([leaves("node-0"), refused("a-worker-0")], [starts("a", 1, on={"node-1": 1})]),
        ],
    ),
    # -- groups without pods, and pods without groups
    Scenario(
        "volcano#2633, volcano#2264, volcano#1907: groups whose pods are gone keep no room",
        nodes=nodes(1, gpus=8),
        gangs=[
            *(gang(f"empty-{at}", workers=8, exist=0, gpus=1, age=9.0) for at in range(3)),
            gang("new", workers=8, gpus=1),
        ],
        expect=[
            starts("new", 8),
            *(
                waits(f"empty-{at}", because="0 of 8 pods exist", reason=INCOMPLETE)
                for at in range(3)
            ),
        ],
    ),
    Scenario(
        "volcano#2143: nor do those of which some pods never came",
        nodes=nodes(1, gpus=4),
        gangs=[
            gang("half", workers=4, exist=2, gpus=1, age=9.0),
            gang("new", workers=4, gpus=1),
        ],
        expect=[starts("new", 4), waits("half", because="2 of 4 pods exist", reason=INCOMPLETE)],
    ),
    Scenario(
        "scheduler-plugins#64: deleted and made again with another minimum: that one counts",
        nodes=nodes(1, gpus=4),
        gangs=[gang("a", workers=4, least=6, gpus=1)],
        expect=[waits("a", because="4 of 6 pods exist", reason=INCOMPLETE)],
        then=[Turn([vanishes("a")]), Turn([again("a", workers=4, gpus=1)], [starts("a", 4)])],
    ),
    Scenario(
        "scheduler-plugins#364: members made again one by one are no gang to wait for",
        nodes=nodes(1, gpus=4),
        gangs=[runs("a", *["node-0"] * 4)],
        expect=[],
        then=[
            Turn([ends("a-worker-0"), arrives(member("a", "worker-0", gpus=1))], [starts("a", 1)]),
            Turn([ends("a-worker-1"), arrives(member("a", "worker-1", gpus=1))], [starts("a", 1)]),
        ],
    ),
    Scenario(
        "kubernetes#140478: two of its binds fail while the others stand: these two, at once",
        nodes=nodes(1, gpus=4),
        gangs=[gang("a", workers=4, gpus=1), gang("b", workers=1, gpus=1)],
        expect=[starts("a", 4), waits("b")],
        then=[
            Turn(
                [refused("a-worker-1", "a-worker-3")],
                [starts("a", 2, who=["a-worker-1", "a-worker-3"])],
            ),
        ],
    ),
    Scenario(
        "scheduler-plugins#450: the last pod of a gang is what it waited for, and no longer",
        nodes=nodes(1, gpus=2),
        gangs=[gang("a", workers=2, exist=1, gpus=1)],
        expect=[waits("a", because="1 of 2 pods exist", reason=INCOMPLETE)],
        then=[Turn([arrives(member("a", "worker-1", gpus=1))], [starts("a", 2)], after=0.01)],
    ),
    # -- whom it ends
    Scenario(
        "volcano#2612: a lower priority takes nothing of a higher one, not even what it can spare",
        nodes=nodes(1, gpus=12),
        gangs=[
            runs("high", *["node-0"] * 12, least=2, priority=100),
            gang("low", workers=6, least=2, gpus=1, priority=10),
        ],
        expect=[waits("low")],
    ),
    Scenario(
        "volcano#2622, volcano#1534: of a middle and a low priority the low one ends, at once",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("mid", "node-0", gpus=8, priority=50),
            runs("low", "node-1", gpus=8, priority=10),
            gang("high", workers=1, gpus=8, priority=100),
        ],
        expect=[evicts("high", {"low": 1}), waits("high", reason=RESERVED), ended("low")],
    ),
    Scenario(
        "kubernetes#128307, kubernetes#129136: a high and a low one here, a middle one there",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("high", "node-0", gpus=4, priority=50),
            runs("low", "node-0", gpus=4, priority=1),
            runs("mid", "node-1", gpus=8, priority=10),
            gang("new", workers=1, gpus=8, priority=100),
        ],
        expect=[evicts("new", {"mid": 1}), waits("new", reason=RESERVED), ended("mid")],
    ),
    Scenario(
        "kubernetes#92475: where budgets guard somebody everywhere, nobody ends",
        nodes=nodes(2, gpus=8),
        budgets=[BudgetFacts("team", "guard", OURS, 0)],
        gangs=[
            runs("high", "node-0", gpus=4, priority=50),
            ours(runs("low", "node-0", gpus=4, priority=1)),
            ours(runs("mid", "node-1", gpus=8, priority=10)),
            gang("new", workers=1, gpus=8, priority=100),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "volcano#2232: its own queue is full of lesser ones",
        nodes=nodes(1, gpus=8),
        queues=[queue("q", gpus=3)],
        gangs=[
            runs("low", *["node-0"] * 3, least=1, queue="q"),
            gang("high", workers=2, gpus=1, queue="q", priority=9),
        ],
        expect=[evicts("high", {"low": 2}), waits("high", reason=RESERVED)],
    ),
    Scenario(
        "volcano#1256: who takes back two of eight takes two",
        nodes=nodes(1, gpus=8),
        queues=[queue(name, deserved=4) for name in "ab"],
        gangs=[
            *(runs(f"a{at}", "node-0", queue="a") for at in range(8)),
            gang("due", workers=2, gpus=1, queue="b"),
        ],
        expect=[
            evicts("due", {"a0": 1, "a1": 1}),
            waits("due", reason=RESERVED),
            ended("a0"),
            ended("a1"),
        ],
    ),
    Scenario(
        "volcano#1748: parts of two queues, and a cluster full of one of them",
        nodes=nodes(1, gpus=9),
        queues=[*(queue(name, parent="all") for name in ("one", "two")), queue("all")],
        gangs=[
            runs("driver", "node-0", queue="one"),
            runs("executors", *["node-0"] * 8, least=1, queue="one"),
            gang("next", workers=1, gpus=1, queue="two"),
        ],
        expect=[evicts("next", {"executors": 1}), waits("next", reason=RESERVED)],
    ),
    Scenario(
        "yunikorn#2270: each of several takes back one, up to what is due to them",
        nodes=nodes(1, gpus=6),
        queues=[queue("a", deserved=2), queue("b", deserved=0)],
        gangs=[
            *(runs(f"b{at}", "node-0", queue="b") for at in range(6)),
            *(gang(f"a{at}", workers=1, gpus=1, queue="a", age=-float(at)) for at in range(3)),
        ],
        expect=[
            evicts("a0", {"b0": 1}),
            evicts("a1", {"b1": 1}),
            waits("a0", reason=RESERVED),
            ended("b0"),
            waits("a1", reason=RESERVED),
            ended("b1"),
            waits("a2"),
        ],
    ),
    Scenario(
        "yunikorn#1951: who is promised nothing takes nothing back",
        nodes=nodes(1, gpus=4),
        queues=[queue("a", deserved=0), queue("b", deserved=4)],
        gangs=[
            *(runs(f"b{at}", "node-0", queue="b") for at in range(4)),
            gang("new", workers=1, gpus=1, queue="a"),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "kueue#15211: who is on its way out already is not ended again, nor anybody beside it",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("going", "node-0", gpus=8, deleting=1, priority=9),
            runs("low", "node-1", gpus=8),
            gang("new", workers=1, gpus=8, priority=10),
        ],
        expect=[keeps("new", ("worker", "node-0")), waits("new", reason=RESERVED)],
        then=[Turn([ends("going-worker-0")], [starts("new", 1)])],
    ),
    # -- quotas
    Scenario(
        "volcano#3220: a quota that names what no node has is no quota of the rest",
        nodes=nodes(1, gpus=2),
        queues=[
            replace(
                queue("q", gpus=9999), capability=(("nvidia.com/gpu", 9999), ("rdma/hca", 9999))
            )
        ],
        gangs=[gang("a", workers=2, gpus=1, queue="q")],
        expect=[starts("a", 2)],
    ),
    Scenario(
        "volcano#4261: what is guaranteed is more than there are nodes so far",
        nodes=[],
        queues=[queue("a", guarantee=8), queue("b")],
        gangs=[gang("a1", workers=2, gpus=4, queue="a"), gang("b1", workers=1, gpus=4, queue="b")],
        expect=[waits("a1", because="no nodes"), waits("b1", reason=Reason.QUOTA)],
        then=[
            Turn(
                [arrives(node("node-0", gpus=8))],
                [starts("a1", 2), waits("b1", reason=Reason.QUOTA, because="kept for queue a")],
            ),
            Turn([arrives(node("node-1", gpus=8))], [starts("b1", 1)]),
        ],
    ),
    # -- company
    Scenario(
        "kubernetes#107464, kubernetes#116118: a tainted zone counts where nobody says otherwise",
        nodes=zones(Taint("special", "", "NoSchedule"), a=1, b=1, z=1),
        gangs=[ours(gang("j", workers=4, gpus=1), even())],
        expect=[waits("j")],
    ),
    Scenario(
        "kubernetes#106127: and does not where it is to be honoured",
        nodes=zones(Taint("special", "", "NoSchedule"), a=1, b=1, z=1),
        gangs=[ours(gang("j", workers=4, gpus=1), even(by_taints=True))],
        expect=[starts("j", 4, on={"a-0": 2, "b-0": 2})],
    ),
    Scenario(
        "kubernetes#112357: a zone that would rather be left alone is one all the same",
        nodes=zones(Taint("special", "", "PreferNoSchedule"), a=1, b=1, z=1),
        gangs=[ours(gang("j", workers=4, gpus=1), even(by_taints=True))],
        expect=[starts("j", 4)],
    ),
    Scenario(
        "kubernetes#116629: who is on its way out does not count for the spread",
        nodes=zones(a=1, b=1),
        gangs=[
            ours(runs("old", "a-0", "a-0", deleting=2)),
            ours(gang("j", workers=2, gpus=1), even()),
        ],
        expect=[starts("j", 2, on={"a-0": 1, "b-0": 1})],
    ),
    Scenario(
        "a port is free when who had it has ended, not when it is asked to",
        nodes=nodes(1, gpus=2),
        gangs=[
            ours(runs("old", "node-0", deleting=1), Relations(ports=(HostPort(80),))),
            ours(gang("new", workers=1, gpus=1), Relations(ports=(HostPort(80),))),
        ],
        expect=[waits("new")],
        then=[Turn([ends("old-worker-0")], [starts("new", 1)])],
    ),
    Scenario(
        "kubernetes#67556: whom two members avoid sits down while they are decided on",
        nodes=zones(a=1, b=1),
        gangs=[
            ours(
                gang("j", workers=2, gpus=1), Relations(avoids=(PodTerm("zone", OURS, ("team",)),))
            ),
            ours(gang("k", workers=1, gpus=1)),
        ],
        expect=[starts("j", 2, on={"a-0": 1, "b-0": 1}), waits("k")],
    ),
    Scenario(
        "kuberay#5205: a gang that is made smaller before it starts needs no more than it has",
        nodes=nodes(1, gpus=2),
        gangs=[gang("a", workers=2, least=5, gpus=1)],
        expect=[waits("a", because="2 of 5 pods exist", reason=INCOMPLETE)],
        then=[Turn([asks_only("a", 2)], [starts("a", 2)])],
    ),
    Scenario(
        "kube-batch#561: one that nobody could ever place is nobody's first in line",
        nodes=[*nodes(3, cores=32, prefix="small"), *nodes(3, cores=40, prefix="large")],
        gangs=[
            gang("job1", workers=6, least=4, cores=35, age=9.0),
            gang("job2", workers=6, least=4, cores=30),
        ],
        expect=[starts("job2", 4), starts("job2", 2), waits("job1")],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_incidents_of_rooms(scenario: Scenario) -> None:
    scenario.play()
