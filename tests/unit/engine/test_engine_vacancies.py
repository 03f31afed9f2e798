"""The seat of a member that ended while its gang ran, until its successor comes."""

from __future__ import annotations

from posse.engine.cycle import cycle, wake_at
from posse.engine.decisions import Decision, Start
from posse.engine.facts import GroupFacts, NodeFacts, PodFacts, Shape, requests_of
from posse.engine.policy import Policy
from posse.engine.view import View

POLICY = Policy(keep_vacant=60.0)
GPU = Shape(requests_of({"nvidia.com/gpu": 1}))


def group(key: str, least: int, *, started: bool = False, recreated: bool = True) -> GroupFacts:
    return GroupFacts(key, f"uid-{key}", min_member=least, started=started, recreated=recreated)


def member(gang: str, index: int, node: str | None = None) -> PodFacts:
    name = f"{gang}-{index}"
    return PodFacts(uid=name, name=name, shape=GPU, gang=gang, node=node)


def running(*, recreated: bool = True, least: int = 3) -> View:
    """Three nodes with a GPU each, all of them in use by `ran`; `next` waits for one."""
    view = View()
    for index in range(3):
        view.set_node(NodeFacts(f"n{index}", {"nvidia.com/gpu": 1, "pods": 10}))
        view.set_pod(member("ran", index, f"n{index}"))
    view.set_group(group("ran", least, started=True, recreated=recreated))
    view.set_group(group("next", 1))
    view.set_pod(member("next", 0))
    assert started(view, 0.0) == []
    return view


def started(view: View, now: float) -> list[tuple[str, str]]:
    decisions: list[Decision] = list(cycle(view, POLICY, now))
    view.validate()
    return [
        (seat.pod, seat.node)
        for decision in decisions
        if isinstance(decision, Start)
        for seat in decision.seats
    ]


def test_it_is_kept_until_the_successor_comes() -> None:
    view = running()
    view.remove_pod("ran-1")
    assert started(view, 1.0) == []
    view.set_pod(member("ran", 7))
    assert started(view, 2.0) == [("ran-7", "n1")]


def test_two_are_kept_while_only_one_successor_is_there() -> None:
    view = running()
    view.remove_pod("ran-1")
    view.remove_pod("ran-2")
    view.set_pod(member("ran", 7))
    assert started(view, 1.0) == [], "not before all of its minimum exist"
    view.set_pod(member("ran", 8))
    assert sorted(started(view, 2.0)) == [("ran-7", "n1"), ("ran-8", "n2")]


def test_it_is_kept_for_a_while_only_and_the_cycle_comes_back_by_itself() -> None:
    view = running()
    view.remove_pod("ran-1")
    assert started(view, 1.0) == []
    assert wake_at(view, POLICY) == 61.0
    assert started(view, 60.0) == []
    assert started(view, 61.0) == [("next-0", "n1")]
    assert wake_at(view, POLICY) is None


def test_it_is_not_kept_where_nobody_would_come() -> None:
    view = running(recreated=False)
    view.remove_pod("ran-1")
    assert started(view, 1.0) == [("next-0", "n1")]


def test_it_is_kept_for_members_beyond_the_minimum_too() -> None:
    view = running(least=2)
    view.remove_pod("ran-1")
    assert started(view, 1.0) == []


def test_a_gang_that_was_made_smaller_keeps_nothing() -> None:
    view = running()
    view.remove_pod("ran-1")
    view.set_group(group("ran", 2, started=True))
    assert started(view, 1.0) == [("next-0", "n1")]


def test_a_waiting_member_of_a_gang_that_stays_incomplete_holds_up_nobody_for_ever() -> None:
    view = running(recreated=False)
    view.remove_pod("ran-1")
    view.remove_pod("ran-2")
    view.set_pod(member("ran", 7))
    view.set_pod(member("next", 1))
    view.set_group(group("next", 2))
    assert started(view, 1.0) == [], "one seat is kept for the one who waits"
    assert sorted(started(view, 61.0)) == [("next-0", "n1"), ("next-1", "n2")]


def test_a_gang_that_ended_leaves_nothing_behind() -> None:
    view = running()
    view.remove_pod("ran-1")
    assert started(view, 1.0) == []
    view.remove_group("ran")
    assert started(view, 2.0) == [("next-0", "n1")]
