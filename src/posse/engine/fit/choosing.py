"""Which of the nodes that have seats are taken: the fewest, or as many as can be.

Exact: `count` pods are seated whenever the nodes have as many seats. What comes in is counted node
by node, in the order in which the last tie is broken; what comes out are positions in that order.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from posse.engine.columns import Ints, Rows

# How many nodes have so many seats.
Sizes = dict[int, int]


def widest(seats: Ints, count: int) -> tuple[Rows, Ints]:
    """Positions of as many nodes as seat `count` pods evenly, and how many sit on each."""
    ordered = np.sort(seats)
    # What all nodes seat if none takes more than the level: the lowest level that will do.
    below = np.concatenate(([0], np.cumsum(ordered)))
    reached = below[:-1] + ordered * np.arange(len(seats), 0, -1)
    at = int(np.searchsorted(reached, count))
    level = -(-(count - int(below[at])) // (len(seats) - at))
    taken = np.minimum(seats, level)
    surplus = int(taken.sum()) - count
    if surplus:
        full = np.flatnonzero(taken == level)
        fullest_first = full[np.lexsort((-full, seats[full]))]
        taken[fullest_first[:surplus]] -= 1
    positions: Rows = np.flatnonzero(taken)
    return positions, taken[positions]


def fewest(
    seats: Ints, grades: Ints, count: int, sizes: Sizes | None = None, devices: int = 0
) -> tuple[Rows, Ints]:
    """Positions of the fewest nodes that seat `count` pods together, and how many sit on each.

    `sizes` of the seats, where they are known. `devices`: so many of the grade, at the least, are
    a seat's.
    """
    if sizes is None:
        histogram = np.bincount(np.minimum(seats, count)).tolist()
        sizes = {size: number for size, number in enumerate(histogram) if size and number}
    picked: list[Rows] = []
    taken: list[int] = []
    for size, number in _sizes(_useful(sizes, count), count).items():
        equal = (seats == size if size < count else seats >= size).nonzero()[0]
        picked.append(_tightest(equal, grades, number, size * devices))
        taken += [size] * number
    _trim(taken, count)
    positions: Rows = picked[0] if len(picked) == 1 else np.concatenate(picked)
    return positions, np.array(taken, np.int64)


def fewest_of_few(seats: list[int], grades: list[int], count: int) -> tuple[list[int], list[int]]:
    """The same, one node after another: of few nodes that is done sooner."""
    places: dict[int, list[int]] = {}
    for at, size in enumerate(seats):
        if size:
            places.setdefault(size if size < count else count, []).append(at)
    picked: list[int] = []
    taken: list[int] = []
    sizes = _sizes({size: len(equal) for size, equal in places.items()}, count)
    for size, number in sizes.items():
        equal = places[size]
        if len(equal) > number:
            equal = sorted(equal, key=grades.__getitem__)[:number]
        picked += equal
        taken += [size] * number
    _trim(taken, count)
    return picked, taken


def _useful(sizes: Sizes, count: int) -> Sizes:
    """More seats than are asked for are no better than as many."""
    useful: Sizes = {}
    for size, number in sizes.items():
        if size:
            size = min(size, count)
            useful[size] = useful.get(size, 0) + number
    return useful


def _trim(taken: list[int], count: int) -> None:
    """The sizes add up to the count or, in the largest ones, to a little more."""
    surplus = sum(taken) - count
    at = len(taken) - 1
    while surplus:
        less = min(surplus, taken[at] - 1)
        taken[at] -= less
        surplus -= less
        at -= 1


def _sizes(available: Sizes, count: int) -> Sizes:
    """How many nodes of each size to take: as few as can be, and of those the smallest.

    At each step it takes the smallest size that still lets the largest ones do the rest.
    """
    sizes = sorted(available)
    most: Sizes = {}
    left = count
    for size in reversed(sizes):
        if left <= 0:
            break
        number = most[size] = min(available[size], -(-left // size))
        left -= number * size
    if not left:
        return most
    largest = [size for size, number in most.items() for _ in range(number)]
    return _smallest(available, sizes, largest, count)


def _smallest(available: Sizes, sizes: list[int], largest: list[int], count: int) -> Sizes:
    """As many as the largest, where these are more than enough."""
    left = dict(available)
    taken: Sizes = {}
    # What the nodes other than the one being chosen can take at most.
    rest = sum(largest[:-1])
    for others in range(len(largest) - 1, -1, -1):
        at = bisect_left(sizes, count - rest)
        while not left[sizes[at]]:
            at += 1
        size = sizes[at]
        left[size] -= 1
        taken[size] = taken.get(size, 0) + 1
        count -= size
        if others:
            rest -= largest[others - 1]
    return taken


def _tightest(positions: Rows, grades: Ints, number: int, lowest: int) -> Rows:
    """The `number` positions of lowest grade, of equals the first; none is below `lowest`."""
    if len(positions) == number:
        return positions
    first = positions[:number]
    if np.maximum.reduce(grades.take(first)) == lowest:
        return first
    own = grades.take(positions)
    chosen: list[Rows] = []
    while number:
        best = own.min()
        equal = positions.take((own == best).nonzero()[0][:number])
        chosen.append(equal)
        number -= len(equal)
        if number:
            keep: NDArray[np.bool_] = own != best
            positions, own = positions[keep], own[keep]
    return chosen[0] if len(chosen) == 1 else np.concatenate(chosen)
