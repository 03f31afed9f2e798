"""ConfigMaps and Secrets that pods name, read when a container needs them."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Protocol

from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.objects.kinds import CONFIG_MAP, SECRET

Manifest = dict[str, Any]
Entries = dict[str, bytes]


class Sources(Protocol):
    async def config_map(self, namespace: str, name: str) -> Entries | None:
        """Its keys and values, or None where there is no such object."""
        ...

    async def secret(self, namespace: str, name: str) -> Entries | None: ...


class LiveSources:
    """The API server's word at this moment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def config_map(self, namespace: str, name: str) -> Entries | None:
        try:
            found: Manifest = await self._connection.get(CONFIG_MAP, name, namespace)
        except NotFound:
            return None
        entries = {key: str(text).encode() for key, text in (found.get("data") or {}).items()}
        return {**entries, **_decoded(found.get("binaryData"))}

    async def secret(self, namespace: str, name: str) -> Entries | None:
        try:
            found: Manifest = await self._connection.get(SECRET, name, namespace)
        except NotFound:
            return None
        return _decoded(found.get("data"))


def _decoded(values: Any) -> Entries:
    decoded: Entries = {}
    for key, text in (values or {}).items():
        try:
            decoded[key] = base64.b64decode(text)
        except (binascii.Error, TypeError, ValueError):
            decoded[key] = str(text).encode()
    return decoded
