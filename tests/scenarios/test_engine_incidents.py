"""States that broke other gang schedulers, by the issue that told of them.

Each scenario begins with the issues that it retells. What is about requests, crashes, clocks or
the door is told elsewhere; at the end stands all that must be told, and where.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from posse.engine.cycle import cycle
from posse.engine.decisions import Reason, Start
from posse.engine.facts import Keeps, Purpose, Toleration
from posse.engine.fit.terms import PodTerm, Relations, Requirement, Selector
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import (
    Scenario,
    Team,
    Turn,
    again,
    arrives,
    asks_only,
    check_promises,
    ends,
    evicts,
    gang,
    goes,
    keeps,
    leaves,
    member,
    node,
    nodes,
    overfull,
    pod,
    queue,
    refused,
    releases,
    shape,
    starts,
    vanishes,
    waits,
)

INCOMPLETE, QUOTA, RESERVED = Reason.INCOMPLETE, Reason.QUOTA, Reason.RESERVED
HOST = "kubernetes.io/hostname"


def runs(
    name: str, *on: str, gpus: int = 1, facts: dict[str, Any] | None = None, **like: Any
) -> Team:
    """A gang with one pod on each node named, for a while already."""
    known = {"began": -100.0, **(facts or {})}
    return gang(name, workers=len(on), on=on, gpus=gpus, facts=known, **like)


def alone(team: Team, app: str = "db") -> Team:
    """Its pods share no node with any pod of that app, and are of it."""
    selector = Selector((Requirement("app", "In", (app,)),))
    keeps_off = Relations(avoids=(PodTerm(HOST, selector, ("team",)),))
    pods = [
        replace(each, labels={"app": app}, shape=replace(each.shape, relations=keeps_off))
        for each in team.pods
    ]
    return Team(team.group, pods)


def labelled(team: Team, **labels: str) -> Team:
    return Team(team.group, [replace(each, labels=labels) for each in team.pods])


def sharing(team: Team, claim: str) -> Team:
    """Its pods use a claim that one pod at a time may use."""
    shared = Relations(claims=(claim,))
    pods = [replace(each, shape=replace(each.shape, relations=shared)) for each in team.pods]
    return Team(team.group, pods)


def named(*names: str, **room: Any) -> list[Any]:
    return [node(name, labels={HOST: name}, **room) for name in names]


SCENARIOS = [
    # -- no partial gang
    Scenario(
        "volcano#6010: a minimum raised before all are there: nobody is bound until it is met",
        nodes=nodes(4, gpus=1),
        gangs=[gang("mpi", workers=2, exist=1, gpus=1)],
        expect=[waits("mpi", because="1 of 2 pods exist", reason=INCOMPLETE)],
        then=[
            Turn(
                [asks_only("mpi", 3), arrives(member("mpi", "worker-1", gpus=1))],
                [waits("mpi", because="2 of 3 pods exist", reason=INCOMPLETE)],
            ),
            Turn([arrives(member("mpi", "worker-2", gpus=1))], [starts("mpi", 3)]),
        ],
    ),
    Scenario(
        "volcano#2462: minimum 20, room for 8: nobody is bound",
        nodes=nodes(8, gpus=1),
        gangs=[gang("big", workers=20, gpus=1)],
        expect=[waits("big", because="asks for 20 GPUs (20 pods x 1 each), but the cluster has 8")],
    ),
    Scenario(
        "volcano#3373: two one-per-node gangs as large as the cluster: one whole, one none",
        nodes=nodes(100, gpus=1),
        gangs=[gang("first", workers=100, gpus=1, age=1), gang("second", workers=100, gpus=1)],
        expect=[
            starts("first", 100),
            waits("second", because="needs 100 GPUs (100 pods x 1 each), 0 of 100 are free"),
        ],
        then=[Turn([vanishes("first")], [starts("second", 100)])],
    ),
    Scenario(
        "scheduler-plugins#930: two nodes, one busy, a gang of two: nobody is bound",
        nodes=nodes(2, cores=4),
        others=[pod("busy", on="node-0", cores=4)],
        gangs=[gang("pair", workers=2, cores=4)],
        expect=[waits("pair", because="needs 8 cores (2 pods x 4 each), 4 of 8 are free")],
    ),
    Scenario(
        "koordinator#872: two gangs would fill the cluster crosswise: one is whole",
        nodes=nodes(3, gpus=2),
        gangs=[gang("left", workers=4, gpus=1, age=1), gang("right", workers=4, gpus=1)],
        expect=[starts("left", 4), waits("right")],
    ),
    Scenario(
        "kube-batch#938: a node rejects a pod of a gang: it is tried on another",
        nodes=nodes(3, gpus=1),
        gangs=[gang("mpi", workers=2, gpus=1)],
        expect=[starts("mpi", 2, on={"node-0": 1, "node-1": 1})],
        then=[
            Turn(
                [ends("mpi-worker-0", shunned=True)],
                [waits("mpi", because="1 seat on node-2 kept", reason=INCOMPLETE)],
            ),
            Turn(
                [arrives(member("mpi", "worker-0", gpus=1))],
                [starts("mpi", 1, on={"node-2": 1})],
            ),
        ],
    ),
    Scenario(
        "kube-batch#938: a node rejects a pod of a gang, and no other has room: all are released",
        nodes=nodes(2, gpus=1),
        gangs=[gang("mpi", workers=2, gpus=1)],
        expect=[starts("mpi", 2)],
        then=[
            Turn(
                [
                    ends("mpi-worker-0", shunned=True),
                    arrives(pod("taken", on="node-0", gpus=1)),
                    arrives(member("mpi", "worker-0", gpus=1)),
                ],
                [waits("mpi", because="0 of 2 are free")],
            ),
            Turn(
                after=31.0,
                expect=[
                    releases("mpi", "mpi-worker-1"),
                    waits("mpi", because="1 of 2 pods exist", reason=INCOMPLETE),
                ],
            ),
        ],
    ),
    # -- no overcommit
    Scenario(
        "volcano#1417: a pod seen before its node takes its room",
        others=[pod("early", on="node-0", gpus=2)],
        gangs=[gang("mpi", workers=1, gpus=1)],
        expect=[waits("mpi", because="the cluster has no nodes")],
        then=[
            Turn([arrives(node("node-0", gpus=2))], [waits("mpi", because="0 of 2 are free")]),
            Turn([ends("early")], [starts("mpi", 1)]),
        ],
    ),
    Scenario(
        "volcano#1383: a bind slower than a cycle: the pod is counted meanwhile",
        nodes=nodes(1, gpus=1),
        gangs=[gang("slow", workers=1, gpus=1)],
        expect=[starts("slow", 1)],
        then=[
            Turn(
                [
                    # An event written before the bind says that the pod has no node.
                    arrives(labelled(gang("slow", workers=1, gpus=1), stage="early")),
                    arrives(gang("next", workers=1, gpus=1)),
                ],
                [waits("next", because="0 of 1 are free")],
            ),
        ],
    ),
    Scenario(
        "volcano#2999: a node oversubscribed in GPUs takes pods that ask none",
        nodes=nodes(1, gpus=2),
        others=[pod("a", on="node-0", gpus=2), pod("b", on="node-0", gpus=2)],
        gangs=[gang("etl", workers=2, cores=1), gang("train", workers=1, gpus=1)],
        expect=[starts("etl", 2), waits("train", because="0 of 2 are free")],
    ),
    Scenario(
        "kubernetes#60469: another scheduler took the seat: the gang is placed anew",
        nodes=nodes(2, gpus=1),
        gangs=[gang("mpi", workers=1, gpus=1)],
        expect=[starts("mpi", 1, on={"node-0": 1})],
        then=[
            Turn(
                [arrives(pod("rival", on="node-0", gpus=1)), refused("mpi-worker-0")],
                [starts("mpi", 1, on={"node-1": 1})],
            )
        ],
    ),
    Scenario(
        "volcano#3138: pods that avoid one another, one node: never two",
        nodes=named("a", gpus=4),
        gangs=[
            alone(gang("one", workers=1, gpus=1, age=2)),
            alone(gang("two", workers=1, gpus=1, age=1)),
            alone(gang("pair", workers=2, gpus=1), "pair"),
        ],
        expect=[
            starts("one", 1),
            waits("two", because="same kubernetes.io/hostname that its anti-affinity avoids"),
            waits("pair", because="only 1 of its 2 pods finds a node"),
        ],
        then=[
            # Its event has not come back, and its pod is counted.
            Turn([arrives(alone(gang("three", workers=1, gpus=1)))], [waits("three")]),
            Turn([vanishes("one")], [starts("two", 1)]),
        ],
    ),
    Scenario(
        "volcano#5767: a claim for one pod alone is in use: the second waits",
        nodes=nodes(2, gpus=1),
        gangs=[
            sharing(gang("one", workers=1, gpus=1, age=1), "team/data"),
            sharing(gang("two", workers=1, gpus=1), "team/data"),
        ],
        expect=[starts("one", 1), waits("two", because="another pod uses team/data")],
        then=[
            Turn([goes("one-worker-0")], [waits("one", because="0 of 1", reason=INCOMPLETE)]),
            Turn([vanishes("one")], [starts("two", 1)]),
        ],
    ),
    # -- quota
    Scenario(
        "volcano#1860: 10 may be used, 9 are, 10 are asked: refused",
        nodes=nodes(2, gpus=16),
        queues=[queue("q", gpus=10)],
        gangs=[
            runs("old", "node-0", gpus=9, queue="q"),
            gang("new", workers=1, gpus=10, queue="q"),
            gang("last", workers=1, gpus=1, queue="q"),
        ],
        expect=[
            starts("last", 1),
            waits("new", because="10 (capability) and 10 are in use", reason=QUOTA),
        ],
    ),
    Scenario(
        "volcano#1410: others were ended for it, and its queue may use less by now: it waits",
        nodes=nodes(2, gpus=8),
        queues=[queue("q", gpus=8)],
        gangs=[
            runs("old", "node-0", gpus=8, queue="q"),
            gang("new", workers=1, gpus=8, queue="q", priority=5),
        ],
        expect=[
            evicts("new", {"old": 1}),
            waits("new", reason=RESERVED),
            waits("old", because="ended for team/new", reason=INCOMPLETE),
        ],
        then=[
            Turn([arrives(queue("q", gpus=4)), goes("old-worker-0")]),
            Turn(
                [ends("old-worker-0")],
                [waits("new", because="queue q may use 4 (capability)", reason=QUOTA)],
            ),
            Turn([arrives(queue("q", gpus=8))], [starts("new", 1)]),
        ],
    ),
    Scenario(
        "volcano#4673: a child may use more than its parent: the smaller counts, and is named",
        nodes=nodes(2, gpus=8),
        queues=[queue("dept", gpus=4), queue("team", parent="dept", gpus=16)],
        gangs=[
            gang("large", workers=2, gpus=4, queue="team", age=1),
            gang("fits", workers=1, gpus=4, queue="team"),
        ],
        expect=[
            starts("fits", 1),
            waits(
                "large",
                because="queue dept, of which queue team is part, may use 4",
                reason=QUOTA,
            ),
        ],
    ),
    Scenario(
        "volcano#5006: within its quota, and it fits nowhere: it holds none of the quota",
        nodes=nodes(2, gpus=4),
        queues=[queue("q", gpus=8)],
        gangs=[
            gang("wide", workers=1, gpus=8, queue="q", age=1),
            gang("small", workers=2, gpus=4, queue="q"),
        ],
        expect=[starts("small", 2), waits("wide", because="the largest of today's nodes has 4")],
    ),
    # -- no starvation, no deadlock
    Scenario(
        "volcano#5805: a member of a running gang is drained: the gang heals first",
        nodes=nodes(4, gpus=1),
        gangs=[gang("train", workers=4, gpus=1, on=[f"node-{at}" for at in range(4)])],
        then=[
            Turn(
                [
                    arrives(node("node-4", gpus=1), node("node-0", gpus=1, cordoned=True)),
                    ends("train-worker-0"),
                    arrives(gang("thief", workers=1, gpus=1, priority=7)),
                    arrives(member("train", "worker-0", gpus=1)),
                ],
                [
                    starts("train", 1, on={"node-4": 1}),
                    waits("thief", because="1 more is free (1 node is cordoned)"),
                ],
            )
        ],
    ),
    Scenario(
        "volcano#2037: each driver fits, no room for executors: the second driver waits",
        nodes=nodes(2, cores=4),
        gangs=[
            gang("one", roles={"driver": (1, shape(cores=1)), "exec": (6, shape())}, age=1),
            gang("two", roles={"driver": (1, shape(cores=1)), "exec": (6, shape())}),
        ],
        expect=[starts("one", 7), waits("two", because="needs 7 cores")],
    ),
    Scenario(
        "scheduler-plugins#713, scheduler-plugins#114: of 10 bound 9, the last cannot be: all go",
        nodes=nodes(9, gpus=1),
        gangs=[gang("ten", workers=10, gpus=1, on=[f"node-{at}" for at in range(9)])],
        expect=[waits("ten")],
        then=[
            Turn(
                after=60.0,
                expect=[
                    releases("ten", *(f"ten-worker-{at}" for at in range(9))),
                    waits("ten", because="1 of 10 pods exist", reason=Reason.INCOMPLETE),
                ],
            )
        ],
    ),
    Scenario(
        "kai#2075: a pod whose bind is always denied: others go on",
        nodes=nodes(2, gpus=1),
        gangs=[gang("denied", workers=1, gpus=1, age=1), gang("fine", workers=1, gpus=1)],
        expect=[starts("denied", 1), starts("fine", 1)],
        then=[
            Turn([refused("denied-worker-0")], [starts("denied", 1)]),
            Turn(
                [
                    refused("denied-worker-0"),
                    vanishes("fine"),
                    arrives(gang("next", workers=1, gpus=1)),
                ],
                [starts("denied", 1), starts("next", 1)],
            ),
        ],
    ),
    Scenario(
        "kueue#12656: a gang with missing members is not started twice",
        nodes=nodes(4, gpus=1),
        gangs=[gang("mpi", workers=2, gpus=1)],
        expect=[starts("mpi", 2)],
        then=[
            Turn(
                [ends("mpi-worker-1")], [waits("mpi", because="1 of 2", reason=Reason.INCOMPLETE)]
            ),
            Turn([arrives(member("mpi", "worker-1", gpus=1))], [starts("mpi", 1)]),
        ],
    ),
    # -- others end only where that places somebody
    Scenario(
        "volcano#5011, volcano#4926: ending others would not make it fit: nobody ends",
        nodes=nodes(2, gpus=8),
        others=[pod("stranger", on="node-1", gpus=1)],
        gangs=[runs("old", "node-0", gpus=8), gang("new", workers=2, gpus=8, priority=5)],
        expect=[waits("new", because="7 of 16 are free")],
    ),
    Scenario(
        "volcano#5011, volcano#4926: room could be made for all but one of its roles: nobody ends",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("old", "node-0", "node-1", gpus=8),
            gang(
                "new",
                roles={
                    "ps": (1, shape(gpus=1, selector={"disk": "fast"})),
                    "worker": (2, shape(gpus=4)),
                },
                priority=5,
            ),
        ],
        expect=[waits("new", because="no node matches selector disk=fast")],
    ),
    Scenario(
        "volcano#4926: not all of it exists yet: nobody ends for a part",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("old", "node-0", "node-1", gpus=8),
            gang("new", workers=2, exist=1, gpus=8, priority=5),
        ],
        expect=[waits("new", because="1 of 2 pods exist", reason=INCOMPLETE)],
    ),
    Scenario(
        "volcano#377, volcano#4947: who was ended comes back and ends nobody, ever",
        nodes=nodes(1, gpus=8),
        gangs=[runs("old", "node-0", gpus=8), gang("new", workers=1, gpus=8, priority=5)],
        policy=Policy(backfill=False, start_timeout=0.0),
        expect=[
            evicts("new", {"old": 1}),
            waits("new", reason=RESERVED),
            waits("old", because="ended for team/new", reason=INCOMPLETE),
        ],
        then=[
            Turn([goes("old-worker-0")]),
            Turn(
                [ends("old-worker-0"), arrives(member("old", "worker-0", gpus=8))],
                [starts("new", 1), waits("old", because="0 of 8 are free")],
            ),
            Turn(after=86_400.0),
        ],
    ),
    Scenario(
        "kueue#3779, kueue#7101: a queue that took back its due is not asked to give it again",
        nodes=nodes(2, gpus=4),
        queues=[queue("a", deserved=4), queue("b", deserved=4)],
        gangs=[
            runs("a1", "node-0", gpus=4, queue="a"),
            runs("a2", "node-1", gpus=4, queue="a", facts={"began": -50.0}),
            gang("b1", workers=1, gpus=4, queue="b"),
        ],
        policy=Policy(backfill=False, start_timeout=0.0),
        expect=[
            evicts("b1", {"a2": 1}),
            waits("b1", reason=RESERVED),
            waits("a2", because="ended for team/b1", reason=INCOMPLETE),
        ],
        then=[
            Turn([goes("a2-worker-0")]),
            Turn(
                [ends("a2-worker-0"), arrives(member("a2", "worker-0", gpus=4))],
                [starts("b1", 1), waits("a2")],
            ),
            Turn([arrives(gang("b1", workers=1, gpus=4, queue="b", on=["node-1"]).pods[0])]),
            Turn(after=86_400.0),
        ],
    ),
    Scenario(
        "kueue#7101: a gang that was ended often enough is not ended again",
        nodes=nodes(1, gpus=8),
        gangs=[
            runs("old", "node-0", gpus=8, facts={"evictions": 3}),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[waits("new", because="0 of 8 are free")],
    ),
    Scenario(
        "volcano#5984: one victim is enough: ten are not ended",
        nodes=[*nodes(1, gpus=10), node("wide", gpus=10)],
        gangs=[
            *(runs(f"small-{at}", "node-0") for at in range(10)),
            runs("large", "wide", gpus=10),
            gang("new", workers=1, gpus=10, priority=5),
        ],
        expect=[
            evicts("new", {"large": 1}),
            waits("new", reason=RESERVED),
            waits("large", because="ended for team/new", reason=INCOMPLETE),
        ],
    ),
    Scenario(
        "volcano#5984: of ten victims that would do, one",
        nodes=nodes(1, gpus=10),
        gangs=[
            *(runs(f"small-{at}", "node-0") for at in range(10)),
            gang("new", workers=1, gpus=1, priority=5),
        ],
        expect=[
            evicts("new", {"small-0": 1}),
            waits("new", reason=RESERVED),
            waits("small-0", because="ended for team/new", reason=INCOMPLETE),
        ],
    ),
    Scenario(
        "volcano#5984: the cheapest of three is not in the way of it: two end",
        nodes=nodes(1, gpus=8),
        gangs=[
            runs("cheap", "node-0", gpus=1),
            runs("a", "node-0", gpus=3),
            runs("b", "node-0", gpus=4),
            gang("new", workers=1, gpus=7, priority=5),
        ],
        expect=[
            evicts("new", {"a": 1, "b": 1}),
            waits("new", reason=RESERVED),
            waits("a", because="ended for team/new", reason=INCOMPLETE),
            waits("b", because="ended for team/new", reason=INCOMPLETE),
        ],
    ),
    Scenario(
        "kubernetes#92600: the node that others left for it goes bad: planned again",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("a", "node-0", gpus=8, facts={"began": -1.0}),
            runs("b", "node-1", gpus=8),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"a": 1}, on={"node-0": 1}),
            waits("new", reason=RESERVED),
            waits("a", because="ended for team/new", reason=INCOMPLETE),
        ],
        then=[
            Turn([goes("a-worker-0")]),
            Turn(
                [ends("a-worker-0"), arrives(node("node-0", gpus=8, ready=False))],
                [
                    evicts("new", {"b": 1}, on={"node-1": 1}),
                    waits("new", reason=RESERVED),
                    waits("b", because="ended for team/new", reason=INCOMPLETE),
                ],
            ),
        ],
    ),
    Scenario(
        "kubernetes#95752: a victim never ends: planned again after a while",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("a", "node-0", gpus=8, facts={"began": -1.0}),
            runs("b", "node-1", gpus=8),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        policy=Policy(preemption_hold=60.0),
        expect=[
            evicts("new", {"a": 1}, on={"node-0": 1}),
            waits("new", reason=RESERVED),
            waits("a", because="ended for team/new", reason=INCOMPLETE),
        ],
        then=[
            Turn([goes("a-worker-0")]),
            Turn(
                after=60.0,
                expect=[
                    keeps("new"),
                    evicts("new", {"b": 1}, on={"node-1": 1}),
                    waits("new", reason=RESERVED),
                    waits("b", because="ended for team/new", reason=INCOMPLETE),
                ],
            ),
            Turn([goes("b-worker-0")]),
            Turn([ends("b-worker-0")], [starts("new", 1, on={"node-1": 1})]),
        ],
    ),
    Scenario(
        "kai#2115: it avoids the very pods that end for it: they end, and it starts",
        nodes=named("a", gpus=2),
        gangs=[alone(runs("old", "a")), alone(gang("new", workers=1, gpus=1, priority=5))],
        expect=[
            evicts("new", {"old": 1}),
            waits("new", reason=RESERVED),
            waits("old", because="ended for team/new", reason=INCOMPLETE),
        ],
        then=[Turn([goes("old-worker-0")]), Turn([ends("old-worker-0")], [starts("new", 1)])],
    ),
    Scenario(
        "volcano#2685: a gang that was ended waits as one that never began",
        nodes=nodes(1, gpus=8),
        gangs=[runs("old", "node-0", gpus=8), gang("new", workers=1, gpus=8, priority=5)],
        policy=Policy(backfill=False, start_timeout=0.0),
        expect=[
            evicts("new", {"old": 1}),
            waits("new", reason=RESERVED),
            waits("old", because="0 of 1 pod exists; it starts when", reason=INCOMPLETE),
        ],
        then=[
            Turn([goes("old-worker-0")]),
            # It is made again, and does not heal before the one that it was ended for.
            Turn(
                [arrives(member("old", "worker-0", gpus=8)), ends("old-worker-0")],
                [starts("new", 1), waits("old", because="it can start when 8 more are free")],
            ),
        ],
    ),
    # -- once, and by one
    Scenario(
        "kueue#10495: who leads next finds the room on its way: nobody else is ended for it",
        nodes=nodes(2, gpus=8),
        gangs=[
            runs("a", "node-0", gpus=8, deleting=1),
            runs("b", "node-1", gpus=8),
            gang(
                "new",
                workers=1,
                gpus=8,
                priority=5,
                facts={"keeps": Keeps(Purpose.PREEMPTION, (("worker", "node-0"),), 300.0)},
            ),
        ],
        expect=[waits("new", reason=RESERVED)],
        then=[Turn([ends("a-worker-0")], [starts("new", 1, on={"node-0": 1})])],
    ),
    Scenario(
        "kueue#8186: members that ended well leave nothing to start",
        nodes=nodes(2, gpus=1),
        gangs=[gang("done", workers=2, exist=0, gpus=1, started=True, facts={"min_member": 0})],
        expect=[],
    ),
    Scenario(
        "training-operator#1306, volcano#2284: applied again under its name while its pods go",
        nodes=nodes(1, gpus=2),
        gangs=[gang("mpi", workers=2, gpus=1, on=["node-0", "node-0"], deleting=2)],
        expect=[],
        then=[
            Turn([again("mpi", workers=2, gpus=1)], [waits("mpi", because="0 of 2 are free")]),
            Turn([ends("mpi-worker-0")], [waits("mpi", because="1 of 2 is free")]),
            Turn([ends("mpi-worker-1")], [starts("mpi", 2)]),
        ],
    ),
    # -- nodes
    Scenario(
        "volcano#1492: a node not ready and ready again is used again",
        nodes=[node("node-0", gpus=1, ready=False)],
        gangs=[gang("mpi", workers=1, gpus=1)],
        expect=[waits("mpi", because="1 node is not ready")],
        then=[Turn([arrives(node("node-0", gpus=1))], [starts("mpi", 1)])],
    ),
    Scenario(
        "kubernetes#94437: a node deleted and added again keeps the pods that stayed on it",
        nodes=nodes(1, gpus=2),
        others=[pod("stays", on="node-0", gpus=1)],
        then=[
            Turn([leaves("node-0"), arrives(gang("mpi", workers=2, gpus=1))], [waits("mpi")]),
            Turn([arrives(node("node-0", gpus=2))], [waits("mpi", because="1 of 2 is free")]),
            Turn([ends("stays")], [starts("mpi", 2)]),
        ],
    ),
    Scenario(
        "an autoscaler's dying node gets no new member, whatever the pods tolerate",
        nodes=[node(name, gpus=2, closed="being removed") for name in ("old", "older")],
        gangs=[gang("mpi", workers=2, gpus=1, tolerations=[Toleration(operator="Exists")])],
        expect=[waits("mpi", because="2 nodes are being removed")],
        then=[Turn([arrives(node("new", gpus=2))], [starts("mpi", 2, on={"new": 2})])],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_incidents(scenario: Scenario) -> None:
    scenario.play()


def small(at: int, on: str | None = None, **like: Any) -> Team:
    """The next job of a stream; each is younger than all before it."""
    return gang(f"small-{at}", workers=1, gpus=1, on=[on] if on else (), age=-float(at + 1), **like)


STREAMS: list[tuple[str, float, float, dict[str, Any]]] = [
    ("volcano#3095: one after the other, in its own queue", 30.0, 400.0, {}),
    ("volcano#2235: one after the other, in another queue", 30.0, 400.0, {"queue": "other"}),
    ("volcano#748: many at once", 1.0, 30.0, {}),
]


@pytest.mark.parametrize(
    ("name", "every", "bound", "like"), STREAMS, ids=[name for name, *_ in STREAMS]
)
def test_a_big_gang_is_not_passed_by_small_ones_for_ever(
    name: str, every: float, bound: float, like: dict[str, Any]
) -> None:
    """Whenever a small job ends, the next one is there to take its place."""
    view = View()
    policy = Policy(preemption=False, reclaim=False)
    arrives(queue("other"), *nodes(4, gpus=1))(view)
    arrives(*(small(at, f"node-{at}", **like) for at in range(4)))(view)
    arrives(gang("big", workers=4, gpus=1))(view)
    next_one, now = 0, 0.0
    while not begun(view, policy, now, "team/big"):
        assert now <= bound, "others pass it for ever"
        now += every
        vanishes(f"small-{next_one}")(view)
        arrives(small(next_one + 4, **like))(view)
        next_one += 1


def begun(view: View, policy: Policy, now: float, gang: str) -> bool:
    """Whether it is among those that this cycle starts."""
    full = overfull(view)
    found = False
    for decision in cycle(view, policy, now):
        view.validate()
        check_promises(view, decision, full)
        found = found or (isinstance(decision, Start) and decision.gang == gang)
    return found


# -- everything that must be told ----------------------------------------------------------------

ISSUES: dict[str, tuple[str, ...]] = {
    "no partial gang": (
        "volcano#6010",
        "volcano#2462",
        "volcano#3373",
        "scheduler-plugins#930",
        "koordinator#872",
        "volcano#4383",
        "kube-batch#938",
    ),
    "no overcommit": (
        "volcano#5174",
        "volcano#2821",
        "kubernetes#45220",
        "volcano#1417",
        "volcano#1383",
        "volcano#2999",
        "kubernetes#136782",
        "kubernetes#60469",
        "volcano#3138",
        "volcano#5767",
    ),
    "quota": ("volcano#1860", "volcano#1410", "kueue#1450", "volcano#4673", "volcano#5006"),
    "no starvation, no deadlock": (
        "volcano#5805",
        "volcano#2037",
        "scheduler-plugins#713",
        "scheduler-plugins#114",
        "volcano#3095",
        "volcano#2235",
        "volcano#748",
        "kai#2075",
        "kueue#12656",
    ),
    "others end only where that places somebody": (
        "volcano#5011",
        "volcano#4926",
        "volcano#377",
        "volcano#4947",
        "kueue#3779",
        "kueue#7101",
        "volcano#5984",
        "kubernetes#92600",
        "kubernetes#95752",
        "kai#2115",
        "volcano#2685",
    ),
    "once, and by one": (
        "kueue#10495",
        "training-operator#1306",
        "volcano#2284",
        "volcano#5385",
        "kueue#8186",
    ),
    "nodes, inputs, what one thing may harm": (
        "volcano#1492",
        "kubernetes#94437",
        "training-operator#1101",
        "volcano#721",
        "volcano#3734",
        "kai#227",
        "volcano#1073",
        "volcano#3659",
        "CVE-2026-40886",
    ),
}

_SCHEDULER = "unit/scheduler/test_scheduler_incidents.py"
_BINDS = "unit/scheduler/test_scheduler_faults.py"
_RECOVERY = "unit/scheduler/test_scheduler_recovery.py"
_CLUSTER = "cluster/test_cluster_faults.py"
_STORIES = "cluster/test_cluster_retold.py"
_DOOR = "unit/admission/test_admission_jobs.py"

ELSEWHERE = {
    "volcano#4383": (_SCHEDULER, "test_a_step_before_the_binds_fails"),
    "volcano#5174": (_SCHEDULER, "test_a_restart_while_one_list_is_slow"),
    "volcano#2821": (_SCHEDULER, "test_a_restart_while_events_are_slow"),
    "kubernetes#45220": (_SCHEDULER, "test_a_restart_while_one_list_is_slow"),
    "kubernetes#136782": (_SCHEDULER, "test_a_leader_dies_with_binds_in_flight"),
    "kueue#1450": (_SCHEDULER, "test_a_restart_while_one_list_is_slow"),
    "volcano#5385": (
        _STORIES,
        "test_a_running_gang_that_loses_a_pod_heals_before_others_are_served",
    ),
    "training-operator#1101": (_DOOR, "test_a_job_that_can_never_run_is_refused"),
    "volcano#721": (_DOOR, "test_a_generated_name_is_judged_by_its_length"),
    "volcano#3734": (
        "kubernetes/test_kubernetes_admission.py",
        "test_a_day_without_it_loses_nothing",
    ),
    "kai#227": (
        "unit/admission/test_admission_installation.py",
        "test_pods_are_asked_about_only_where_they_are_ours",
    ),
    "volcano#1073": (_SCHEDULER, "test_a_claim_that_does_not_exist"),
    "volcano#3659": (_DOOR, "test_a_job_that_can_never_run_is_refused"),
    "CVE-2026-40886": (_STORIES, "test_one_malformed_annotation_stops_nobody"),
}

FAULTS = {
    "watch closed": (_BINDS, "test_watches_that_close_lose_nothing"),
    "410 Gone": (_SCHEDULER, "test_everything_that_a_lost_watch_kept_back"),
    "409": (_BINDS, "test_a_stale_version_is_read_back_and_tried_with_the_fresh_one"),
    "429 with Retry-After": (_SCHEDULER, "test_a_server_that_says_when_to_come_back"),
    "5xx": (_BINDS, "test_whatever_happens_to_binds_each_pod_is_bound_once"),
    "timeout after commit": (_BINDS, "test_a_bind_whose_answer_was_lost_is_not_sent_again"),
    "slow store": (_SCHEDULER, "test_a_slow_store"),
    "crash after bind k of n": (_RECOVERY, "test_a_gang_cut_short_after_any_bind_is_made_whole"),
    "controllers crash between pods": (_CLUSTER, "test_controllers_that_die_between_two_pods"),
    "node goes mid-gang": (_SCHEDULER, "test_a_node_goes_in_mid_gang"),
    "OOM in a full cluster": (_SCHEDULER, "test_a_member_killed_for_its_memory_in_a_full_cluster"),
    "clock skew": (_SCHEDULER, "test_the_servers_clock_is_hours_off"),
    "two leaders": (_SCHEDULER, "test_two_leaders_of_two_leases_and_one_slot"),
    "bad manifests": (
        "cluster/test_cluster_bad_input.py",
        "test_an_object_that_makes_no_sense_is_refused",
    ),
    "huge manifests": (_SCHEDULER, "test_thousands_of_annotations_and_one_huge_pod"),
}


def test_every_incident_is_told() -> None:
    names = [scenario.name for scenario in SCENARIOS] + [name for name, *_ in STREAMS]
    told = {issue for name in names for issue in name.partition(": ")[0].split(", ")}
    issues = [issue for several in ISSUES.values() for issue in several]
    assert [issue for issue in issues if issue not in told and issue not in ELSEWHERE] == []
    assert [issue for issue in ELSEWHERE if issue not in issues] == []


@pytest.mark.parametrize("what", [*ELSEWHERE, *FAULTS])
def test_what_is_told_elsewhere_is_told_there(what: str) -> None:
    file, test = (ELSEWHERE | FAULTS)[what]
    module = ast.parse((Path(__file__).parents[1] / file).read_text())
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    assert test in [each.name for each in module.body if isinstance(each, functions)]
