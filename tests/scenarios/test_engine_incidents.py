"""States that broke other gang schedulers, by the issue that told of them."""

from __future__ import annotations

import pytest

from posse.engine.decisions import Reason
from posse.engine.facts import Taint, Toleration
from tests.scenarios.language import (
    Scenario,
    Turn,
    again,
    arrives,
    ends,
    gang,
    leaves,
    member,
    node,
    nodes,
    pod,
    refused,
    releases,
    shape,
    starts,
    vanishes,
    waits,
)

SCENARIOS = [
    Scenario(
        "volcano#2462: minimum 20, room for 8: nobody is bound",
        nodes=nodes(8, gpus=1),
        gangs=[gang("big", workers=20, gpus=1)],
        expect=[waits("big", because="asks 20 GPUs (20 pods x 1 each), the cluster has 8")],
    ),
    Scenario(
        "volcano#3373: two one-per-node gangs as large as the cluster: one whole, one none",
        nodes=nodes(100, gpus=1),
        gangs=[gang("first", workers=100, gpus=1, age=1), gang("second", workers=100, gpus=1)],
        expect=[
            starts("first", 100),
            waits("second", because="needs 100 GPUs (100 pods x 1 each), 0 are free of 100"),
        ],
        then=[Turn([vanishes("first")], [starts("second", 100)])],
    ),
    Scenario(
        "scheduler-plugins#930: two nodes, one busy, a gang of two: nobody is bound",
        nodes=nodes(2, cores=4),
        others=[pod("busy", on="node-0", cores=4)],
        gangs=[gang("pair", workers=2, cores=4)],
        expect=[waits("pair", because="needs 8 cores (2 pods x 4 each), 4 are free of 8")],
    ),
    Scenario(
        "koordinator#872: two gangs would fill the cluster crosswise: one is whole",
        nodes=nodes(3, gpus=2),
        gangs=[gang("left", workers=4, gpus=1, age=1), gang("right", workers=4, gpus=1)],
        expect=[starts("left", 4), waits("right")],
    ),
    Scenario(
        "volcano#1417: a pod seen before its node takes its room",
        others=[pod("early", on="node-0", gpus=2)],
        gangs=[gang("mpi", workers=1, gpus=1)],
        expect=[waits("mpi", because="the cluster has no nodes")],
        then=[
            Turn([arrives(node("node-0", gpus=2))], [waits("mpi", because="0 are free of 2")]),
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
                    arrives(gang("slow", workers=1, gpus=1, recreated=False)),
                    arrives(gang("next", workers=1, gpus=1)),
                ],
                [waits("next", because="0 are free of 1")],
            ),
        ],
    ),
    Scenario(
        "volcano#2999: a node oversubscribed in GPUs takes pods that ask none",
        nodes=nodes(1, gpus=2),
        others=[pod("a", on="node-0", gpus=2), pod("b", on="node-0", gpus=2)],
        gangs=[gang("etl", workers=2, cores=1), gang("train", workers=1, gpus=1)],
        expect=[starts("etl", 2), waits("train", because="0 are free of 2")],
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
        "scheduler-plugins#713: 9 of 10 are bound, the 10th is impossible: all 9 are released",
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
            Turn([arrives(node("node-0", gpus=2))], [waits("mpi", because="1 is free of 2")]),
            Turn([ends("stays")], [starts("mpi", 2)]),
        ],
    ),
    Scenario(
        "an autoscaler's dying node gets no new member, whatever the pods tolerate",
        nodes=[
            node("old", gpus=2, taints=[Taint("ToBeDeletedByClusterAutoscaler", "1")]),
            node("older", gpus=2, taints=[Taint("karpenter.sh/disrupted")]),
        ],
        gangs=[gang("mpi", workers=2, gpus=1, tolerations=[Toleration(operator="Exists")])],
        expect=[waits("mpi", because="2 nodes are being removed")],
        then=[Turn([arrives(node("new", gpus=2))], [starts("mpi", 2, on={"new": 2})])],
    ),
    Scenario(
        "a job deleted and applied again under its name while its pods go",
        nodes=nodes(1, gpus=2),
        gangs=[gang("mpi", workers=2, gpus=1, on=["node-0", "node-0"], deleting=2)],
        expect=[],
        then=[
            Turn([again("mpi", workers=2, gpus=1)], [waits("mpi", because="0 are free of 2")]),
            Turn([ends("mpi-worker-0", "mpi-worker-1")], [starts("mpi", 2)]),
        ],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_incidents(scenario: Scenario) -> None:
    scenario.play()
