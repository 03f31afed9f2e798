"""How a cycle behaves: interrupted, repeated, and when there is nothing new to look at."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from posse.engine.cycle import cycle, wake_at
from posse.engine.decisions import Decision, Start, Wait
from posse.engine.gangs import Gang
from posse.engine.placement import packing, placing, searching
from posse.engine.placement.demands import Demand
from posse.engine.policy import Policy
from posse.engine.preemption.preying import Prey
from posse.engine.preemption.quarry import Quarry
from posse.engine.view import View
from tests.scenarios.language import Team, arrives, gang, node, nodes, pod, shape, vanishes

POLICY = Policy()


def decide(view: View, now: float = 0.0) -> list[Decision]:
    return list(cycle(view, POLICY, now))


def names(decisions: list[Decision]) -> list[tuple[str, str]]:
    return [(type(each).__name__, each.gang.removeprefix("team/")) for each in decisions]


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gangs for which room was really looked for."""
    looked: list[str] = []
    original = packing.pack

    def spy(*args: object) -> object:
        looked.append("looked")
        return original(*args)  # type: ignore[arg-type]

    monkeypatch.setattr("posse.engine.placement.placing.pack", spy)
    return looked


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gangs that the cycle took up."""
    taken: list[str] = []
    original = placing.place

    def spy(view: View, gang: Gang, policy: Policy, contended: bool = False) -> object:
        taken.append(gang.key.removeprefix("team/"))
        return original(view, gang, policy, contended)

    monkeypatch.setattr("posse.engine.reservation.reserving.place", spy)
    return taken


def test_what_a_cycle_leaves_is_due_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that ends nobody had its turn before the urgent one, for which the first is ended: what
    was kept for that suffices for both."""
    view = View()
    arrives(
        node("n", gpus=2),
        gang("half", workers=3, exist=2, gpus=2, on=["elsewhere"], started=False),
        gang("meek", workers=1, gpus=1, priority=2, facts={"preempts": False}),
        gang("urgent", workers=1, gpus=1, priority=1),
    )(view)
    monkeypatch.setattr("posse.engine.cycle._MOST_ROUNDS", 1)
    assert ("Start", "meek") not in names(decide(view, 7.0))
    assert wake_at(view, POLICY) == 7.0
    monkeypatch.undo()
    assert names(decide(view, 7.0)) == [("Start", "meek")]
    assert wake_at(view, POLICY) != 7.0


def test_victims_are_not_looked_for_twice_in_vain_in_one_cycle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sought: list[str] = []

    class Spy(Prey):
        def __init__(
            self, view: View, gang: Gang, policy: Policy, quarry: Quarry, need: int
        ) -> None:
            sought.append(gang.key.removeprefix("team/"))
            super().__init__(view, gang, policy, quarry, need)

    monkeypatch.setattr("posse.engine.preemption.preempting.Prey", Spy)
    view = View()
    arrives(
        *nodes(2, gpus=1),
        gang("a", workers=1, gpus=1, on=["node-0"]),
        gang("b", workers=1, gpus=1, on=["node-1"]),
        gang("vain", workers=3, gpus=1, priority=1, age=1.0),
        gang("urgent", workers=1, gpus=1, priority=1),
    )(view)
    assert ("Evict", "urgent") in names(decide(view))
    assert sought == ["vain", "urgent"]


