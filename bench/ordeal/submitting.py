"""A client that submits gangs and deletes them again, under names that come back."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import msgspec

from bench.ordeal.ledger import Broken
from bench.ordeal.writing import NAMESPACE, SILENCE
from posse.client.submitting.mpi import MPIJob
from posse.kube import Connection
from posse.kube.errors import ApiError, KubeError, NotFound, ServerError, Unreachable
from posse.objects.kinds import MPI_JOB


class Gang(msgspec.Struct, frozen=True):
    name: str
    workers: int
    uid: str


class Submitter:
    """`gangs` are those that were acknowledged and not deleted since."""

    def __init__(
        self, connection: Connection, name: str, chance: random.Random, *, most: int, workers: int
    ) -> None:
        self.name = name
        self.gangs: dict[str, Gang] = {}
        self.submitted = 0
        self.deleted = 0
        self._connection = connection
        self._chance = chance
        self._most = most
        self._workers = workers

    async def run(self, stop: asyncio.Event) -> None:
        """Ends between two steps, so that the ledger says all that it was told."""
        while not stop.is_set():
            await self.step()
            await asyncio.sleep(self._chance.random() * 0.5)

    async def step(self) -> None:
        name = f"{self.name}-{self._chance.randrange(self._most)}"
        gang = self.gangs.get(name)
        try:
            await (self._submit(name) if gang is None else self._delete(gang))
        except ApiError as error:
            raise Broken(f"gang {name}, acknowledged as {gang}: {error}") from error

    async def _submit(self, name: str) -> None:
        workers = self._chance.randint(1, self._workers)
        job = MPIJob(name=name, image="none", workers=workers, gpus=1, command="mpirun train")
        try:
            made = await self._connection.create(MPI_JOB, job.manifest(), NAMESPACE)
        except (Unreachable, ServerError):
            found = await self._find(name)
            if found is None:
                return
            made = found
        self.gangs[name] = Gang(name, workers, made["metadata"]["uid"])
        self.submitted += 1

    async def _delete(self, gang: Gang) -> None:
        try:
            await self._connection.delete(
                MPI_JOB, gang.name, NAMESPACE, uid=gang.uid, propagation="Background"
            )
        except (Unreachable, ServerError):
            if await self._find(gang.name) is not None:
                return
        del self.gangs[gang.name]
        self.deleted += 1

    async def _find(self, name: str) -> dict[str, Any] | None:
        async with asyncio.timeout(SILENCE):
            while True:
                try:
                    return await self._connection.get(MPI_JOB, name, NAMESPACE)
                except NotFound:
                    return None
                except KubeError:
                    await asyncio.sleep(0.05)
