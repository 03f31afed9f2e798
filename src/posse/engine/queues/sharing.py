"""How an amount is shared out by weight among those who want some of it."""

from __future__ import annotations

from collections.abc import Sequence


def fill(
    amount: int, weights: Sequence[int], floors: Sequence[int], wants: Sequence[int]
) -> list[int]:
    """Each gets by weight, no less than its floor and no more than it wants.

    Like water finding its level: what one does not want, the others get. Floors are met even where
    they exceed the amount. Whole units; less than one per taker may be left over.
    """
    shares = [0] * len(weights)
    rising = list(range(len(weights)))
    while rising:
        weight = sum(weights[at] for at in rising)
        # All in units of one over the weight: nothing is rounded before the end.
        ideal = {at: max(0, amount) * weights[at] for at in rising}
        bounded = {
            at: max(floors[at] * weight, min(wants[at] * weight, ideal[at])) for at in rising
        }
        # Settle those whom the bounds move the way that all bounds together move the level.
        moved = sum(bounded[at] - ideal[at] for at in rising)
        settled = [
            at
            for at in rising
            if not moved or (bounded[at] > ideal[at] if moved > 0 else bounded[at] < ideal[at])
        ]
        for at in settled:
            shares[at] = bounded[at] // weight
            amount -= shares[at]
        rising = [at for at in rising if at not in settled]
    return shares
