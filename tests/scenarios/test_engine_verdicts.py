"""The sentence a waiting gang is told, word for word."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from posse.engine.cycle import cycle
from posse.engine.decisions import Cause, Verdict, Wait
from posse.engine.facts import NodeFacts, PodFacts, Shape, Taint
from posse.engine.fit.terms import Choice, NodeTerm, Requirement
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import GPU, Team, arrives, gang, node, nodes, pod, shape


@dataclass(frozen=True)
class Told:
    cause: Cause
    sentence: str
    nodes: list[NodeFacts]
    gang: Team
    others: tuple[PodFacts, ...] = ()
    policy: Policy = field(default_factory=Policy)


def mpi(**like: Any) -> Team:
    return gang("mpi", **like)


BIG: Shape = shape(gpus=3, cores=1)
SMALL: Shape = shape(gpus=2, cores=1)

TABLE = [
    Told(
        Cause.TOO_MANY,
        "asks for 10 GPUs (5 pods x 2 each), but the cluster has 8 on today's nodes;"
        " add 2 or ask for 4 pods",
        nodes(4, gpus=2),
        mpi(workers=5, gpus=2),
    ),
    Told(
        Cause.TOO_MANY,
        "asks for 10 GPUs (5 pods x 2 each), but the cluster has 8 on today's nodes;"
        " add 2 or ask for 4 pods",
        nodes(4, gpus=2),
        mpi(workers=5, gpus=2, launcher=shape(cores=1)),
    ),
    Told(
        Cause.TOO_MANY,
        "asks for 4 GPUs (2 pods x 2 each), but the only one of today's nodes that it may use has"
        " 2; add 2 or ask for 1 pod (1 node is cordoned, 1 node has a taint it does not tolerate:"
        " team=b:NoSchedule)",
        [
            node("a", gpus=2),
            node("b", gpus=2, cordoned=True),
            node("c", gpus=2, taints=[Taint("team", "b")]),
        ],
        mpi(workers=2, gpus=2),
    ),
    Told(
        Cause.TOO_MANY,
        "each pod needs 2 GPUs on one node; today's nodes, even empty, have room for 3 of 4;"
        " add nodes or ask for 3 pods",
        nodes(3, gpus=3),
        mpi(workers=4, gpus=2),
    ),
    Told(
        Cause.TOO_LARGE,
        "each pod needs 16 GPUs on one node; the largest of today's nodes has 8;"
        " ask for 8 at most, or add a larger node",
        nodes(9, gpus=8),
        mpi(workers=2, gpus=16),
    ),
    Told(
        Cause.TOO_LARGE,
        "the pod needs 2 GPUs and 32 cores on one node; none of today's nodes has all of it;"
        " ask for less, or add a larger node",
        [node("gpu", gpus=2, cores=8), node("cpu", cores=64)],
        mpi(workers=1, gpus=2, cores=32),
    ),
    Told(
        Cause.BUSY,
        "needs 8 GPUs (4 pods x 2 each), 6 of 8 are free; it can start when 2 more are free on one"
        " node",
        nodes(4, gpus=2),
        mpi(workers=4, gpus=2),
        (pod("busy", on="node-1", gpus=2),),
    ),
    Told(
        Cause.BUSY,
        "needs 8 GPUs, 4 of 16 are free, at most 2 on one node;"
        " it can start when 6 more are free on one node",
        nodes(2, gpus=8),
        mpi(workers=1, gpus=8),
        (pod("x", on="node-0", gpus=6), pod("y", on="node-1", gpus=6)),
    ),
    Told(
        Cause.BUSY,
        "needs 16 GPUs (2 pods x 8 each), 14 of 24 are free, with room for 1 of 2 pods;"
        " it can start when 5 more are free on one node",
        nodes(3, gpus=8),
        mpi(workers=2, gpus=8),
        (pod("x", on="node-0", gpus=5), pod("y", on="node-1", gpus=5)),
    ),
    Told(
        Cause.BUSY,
        "needs 16 GPUs (2 pods x 8 each), 9 of 24 are free, with room for 0 of 2 pods;"
        " it can start when at least 9 more are free",
        nodes(3, gpus=8),
        mpi(workers=2, gpus=8),
        tuple(pod(f"x-{at}", on=f"node-{at}", gpus=gpus) for at, gpus in enumerate((5, 4, 6))),
    ),
    Told(
        Cause.BUSY,
        "needs 4 GPUs (2 worker x 2 each), 2 of 4 are free; it can start when 2 more are free on"
        " one node",
        nodes(2, gpus=2),
        mpi(roles={"ps": (1, shape(cores=2)), "worker": (2, shape(gpus=2))}),
        (pod("busy", on="node-0", gpus=2),),
    ),
    Told(
        Cause.BUSY,
        "needs 3 pod slots, 2 of 3 are free; it can start when 1 more is free",
        [node("a", gpus=8, pods=3)],
        mpi(workers=3, gpus=1),
        (pod("busy", on="a", gpus=1),),
    ),
    Told(
        Cause.BUSY,
        "1 of its 2 pods has no node: it needs 2 GPUs, 0 of 4 are free;"
        " it can start when 2 more are free on one node",
        nodes(2, gpus=2),
        mpi(workers=2, gpus=2, on=["node-0"], started=True),
        (pod("busy", on="node-1", gpus=2),),
    ),
    Told(
        Cause.BUSY,
        "2 of its 3 pods have no node: they need 4 GPUs (2 pods x 2 each), 2 of 6 are free;"
        " it can start when 2 more are free on one node",
        nodes(3, gpus=2),
        mpi(workers=3, gpus=2, on=["node-0"], started=True),
        (pod("busy", on="node-1", gpus=2),),
    ),
    Told(
        Cause.BUSY,
        "3 of its 4 pods have no node: the next needs 2 GPUs, 0 of 4 are free;"
        " it can start when 2 more are free on one node",
        nodes(2, gpus=2),
        mpi(workers=4, least=2, gpus=2, on=["node-0"], started=True),
        (pod("busy", on="node-1", gpus=2),),
    ),
    Told(
        Cause.BUSY,
        "3 of its 4 pods have no node: 2 of them need 4 GPUs (2 pods x 2 each), 2 of 6 are free;"
        " it can start when 2 more are free on one node",
        nodes(3, gpus=2),
        mpi(workers=4, least=3, gpus=2, on=["node-0"], started=True),
        (pod("busy", on="node-1", gpus=2),),
    ),
    Told(
        Cause.BUSY,
        "needs 2 GPUs, 1 of 2 is free; it can start when 1 more is free",
        nodes(1, gpus=2),
        mpi(workers=1, gpus=2),
        (pod("busy", on="node-0", gpus=1),),
    ),
    Told(
        Cause.BUSY,
        "needs 2 GPUs (2 pods x 1 each), 1 of 2 is free; it can start when 1 more is free,"
        " and 1 core",
        nodes(1, gpus=2, cores=2),
        mpi(workers=2, gpus=1, cores=1),
        (pod("busy", on="node-0", gpus=1, cores=1),),
    ),
    Told(
        Cause.BUSY,
        "needs 3 cores (2 pods x 1 each and a seat for 1 launcher), 2.5 of 4 are free;"
        " it can start when 0.5 more are free; on today's nodes the end of all other jobs would not"
        " be enough",
        nodes(1, gpus=2, cores=4),
        mpi(workers=2, gpus=1, cores=1, launcher=shape(cores=1)),
        (pod("busy", on="node-0", cores=1.5),),
    ),
    Told(
        Cause.BUSY,
        "needs 12Gi memory (3 pods x 4Gi each), 8Gi of 16Gi are free;"
        " it can start when 4Gi more are free on one node; on today's nodes the end of all other"
        " jobs would not be enough",
        nodes(2, gib=8),
        mpi(workers=3, cores=1, gib=4),
        (pod("busy", on="node-0", gib=8),),
    ),
    Told(
        Cause.BUSY,
        "needs 4 GPUs (2 ps x 1 and 2 worker x 1), 3 of 4 are free;"
        " it can start when 1 more is free",
        nodes(1, gpus=4),
        mpi(roles={"ps": (2, shape(gpus=1, cores=2)), "worker": (2, shape(gpus=1))}),
        (pod("busy", on="node-0", gpus=1),),
    ),
    Told(
        Cause.FRAGMENTED,
        "the pod needs 4 GPUs on one node; at most 2 are free on any node (4 in all);"
        " it can start when 2 more are free on one node",
        nodes(2, gpus=4),
        mpi(workers=1, gpus=4),
        (pod("x", on="node-0", gpus=2), pod("y", on="node-1", gpus=2)),
    ),
    Told(
        Cause.FRAGMENTED,
        "each pod needs 2 GPUs on one node; there is room for 2 of 3 (6 free in all);"
        " it can start when 1 more is free",
        nodes(2, gpus=4),
        mpi(workers=3, gpus=2),
        (pod("x", on="node-0", gpus=1), pod("y", on="node-1", gpus=1)),
    ),
    Told(
        Cause.FRAGMENTED,
        "the pod needs 1 GPU and 8 cores on one node; no node has all of that free at once",
        nodes(2, gpus=1, cores=8),
        mpi(workers=1, gpus=1, cores=8),
        (pod("gpu", on="node-0", gpus=1, cores=0), pod("cpu", on="node-1", cores=1)),
    ),
    Told(
        Cause.BARRED,
        "no node matches selector gpu=a100: none of today's nodes has the label gpu;"
        " change the selector or label a node",
        nodes(2, gpus=1),
        mpi(workers=1, gpus=1, selector={"gpu": "a100"}),
    ),
    Told(
        Cause.BARRED,
        "no node matches selector gpu=a100,zone=b: today's nodes have zone=a, zone=c;"
        " change the selector or label a node",
        [
            node("a", labels={"gpu": "a100", "zone": "a"}),
            node("c", labels={"gpu": "h100", "zone": "c"}),
        ],
        mpi(workers=1, selector={"gpu": "a100", "zone": "b"}),
    ),
    Told(
        Cause.BARRED,
        "no node may take its pods: 2 nodes do not match its node affinity (gpu in h100, h200);"
        " change the affinity or label a node",
        nodes(2),
        mpi(
            workers=1,
            choices=[Choice((NodeTerm((Requirement("gpu", "In", ("h100", "h200")),)),))],
        ),
    ),
    Told(
        Cause.BARRED,
        "no node may take its pods: 2 nodes have a taint it does not tolerate:"
        " team=b:NoSchedule; add a toleration",
        nodes(2, taints=[Taint("team", "b")]),
        mpi(workers=1),
    ),
    Told(
        Cause.BARRED,
        "no node may take its pods: 2 nodes have a taint it does not tolerate:"
        " node.kubernetes.io/disk-pressure:NoSchedule",
        nodes(2, taints=[Taint("node.kubernetes.io/disk-pressure")]),
        mpi(workers=1),
    ),
    Told(
        Cause.BARRED,
        "no node may take its pods: 1 node does not match selector gpu=a100,"
        " 2 nodes are not ready, 1 node is cordoned; change the selector or label a node,"
        " or uncordon a node",
        [
            node("a", gpus=1),
            node("b", gpus=1, labels={"gpu": "a100"}, ready=False),
            node("c", gpus=1, labels={"gpu": "a100"}, ready=False),
            node("d", gpus=1, labels={"gpu": "a100"}, cordoned=True),
        ],
        mpi(workers=1, gpus=1, selector={"gpu": "a100"}),
    ),
    Told(Cause.BARRED, "the cluster has no nodes; add some", [], mpi(workers=1, gpus=1)),
    Told(
        Cause.TOO_LARGE,
        "the pod needs 1 rdma/hca; none of today's nodes that it may use has any;"
        " add a node that has",
        nodes(1, gpus=1),
        mpi(workers=1, gpus=1, extra={"rdma/hca": 1}),
    ),
    Told(
        Cause.NOT_TOGETHER,
        "2 big x 3 GPUs and 1 core and 2 small x 2 GPUs and 1 core do not fit together on today's"
        " nodes, even if all other jobs ended",
        [node("a", gpus=5), node("b", gpus=4), node("c", gpus=1)],
        mpi(roles={"big": (2, BIG), "small": (2, SMALL)}),
    ),
    Told(
        Cause.NOT_TOGETHER,
        "2 big x 3 GPUs and 1 core and 2 small x 2 GPUs and 1 core fit one by one but not"
        " together; more room must come free",
        [node("a", gpus=5), node("b", gpus=5), node("c", gpus=1)],
        mpi(roles={"big": (2, BIG), "small": (2, SMALL)}),
        (pod("x", on="b", gpus=1),),
    ),
    Told(
        Cause.NOT_TOGETHER,
        "no placement found for 2 big x 3 GPUs and 1 core and 2 small x 2 GPUs and 1 core"
        " together; it is tried again as room comes",
        [node("a", gpus=5), node("b", gpus=4), node("c", gpus=1)],
        mpi(roles={"big": (2, BIG), "small": (2, SMALL)}),
        policy=Policy(search_steps=1),
    ),
    Told(
        Cause.TOO_LARGE,
        "the pod needs 6Ei memory on one node; the largest of today's nodes has 64Gi;"
        " ask for 64Gi at most, or add a larger node",
        nodes(1),
        mpi(workers=1, gib=6 << 30),
    ),
]


def verdict(case: Told) -> Verdict:
    view = View()
    arrives(*case.nodes, *case.others, case.gang)(view)
    (decision,) = cycle(view, case.policy, 0.0)
    assert isinstance(decision, Wait)
    return decision.verdict


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.sentence[:60])
def test_sentence(case: Told) -> None:
    told = verdict(case)
    sentence, _, _ = told.sentence.partition("; when it starts is unknown: ")
    assert (told.cause, sentence) == (case.cause, case.sentence)


def test_numbers_come_with_the_sentence() -> None:
    (short,) = verdict(TABLE[6]).short
    assert (short.resource, short.asked, short.free, short.total) == (GPU, 8, 6, 8)
