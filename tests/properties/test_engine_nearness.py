"""Nearness against an oracle that tries every domain."""

from __future__ import annotations

from itertools import combinations

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from posse.engine.cycle import cycle
from posse.engine.decisions import Start
from posse.engine.facts import NodeFacts, Topology
from posse.engine.fit.hypernodes import HyperNodeFacts, Membership
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.engine_worlds import Cluster, can_start, clusters
from tests.properties.trying import examples
from tests.scenarios.language import gang, node

ZONES = Policy(tiers=("zone",), search_steps=1_000_000)
alone = clusters(most_gangs=1, most_roles=2, most_nodes=5, seated=False)


def asking(cluster: Cluster, topology: Topology) -> Cluster:
    groups = [replace(group, topology=topology) for group in cluster.groups]
    return Cluster(cluster.nodes, groups, cluster.pods)


def only(cluster: Cluster, nodes: list[NodeFacts]) -> Cluster:
    return Cluster(nodes, cluster.groups, cluster.pods)


def start_of(view: View) -> list[str] | None:
    """The nodes of the gang's first start, held seats among them; None if it waits."""
    for decision in cycle(view, ZONES, 0.0):
        if isinstance(decision, Start):
            return [s.node for s in decision.seats] + [h.node for h in decision.holds]
    return None


@examples(150)
@given(alone, st.sampled_from([Topology(tier=1), Topology(key="zone"), Topology(tier_name="zone")]))
def test_a_gang_that_must_sit_in_one_domain_starts_exactly_when_one_has_room(
    cluster: Cluster, request: Topology
) -> None:
    assume(len(cluster.pods) <= 6)
    zones = [[each for each in cluster.nodes if each.labels["zone"] == zone] for zone in "ab"]
    fits = any(can_start(only(cluster, zone)) for zone in zones)
    seats = start_of(asking(cluster, request).view())
    assert (seats is not None) == fits
    if seats is not None:
        assert any(set(seats) <= {each.name for each in zone} for zone in zones)


@examples(150)
@given(alone, st.data())
def test_a_gang_that_must_sit_in_one_hypernode_starts_exactly_when_one_has_room(
    cluster: Cluster, data: st.DataObject
) -> None:
    assume(len(cluster.pods) <= 6)
    names = [each.name for each in cluster.nodes]
    assume(names)
    drawn = data.draw(st.lists(st.lists(st.sampled_from(names), unique=True), max_size=4))
    view = asking(cluster, Topology(tier=1)).view()
    for at, members in enumerate(drawn):
        inside = tuple(Membership(name=name) for name in members)
        view.set_hypernode(HyperNodeFacts(f"h{at}", 1, members=inside))
    assume(any(drawn))
    domains = [[each for each in cluster.nodes if each.name in members] for members in drawn]
    fits = any(can_start(only(cluster, domain)) for domain in domains)
    seats = start_of(view)
    assert (seats is not None) == fits
    if seats is not None:
        assert any(set(seats) <= set(members) for members in drawn)


@examples(150)
@given(alone, st.sampled_from([None, Topology(required=False), Topology(required=False, tier=1)]))
def test_nearness_that_is_not_required_is_no_reason_to_wait(
    cluster: Cluster, request: Topology | None
) -> None:
    assume(len(cluster.pods) <= 6)
    view = (cluster if request is None else asking(cluster, request)).view()
    assert (start_of(view) is not None) == can_start(cluster)


def fewest(free: list[int], count: int) -> int | None:
    for number in range(1, len(free) + 1):
        if any(sum(some) >= count for some in combinations(free, number)):
            return number
    return None


@examples(200)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc")), min_size=1, max_size=7),
    st.integers(1, 12),
)
def test_devices_sit_on_the_fewest_nodes_and_then_in_one_domain_if_it_has_so_few(
    nodes: list[tuple[int, str]], count: int
) -> None:
    least = fewest([free for free, _ in nodes], count)
    assume(least is not None)
    view = View()
    for at, (free, zone) in enumerate(nodes):
        view.set_node(node(f"n{at}", gpus=free, cores=100, labels={"zone": zone}))
    team = gang("mpi", workers=count, gpus=1)
    view.set_group(team.group)
    for pod in team.pods:
        view.set_pod(pod)
    seats = start_of(view)
    assert seats is not None
    used = sorted(set(seats))
    assert len(used) == least
    near = [z for z in "abc" if fewest([free for free, at in nodes if at == z], count) == least]
    if near:
        assert len({nodes[int(name[1:])][1] for name in used}) == 1
