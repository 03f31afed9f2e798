"""Kubernetes over HTTP: config, auth, REST, list+watch, cache, leases, events, streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posse.kube.cache import Cache, Change
from posse.kube.connection import Connection, Listing, Patch
from posse.kube.decoding import WatchEvent
from posse.kube.identity import Malformed

if TYPE_CHECKING:
    from posse.kube.config import Settings
    from posse.world import World

__all__ = [
    "Cache",
    "Change",
    "Connection",
    "Listing",
    "Malformed",
    "Patch",
    "WatchEvent",
    "connect",
]


def connect(settings: Settings, world: World) -> Connection:
    """A connection over sockets. aiohttp is imported here, so that only who connects pays."""
    from posse.kube.http import HttpTransport

    return Connection(HttpTransport(settings, world), world, namespace=settings.namespace)