@pytest.mark.parametrize("steps", [0, 1])
def test_nodes_are_sorted_only_for_a_search_that_may_take_a_step(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """There is room for each of the roles, but not for both."""
    sorted_out: list[str] = []
    original = searching._classes

    def spy(view: View, demands: list[Demand]) -> object:
        sorted_out.append(view.in_turn)
        return original(view, demands)

    monkeypatch.setattr(searching, "_classes", spy)
    view = View()
    roles = {"w": (2, shape(cores=2.5, gpus=4)), "ps": (2, shape(cores=2))}
    arrives(*nodes(2, cores=4, gpus=4), gang("both", roles=roles))(view)
    decided = list(cycle(view, replace(POLICY, search_steps=steps), 0.0))
    assert names(decided) == [("Wait", "both")]
    assert bool(sorted_out) == bool(steps)


def crowded(*teams: int) -> View:
    view = View()
    arrives(*nodes(2, gpus=2), pod("x", on="node-0", gpus=2), pod("y", on="node-1", gpus=1))(view)
    arrives(*(gang(f"g{at}", workers=n, gpus=2) for at, n in enumerate(teams)))(view)
    return view


def test_gangs_that_ask_the_same_fail_together(searched: list[str]) -> None:
    view = crowded(1, 1, 1, 1)
    assert len(list(cycle(view, replace(POLICY, backfill=False), 0.0))) == 4
    assert len(searched) == 1


def test_what_is_reserved_is_worked_out_for_the_first_only(searched: list[str]) -> None:
    view = crowded(1, 1, 1, 1)
    assert len(decide(view)) == 4
    assert len(searched) == 2
    assert decide(view) == []
    assert len(searched) == 2


def test_nothing_new_nothing_looked_at(placed: list[str]) -> None:
    view = crowded(1, 1)
    decide(view)
    placed.clear()
    assert decide(view) == []
    assert placed == []


def test_room_that_cannot_help_wakes_nobody(placed: list[str]) -> None:
    view = crowded(1, 1)
    arrives(pod("z", on="node-1", cores=1))(view)
    decide(view)
    placed.clear()
    view.remove_pod("z")
    assert decide(view) == []
    assert placed == []


def test_room_that_helps_wakes_the_first_of_those_that_ask_the_same(placed: list[str]) -> None:
    view = crowded(1, 1, 1)
    decide(view)
    placed.clear()
    view.remove_pod("x")
    assert names(decide(view)) == [("Start", "g0"), ("Wait", "g1"), ("Wait", "g2")]
    assert placed == ["g0", "g1"], "the second was tried because the first was served"


def test_a_newcomer_does_not_wake_those_that_wait(placed: list[str]) -> None:
    view = crowded(1, 2)
    decide(view)
    placed.clear()
    arrives(gang("new", workers=1, gpus=1))(view)
    assert names(decide(view)) == [("Start", "new"), ("Wait", "g0")]
    assert placed == ["new"], "the first in line is told of one job more that may run for ever"


@pytest.mark.parametrize("others", [0, 40])
def test_who_came_and_left_behind_the_first_is_forgotten(others: int) -> None:
    view = crowded(*[1] * (12 + others))
    decide(view)
    for at in range(300):
        late = gang(f"late-{at}", workers=1, gpus=2, age=-1.0)
        arrives(late)(view)
        decide(view)
        vanishes(late.group.uid)(view)
    decide(view)
    assert len(view.shortfalls.lines) < 2 * (12 + others) + 150


def test_who_is_of_another_priority_now_left_its_old_place() -> None:
    view = crowded(*[1] * 12)
    last = gang("last", workers=1, gpus=2, age=-1.0)
    for at in range(300):
        arrives(Team(replace(last.group, priority=-at), last.pods))(view)
        decide(view)
    assert len(view.shortfalls.lines) < 150


def test_a_verdict_is_told_once() -> None:
    view = crowded(1)
    assert names(decide(view)) == [("Wait", "g0")]
    view.remove_pod("y")
    arrives(pod("w", on="node-1", gpus=1))(view)
    assert decide(view) == []


def test_new_numbers_are_news_to_the_first_only() -> None:
    view = View()
    arrives(*nodes(2, gpus=2), pod("x", on="node-0", gpus=2), pod("y", on="node-1", gpus=2))(view)
    arrives(*(gang(f"g{at}", workers=2, gpus=2) for at in range(3)))(view)
    assert len(decide(view)) == 3
    view.remove_pod("x")
    assert names(decide(view)) == [("Wait", "g0")]


def test_another_kind_of_reason_is_news_to_all() -> None:
    view = View()
    arrives(*nodes(2, gpus=2), pod("x", on="node-0", gpus=2))(view)
    arrives(*(gang(f"g{at}", workers=2, gpus=2) for at in range(3)))(view)
    assert len(decide(view)) == 3
    view.remove_node("node-1")
    decisions = decide(view)
    assert names(decisions) == [("Wait", "g0"), ("Wait", "g1"), ("Wait", "g2")]
    assert isinstance(decisions[0], Wait)
    assert "the cluster has 2 on today's nodes" in decisions[0].verdict.sentence


def test_a_cycle_dropped_halfway_has_lost_nothing() -> None:
    def view() -> View:
        view = View()
        arrives(*nodes(2, gpus=2))(view)
        arrives(*(gang(f"g{at}", workers=2, gpus=1) for at in range(4)))(view)
        return view

    whole = decide(view())
    broken, decisions = view(), []
    for _ in range(10):
        for decision in cycle(broken, POLICY, 0.0):
            decisions.append(decision)
            break
    assert decisions == whole
    assert names(whole) == [("Start", "g0"), ("Start", "g1"), ("Wait", "g2"), ("Wait", "g3")]


def test_events_between_two_decisions_are_heeded() -> None:
    view = View()
    arrives(*nodes(2, gpus=2))(view)
    arrives(*(gang(f"g{at}", workers=2, gpus=1) for at in range(3)))(view)
    decisions = []
    for decision in cycle(view, POLICY, 0.0):
        decisions.append(decision)
        view.validate()
        if names([decision]) == [("Start", "g0")]:
            view.remove_group("team/g1")
            arrives(node("node-2", gpus=1), pod("rival", on="node-1", gpus=1))(view)
    assert names(decisions) == [("Start", "g0"), ("Start", "g2")]
    assert isinstance(decisions[1], Start)
    assert sorted(seat.node for seat in decisions[1].seats) == ["node-1", "node-2"]


def test_a_refuted_start_is_decided_again_in_the_next_cycle() -> None:
    view = View()
    arrives(*nodes(1, gpus=2), gang("g", workers=2, gpus=1))(view)
    for decision in cycle(view, POLICY, 0.0):
        assert isinstance(decision, Start)
        for seat in decision.seats:
            view.refute(seat.uid)
    assert names(decide(view)) == [("Start", "g")]


def test_wake_at_is_when_a_half_bound_gang_is_let_go() -> None:
    view = View()
    arrives(*nodes(1, gpus=1), gang("half", workers=2, gpus=1, on=["node-0"]))(view)
    assert wake_at(view, POLICY) is None
    decide(view, 100.0)
    assert wake_at(view, POLICY) == 130.0
    assert names(decide(view, 130.0)) == [("Release", "half"), ("Wait", "half")]
    assert wake_at(view, POLICY) is None


def test_a_release_that_did_not_happen_is_tried_again() -> None:
    view = View()
    arrives(*nodes(1, gpus=1), gang("half", workers=2, gpus=1, on=["node-0"]))(view)
    decide(view, 0.0)
    assert names(decide(view, 30.0))[0] == ("Release", "half")
    view.refute("half-worker-0")
    decide(view, 40.0)
    assert wake_at(view, POLICY) == 70.0
    assert names(decide(view, 70.0))[0] == ("Release", "half")


def test_a_released_pod_stays_released_against_a_stale_event() -> None:
    view = View()
    half = gang("half", workers=2, gpus=1, on=["node-0"])
    arrives(*nodes(1, gpus=1), half)(view)
    decide(view, 0.0)
    assert names(decide(view, 30.0))[0] == ("Release", "half")
    view.set_pod(replace(half.pods[0], created=1.0))
    decide(view, 31.0)
    assert wake_at(view, POLICY) is None
