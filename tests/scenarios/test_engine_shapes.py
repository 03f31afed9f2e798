"""The shapes a gang may have: roles with minimums of their own, members beyond the minimum, a
least amount of resources; and how long it may take from its nodes to running."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from posse.engine.cycle import cycle, wake_at
from posse.engine.decisions import Cause, Decision, Reason, Release, Wait
from posse.engine.facts import GroupFacts
from posse.engine.gangs import NOWHERE
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import (
    GPU,
    Scenario,
    Turn,
    arrives,
    ends,
    gang,
    member,
    node,
    nodes,
    pod,
    shape,
    starts,
    waits,
)

STEADY = Policy(preemption=False, reclaim=False, backfill=False)
scenario = partial(Scenario, policy=STEADY)

ONE = shape(gpus=1)
TWO = shape(gpus=2)


def roles(**minimums: int) -> dict[str, object]:
    return {"role_minimums": tuple(sorted(minimums.items()))}


ROLES = [
    scenario(
        "so many of all roles, and of each at least its minimum: the oldest alone will not do",
        nodes=nodes(2, gpus=1),
        gangs=[
            gang(
                "tf",
                roles={"worker": (3, ONE), "ps": (1, ONE)},
                least=2,
                facts=roles(ps=1, worker=1),
            )
        ],
        expect=[
            starts("tf", who=["tf-worker-0", "tf-ps-0"]),
            waits("tf", because="2 pods beyond its minimum"),
        ],
    ),
    scenario(
        "a role below its minimum keeps all the others waiting",
        nodes=nodes(4, gpus=1),
        gangs=[
            gang(
                "tf",
                roles={"worker": (3, ONE), "ps": (1, ONE)},
                least=3,
                exist=3,
                facts=roles(ps=1, worker=2),
            )
        ],
        expect=[waits("tf", because="0 of 1 ps pod exists", reason=Reason.INCOMPLETE)],
        then=[
            Turn(
                [arrives(member("tf", "ps-0", role="ps", gpus=1))], [starts("tf", 3), starts("tf")]
            )
        ],
    ),
    scenario(
        "a role that has no room for its minimum keeps all the others waiting",
        nodes=nodes(4, gpus=1),
        gangs=[
            gang(
                "tf",
                roles={"worker": (3, ONE), "chief": (1, TWO)},
                least=3,
                facts=roles(chief=1),
            )
        ],
        expect=[waits("tf", because="2 GPUs on one node")],
        then=[Turn([arrives(node("large", gpus=2))], [starts("tf", 3), starts("tf", 1)])],
    ),
    scenario(
        "minimums of roles that add up to more than the gang's are all needed",
        nodes=nodes(3, gpus=1),
        gangs=[
            gang(
                "tf",
                roles={"worker": (2, ONE), "ps": (2, ONE)},
                least=1,
                facts=roles(ps=2, worker=2),
            )
        ],
        expect=[waits("tf", because="asks for 4 GPUs")],
        then=[Turn([arrives(node("more", gpus=1))], [starts("tf", 4)])],
    ),
    scenario(
        "a running gang whose only parameter server died gets that one back first",
        nodes=nodes(3, gpus=1),
        gangs=[
            gang(
                "tf",
                roles={"worker": (2, ONE), "ps": (1, ONE)},
                least=2,
                on=["node-0", "node-1", "node-2"],
                facts=roles(ps=1),
            )
        ],
        then=[
            Turn(
                [
                    ends("tf-ps-0"),
                    arrives(gang("new", workers=1, gpus=1, priority=9)),
                    arrives(member("tf", "ps-0", role="ps", gpus=1)),
                ],
                [starts("tf", 1, on={"node-2": 1}), waits("new")],
            )
        ],
    ),
    scenario(
        "several roles with different requests are placed together",
        nodes=[node("a", gpus=4, cores=8), node("b", cores=8)],
        gangs=[
            gang(
                "tf",
                roles={
                    "ps": (2, shape(cores=3)),
                    "worker": (2, shape(gpus=2, cores=2)),
                    "chief": (1, shape(cores=1)),
                },
            )
        ],
        expect=[starts("tf", 5, on={"a": 2, "b": 3})],
    ),
]

ELASTIC = [
    scenario(
        "members beyond the minimum sit down as room comes",
        nodes=nodes(2, gpus=1),
        gangs=[gang("elastic", workers=4, gpus=1, least=2)],
        expect=[
            starts("elastic", 2),
            waits("elastic", because="2 pods beyond its minimum: the next needs"),
        ],
        then=[
            Turn([arrives(node("more", gpus=1))], [starts("elastic", 1), waits("elastic")]),
            Turn([arrives(node("most", gpus=1))], [starts("elastic", 1)]),
        ],
    ),
    scenario(
        "nobody's members beyond the minimum come before another's minimum, whatever the priority",
        nodes=nodes(3, gpus=1),
        gangs=[
            gang("elastic", workers=4, gpus=1, least=2, priority=9, age=9),
            gang("small", workers=1, gpus=1),
        ],
        expect=[starts("elastic", 2), starts("small", 1), waits("elastic")],
    ),
    scenario(
        "pods that come slowly start when the minimum is there, the others as they come",
        nodes=nodes(4, gpus=1),
        gangs=[gang("slow", workers=4, gpus=1, least=3, exist=1)],
        expect=[waits("slow", because="1 of 3", reason=Reason.INCOMPLETE)],
        then=[
            Turn(
                [arrives(member("slow", "worker-1", gpus=1))],
                [waits("slow", because="2 of 3", reason=Reason.INCOMPLETE)],
            ),
            Turn([arrives(member("slow", "worker-2", gpus=1))], [starts("slow", 3)]),
            Turn([arrives(member("slow", "worker-3", gpus=1))], [starts("slow", 1)]),
        ],
    ),
    scenario(
        "pods that name a group before it exists are its members once it does",
        nodes=nodes(2, gpus=1),
        then=[
            Turn([arrives(*gang("early", workers=2, gpus=1).pods)], []),
            Turn([arrives(gang("early", workers=2, gpus=1))], [starts("early", 2)]),
        ],
    ),
]

AMOUNTS = [
    scenario(
        "a least amount beyond all nodes: nobody starts, and new nodes are looked at",
        nodes=nodes(2, gpus=4),
        gangs=[gang("vast", workers=1, gpus=1, facts={"min_resources": ((GPU, 12),)})],
        expect=[
            waits(
                "vast",
                because="asks for at least 12 GPUs in all (minResources), but the cluster has 8 on"
                " today's nodes; add 4",
            )
        ],
        then=[Turn([arrives(node("more", gpus=4))], [starts("vast", 1)])],
    ),
    scenario(
        "a least amount of what no node has",
        nodes=nodes(2, gpus=4),
        gangs=[gang("odd", workers=1, facts={"min_resources": (("example.com/fpga", 1),)})],
        expect=[waits("odd", because="the cluster has 0 on today's nodes")],
    ),
    scenario(
        "a least amount that the cluster has is no reason to wait, in use or not",
        nodes=nodes(2, gpus=4),
        others=[pod("busy", on="node-0", gpus=4)],
        gangs=[gang("vast", workers=1, gpus=1, facts={"min_resources": ((GPU, 8),)})],
        expect=[starts("vast", 1)],
    ),
]


@pytest.mark.parametrize("scenario", ROLES + ELASTIC + AMOUNTS, ids=lambda each: each.name)
def test_shapes(scenario: Scenario) -> None:
    scenario.play()


def test_a_missing_role_is_told_in_volcanos_word() -> None:
    view = View()
    team = gang("tf", roles={"worker": (2, ONE)}, least=2, facts=roles(ps=1))
    arrives(*nodes(2, gpus=1), team)(view)
    (wait,) = cycle(view, STEADY, 0.0)
    assert isinstance(wait, Wait) and wait.verdict.cause is Cause.ROLE_MISSING
    assert wait.verdict.cause.value == "NotEnoughPodsOfTask"


# -- from its nodes to running -------------------------------------------------------------------


def starting(recreated: bool = True, **facts: object) -> View:
    """A gang of two that has just got its nodes."""
    view = View()
    team = gang("slow", workers=2, gpus=1, recreated=recreated, facts=facts)
    arrives(*nodes(2, gpus=1), team)(view)
    list(cycle(view, STEADY, 0.0))
    return view


def runs(view: View, *pods: str, trouble: str = "") -> None:
    """These run now; or, with a trouble, say why they do not."""
    for uid in pods:
        member = view.members[uid]
        assert member.row != NOWHERE
        where = view.columns.names[member.row]
        view.set_pod(replace(member.facts, node=where, running=not trouble, trouble=trouble))


def decide(view: View, now: float) -> list[Decision]:
    decisions = list(cycle(view, STEADY, now))
    view.validate()
    assert list(cycle(view, STEADY, now)) == []
    return decisions


def group_of(view: View) -> GroupFacts:
    facts = view.gangs["team/slow"].facts
    assert facts is not None
    return facts


def test_a_gang_that_does_not_come_to_run_says_so_and_is_let_go_whole() -> None:
    view = starting()
    runs(view, "slow-worker-0")
    runs(view, "slow-worker-1", trouble="ImagePullBackOff")
    assert decide(view, 1.0) == []
    assert wake_at(view, STEADY) == 1800.0
    assert decide(view, 1799.0) == []
    released, wait = decide(view, 1800.0)
    assert isinstance(released, Release) and isinstance(wait, Wait)
    assert [uid for uid, _ in released.pods] == ["slow-worker-0", "slow-worker-1"]
    assert released.why == (
        "1 of 2 pods is not running 30m after they got their nodes: slow-worker-1 on node-1"
        " ImagePullBackOff; all give their nodes back and wait together"
    )
    assert wake_at(view, STEADY) is None


def test_what_its_own_group_says_counts() -> None:
    view = starting(start_timeout=60.0)
    assert wake_at(view, STEADY) == 60.0
    released, _ = decide(view, 60.0)
    assert isinstance(released, Release)
    assert "2 of 2 pods are not running 1m after" in released.why
    assert "slow-worker-0 on node-0 has not started" in released.why


def test_what_its_group_says_last_counts() -> None:
    view = starting(start_timeout=60.0)
    view.set_group(replace(group_of(view), start_timeout=90.0))
    assert decide(view, 60.0) == []
    assert wake_at(view, STEADY) == 90.0
    view.set_group(replace(group_of(view), start_timeout=None))
    assert decide(view, 90.0) == []
    assert wake_at(view, STEADY) == 1800.0


def test_who_was_not_reached_in_one_cycle_is_let_go_in_the_next() -> None:
    view = View()
    slow = [gang(name, workers=1, gpus=1, recreated=True) for name in ("slow-a", "slow-b")]
    arrives(*nodes(2, gpus=1), *slow)(view)
    list(cycle(view, STEADY, 0.0))
    first = next(cycle(view, STEADY, 1800.0))
    second = next(cycle(view, STEADY, 1800.0))
    assert isinstance(first, Release) and isinstance(second, Release)
    assert [first.gang, second.gang] == ["team/slow-a", "team/slow-b"]


def test_from_when_it_had_its_nodes_and_not_from_a_restart() -> None:
    view = starting(began=-1000.0)
    assert wake_at(view, STEADY) == 800.0


def test_it_may_take_for_ever_where_the_policy_or_the_group_says_so() -> None:
    view = starting(start_timeout=0.0)
    assert wake_at(view, STEADY) is None
    assert decide(view, 1e9) == []


def test_one_that_ran_whole_is_not_let_go_for_a_member_that_starts_again() -> None:
    view = starting()
    runs(view, "slow-worker-0", "slow-worker-1")
    view.set_group(replace(group_of(view), started=True))
    assert decide(view, 1.0) == []
    assert wake_at(view, STEADY) is None
    runs(view, "slow-worker-1", trouble="CrashLoopBackOff")
    assert decide(view, 1e6) == []


def test_one_whose_pods_all_run_is_not_looked_at_again_and_again() -> None:
    view = starting()
    runs(view, "slow-worker-0", "slow-worker-1")
    assert decide(view, 1800.0) == []
    assert wake_at(view, STEADY) is None


def test_where_nobody_recreates_its_pods_it_is_only_told() -> None:
    view = starting(recreated=False)
    (wait,) = decide(view, 1800.0)
    assert isinstance(wait, Wait) and wait.verdict.reason is Reason.OVERDUE
    assert "2 of 2 pods are not running 30m after they got their nodes" in wait.verdict.sentence
    assert wake_at(view, STEADY) is None
    assert decide(view, 3600.0) == []


def test_a_pod_that_waits_is_not_late() -> None:
    view = View()
    arrives(node("only", gpus=1), gang("slow", workers=2, gpus=1))(view)
    decide(view, 0.0)
    assert wake_at(view, STEADY) is None
