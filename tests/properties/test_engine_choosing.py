"""Which nodes are taken, against trying all sets of them; and that both ways to find them agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from posse.engine.fit.choosing import fewest, fewest_of_few, widest
from tests.properties.trying import examples

NODES = st.lists(
    st.tuples(st.sampled_from([0, 0, 1, 2, 3, 4, 8]), st.integers(0, 3)), min_size=1, max_size=7
)


@st.composite
def choices(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    """Seats by node; what is free there, which is two for each seat and some more; how many."""
    nodes = draw(NODES.filter(lambda nodes: sum(size for size, _ in nodes) > 0))
    seats = [size for size, _ in nodes]
    return seats, [2 * size + more for size, more in nodes], draw(st.integers(1, sum(seats)))


def ways(seats: list[int], count: int) -> Iterator[tuple[int, ...]]:
    """The sets of as few nodes as seat so many."""
    for number in range(1, len(seats) + 1):
        found = [
            nodes
            for nodes in combinations(range(len(seats)), number)
            if sum(seats[at] for at in nodes) >= count and all(seats[at] for at in nodes)
        ]
        if found:
            yield from found
            return


@examples(150)
@given(choices())
def test_the_fewest_nodes_and_of_those_the_smallest_then_the_fullest(
    choice: tuple[list[int], list[int], int],
) -> None:
    seats, grades, count = choice
    picked, taken = fewest_of_few(seats, grades, count)
    assert sum(taken) == count
    assert all(0 < number <= seats[at] for at, number in zip(picked, taken, strict=True))
    every = list(ways(seats, count))
    assert len(picked) == len(every[0])
    useful = [min(size, count) for size in seats]
    sizes = sorted(useful[at] for at in picked)
    assert sizes == min(sorted(useful[at] for at in nodes) for nodes in every)
    alike = [nodes for nodes in every if sorted(useful[at] for at in nodes) == sizes]
    for size in set(sizes):
        mine = sorted((grades[at], at) for at in picked if useful[at] == size)
        best = min(
            sorted((grades[at], at) for at in nodes if useful[at] == size) for nodes in alike
        )
        assert mine == best


@examples(150)
@given(choices(), st.booleans())
def test_one_by_one_and_all_at_once_the_same_nodes_are_taken(
    choice: tuple[list[int], list[int], int], known: bool
) -> None:
    seats, grades, count = choice
    sizes = dict(Counter(seats)) if known else None
    positions, number = fewest(np.array(seats), np.array(grades), count, sizes, devices=2)
    assert (positions.tolist(), number.tolist()) == fewest_of_few(seats, grades, count)


@given(choices())
def test_where_they_are_to_be_spread_no_node_has_two_more_than_another_with_room(
    choice: tuple[list[int], list[int], int],
) -> None:
    seats, _, count = choice
    positions, number = widest(np.array(seats), count)
    taken = dict.fromkeys(range(len(seats)), 0) | dict(
        zip(positions.tolist(), number.tolist(), strict=True)
    )
    assert sum(taken.values()) == count
    most = max(taken.values())
    assert all(taken[at] >= most - 1 for at, size in enumerate(seats) if size > taken[at])
