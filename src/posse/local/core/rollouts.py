"""How a Deployment's ReplicaSets change places. Pure: sizes in, sizes out.

A rolling update never has more than replicas + maxSurge pods, nor fewer than replicas -
maxUnavailable available ones. A Recreate ends all old pods before the first new one.
"""

from __future__ import annotations

import msgspec

Size = int | str  # a number, or a percentage such as "25%"


class Replicas(msgspec.Struct, frozen=True):
    """One ReplicaSet: what it was asked for and what it has."""

    name: str
    asked: int
    available: int
    pods: int  # that still exist, whatever their state


def bounds(replicas: int, max_surge: Size, max_unavailable: Size) -> tuple[int, int]:
    """(surge, unavailable) in pods. Both zero would never move, so one may then be unavailable."""
    surge = scaled(max_surge, replicas, up=True)
    unavailable = scaled(max_unavailable, replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, replicas) if replicas else unavailable


def rolling(
    replicas: int, new: Replicas, old: list[Replicas], surge: int, unavailable: int
) -> dict[str, int]:
    """The next size of each ReplicaSet that has to change; `old` in the order of their age."""
    sizes: dict[str, int] = {}
    total = new.asked + sum(each.asked for each in old)
    if new.asked > replicas:
        sizes[new.name] = replicas
    elif new.asked < replicas:
        room = replicas + surge - total
        if room > 0:
            sizes[new.name] = min(replicas, new.asked + room)
    new_unavailable = new.asked - new.available
    may_go = total - (replicas - unavailable) - new_unavailable
    # Pods that do not work go first: nobody misses them.
    for each in old:
        broken = min(max(0, each.asked - each.available), max(0, may_go))
        if broken:
            sizes[each.name] = each.asked - broken
            may_go -= broken
    available = new.available + sum(each.available for each in old)
    spare = min(may_go, available - (replicas - unavailable))
    for each in old:
        size = sizes.get(each.name, each.asked)
        goes = min(size, max(0, spare))
        if goes:
            sizes[each.name] = size - goes
            spare -= goes
    return sizes


def recreating(replicas: int, new: Replicas, old: list[Replicas]) -> dict[str, int]:
    sizes = {each.name: 0 for each in old if each.asked}
    if not sizes and not any(each.pods for each in old) and new.asked != replicas:
        sizes[new.name] = replicas
    return sizes


def scaled(size: Size, replicas: int, *, up: bool) -> int:
    """The size in pods; a percentage of `replicas` is rounded up or down to a whole pod."""
    if isinstance(size, int):
        return max(0, size)
    text = size.strip()
    if not (text.endswith("%") and text[:-1].isdecimal()):
        return 0
    product = int(text[:-1]) * replicas
    return -(-product // 100) if up else product // 100
