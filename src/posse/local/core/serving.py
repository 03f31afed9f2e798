"""Which kinds the API server serves just now, CRDs included."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from posse.kube.cache import Cache, Change
from posse.kube.connection import Connection
from posse.kube.errors import KubeError, NotFound
from posse.objects.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from posse.world import World

log = logging.getLogger(__name__)

Manifest = dict[str, Any]

# Events outlive what they tell of; collecting them is left to their own expiry.
_PASSED_OVER = ("events",)
_NEEDED = ("delete", "list", "watch")
_DEBOUNCE = 0.1


class ServedKinds:
    """One version of every kind that can be listed, watched and deleted."""

    def __init__(self, connection: Connection, world: World) -> None:
        self._connection = connection
        self._world = world
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._known = asyncio.Event()
        self._stale = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._definitions: Cache[Manifest] = Cache(
            connection, CUSTOM_RESOURCE_DEFINITION, dict[str, Any], on_change=self._changed
        )

    @property
    def kinds(self) -> list[Kind]:
        """Sorted by group and kind."""
        return [self._kinds[name] for name in sorted(self._kinds)]

    def find(self, group: str, kind: str) -> Kind | None:
        return self._kinds.get((group, kind))

    def listen(self, listener: Callable[[], None]) -> None:
        """`listener` is called whenever the set of kinds has changed."""
        self._listeners.append(listener)

    async def known(self) -> None:
        await self._known.wait()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._definitions.run())
            tasks.create_task(self._follow())

    def _changed(self, change: Change[Manifest]) -> None:
        self._stale.set()

    async def _follow(self) -> None:
        pause = _DEBOUNCE
        while True:
            self._stale.clear()
            try:
                self._take(await self._discover())
            except KubeError as error:
                log.warning("discovery: %s; again in %.1fs", error, pause)
                self._stale.set()
                pause = min(pause * 2, 5.0)
            else:
                pause = _DEBOUNCE
            await self._stale.wait()
            await asyncio.sleep(self._world.jitter(pause))

    def _take(self, kinds: dict[tuple[str, str], Kind]) -> None:
        changed = kinds != self._kinds
        self._kinds = kinds
        self._known.set()
        if changed:
            for listener in self._listeners:
                listener()

    async def _discover(self) -> dict[tuple[str, str], Kind]:
        found: dict[tuple[str, str], Kind] = {}
        versions = [("", "v1")]
        for group in await self._connection.groups():
            preferred = group.get("preferredVersion") or {}
            ordered = [preferred, *(group.get("versions") or [])]
            versions += [(str(group["name"]), str(v["version"])) for v in ordered if v]
        for group_name, version in dict.fromkeys(versions):
            try:
                resources = await self._connection.resources(group_name, version)
            except NotFound:  # gone between the two questions
                continue
            for resource in resources:
                kind = _kind(group_name, version, resource)
                if kind is not None:
                    found.setdefault((group_name, kind.kind), kind)
        return found


def _kind(group: str, version: str, resource: Manifest) -> Kind | None:
    plural = str(resource.get("name") or "")
    verbs = resource.get("verbs") or []
    if not plural or "/" in plural or plural in _PASSED_OVER:
        return None
    if any(verb not in verbs for verb in _NEEDED):
        return None
    return Kind(group, version, str(resource["kind"]), plural, bool(resource.get("namespaced")))
