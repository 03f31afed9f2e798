"""Caches shared by the controllers of one program, indexed by the uid of the controlling owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from posse.kube.cache import Cache, Change
from posse.kube.connection import Connection
from posse.objects.kinds import Kind
from posse.objects.ownership import (
    Key,
    Manifest,
    controller_of,
    key_of,
    metadata_of,
)

Listener = Callable[[Change[Manifest]], None]


class Selection(msgspec.Struct, frozen=True):
    """The part of a kind that a controller needs to see; labels keep the rest out of memory."""

    kind: Kind
    labels: str = ""


class _Ahead(NamedTuple):
    """An object that is newer than the cached one that it replaces."""

    instead_of: Manifest
    written: Manifest


class Informer:
    """One cache of raw objects, and who listens to its changes."""

    def __init__(
        self, connection: Connection, selection: Selection, *, namespace: str = ""
    ) -> None:
        self.selection = selection
        self._by_owner: dict[str, dict[Key, Manifest]] = {}
        self._listeners: list[Listener] = []
        self._ahead: dict[Key, _Ahead] = {}
        self.cache: Cache[Manifest] = Cache(
            connection,
            selection.kind,
            dict,
            namespace=namespace,
            labels=selection.labels,
            on_change=self._changed,
        )

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def get(self, key: Key) -> Manifest | None:
        """The cached object, or what we have since made of it."""
        cached = self.cache.get(*key)
        ahead = self._ahead.get(key)
        if ahead is None:
            return cached
        if cached is ahead.instead_of:
            return ahead.written
        del self._ahead[key]
        return cached

    def wrote(self, base: Manifest, written: Manifest) -> None:
        """We changed `base`, and `written` was the answer; the cache will follow.

        Until it does, we see our own write. Whatever the cache shows next replaces it; and a cache
        that has already moved on from `base` knows better.
        """
        key = key_of(written)
        cached, current = self.cache.get(*key), self.get(key)
        if cached is not None and current is not None and _version(current) == _version(base):
            self._ahead[key] = _Ahead(cached, written)

    def owned(self, uid: str) -> list[Manifest]:
        """What the object of that uid controls, sorted by namespace and name."""
        return [obj for _, obj in sorted(self._by_owner.get(uid, {}).items(), key=_by_key)]

    def all(self) -> list[Manifest]:
        return [obj for _, obj in sorted(self.cache.objects.items(), key=_by_key)]

    def _changed(self, change: Change[Manifest]) -> None:
        if change.old is not None:
            self._ahead.pop(key_of(change.old), None)
            self._unindex(change.old)
        if change.new is not None and (owner := controller_of(change.new)) is not None:
            owned = self._by_owner.setdefault(str(owner.get("uid")), {})
            owned[key_of(change.new)] = change.new
        for listener in self._listeners:
            listener(change)

    def _unindex(self, obj: Manifest) -> None:
        owner = controller_of(obj)
        if owner is None:
            return
        uid = str(owner.get("uid"))
        owned = self._by_owner.get(uid, {})
        owned.pop(key_of(obj), None)
        if not owned:
            self._by_owner.pop(uid, None)


def _version(obj: Manifest) -> str:
    return metadata_of(obj).get("resourceVersion") or ""


def _by_key(item: tuple[Key, Manifest]) -> Key:
    return item[0]
