"""Domains inside of domains, whatever order the names of nodes are in, against a recount."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from posse.engine.cycle import cycle
from posse.engine.decisions import Start
from posse.engine.facts import NodeFacts, Topology
from posse.engine.fit.hypernodes import HyperNodeFacts, Membership
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.trying import examples
from tests.scenarios.language import Team, gang, node

POLICY = Policy(tiers=("rack", "block", "zone"))

# What a node has free, and its rack, block and zone, some of which it may be without.
Place = tuple[int, str, str, str]
places = st.tuples(
    st.integers(0, 4), st.sampled_from("abc-"), st.sampled_from("xy-"), st.sampled_from("12")
)
# How many GPUs each member asks for, how many members there are, and in which tier they must sit.
Asked = tuple[int, int, int | None]
asked = st.tuples(st.integers(1, 2), st.integers(1, 5), st.sampled_from([None, 1, 2, 3]))


def leave(view: View, team: Team) -> None:
    view.remove_group(team.group.key)
    for pod in team.pods:
        view.remove_pod(pod.uid)


def facts_of(name: str, place: Place) -> NodeFacts:
    gpus, *where = place
    labels = {key: value for key, value in zip(POLICY.tiers, where, strict=True) if value != "-"}
    return node(name, gpus=gpus, cores=100, labels=labels)


def domains(places: Sequence[Place], tier: int) -> list[list[int]]:
    """The nodes of each domain of that tier or a nearer one."""
    found: dict[tuple[str, ...], list[int]] = {}
    for at, (_, *where) in enumerate(places):
        for nearer in range(tier):
            if where[nearer] != "-":
                found.setdefault(tuple(where[nearer:]), []).append(at)
    return list(found.values())


@examples(200)
@given(
    st.lists(places, min_size=1, max_size=9),
    st.lists(st.tuples(asked, st.booleans()), min_size=1, max_size=8),
)
def test_a_gang_starts_exactly_when_a_domain_of_its_tier_has_room(
    where: list[Place], wanted: list[tuple[Asked, bool]]
) -> None:
    view = View()
    for at, place in enumerate(where):
        view.set_node(facts_of(f"n{at}", place))
    free = [place[0] for place in where]
    running: list[tuple[Team, list[int], int]] = []
    for at, ((gpus, workers, tier), ends) in enumerate(wanted):
        if ends and running:
            team, rows, each = running.pop(0)
            leave(view, team)
            for row in rows:
                free[row] += each
        topology = None if tier is None else Topology(tier=tier)
        team = gang(f"g{at}", workers=workers, gpus=gpus, facts={"topology": topology})
        view.set_group(team.group)
        for pod in team.pods:
            view.set_pod(pod)
        starts = [d for d in cycle(view, POLICY, 0.0) if isinstance(d, Start)]
        view.validate()
        allowed = [list(range(len(where)))] if tier is None else domains(where, tier)
        fits = [rows for rows in allowed if sum(free[row] // gpus for row in rows) >= workers]
        assert bool(starts) == bool(fits), (free, gpus, workers, tier)
        if not starts:
            leave(view, team)
            continue
        used = [int(seat.node[1:]) for seat in starts[0].seats]
        assert any(set(used) <= set(rows) for rows in fits)
        running.append((team, used, gpus))
        for row in used:
            free[row] -= gpus


@examples(100)
@given(
    st.lists(places, min_size=2, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), places), max_size=8),
)
def test_seats_of_domains_follow_nodes_that_change(
    where: list[Place], changes: list[tuple[int, Place]]
) -> None:
    view = View()
    for at, place in enumerate(where):
        view.set_node(facts_of(f"n{at}", place))
    team = gang("asks", workers=99, gpus=1, facts={"topology": Topology(tier=3)})
    view.set_group(team.group)
    for pod in team.pods:
        view.set_pod(pod)
    for at, place in changes:
        list(cycle(view, POLICY, 0.0))
        view.set_node(facts_of(f"n{at}", place))
        view.validate()


@examples(150)
@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=7),
    st.lists(st.sets(st.integers(0, 6), min_size=1), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(1, 8), st.booleans()), min_size=1, max_size=4),
)
def test_nodes_of_several_domains_give_no_seat_twice(
    rooms: list[int], drawn: list[set[int]], wanted: list[tuple[int, bool]]
) -> None:
    view = View()
    free = Counter({f"n{at}": gpus for at, gpus in enumerate(rooms)})
    for name, gpus in free.items():
        view.set_node(node(name, gpus=gpus, cores=100))
    for at, inside in enumerate(drawn):
        members = tuple(Membership(name=f"n{each}") for each in sorted(inside))
        view.set_hypernode(HyperNodeFacts(f"h{at}", 1, members=members))
    for at, (workers, required) in enumerate(wanted):
        topology = Topology(tier=1) if required else Topology(required=False)
        team = gang(f"g{at}", workers=workers, gpus=1, facts={"topology": topology})
        view.set_group(team.group)
        for pod in team.pods:
            view.set_pod(pod)
        starts = [d for d in cycle(view, POLICY, 0.0) if isinstance(d, Start)]
        view.validate()
        domains = [{f"n{each}" for each in inside} for inside in drawn] if required else [set(free)]
        assert bool(starts) == any(sum(free[n] for n in d) >= workers for d in domains)
        if not starts:
            leave(view, team)
        for start in starts:
            free.subtract(seat.node for seat in start.seats)
        assert min(free.values()) >= 0
