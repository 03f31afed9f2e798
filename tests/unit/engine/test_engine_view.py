"""The view's bookkeeping, event by event."""

from __future__ import annotations

from msgspec.structs import replace

from posse.engine.cycle import cycle
from posse.engine.decisions import Start
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import GPU, arrives, gang, node, pod


def free(view: View, name: str, resource: str = GPU) -> int:
    columns = view.columns
    row, at = columns.row[name], columns.column[resource]
    return int(columns.allocatable[row, at] - columns.used[row, at] - columns.held[row, at])


def started(view: View) -> list[str]:
    return [
        seat.uid
        for decision in cycle(view, Policy(), 0.0)
        if isinstance(decision, Start)
        for seat in decision.seats
    ]


def test_a_pod_before_its_node_is_counted_when_the_node_comes() -> None:
    view = View()
    view.set_pod(pod("early", on="a", gpus=1))
    view.set_node(node("a", gpus=4))
    assert free(view, "a") == 3


def test_pods_that_outlive_their_node_are_counted_when_it_comes_back() -> None:
    view = View()
    view.set_node(node("a", gpus=4))
    view.set_pod(pod("stays", on="a", gpus=1))
    view.remove_node("a")
    view.set_node(node("a", gpus=2))
    assert free(view, "a") == 1


def test_a_row_is_given_to_another_name_only_when_nothing_refers_to_it() -> None:
    view = View()
    view.set_node(node("a", gpus=4))
    view.set_pod(pod("stays", on="a", gpus=1))
    view.remove_node("a")
    view.set_node(node("b", gpus=4))
    assert view.columns.row["a"] != view.columns.row["b"]
    view.remove_pod("stays")
    view.set_node(node("c", gpus=4))
    assert len(view.columns.names) == 2
    assert (free(view, "b"), free(view, "c")) == (4, 4)


def test_domains_of_nodes_that_came_and_left_are_forgotten() -> None:
    view = View()
    arrives(*(node(f"stays-{at}", labels={"rack": f"r{at % 2}"}) for at in range(4)))(view)
    racks = view.neighbours.domains("rack")
    for at in range(500):
        view.set_node(node(f"n{at}", labels={"rack": f"gone-{at}"}))
        racks.ids()
        view.remove_node(f"n{at}")
    view.set_node(node("new", labels={"rack": "r1"}))
    assert len(racks) < 100
    rows = [view.columns.row[name] for name in ("stays-0", "stays-1", "stays-2", "stays-3", "new")]
    first, second, *others = racks.ids()[rows].tolist()
    assert first != second
    assert others == [first, second, second]
    assert max(racks.ids()) < len(racks)


def test_a_pod_that_moves_is_counted_once() -> None:
    view = View()
    view.set_node(node("a", gpus=2))
    view.set_node(node("b", gpus=2))
    view.set_pod(pod("p", on="a", gpus=1))
    view.set_pod(pod("p", on="b", gpus=2))
    assert (free(view, "a"), free(view, "b")) == (2, 0)


def test_many_nodes_and_resources_grow_the_columns() -> None:
    view = View()
    view.set_pod(pod("p", on="node-0", gpus=1))
    for number in range(100):
        view.set_node(node(f"node-{number}", gpus=2, extra={f"example.com/r{number}": number}))
    assert free(view, "node-0") == 1
    assert free(view, "node-99", "example.com/r99") == 99
    assert free(view, "node-98", "example.com/r99") == 0
    view.validate()


def test_an_assumed_seat_stands_against_a_stale_event() -> None:
    view = View()
    team = gang("mpi", workers=1, gpus=1)
    arrives(node("a", gpus=1), team)(view)
    assert started(view) == ["mpi-worker-0"]
    view.set_pod(replace(team.pods[0], created=1.0))
    assert free(view, "a") == 0
    assert started(view) == []


def test_a_confirmed_seat_changes_nothing() -> None:
    view = View()
    team = gang("mpi", workers=1, gpus=1)
    arrives(node("a", gpus=1), team)(view)
    started(view)
    view.set_pod(replace(team.pods[0], node="a"))
    assert not view.stirred
    assert free(view, "a") == 0


def test_a_seat_confirmed_elsewhere_is_where_the_event_says() -> None:
    view = View()
    team = gang("mpi", workers=1, gpus=1)
    arrives(node("a", gpus=1), node("b", gpus=1), team)(view)
    started(view)
    view.set_pod(replace(team.pods[0], node="b"))
    assert (free(view, "a"), free(view, "b")) == (1, 0)


def test_a_refuted_seat_is_free_and_its_pod_waits() -> None:
    view = View()
    arrives(node("a", gpus=1), gang("mpi", workers=1, gpus=1))(view)
    started(view)
    view.refute("mpi-worker-0")
    assert free(view, "a") == 1
    assert started(view) == ["mpi-worker-0"]


def test_refuting_a_confirmed_or_unknown_pod_changes_nothing() -> None:
    view = View()
    view.set_node(node("a", gpus=1))
    view.set_pod(pod("p", on="a", gpus=1))
    view.refute("p")
    view.refute("nobody")
    assert free(view, "a") == 0


def test_events_about_the_unknown_are_ignored() -> None:
    view = View()
    view.remove_node("a")
    view.remove_pod("p")
    view.remove_group("g")
    view.remove_queue("q")
    assert list(cycle(view, Policy(), 0.0)) == []


def test_equal_facts_are_no_event() -> None:
    view = View()
    team = gang("mpi", workers=2, gpus=1)
    arrives(node("a", gpus=1), team)(view)
    list(cycle(view, Policy(), 0.0))
    clock = view.columns.clock
    arrives(node("a", gpus=1), team)(view)
    assert view.columns.clock == clock
    assert not view.stirred


def test_a_group_gone_leaves_nothing_behind() -> None:
    view = View()
    team = gang("mpi", workers=2, gpus=1)
    arrives(node("a", gpus=1), team)(view)
    list(cycle(view, Policy(), 0.0))
    waiting = view.gangs[team.group.key]
    assert view.shortfalls.of(waiting) is not None
    view.remove_group(team.group.key)
    for each in team.pods:
        view.remove_pod(each.uid)
    assert view.shortfalls.of(waiting) is None
    assert not view.gangs
    assert not view.members
    assert not view.stirred
    assert not view.shortfalls.untold
    assert view.shortfalls.awakened() == []


def test_pods_may_come_before_their_group() -> None:
    view = View()
    team = gang("mpi", workers=2, gpus=1)
    view.set_node(node("a", gpus=2))
    for each in team.pods:
        view.set_pod(each)
    assert started(view) == []
    view.set_group(team.group)
    assert started(view) == ["mpi-worker-0", "mpi-worker-1"]
