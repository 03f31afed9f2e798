"""Which seats are chosen among those that would do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from posse.engine.facts import NodeFacts, Shape
from posse.engine.view import View
from tests.scenarios.language import GPU, node, pod, shape


@dataclass(frozen=True)
class Choice:
    why: str
    nodes: list[NodeFacts]
    ask: Shape
    count: int
    expect: dict[str, int]
    taken: tuple[tuple[str, Shape], ...] = ()


ONE_GPU = shape(gpus=1)
CHOICES = [
    Choice(
        "the node with the fewest free GPUs that suffices",
        [node("a", gpus=8), node("b", gpus=2), node("c", gpus=4)],
        ONE_GPU,
        2,
        {"b": 2},
    ),
    Choice(
        "fewest nodes before fullest nodes",
        [node("a", gpus=2), node("b", gpus=2), node("c", gpus=4)],
        ONE_GPU,
        4,
        {"c": 4},
    ),
    Choice(
        "of all pairs of nodes the one that leaves whole nodes whole",
        [node("a", gpus=8), node("b", gpus=8), node("c", gpus=6), node("d", gpus=4)],
        ONE_GPU,
        10,
        {"c": 6, "d": 4},
    ),
    Choice(
        "the rest goes to one node",
        [node("a", gpus=8), node("b", gpus=8), node("c", gpus=8)],
        ONE_GPU,
        20,
        {"a": 8, "b": 8, "c": 4},
    ),
    Choice(
        "a small piece takes the rest",
        [node("a", gpus=8), node("b", gpus=8), node("c", gpus=8), node("z", gpus=4)],
        ONE_GPU,
        20,
        {"a": 8, "b": 8, "z": 4},
    ),
    Choice(
        "with equal seats the one that wastes fewer GPUs",
        [node("a", gpus=5), node("b", gpus=4)],
        shape(gpus=2),
        2,
        {"b": 2},
    ),
    Choice(
        "equals by name, not by arrival",
        [node("b", gpus=1), node("c", gpus=1), node("a", gpus=1)],
        ONE_GPU,
        2,
        {"a": 1, "b": 1},
    ),
    Choice(
        "pods without GPUs keep off GPU nodes",
        [node("a", gpus=8), node("b", cores=2), node("c", cores=2)],
        shape(cores=1),
        4,
        {"b": 2, "c": 2},
    ),
    Choice(
        "where they must, they go to the node with the fewest GPUs left",
        [node("a", gpus=8, cores=4), node("b", gpus=8, cores=4), node("c", cores=1)],
        shape(cores=1),
        3,
        {"c": 1, "b": 2},
        taken=(("b", shape(gpus=6, cores=0)),),
    ),
    Choice(
        "room in every resource counts, not GPUs alone",
        [node("a", gpus=4, cores=1), node("b", gpus=4, cores=4)],
        ONE_GPU,
        4,
        {"b": 4},
    ),
    Choice(
        "pod slots are a resource",
        [node("a", gpus=4, pods=1), node("b", gpus=8)],
        ONE_GPU,
        2,
        {"b": 2},
    ),
]


def choose(view: View, ask: Shape, count: int, prefer: list[str] | None = None) -> dict[str, int]:
    rows = np.array([view.columns.row[name] for name in prefer or []], np.intp)
    seats = view.seating(ask).choose(count, (rows,))
    names = view.columns.names
    return {names[row]: number for row, number in zip(seats.rows, seats.counts, strict=True)}


@pytest.mark.parametrize("case", CHOICES, ids=lambda case: case.why)
def test_choice(case: Choice) -> None:
    view = View()
    for facts in case.nodes:
        view.set_node(facts)
    for at, (where, asked) in enumerate(case.taken):
        view.set_pod(type(pod("x"))(f"x{at}", f"x/{at}", asked, node=where))
    assert choose(view, case.ask, case.count) == case.expect


@pytest.mark.parametrize(
    ("count", "expect"),
    [
        (1, {"c": 1}),
        (2, {"b": 1, "c": 1}),
        (3, {"a": 1, "b": 1, "c": 1}),
        (4, {"a": 1, "b": 1, "c": 2}),
        (5, {"a": 1, "b": 2, "c": 2}),
        (9, {"a": 1, "b": 3, "c": 5}),
        (10, {"a": 1, "b": 3, "c": 6}),
    ],
)
def test_spreading_gives_every_node_one_before_any_gets_two(
    count: int, expect: dict[str, int]
) -> None:
    view = View()
    for name, gpus in (("a", 1), ("b", 3), ("c", 6)):
        view.set_node(node(name, gpus=gpus))
    seats = view.seating(ONE_GPU).choose(count, spread=True)
    names = view.columns.names
    taken = {names[row]: number for row, number in zip(seats.rows, seats.counts, strict=True)}
    assert taken == expect


def test_spreading_keeps_pods_without_devices_off_the_device_nodes() -> None:
    view = View()
    for name, gpus in (("a", 8), ("b", 0), ("c", 0)):
        view.set_node(node(name, gpus=gpus, cores=4))
    seats = view.seating(shape(cores=1)).choose(4, spread=True)
    assert sorted(view.columns.names[row] for row in seats.each()) == ["b", "b", "c", "c"]


def test_a_choice_is_made_from_the_rows_that_are_given() -> None:
    view = View()
    for name in "abcd":
        view.set_node(node(name, gpus=2))
    rows = np.array([view.columns.row[name] for name in "db"], np.intp)
    seating = view.seating(ONE_GPU)
    assert seating.total(rows) == 4
    seats = seating.choose(3, within=rows)
    assert [view.columns.names[row] for row in seats.each()] == ["d", "d", "b"]


def test_preferred_nodes_come_first() -> None:
    view = View()
    for name in "abc":
        view.set_node(node(name, gpus=2))
    assert choose(view, ONE_GPU, 3, ["c"]) == {"c": 2, "a": 1}


def test_a_resource_nobody_offers_has_no_seat() -> None:
    view = View()
    view.set_node(node("a", gpus=1))
    assert view.seating(shape(extra={"example.com/fpga": 1})).total() == 0


def test_a_resource_offered_later_is_seen() -> None:
    view = View()
    view.set_node(node("a"))
    seating = view.seating(shape(extra={"example.com/fpga": 1}))
    assert seating.total() == 0
    view.set_node(node("a", extra={"example.com/fpga": 3}))
    assert seating.total() == 3


def test_pods_without_devices_notice_a_new_kind_of_device() -> None:
    view = View()
    view.set_node(node("a", cores=1))
    view.set_node(node("b", cores=1))
    assert choose(view, shape(cores=1), 1) == {"a": 1}
    view.set_node(node("a", cores=1, extra={"example.com/fpga": 3}))
    assert choose(view, shape(cores=1), 1) == {"b": 1}


def test_absurd_amounts_neither_fit_nor_overflow() -> None:
    view = View()
    view.set_node(node("a", gpus=1 << 200))
    view.set_node(node("b", extra={"example.com/odd": -5}))
    assert view.seating(shape(gpus=1 << 201)).total() == 0
    assert view.seating(shape(extra={"example.com/odd": 1})).total() == 0
    assert view.seating(shape(gpus=1, cores=1)).total() == 16
    view.set_pod(pod("huge", on="b", extra={GPU: 1 << 300}))
    view.validate()
