"""Placement against an oracle that tries everything."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from posse.engine.cycle import cycle
from posse.engine.decisions import Start
from posse.engine.fit.seating import Seats
from posse.engine.placement.demands import demands_of
from posse.engine.placement.searching import search
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.engine_worlds import Cluster, can_start, clusters
from tests.properties.trying import examples

THOROUGH = Policy(search_steps=1_000_000)


def starts(cluster: Cluster) -> bool:
    return any(isinstance(each, Start) for each in cycle(cluster.view(), THOROUGH, 0.0))


@examples(200)
@given(clusters(most_gangs=1, most_roles=1, seated=False, announced=False))
def test_a_gang_of_one_role_starts_exactly_when_it_fits(cluster: Cluster) -> None:
    assert starts(cluster) == can_start(cluster)


@examples(200)
@given(clusters(most_gangs=1, most_roles=2, most_nodes=4, seated=False))
def test_a_gang_of_several_roles_starts_exactly_when_it_fits(cluster: Cluster) -> None:
    assume(len(cluster.pods) <= 7)
    assert starts(cluster) == can_start(cluster)


@examples(200)
@given(clusters(most_gangs=1, most_roles=2, most_nodes=4, seated=False))
def test_the_search_alone_finds_a_placement_exactly_when_there_is_one(cluster: Cluster) -> None:
    assume(len(cluster.pods) <= 7)
    view = cluster.view()
    (gang,) = view.gangs.values()
    demands = demands_of(gang, gang.need)
    found, proven = search(view, demands, gang.need, 1_000_000)
    assert proven
    assert (found is not None) == can_start(cluster)
    check_room(view)


def check_room(view: View) -> None:
    columns = view.columns
    assert (columns.used + columns.held <= columns.allocatable).all()


@examples(100)
@given(clusters(seated=True), st.integers(0, 3), st.data())
def test_rolling_back_restores_the_columns_exactly(
    cluster: Cluster, depth: int, data: st.DataObject
) -> None:
    assume(cluster.nodes)
    view = cluster.view()
    before = view.columns.used.copy(), view.columns.held.copy()
    freed = view.columns.freed.copy()

    def attempt(depth: int) -> None:
        with view.tentatively() as inner:
            _seat_some(view, data)
            if depth:
                attempt(depth - 1)
            _seat_some(view, data)
            if data.draw(st.booleans()):
                inner.keep()

    with view.tentatively():
        attempt(depth)
    assert (view.columns.used == before[0]).all()
    assert (view.columns.held == before[1]).all()
    assert (view.columns.freed == freed).all(), "what was only tried has freed nothing"
    view.validate()


def _seat_some(view: View, data: st.DataObject) -> None:
    member = data.draw(st.sampled_from(list(view.members.values())))
    if member.seating.total():
        view.take(member.seating, member.seating.choose(1))
    row = view.columns.by_name()[0]
    view.hold(member.seating, Seats(np.array([row], np.intp), np.ones(1, np.int64)))


@examples(150)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.integers(1, 30))
def test_the_fewest_nodes_are_used(free: list[int], count: int) -> None:
    from tests.scenarios.language import gang, node

    assume(sum(free) >= count)
    view = View()
    for at, gpus in enumerate(free):
        view.set_node(node(f"node-{at}", gpus=gpus, cores=100))
    team = gang("mpi", workers=count, gpus=1)
    view.set_group(team.group)
    for pod in team.pods:
        view.set_pod(pod)
    (start,) = cycle(view, Policy(), 0.0)
    assert isinstance(start, Start)
    used = len({seat.node for seat in start.seats})
    largest = sorted(free, reverse=True)
    assert sum(largest[: used - 1]) < count <= sum(largest[:used])
