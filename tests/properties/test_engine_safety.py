"""Safety: whatever the cluster and whatever happens, no partial gang and no overcommit."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from posse.engine.cycle import cycle
from posse.engine.decisions import Start
from posse.engine.facts import (
    Constraints,
    Expected,
    GroupFacts,
    NodeFacts,
    PodFacts,
    Shape,
    requests_of,
)
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.engine_worlds import GPU, Cluster, clusters
from tests.properties.trying import examples
from tests.scenarios.language import check_promises, overfull

POLICY = Policy(release_after=5.0, search_steps=200)


def asks(cores: int, gpus: int) -> Shape:
    return Shape(requests_of({"cpu": cores * 1000, GPU: gpus}), Constraints())


def room(name: str, cores: int, gpus: int, pods: int) -> NodeFacts:
    return NodeFacts(name, {"cpu": cores * 1000, GPU: gpus, "pods": pods}, {"zone": "a"})


def waiting(gang: int, *shapes: Shape) -> list[PodFacts]:
    return [
        PodFacts(f"{gang}-{at}", f"team/{gang}-{at}", shape, f"team/{gang}", "worker")
        for at, shape in enumerate(shapes)
    ]


# A gang that is half seated keeps room; it is ended for another that wants less than that, and with
# what is left a third one, which has begun and misses a member, is whole.
ENDED_WITH_ROOM_KEPT = Cluster(
    [room("node-0", 4, 2, 3)],
    [
        GroupFacts("team/0", "uid-0", priority=1, min_member=1),
        GroupFacts("team/1", "uid-1", min_member=3),
        GroupFacts(
            "team/2",
            "uid-2",
            min_member=1,
            started=True,
            expects=(Expected("launcher", 1, asks(1, 1)),),
        ),
    ],
    [
        *waiting(0, asks(1, 1)),
        *waiting(1, asks(2, 0)),
        replace(waiting(1, asks(2, 0))[0], uid="1-1", name="team/1-1", node="elsewhere"),
        *waiting(2, asks(2, 0)),
    ],
)

# The same, but the third one has not begun.
ENDED_BEFORE_A_NEWCOMER = Cluster(
    [room("node-0", 2, 2, 3)],
    [
        *ENDED_WITH_ROOM_KEPT.groups[:2],
        GroupFacts("team/2", "uid-2", min_member=1),
    ],
    [*ENDED_WITH_ROOM_KEPT.pods[:3], *waiting(2, asks(1, 0))],
)

# Of a gang that has begun one member sits and another, of another role, waits: nobody knows whom
# else it had, before and after it is written what is kept for it.
OF_TWO_ROLES = Cluster(
    [room("node-0", 2, 1, 4), room("node-1", 0, 0, 5)],
    [
        GroupFacts("team/0", "uid-0", min_member=1),
        GroupFacts("team/1", "uid-1", min_member=5, started=True, recreated=True),
        GroupFacts("team/2", "uid-2", min_member=1, expects=(Expected("launcher", 1, asks(1, 0)),)),
    ],
    [
        *waiting(0, asks(0, 0), asks(1, 0)),
        *(
            replace(pod, role=role, node=node)
            for pod, role, node in zip(
                waiting(1, *[asks(0, 0)] * 3),
                ["worker", "worker", "chief"],
                ["node-0", None, None],
                strict=True,
            )
        ),
        *waiting(2, *[asks(0, 0)] * 2),
    ],
)

# The seat kept for a gang that misses a member would fit tighter on another node by the end of the
# cycle; a third pod of the other gang fits on the one that it is on.
KEPT_WHERE_IT_IS = Cluster(
    [room("node-0", 4, 4, 4), room("node-1", 2, 1, 1)],
    [
        GroupFacts("team/0", "uid-0", min_member=1, expects=(Expected("launcher", 1, asks(0, 1)),)),
        GroupFacts("team/1", "uid-1", min_member=2, started=True),
    ],
    [*waiting(0, *[asks(2, 1)] * 3), *waiting(1, asks(0, 1))],
)


def decide(view: View, now: float) -> list[Start]:
    started = []
    full = overfull(view)
    for decision in cycle(view, POLICY, now):
        view.validate()
        check_promises(view, decision, full)
        if isinstance(decision, Start):
            started.append(decision)
    return started


@examples(150)
@given(clusters(parts=True))
def test_no_partial_gang_and_no_overcommit(cluster: Cluster) -> None:
    decide(cluster.view(), 0.0)


@examples(100)
@given(clusters(parts=True))
@example(ENDED_WITH_ROOM_KEPT)
@example(ENDED_BEFORE_A_NEWCOMER)
@example(OF_TWO_ROLES)
@example(KEPT_WHERE_IT_IS)
def test_a_second_look_at_the_same_cluster_decides_nothing(cluster: Cluster) -> None:
    view = cluster.view()
    decide(view, 0.0)
    assert list(cycle(view, POLICY, 0.0)) == []


@examples(150)
@given(clusters(parts=True), st.data())
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
