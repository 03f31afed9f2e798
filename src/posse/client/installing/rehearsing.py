"""Trying everything before anything is done: an API server says what it would refuse.

Missing rights, a cluster's own policies and fields that cannot be changed are found while there is
still nothing to clean up. What needs something that is yet to come (its kind, its namespace) is
tried as far as that goes: whether one has the right is asked first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any

from posse.client.errors import NotAllowed, PosseError
from posse.client.installing.applying import (
    is_rebound,
    remove,
    send,
    stays,
    strange,
    unchangeable,
)
from posse.client.installing.inventory import kind_of
from posse.client.installing.marking import is_marked
from posse.client.installing.removing import Leaving
from posse.kube.connection import Connection
from posse.kube.errors import BadRequest, Forbidden, Invalid, NotFound
from posse.objects.kinds import QUEUE, Kind

_AT_ONCE = 8

Obstacle = tuple[Kind, PosseError]


async def rehearse(connection: Connection, objects: list[dict[str, Any]]) -> PosseError | None:
    """Why these objects cannot be applied; nothing is changed."""
    return _told(await _all(_applied(connection, obj) for obj in objects))


async def rehearse_removal(connection: Connection, found: list[Leaving]) -> PosseError | None:
    """Why these objects cannot be removed; nothing is. Queues have a webhook that guards them,
    which is removed before they are."""
    tried = (one for one in found if one.kind != QUEUE)
    return _told(await _all(_removed(connection, one) for one in tried))


async def _all(tried: Iterable[Awaitable[Obstacle | None]]) -> list[Obstacle]:
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(trying: Awaitable[Obstacle | None]) -> Obstacle | None:
        async with room:
            return await trying

    met = await asyncio.gather(*(one(trying) for trying in tried))
    return [obstacle for obstacle in met if obstacle is not None]


async def _applied(connection: Connection, obj: dict[str, Any]) -> Obstacle | None:
    kind, metadata = kind_of(obj), obj["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace") or ""
    present: dict[str, Any] | None = None
    try:
        present = await _present(connection, kind, name, namespace)
        if present is not None:
            if stays(kind, present) or is_rebound(kind, present, obj):
                return None
            if not is_marked(present):
                return kind, PosseError(strange(kind, name, namespace))
        await send(connection, obj, dry_run=True)
    except (NotFound, BadRequest):
        return None  # not yet to be tried, or not in this way
    except Forbidden as error:
        # A namespace on its way out is waited for when it is made.
        return None if error.namespace_ending else (kind, NotAllowed(error.message))
    except Invalid as error:
        told = f"{kind.singular} {name} cannot be made: {error}"
        return kind, PosseError(told if present is None else unchangeable(kind, name, error))
    return None


async def _present(
    connection: Connection, kind: Kind, name: str, namespace: str
) -> dict[str, Any] | None:
    """What is there to stay."""
    try:
        found = await connection.get(kind, name, namespace)
    except NotFound:
        return None
    return None if found["metadata"].get("deletionTimestamp") else found


async def _removed(connection: Connection, one: Leaving) -> Obstacle | None:
    try:
        await remove(connection, one.kind, one.obj, dry_run=True)
    except Forbidden as error:
        return one.kind, NotAllowed(error.message)
    return None


def _told(met: list[Obstacle]) -> PosseError | None:
    """The first of each sort in its own words, and of which kinds there are more."""
    if not met:
        return None
    words = []
    for sort in (NotAllowed, PosseError):
        alike = [(kind, error) for kind, error in met if type(error) is sort]
        if not alike:
            continue
        first, error = alike[0]
        others = dict.fromkeys(kind.plural for kind, _ in alike[1:] if kind != first)
        more = f"; the same goes for {', '.join(others)}" if others else ""
        words.append(f"{error}{more}")
    barred = any(isinstance(error, NotAllowed) for _, error in met)
    return (NotAllowed if barred else PosseError)("; ".join(words))
