"""Quota: whatever the tree, the gangs and what happens, no start exceeds it.

Usage is counted here from the pods alone, in plain dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from posse.engine.cycle import cycle
from posse.engine.decisions import Reason, Start, Wait
from posse.engine.facts import QueueFacts, Requests
from posse.engine.gangs import NOWHERE
from posse.engine.policy import Policy
from posse.engine.queues.sharing import fill
from posse.engine.view import View
from tests.properties.engine_worlds import GPU, Cluster, can_start, clusters
from tests.properties.trying import examples

POLICIES = [
    Policy(search_steps=200),
    Policy(search_steps=200, preemption=False, reclaim=False, backfill=False),
]
NAMES = ("default", "a", "b", "c", "d")
Usage = dict[str, dict[str, int]]


@st.composite
def amounts(draw: st.DrawFn, most: int) -> Requests:
    said = {
        resource: draw(st.integers(0, most)) * unit
        for resource, unit in (("cpu", 1000), (GPU, 1))
        if draw(st.booleans())
    }
    return tuple(sorted(said.items()))


@st.composite
def trees(draw: st.DrawFn) -> list[QueueFacts]:
    """Some of the names, each below any other, also in circles and below nobody."""
    return [
        QueueFacts(
            name,
            weight=draw(st.integers(1, 3)),
            parent=draw(st.sampled_from(["", "", "root", *NAMES])),
            priority=draw(st.integers(0, 1)),
            reclaimable=draw(st.booleans()),
            capability=draw(amounts(8)),
            guarantee=tuple((r, a) for r, a in draw(amounts(2)) if a),
            deserved=draw(amounts(4)),
        )
        for name in draw(st.lists(st.sampled_from([*NAMES, "root"]), unique=True))
    ]


@dataclass
class World:
    cluster: Cluster
    queues: list[QueueFacts]

    def view(self) -> View:
        view = self.cluster.view()
        for queue in self.queues:
            view.set_queue(queue)
        return view

    def above(self, name: str) -> Iterator[QueueFacts]:
        """The queue and its ancestors, as far as they are described.

        `root` is above all that name nobody, and below nobody; who is in a circle is below nobody
        either.
        """
        known = {"default": QueueFacts("default")} | {q.name: q for q in self.queues}
        parents = {q.name: "" if q.name == "root" else q.parent or "root" for q in known.values()}
        while name in known:
            yield known[name]
            circle = [name]
            while (at := parents.get(circle[-1], "")) not in ("", *circle):
                circle.append(at)
            if at == name:
                return
            name = parents[name]

    def usage(self, view: View) -> Usage:
        """What pods with a node use of each queue, ancestors included."""
        queues = {group.key: group.queue for group in self.cluster.groups}
        usage: Usage = {}
        for member in view.members.values():
            if member.row == NOWHERE or member.facts.gang is None:
                continue
            queue = queues[member.facts.gang]
            for name in dict.fromkeys([queue, *(each.name for each in self.above(queue))]):
                taken = usage.setdefault(name, {})
                for resource, amount in member.facts.shape.requests:
                    taken[resource] = taken.get(resource, 0) + amount
        return usage

    def check(self, view: View, before: Usage) -> None:
        """Nothing that a queue uses has grown beyond what the queue may use."""
        after = self.usage(view)
        for queue in self.queues:
            for resource, most in queue.capability:
                had = before.get(queue.name, {}).get(resource, 0)
                has = after.get(queue.name, {}).get(resource, 0)
                assert has <= max(most, had), f"{queue.name} uses {has} of {most} {resource}"


@st.composite
def worlds(draw: st.DrawFn, /, **like: bool | int) -> World:
    cluster = draw(clusters(**like))  # type: ignore[arg-type]
    groups = [replace(group, queue=draw(st.sampled_from(NAMES))) for group in cluster.groups]
    return World(Cluster(cluster.nodes, groups, cluster.pods), draw(trees()))


@examples(150)
@given(worlds(), st.sampled_from(POLICIES), st.data())
def test_no_start_exceeds_a_capability(world: World, policy: Policy, data: st.DataObject) -> None:
    view = world.view()
    pods = {pod.uid: pod for pod in world.cluster.pods}
    for turn in range(data.draw(st.integers(1, 4), label="turns")):
        before = world.usage(view)
        for decision in cycle(view, policy, float(turn * 3)):
            if isinstance(decision, Start):
                view.validate()
                world.check(view, before)
            before = world.usage(view)
        uid = data.draw(st.sampled_from(sorted(pods)))
        match data.draw(st.integers(0, 3), label="what happens"):
            case 0:
                view.remove_pod(uid)
            case 1:
                view.refute(uid)
            case 2:
                view.set_pod(pods[uid])
            case _:
                view.remove_group(data.draw(st.sampled_from(world.cluster.groups)).key)
        view.validate()


def idle_guarantees(world: World, usage: Usage, name: str, resource: str, inside: str = "") -> int:
    """What is kept of a resource for queues that are not on the way from this one to the top, or
    to the queue `inside` of which is asked.

    As the definition has it: what a queue is short of its guarantee, or what those below it are
    short of theirs, whichever is more.
    """
    own = [queue.name for queue in world.above(name)]
    below: dict[str, list[QueueFacts]] = {}
    for queue in world.queues:
        way = [each.name for each in world.above(queue.name)]
        below.setdefault(way[1] if len(way) > 1 else "", []).append(queue)

    def unmet(queue: QueueFacts) -> int:
        short = dict(queue.guarantee).get(resource, 0) - usage.get(queue.name, {}).get(resource, 0)
        parts = [unmet(each) for each in below.get(queue.name, [])]
        return max(short, sum(parts), 0)

    whole = own[: own.index(inside) + 1] if inside else ["", *own]
    return sum(
        unmet(queue) for parent in whole for queue in below.get(parent, []) if queue.name not in own
    )


@st.composite
def guarding(draw: st.DrawFn) -> World:
    """A forest without circles, guarantees in it, and nodes that all take pods."""
    cluster = draw(clusters(seated=False, announced=False, surplus=False))
    nodes = [replace(node, ready=True, schedulable=True) for node in cluster.nodes]
    parents = {"a": [""], "b": ["", "a"], "c": ["", "a", "b"], "d": ["", "a", "c"], "default": [""]}
    queues = [
        QueueFacts(
            name,
            parent=draw(st.sampled_from(parents[name])),
            guarantee=tuple((r, a) for r, a in draw(amounts(3)) if a),
        )
        for name in parents
    ]
    groups = [replace(group, queue=draw(st.sampled_from(NAMES))) for group in cluster.groups]
    return World(Cluster(nodes, groups, cluster.pods), queues)


@examples(150)
@given(guarding())
def test_what_is_guaranteed_to_others_stays_free(world: World) -> None:
    view = world.view()
    queues = {group.key: group.queue for group in world.cluster.groups}
    shapes = {pod.uid: pod.shape for pod in world.cluster.pods}
    for decision in cycle(view, POLICIES[1], 0.0):
        if not isinstance(decision, Start):
            continue
        usage = world.usage(view)
        asked = {r for seat in decision.seats for r, _ in shapes[seat.uid].requests}
        for resource in sorted(asked):
            column = view.columns.column[resource]
            free = int((view.columns.allocatable - view.columns.used)[:, column].sum())
            kept = idle_guarantees(world, usage, queues[decision.gang], resource)
            assert free >= kept or not kept, f"{free} {resource} free, {kept} guaranteed"


@examples(150)
@given(worlds(most_gangs=1, seated=False, surplus=False))
def test_a_gang_waits_for_its_queue_only_if_the_queue_forbids_it(world: World) -> None:
    """It starts if nodes and every limit bear it, and otherwise says which does not."""
    (group,) = world.cluster.groups
    lineage = list(world.above(group.queue))
    known = {queue.name: queue for queue in world.queues}
    asked: dict[str, int] = {}
    for shape in [pod.shape for pod in world.cluster.pods] + [e.shape for e in group.expects]:
        for resource, amount in shape.requests:
            asked[resource] = asked.get(resource, 0) + amount
    view = world.view()
    (decision,) = cycle(view, POLICIES[1], 0.0)
    broken = view.tree.queue(group.queue)
    usable = (group.queue in known or group.queue == "default") and not broken.children
    if not usable or any(each.problem for each in broken.lineage()):
        assert isinstance(decision, Wait)
        assert decision.verdict.reason.value.startswith("Queue")
        return
    within = all(
        not asked.get(resource)
        or asked[resource] + idle_guarantees(world, {}, group.queue, resource, queue.name) <= most
        for queue in lineage
        for resource, most in queue.capability
    )
    kept = {r: idle_guarantees(world, {}, group.queue, r) for r in asked}
    free = {
        r: sum(n.allocatable.get(r, 0) for n in world.cluster.nodes if n.ready and n.schedulable)
        for r in asked
    }
    spared = all(asked[r] + kept[r] <= free[r] or not kept[r] for r in asked)
    if within and spared:
        assert isinstance(decision, Start) == can_start(world.cluster)
    else:
        assert isinstance(decision, Wait)
        assert decision.verdict.reason is Reason.QUOTA


@examples(250)
@given(
    st.integers(0, 60),
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 9), st.integers(0, 30)), min_size=1, max_size=6
    ),
)
def test_shares_are_level(amount: int, takers: list[tuple[int, int, int]]) -> None:
    """Nobody gets less than its floor or more than it wants, nothing is left that is wanted, and
    whoever has more by weight than another is at its floor, or the other at what it wants."""
    weights = [weight for weight, _, _ in takers]
    floors = [floor for _, floor, _ in takers]
    wants = [max(floor, want) for _, floor, want in takers]
    shares = fill(amount, weights, floors, wants)
    assert all(f <= s <= w for f, s, w in zip(floors, shares, wants, strict=True))
    assert sum(shares) <= max(amount, sum(floors))
    assert sum(shares) > min(amount, sum(wants)) - len(takers)
    for one in range(len(takers)):
        for other in range(len(takers)):
            if shares[one] > floors[one] and shares[other] < wants[other]:
                lead = shares[one] / weights[one] - (shares[other] + 1) / weights[other]
                assert lead <= 1e-9
