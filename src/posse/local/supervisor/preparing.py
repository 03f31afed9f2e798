"""What a cluster needs before its services start: kinds and the default queue."""

from __future__ import annotations

import asyncio
from typing import Any

from posse.kube.connection import Connection
from posse.kube.errors import AlreadyExists, Conflict
from posse.objects.crds import definitions
from posse.objects.kinds import CUSTOM_RESOURCE_DEFINITION, QUEUE

POLL = 0.02

DEFAULT_QUEUE: dict[str, Any] = {
    "apiVersion": QUEUE.api_version,
    "kind": QUEUE.kind,
    "metadata": {"name": "default"},
    "spec": {"weight": 1, "reclaimable": True},
}


async def prepare(connection: Connection) -> None:
    """Idempotent: definitions are brought up to date, the queue is made only where none is."""
    for definition in definitions():
        await _define(connection, definition)
    for definition in definitions():
        await _established(connection, definition["metadata"]["name"])
    try:
        await connection.create(QUEUE, DEFAULT_QUEUE)
    except AlreadyExists:
        return


async def _define(connection: Connection, definition: dict[str, Any]) -> None:
    while True:
        try:
            await connection.create(CUSTOM_RESOURCE_DEFINITION, definition)
        except AlreadyExists:
            name = definition["metadata"]["name"]
            present = await connection.get(CUSTOM_RESOURCE_DEFINITION, name)
            wanted = {**present, "spec": definition["spec"]}
            try:
                await connection.replace(CUSTOM_RESOURCE_DEFINITION, wanted)
            except Conflict:
                continue
        return


async def _established(connection: Connection, name: str) -> None:
    while True:
        present = await connection.get(CUSTOM_RESOURCE_DEFINITION, name)
        conditions = (present.get("status") or {}).get("conditions") or []
        if any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions):
            return
        await asyncio.sleep(POLL)
