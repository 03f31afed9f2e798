"""Queues that keep to groups of nodes, or off them: where their pods go, and what they are told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.engine.cycle import cycle
from posse.engine.decisions import Start, Wait
from posse.engine.policy import Policy
from posse.engine.view import View
from posse.kube.cache import Change
from posse.objects.groups import PodGroup, Queue
from posse.objects.kinds import Kind
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.quarantine import Quarantine
from posse.scheduler.reading.queues import read_queue
from posse.scheduler.reading.reader import Reader
from tests.unit.scheduler.rig import group, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
# A node of each group, and one of none.
GROUPS = {"n0": "", "n1": "a", "n2": "b", "n3": "c"}


class Silent:
    def record(
        self, regarding: Any, reason: str, message: str, *, warning: bool = False, kind: Kind
    ) -> None:
        pass


class Cluster:
    def __init__(self) -> None:
        self.view = View()
        self.reader = Reader(self.view, Claims(), Quarantine(Silent()))
        for name, of in GROUPS.items():
            labels = {"volcano.sh/nodegroup-name": of} if of else {}
            amounts = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}
            status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
            meta = {"name": name, "uid": name, "labels": labels}
            node = msgspec.convert({"metadata": meta, "spec": {}, "status": status}, Node)
            self.reader.node(Change(None, node))

    def queue(self, name: str, affinity: Any = None, parent: str = "") -> None:
        old = self.reader.tenancy.queues.get(name)
        self.reader.tenancy.queue(Change(old, a_queue(name, affinity, parent)))

    def gang(self, name: str, members: int, queue: str, gpus: int = 8) -> None:
        for index in range(members):
            made = pod(f"{name}-{index}", name, gpus)
            made["metadata"] |= {"namespace": "ns", "uid": f"{name}-{index}"}
            self.reader.pod(Change(None, msgspec.convert(made, Pod)))
        said = group(name, members, queue=queue)
        said["metadata"] |= {"namespace": "ns", "uid": name}
        self.reader.group(Change(None, msgspec.convert(said, PodGroup)))

    def decide(self) -> tuple[list[str], list[str]]:
        """The nodes that were given, and what those who wait are told."""
        self.reader.refresh()
        nodes: list[str] = []
        told: list[str] = []
        for decision in cycle(self.view, Policy(backfill=False), 0.0):
            self.view.validate()
            if isinstance(decision, Start):
                nodes += [seat.node for seat in decision.seats]
            elif isinstance(decision, Wait):
                told.append(decision.verdict.sentence)
        return sorted(nodes), told


def a_queue(name: str, affinity: Any = None, parent: str = "") -> Queue:
    spec = {"weight": 1, "parent": parent, "affinity": affinity}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec}, Queue)


def on(required: list[str] | None = None, preferred: list[str] | None = None) -> Any:
    return {"nodeGroupAffinity": {REQUIRED: required, PREFERRED: preferred}}


def off(required: list[str] | None = None, preferred: list[str] | None = None) -> Any:
    return {"nodeGroupAntiAffinity": {REQUIRED: required, PREFERRED: preferred}}


@pytest.mark.parametrize(
    ("affinity", "members", "nodes"),
    [
        (None, 4, ["n0", "n1", "n2", "n3"]),
        ({}, 4, ["n0", "n1", "n2", "n3"]),
        (on([], []), 4, ["n0", "n1", "n2", "n3"]),
        (on(["a", "c"]), 2, ["n1", "n3"]),
        (on(["b"]), 1, ["n2"]),
        (on(["a"], ["c"]), 1, ["n3"]),
        (on(["a"], ["c"]), 2, ["n1", "n3"]),
        (on(None, ["c"]), 1, ["n3"]),
        (off(["a"]), 3, ["n0", "n2", "n3"]),
        (off(None, ["a", "b"]), 2, ["n0", "n3"]),
        (off(None, ["a", "b"]), 4, ["n0", "n1", "n2", "n3"]),
        (on(["a", "b"]) | off(["a"]), 1, ["n2"]),
        (on(["a", "b"]) | off(None, ["a"]), 1, ["n2"]),
        (on(["a", "b"]) | off(None, ["a"]), 2, ["n1", "n2"]),
    ],
)
def test_where_pods_of_a_queue_go(affinity: Any, members: int, nodes: list[str]) -> None:
    cluster = Cluster()
    cluster.queue("q", affinity)
    cluster.gang("g", members, "q")
    assert cluster.decide() == (nodes, [])


@pytest.mark.parametrize(
    ("affinity", "members", "why"),
    [
        (on(["a"]), 2, "the only one of today's nodes that it may use has 8"),
        (
            on(["nowhere"]),
            1,
            "no node may take its pods: 4 nodes are not of the node groups of queue q",
        ),
        (on(["a"]) | off(["a"]), 1, "4 nodes are not of the node groups of queue q"),
        (off(["a", "b", "c"]), 2, "3 nodes are not of the node groups of queue q"),
    ],
)
def test_elsewhere_they_do_not_go(affinity: Any, members: int, why: str) -> None:
    cluster = Cluster()
    cluster.queue("q", affinity)
    cluster.gang("g", members, "q")
    nodes, told = cluster.decide()
    assert nodes == []
    assert why in told[0]


def test_a_queue_that_says_nothing_keeps_to_what_the_nearest_above_it_says() -> None:
    cluster = Cluster()
    cluster.queue("top", on(["a"]))
    cluster.queue("middle", on(["b", "c"]), parent="top")
    cluster.queue("leaf", parent="middle")
    cluster.gang("g", 2, "leaf")
    assert cluster.decide() == (["n2", "n3"], [])


def test_what_a_queue_says_later_counts_for_those_who_wait() -> None:
    cluster = Cluster()
    cluster.queue("q", on(["nowhere"]))
    cluster.gang("g", 1, "q")
    assert cluster.decide()[0] == []
    cluster.queue("q", on(["c"]))
    assert cluster.decide() == (["n3"], [])


def test_a_queue_that_moves_takes_its_jobs_to_other_nodes() -> None:
    cluster = Cluster()
    cluster.queue("one", on(["nowhere"]))
    cluster.queue("other", on(["b"]))
    cluster.queue("leaf", parent="one")
    cluster.gang("g", 1, "leaf")
    assert cluster.decide()[0] == []
    cluster.queue("leaf", parent="other")
    assert cluster.decide() == (["n2"], [])


def test_an_affinity_that_nobody_can_read_takes_nothing_new() -> None:
    facts, why = read_queue(a_queue("q", {"nodeGroupAffinity": "a"}), {})
    assert why.startswith("spec.affinity: ")
    assert facts.problem
