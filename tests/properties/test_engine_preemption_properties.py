"""Preemption against an oracle that tries everything: only to place, nobody in vain, no circles."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from posse.engine.cycle import cycle
from posse.engine.decisions import Decision, Evict, Keep, Release, Start
from posse.engine.facts import (
    GroupFacts,
    NodeFacts,
    PodFacts,
    QueueFacts,
    Shape,
    requests_of,
)
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.engine_worlds import can_place
from tests.properties.trying import examples

GPU = "nvidia.com/gpu"
QUIET = Policy(backfill=False)


@dataclass
class Arena:
    """Nodes full of gangs that run, and gangs that come."""

    nodes: list[NodeFacts]
    groups: dict[str, GroupFacts]
    pods: dict[str, PodFacts]
    queues: list[QueueFacts]

    def view(self) -> View:
        view = View()
        for queue in self.queues:
            view.set_queue(queue)
        for node in self.nodes:
            view.set_node(node)
        for group in self.groups.values():
            view.set_group(group)
        for pod in self.pods.values():
            view.set_pod(pod)
        return view

    def members(self, gang: str) -> list[PodFacts]:
        return [pod for pod in self.pods.values() if pod.gang == gang]

    def seats(self, decision: Evict | Keep) -> list[tuple[Shape, str]]:
        if decision.keeps is None:
            return []
        shapes = {pod.role: pod.shape for pod in self.members(decision.gang)}
        return [(shapes[role], node) for role, node in decision.keeps.seats]

    def used(self, gone: set[str], held: list[tuple[Shape, str]]) -> dict[str, dict[str, int]]:
        used: dict[str, dict[str, int]] = {}
        there = [(p.shape, p.node) for p in self.pods.values() if p.node and p.uid not in gone]
        for shape, node in [*there, *held]:
            taken = used.setdefault(node, {})
            for resource, amount in shape.requests:
                taken[resource] = taken.get(resource, 0) + amount
        return used

    def fits(self, gang: str, gone: set[str], held: list[tuple[Shape, str]]) -> bool:
        waiting = [pod.shape for pod in self.members(gang) if pod.node is None]
        least = self.groups[gang].min_member
        choices = {tuple(sorted(map(repr, c))): c for c in combinations(waiting, least)}
        return any(
            can_place(self.nodes, self.used(gone, held), list(choice))
            for choice in choices.values()
        )

    def spare(self, gang: str, gone: set[str]) -> int:
        there = [pod for pod in self.members(gang) if pod.node and pod.uid not in gone]
        group = self.groups[gang]
        return 0 if group.indivisible else len(there) - group.min_member


@st.composite
def arenas(draw: st.DrawFn, *, queues: int = 1, growing: bool = False) -> Arena:
    nodes = [
        NodeFacts(f"node-{at}", {"cpu": 8000, GPU: draw(st.integers(1, 4)), "pods": 8})
        for at in range(draw(st.integers(1, 4)))
    ]
    room = {node.name: node.allocatable[GPU] for node in nodes}
    names = [f"q{at}" for at in range(queues)]
    groups: dict[str, GroupFacts] = {}
    pods: dict[str, PodFacts] = {}
    for number in range(draw(st.integers(1, 5))):
        key, gpus = f"team/low-{number}", draw(st.integers(1, 2))
        shape = Shape(requests_of({GPU: gpus, "cpu": 500}))
        seats: list[str] = []
        for _ in range(draw(st.integers(1, 3))):
            free = [name for name, left in room.items() if left >= gpus]
            if free:
                seats.append(draw(st.sampled_from(free)))
                room[seats[-1]] -= gpus
        if not seats:
            continue
        for at, node in enumerate(seats):
            uid = f"low-{number}-{at}"
            pods[uid] = PodFacts(uid, f"team/{uid}", shape, key, "w", node, created=float(at))
        groups[key] = GroupFacts(
            key,
            key,
            queue=draw(st.sampled_from(names)),
            priority=draw(st.integers(0, 2)),
            min_member=draw(st.integers(1, len(seats))),
            started=True,
            recreated=True,
            began=-float(draw(st.integers(0, 3))),
            preemptable=draw(st.integers(0, 5)) > 0,
            evictions=draw(st.sampled_from([0, 0, 0, 2, 3])),
            severable=draw(st.integers(0, 5)) == 0,
            indivisible=draw(st.integers(0, 5)) == 0,
            grows=growing,
            loose=growing and draw(st.booleans()),
        )
        for at in range(draw(st.integers(0, 2)) if growing else 0):
            uid = f"low-{number}-more-{at}"
            pods[uid] = PodFacts(uid, f"team/{uid}", shape, key, "w", created=10.0 + at)
    for number in range(draw(st.integers(1, 2))):
        key = f"team/new-{number}"
        shapes = [
            Shape(requests_of({GPU: draw(st.integers(1, 3)), "cpu": 500}))
            for _ in range(draw(st.sampled_from([1, 1, 2])))
        ]
        total = draw(st.integers(1, 3))
        for at in range(total):
            uid, role = f"new-{number}-{at}", at % len(shapes)
            pods[uid] = PodFacts(
                uid, f"team/{uid}", shapes[role], key, f"r{role}", created=float(at)
            )
        groups[key] = GroupFacts(
            key,
            key,
            queue=draw(st.sampled_from(names)),
            priority=draw(st.integers(0, 3)),
            created=float(number),
            min_member=draw(st.integers(1, total)),
            recreated=True,
            grows=growing,
            loose=growing and draw(st.booleans()),
        )
    facts = [
        QueueFacts(
            name,
            weight=draw(st.integers(1, 3)),
            priority=draw(st.integers(0, 1)) if queues > 1 else 0,
            guarantee=((GPU, draw(st.integers(0, 3))),) if queues > 1 else (),
        )
        for name in names
    ]
    return Arena(nodes, groups, pods, facts)


def legal(arena: Arena, victim: GroupFacts, taker: GroupFacts) -> bool:
    return victim.preemptable and victim.evictions < 3 and victim.priority < taker.priority


@examples()
@given(arenas())
def test_an_eviction_pays_for_a_placement_and_nobody_ends_in_vain(arena: Arena) -> None:
    gone: set[str] = set()
    held: list[tuple[Shape, str]] = []
    for decision in cycle(arena.view(), QUIET, 1.0):
        if isinstance(decision, Start):
            for seat in decision.seats:
                arena.pods[seat.uid] = replace(arena.pods[seat.uid], node=seat.node)
        if not isinstance(decision, Evict):
            continue
        taker = arena.groups[decision.gang]
        ended = {uid for victim in decision.victims for uid, _ in victim.pods}
        for victim in decision.victims:
            assert legal(arena, arena.groups[victim.gang], taker)
            there = [p.uid for p in arena.members(victim.gang) if p.node and p.uid not in gone]
            assert victim.whole == (len(victim.pods) == len(there))
            if not victim.whole and not arena.groups[victim.gang].severable:
                assert not arena.groups[victim.gang].indivisible
                assert len(there) - len(victim.pods) >= arena.groups[victim.gang].min_member
        # What is kept is room, and is all the gang needs.
        mine = arena.seats(decision)
        assert len(mine) >= taker.min_member
        for node in arena.nodes:
            used = arena.used(gone | ended, [*held, *mine]).get(node.name, {})
            assert all(used.get(r, 0) <= amount for r, amount in node.allocatable.items())
        # Nobody could have been let off.
        for victim in decision.victims:
            pods = {uid for uid, _ in victim.pods}
            assert not arena.fits(decision.gang, gone | (ended - pods), held), victim.gang
            group = arena.groups[victim.gang]
            if group.severable or not victim.whole:
                for uid in pods:
                    assert not arena.fits(decision.gang, gone | (ended - {uid}), held), uid
            else:
                spare = arena.spare(victim.gang, gone)
                for number in range(1, min(spare, len(pods) - 1) + 1):
                    for part in combinations(sorted(pods), number):
                        some = (ended - pods) | set(part)
                        assert not arena.fits(decision.gang, gone | some, held), part
        gone |= ended
        held += mine


@examples()
@given(arenas())
def test_who_could_be_placed_by_ending_others_is(arena: Arena) -> None:
    view = arena.view()
    decisions = list(cycle(view, QUIET, 1.0))
    served = {d.gang for d in decisions if isinstance(d, Start | Evict | Keep)}
    gone: set[str] = set()
    held: list[tuple[Shape, str]] = []
    for decision in decisions:
        if isinstance(decision, Start):
            for seat in decision.seats:
                arena.pods[seat.uid] = replace(arena.pods[seat.uid], node=seat.node)
        if isinstance(decision, Evict):
            gone |= {uid for victim in decision.victims for uid, _ in victim.pods}
            held += arena.seats(decision)
    for key, group in arena.groups.items():
        if key in served or any(pod.node for pod in arena.members(key)):
            continue
        victims = {
            pod.uid
            for other in arena.groups.values()
            # Those that were placed just now are known to have their nodes only later.
            if legal(arena, other, group) and other.key not in served
            for pod in arena.members(other.key)
        }
        # Where what others are ended for leaves enough, that is simply waited for.
        if not arena.fits(key, gone, held):
            assert not arena.fits(key, gone | victims, held), key


@examples()
@given(arenas(queues=2))
def test_across_queues_nobody_goes_below_its_guarantee(arena: Arena) -> None:
    going: set[str] = set()
    kept: dict[str, int] = {queue.name: 0 for queue in arena.queues}
    for decision in cycle(arena.view(), QUIET, 1.0):
        if isinstance(decision, Start):
            for seat in decision.seats:
                arena.pods[seat.uid] = replace(arena.pods[seat.uid], node=seat.node)
        if not isinstance(decision, Evict):
            continue
        taker = next(q for q in arena.queues if q.name == arena.groups[decision.gang].queue)
        going |= {uid for victim in decision.victims for uid, _ in victim.pods}
        for queue in arena.queues:
            lost = [v for v in decision.victims if arena.groups[v.gang].queue == queue.name]
            if queue is taker or not lost:
                continue
            left = kept[queue.name] + sum(
                dict(pod.shape.requests)[GPU]
                for pod in arena.pods.values()
                if pod.node
                and pod.uid not in going
                and arena.groups[str(pod.gang)].queue == queue.name
            )
            assert left >= dict(queue.guarantee)[GPU]
            assert taker.priority >= queue.priority
        kept[taker.name] += sum(dict(shape.requests)[GPU] for shape, _ in arena.seats(decision))


@examples()
@given(arenas(queues=2, growing=True))
def test_beyond_a_minimum_only_lower_priorities_end_and_what_is_kept_is_room(arena: Arena) -> None:
    gone: set[str] = set()
    held: dict[str, list[tuple[Shape, str]]] = {}
    for decision in cycle(arena.view(), QUIET, 1.0):
        if isinstance(decision, Start):
            for seat in decision.seats:
                arena.pods[seat.uid] = replace(arena.pods[seat.uid], node=seat.node)
        if isinstance(decision, Keep):
            held[decision.gang] = arena.seats(decision)
        if not isinstance(decision, Evict):
            continue
        taker = arena.groups[decision.gang]
        members = arena.members(decision.gang)
        if sum(1 for pod in members if pod.node and pod.uid not in gone) >= taker.min_member:
            assert all(arena.groups[v.gang].queue == taker.queue for v in decision.victims)
            assert all(legal(arena, arena.groups[v.gang], taker) for v in decision.victims)
            assert len(decision.keeps.seats) <= sum(1 for pod in members if not pod.node)
        gone |= {uid for victim in decision.victims for uid, _ in victim.pods}
        for victim in decision.victims:
            if all(pod.uid in gone for pod in arena.members(victim.gang) if pod.node):
                held.pop(victim.gang, None)  # what is kept for it anew is said anew
        held[decision.gang] = arena.seats(decision)
    used = arena.used(gone, [seat for seats in held.values() for seat in seats])
    for node in arena.nodes:
        taken = used.get(node.name, {})
        assert all(taken.get(r, 0) <= amount for r, amount in node.allocatable.items())


@examples()
@given(st.booleans().flatmap(lambda grow: arenas(queues=2, growing=grow)), st.integers(0, 2))
def test_nothing_goes_round_in_circles(arena: Arena, linger: int) -> None:
    """Victims come back, again and again; in the end nobody is ended any more."""
    view = arena.view()
    leaving: list[tuple[int, str]] = []
    evictions = 0
    quiet = 0
    for turn in range(80):
        decisions: list[Decision] = list(cycle(view, QUIET, 1.0 + turn))
        for decision in decisions:
            match decision:
                case Start():
                    for seat in decision.seats:
                        pod = arena.pods[seat.uid] = replace(arena.pods[seat.uid], node=seat.node)
                        view.set_pod(pod)
                case Evict():
                    evictions += 1
                    for victim in decision.victims:
                        group = arena.groups[victim.gang]
                        if victim.whole:
                            count = group.evictions + 1
                            arena.groups[victim.gang] = replace(group, evictions=count)
                            view.set_group(arena.groups[victim.gang])
                        leaving += [(turn + linger, uid) for uid, _ in victim.pods]
                case Release():
                    leaving += [(turn, uid) for uid, _ in decision.pods]
                case _:
                    pass
        view.validate()
        quiet = 0 if decisions or leaving else quiet + 1
        if quiet > 3:
            break
        for _, uid in [entry for entry in leaving if entry[0] <= turn]:
            pod = arena.pods.pop(uid)
            view.remove_pod(uid)
            again = replace(pod, uid=f"{uid}+", node=None)
            arena.pods[again.uid] = again
            view.set_pod(again)
        leaving = [entry for entry in leaving if entry[0] > turn]
        for key, group in arena.groups.items():
            seated = any(pod.node for pod in arena.members(key))
            if group.started != seated:
                arena.groups[key] = replace(group, started=seated)
                view.set_group(arena.groups[key])
    assert quiet > 3, f"still deciding after {evictions} evictions"
    assert evictions <= 3 * len(arena.groups) * 3
