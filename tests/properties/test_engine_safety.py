"""Safety: whatever the cluster and whatever happens, no partial gang and no overcommit."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from posse.engine.cycle import cycle
from posse.engine.decisions import Start
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.engine_worlds import Cluster, clusters
from tests.scenarios.language import check_promises, overfull

POLICY = Policy(release_after=5.0, search_steps=200)


def decide(view: View, now: float) -> list[Start]:
    started = []
    full = overfull(view)
    for decision in cycle(view, POLICY, now):
        view.validate()
        check_promises(view, decision, full)
        if isinstance(decision, Start):
            started.append(decision)
    return started


@settings(max_examples=300, deadline=None)
@given(clusters())
def test_no_partial_gang_and_no_overcommit(cluster: Cluster) -> None:
    decide(cluster.view(), 0.0)


@settings(max_examples=200, deadline=None)
@given(clusters())
def test_a_second_look_at_the_same_cluster_decides_nothing(cluster: Cluster) -> None:
    view = cluster.view()
    decide(view, 0.0)
    assert list(cycle(view, POLICY, 0.0)) == []


@settings(max_examples=300, deadline=None)
@given(clusters(), st.data())
def test_promises_hold_while_the_cluster_changes(cluster: Cluster, data: st.DataObject) -> None:
    view = cluster.view()
    bound: dict[str, str] = {}
    uids = [pod.uid for pod in cluster.pods]
    pods = {pod.uid: pod for pod in cluster.pods}
    for turn in range(data.draw(st.integers(1, 6), label="turns")):
        for start in decide(view, float(turn * 3)):
            bound.update({seat.uid: seat.node for seat in start.seats})
        match data.draw(st.integers(0, 7), label="what happens"):
            case 0:
                view.remove_pod(data.draw(st.sampled_from(uids)))
            case 1:
                view.refute(data.draw(st.sampled_from(uids)))
            case 2 if cluster.nodes:
                view.remove_node(data.draw(st.sampled_from(cluster.nodes)).name)
            case 3 if cluster.nodes:
                view.set_node(data.draw(st.sampled_from(cluster.nodes)))
            case 4 if bound:
                uid = data.draw(st.sampled_from(sorted(bound)))
                view.set_pod(replace(pods[uid], node=bound[uid]))
            case 5:
                view.set_pod(pods[data.draw(st.sampled_from(uids))])
            case 6:
                view.remove_group(data.draw(st.sampled_from(cluster.groups)).key)
            case _:
                view.set_group(data.draw(st.sampled_from(cluster.groups)))
        view.validate()
