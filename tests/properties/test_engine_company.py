"""Gangs whose pods care about their company, against an oracle that tries every placement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from posse.engine.cycle import cycle
from posse.engine.decisions import Start
from posse.engine.facts import Constraints, GroupFacts, NodeFacts, PodFacts, Shape, requests_of
from posse.engine.fit.terms import HostPort, PodTerm, Relations, Requirement, Selector, Spread
from posse.engine.placement import relating
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.trying import examples

HOST, ZONE = "host", "zone"
THOROUGH = Policy(search_steps=100_000)

APP = {value: Selector((Requirement("app", "In", (value,)),)) for value in "xy"}
ANY = Selector((Requirement("app", "Exists"),))


@dataclass
class World:
    nodes: list[NodeFacts]
    others: list[PodFacts]
    pods: list[PodFacts]

    def view(self) -> View:
        view = View()
        for node in self.nodes:
            view.set_node(node)
        for pod in (*self.others, *self.pods):
            view.set_pod(pod)
        view.set_group(GroupFacts("ns/g", "g", min_member=len(self.pods)))
        return view


@st.composite
def terms(draw: st.DrawFn, keys: Sequence[str] = (HOST, ZONE)) -> PodTerm:
    selector = draw(st.sampled_from([APP["x"], APP["y"], ANY]))
    return PodTerm(draw(st.sampled_from(keys)), selector, ("ns",))


@st.composite
def company(draw: st.DrawFn, *, simple: bool = False) -> Relations | None:
    """`simple`: only what is sure to be seated in one pass."""
    kind = draw(st.sampled_from([0, 1, 2, 4] if simple else range(6)))
    match kind:
        case 1:
            return Relations(avoids=(draw(terms((HOST,) if simple else (HOST, ZONE))),))
        case 2:
            return Relations(ports=(HostPort(draw(st.integers(1, 2))),))
        case 3:
            return Relations(joins=(draw(terms()),))
        case 4:
            selector = draw(st.sampled_from([APP["x"], ANY]))
            key = draw(st.sampled_from([HOST, ZONE]))
            skew, least = draw(st.integers(1, 2)), draw(st.integers(1, 2))
            return Relations(spreads=(Spread(key, skew, selector, least),))
        case 5:
            return Relations(avoids=(draw(terms()),), joins=(draw(terms()),))
    return None


@st.composite
def worlds(draw: st.DrawFn, *, roles: int = 1, simple: bool = False) -> World:
    nodes = []
    for at in range(draw(st.integers(1, 4))):
        labels = {HOST: f"n{at}"} | (
            {ZONE: zone} if (zone := draw(st.sampled_from("ab "))) != " " else {}
        )
        nodes.append(NodeFacts(f"n{at}", {"cpu": draw(st.integers(1, 3)), "pods": 9}, labels))

    def pod(name: str, role: str, asks: Relations | None, node: str | None) -> PodFacts:
        app = draw(st.sampled_from(["x", "y", ""])) if role == "" else role
        shape = Shape(requests_of({"cpu": 1}), Constraints(), asks)
        gang = None if node is not None else "ns/g"
        labels = {"app": app} if app else {}
        return PodFacts(name, f"ns/{name}", shape, gang, role, node, labels=labels)

    others = [
        pod(f"o{at}", "", draw(company(simple=simple)), draw(st.sampled_from(nodes)).name)
        for at in range(draw(st.integers(0, 3)))
    ]
    pods = []
    for role in "xy"[:roles]:
        asks = draw(company(simple=simple))
        pods += [
            pod(f"{role}{at}", role, asks, None)
            for at in range(draw(st.integers(1, 4 if roles == 1 else 2)))
        ]
    return World(nodes, others, pods)


# -- written anew, on purpose ------------------------------------------------------------------


def speaks(term: PodTerm, pod: PodFacts) -> bool:
    assert term.selector is not None
    return term.selector.matches(pod.labels)


def asks(pod: PodFacts) -> Relations:
    return pod.shape.relations or Relations()


def admits(
    world: World, seated: list[tuple[PodFacts, NodeFacts]], pod: PodFacts, node: NodeFacts
) -> bool:
    used = sum(1 for other, on in seated if on is node)
    if used >= node.allocatable["cpu"]:
        return False
    for other, on in seated:
        if on is node and any(p.clashes(q) for p in asks(pod).ports for q in asks(other).ports):
            return False
        for term in asks(pod).avoids:
            if speaks(term, other) and same(term.key, node, on):
                return False
        for term in asks(other).avoids:
            if speaks(term, pod) and same(term.key, node, on):
                return False
    return joins(seated, pod, node) and spreads(world, seated, pod, node)


def same(key: str, one: NodeFacts, other: NodeFacts) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def joins(seated: list[tuple[PodFacts, NodeFacts]], pod: PodFacts, node: NodeFacts) -> bool:
    wanted = asks(pod).joins
    if any(term.key not in node.labels for term in wanted):
        return False
    friends = [(o, on) for o, on in seated if all(speaks(term, o) for term in wanted)]
    if not any(term.key in on.labels for _, on in friends for term in wanted):
        return all(speaks(term, pod) for term in wanted)
    return all(any(same(term.key, node, on) for _, on in friends) for term in wanted)


def spreads(
    world: World, seated: list[tuple[PodFacts, NodeFacts]], pod: PodFacts, node: NodeFacts
) -> bool:
    for spread in asks(pod).spreads:
        assert spread.selector is not None
        if spread.key not in node.labels:
            return False
        counts = {each.labels[spread.key]: 0 for each in world.nodes if spread.key in each.labels}
        for other, on in seated:
            if spread.key in on.labels and spread.selector.matches(other.labels):
                counts[on.labels[spread.key]] += 1
        least = min(counts.values()) if len(counts) >= spread.min_domains else 0
        itself = int(spread.selector.matches(pod.labels))
        if counts[node.labels[spread.key]] + itself - least > spread.max_skew:
            return False
    return True


def seats(world: World) -> list[tuple[PodFacts, NodeFacts]]:
    by_name = {node.name: node for node in world.nodes}
    return [(pod, by_name[pod.node]) for pod in world.others if pod.node is not None]


def can_start(world: World) -> bool:
    """Try every pod next, on every node."""

    def some(seated: list[tuple[PodFacts, NodeFacts]], left: list[PodFacts]) -> bool:
        if not left:
            return True
        alike = {(pod.role, pod.shape): pod for pod in left}
        return any(
            admits(world, seated, pod, node)
            and some([*seated, (pod, node)], [each for each in left if each is not pod])
            for pod in alike.values()
            for node in world.nodes
        )

    return some(seats(world), world.pods)


def overfull(world: World) -> bool:
    taken = [on.name for _, on in seats(world)]
    return any(taken.count(node.name) > node.allocatable["cpu"] for node in world.nodes)


def started(world: World) -> Start | None:
    found = [each for each in cycle(world.view(), THOROUGH, 0.0) if isinstance(each, Start)]
    return found[0] if found else None


# -- properties --------------------------------------------------------------------------------


@examples(150)
@given(worlds())
def test_a_gang_of_one_role_starts_exactly_when_it_can(world: World) -> None:
    assume(not overfull(world))
    assert (started(world) is not None) == can_start(world)


@examples(100)
@given(worlds(roles=2))
def test_a_gang_of_two_roles_starts_only_where_it_may(world: World) -> None:
    """Each pod is admitted in some order after those before it."""
    assume(not overfull(world))
    start = started(world)
    if start is None:
        return
    by_uid = {pod.uid: pod for pod in world.pods}
    by_name = {node.name: node for node in world.nodes}
    left = [(by_uid[seat.uid], by_name[seat.node]) for seat in start.seats]

    def in_some_order(
        seated: list[tuple[PodFacts, NodeFacts]], left: list[tuple[PodFacts, NodeFacts]]
    ) -> bool:
        return not left or any(
            admits(world, seated, *each)
            and in_some_order([*seated, each], [other for other in left if other is not each])
            for each in left
        )

    assert in_some_order(seats(world), left)


@examples(100)
@given(worlds(roles=2))
def test_a_gang_of_two_roles_that_can_start_role_by_role_does(world: World) -> None:
    assume(not overfull(world))
    for first in "xy":
        order = sorted(world.pods, key=lambda pod: pod.role != first)
        if _can_start_in(world, order):
            assert started(world) is not None
            return


def _can_start_in(world: World, order: list[PodFacts]) -> bool:
    def some(seated: list[tuple[PodFacts, NodeFacts]], at: int) -> bool:
        return at == len(order) or any(
            admits(world, seated, order[at], node) and some([*seated, (order[at], node)], at + 1)
            for node in world.nodes
        )

    return some(seats(world), 0)


@examples(150)
@given(worlds(simple=True))
def test_one_pass_and_pod_by_pod_agree(world: World) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relating, "scout", _nothing)
        at_once = started(world)
        patch.setattr(relating, "_even", lambda *_: None)
        patch.setattr(relating._Attempt, "_at_once", lambda *_: (1, 1))
        one_by_one = started(world)
    assert (at_once is None) == (one_by_one is None)


def _nothing(*_: Any) -> tuple[None, bool]:
    return None, False
