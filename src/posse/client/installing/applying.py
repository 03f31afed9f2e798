"""Doing what was planned. Everything can be done twice, so an upgrade is one more installation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from posse.client.errors import PosseError, TimedOut
from posse.client.installing.inventory import INVENTORY, ONCE, OPTIONAL, kind_of
from posse.client.installing.marking import SELECTOR, is_marked
from posse.kube.connection import Connection, Patch
from posse.kube.errors import Invalid, NotFound
from posse.objects.keys import INSTALLED_LABEL
from posse.objects.kinds import (
    CLUSTER_ROLE_BINDING,
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    PRIORITY_CLASS,
    QUEUE,
    ROLE_BINDING,
    Kind,
)

MANAGER = "posse-install"
_WITHIN = 60.0
_POLL = 0.1

KEPT = (CUSTOM_RESOURCE_DEFINITION, NAMESPACE, PRIORITY_CLASS, QUEUE)
"""Of these nothing is removed because a later installation does without it: jobs may use it."""

STAYING = (CUSTOM_RESOURCE_DEFINITION, NAMESPACE, PRIORITY_CLASS)
"""Of these what is somebody else's does as well, and stays as it is."""

Say = Callable[[str], None]


async def apply(
    connection: Connection, objects: list[dict[str, Any]], unserved: tuple[str, ...], say: Say
) -> None:
    """Makes the cluster have these objects, and no others of an earlier installation."""
    waiting: list[str] = []
    for obj in objects:
        kind = kind_of(obj)
        if waiting and kind != CUSTOM_RESOURCE_DEFINITION:
            await _established(connection, waiting)
            waiting = []
        done = await _apply_one(connection, kind, obj)
        if kind == CUSTOM_RESOURCE_DEFINITION:
            waiting.append(obj["metadata"]["name"])
        say(f"{kind.singular}/{obj['metadata']['name']} {done}")
    await _established(connection, waiting)
    await _prune(connection, objects, unserved, say)


async def _apply_one(connection: Connection, kind: Kind, obj: dict[str, Any]) -> str:
    metadata = obj["metadata"]
    name, namespace = metadata["name"], metadata.get("namespace") or ""
    present = await _settled(connection, kind, name, namespace)
    if present is None:
        await send(connection, obj)
        return "created"
    if stays(kind, present):
        return "was there and stays as it is"
    if not is_marked(present):
        raise PosseError(strange(kind, name, namespace))
    if is_rebound(kind, present, obj):
        await connection.delete(kind, name, namespace, uid=present["metadata"].get("uid"))
    try:
        written = await send(connection, obj)
    except Invalid as error:
        raise PosseError(unchangeable(kind, name, error)) from error
    same = _version(written) == _version(present)
    return "unchanged" if same else "configured"


def stays(kind: Kind, present: dict[str, Any]) -> bool:
    """Whether what is there is left as it is, whatever this version would have."""
    return kind in ONCE or (kind in STAYING and not is_marked(present))


def is_rebound(kind: Kind, present: dict[str, Any], obj: dict[str, Any]) -> bool:
    """To whom a role is given can be changed, which role it is cannot: it is given anew."""
    binds = kind in (CLUSTER_ROLE_BINDING, ROLE_BINDING)
    return binds and bool(present.get("roleRef") != obj["roleRef"])


def strange(kind: Kind, name: str, namespace: str) -> str:
    place = f"-n {namespace} " if namespace else ""
    return (
        f"there is a {kind.singular} {name} which is not Posse's; remove it, or give it to Posse: "
        f"kubectl {place}label {kind.singular} {name} {INSTALLED_LABEL}=true"
    )


def unchangeable(kind: Kind, name: str, error: Invalid) -> str:
    return f"{kind.singular} {name} is there and cannot be changed: {error}"


async def send(
    connection: Connection, obj: dict[str, Any], *, dry_run: bool = False
) -> dict[str, Any]:
    """Server-side apply: fields that an earlier version had and this one has not go away, and
    those that others own (a status, an injected annotation) stay."""
    kind, metadata = kind_of(obj), obj["metadata"]
    return await connection.patch(
        kind,
        metadata["name"],
        obj,
        metadata.get("namespace") or "",
        how=Patch.APPLY,
        field_manager=MANAGER,
        force=True,
        dry_run=dry_run,
    )


async def _established(connection: Connection, names: list[str]) -> None:
    deadline = connection.world.monotonic() + _WITHIN
    for name in names:
        while not _is_established(await connection.get(CUSTOM_RESOURCE_DEFINITION, name)):
            if connection.world.monotonic() > deadline:
                raise TimedOut(f"the cluster does not serve {name} after {_WITHIN:g}s")
            await asyncio.sleep(_POLL)


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or []
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


async def _prune(
    connection: Connection, objects: list[dict[str, Any]], unserved: tuple[str, ...], say: Say
) -> None:
    wanted = {
        (kind_of(obj), obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
        for obj in objects
    }
    for kind in reversed(INVENTORY):
        if kind in KEPT or (kind in OPTIONAL and kind.qualified in unserved):
            continue
        for found in (await connection.list(kind, labels=SELECTOR)).items:
            metadata = found["metadata"]
            namespace = metadata.get("namespace") or ""
            if (kind, namespace, metadata["name"]) not in wanted:
                await remove(connection, kind, found)
                say(f"{kind.singular}/{metadata['name']} removed")


async def remove(
    connection: Connection, kind: Kind, obj: dict[str, Any], *, dry_run: bool = False
) -> bool:
    """This very object; False when it was gone."""
    metadata = obj["metadata"]
    try:
        await connection.delete(
            kind,
            metadata["name"],
            metadata.get("namespace") or "",
            uid=metadata.get("uid"),
            propagation="Background",
            dry_run=dry_run,
        )
    except NotFound:
        return False
    return True


async def _settled(
    connection: Connection, kind: Kind, name: str, namespace: str
) -> dict[str, Any] | None:
    """The object, if it is there to stay: one that is on its way out is waited for."""
    deadline = connection.world.monotonic() + _WITHIN
    while True:
        try:
            found = await connection.get(kind, name, namespace)
        except NotFound:
            return None
        if not found["metadata"].get("deletionTimestamp"):
            return found
        if connection.world.monotonic() > deadline:
            raise TimedOut(f"{kind.singular} {name} is still being deleted after {_WITHIN:g}s")
        await asyncio.sleep(_POLL)


def _version(obj: dict[str, Any]) -> str:
    return str(obj["metadata"].get("resourceVersion") or "")
