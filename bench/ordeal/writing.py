"""A client that writes ConfigMaps in every way there is, and never forgets what it was told."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from bench.ordeal.ledger import Broken, Known, Ledger
from posse.kube import Connection
from posse.kube.errors import ApiError, KubeError, NotFound, ServerError, Unreachable
from posse.objects.kinds import CONFIG_MAP

NAMESPACE = "default"
LABEL = "ordeal"
SILENCE = 60.0
"""So long nobody may be unable to get an answer, whatever was killed."""


class Writer:
    def __init__(self, connection: Connection, name: str, chance: random.Random) -> None:
        self.name = name
        self.ledger = Ledger()
        self._connection = connection
        self._chance = chance
        self._count = 0

    async def run(self, stop: asyncio.Event) -> None:
        """Ends between two steps, so that the ledger says all that it was told."""
        while not stop.is_set():
            await self.step()
            await asyncio.sleep(self._chance.random() * 0.05)

    async def step(self) -> None:
        name = f"{self.name}-{self._chance.randrange(8)}"
        known = self.ledger.objects.get(name)
        self._count += 1
        value = f"{self.name} {self._count}"
        if self._chance.random() < 0.2:
            self.ledger.read(name, await self._find(name))
            return
        removes = known is not None and self._chance.random() < 0.2
        try:
            if removes:
                assert known is not None
                await self._connection.delete(CONFIG_MAP, name, NAMESPACE, uid=known.uid)
                self.ledger.removed(name)
            else:
                self.ledger.wrote(name, value, await self._write(name, known, value))
        except (Unreachable, ServerError):
            self.ledger.uncertain += 1
            self.ledger.read(name, await self._find(name), None if removes else value)
        except ApiError as error:
            raise Broken(f"{name}, acknowledged as {known}: {error}") from error

    async def _write(self, name: str, known: Known | None, value: str) -> dict[str, Any]:
        connection = self._connection
        metadata: dict[str, Any] = {"name": name, "labels": {LABEL: self.name}}
        if known is None:
            body = {"metadata": metadata, "data": {"value": value}}
            return await connection.create(CONFIG_MAP, body, NAMESPACE)
        if self._chance.random() < 0.5:
            patch = {"data": {"value": value}}
            return await connection.patch(CONFIG_MAP, name, patch, NAMESPACE)
        metadata |= {"namespace": NAMESPACE, "resourceVersion": str(known.version)}
        return await connection.replace(
            CONFIG_MAP, {"metadata": metadata, "data": {"value": value}}
        )

    async def _find(self, name: str) -> Known | None:
        async with asyncio.timeout(SILENCE):
            while True:
                try:
                    return known(await self._connection.get(CONFIG_MAP, name, NAMESPACE))
                except NotFound:
                    return None
                except KubeError:
                    await asyncio.sleep(0.05)


def known(obj: dict[str, Any]) -> Known:
    metadata = obj["metadata"]
    return Known(obj["data"]["value"], int(metadata["resourceVersion"]), metadata["uid"])
