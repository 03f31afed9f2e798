"""A client whose pods are processes of this machine: each runs once, while it is wanted."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.ordeal.ledger import Broken
from bench.ordeal.writing import NAMESPACE, SILENCE
from posse.kube import Connection
from posse.kube.errors import ApiError, KubeError, NotFound, ServerError, Unreachable
from posse.objects.kinds import POD
from posse.objects.pods import Pod


class Run(msgspec.Struct, frozen=True):
    """`mark` is on the command line of the pod's process, and of no other."""

    name: str
    uid: str
    mark: str


class Runner:
    """`runs` are the pods that were acknowledged and not deleted since."""

    def __init__(self, connection: Connection, name: str, chance: random.Random) -> None:
        self.name = name
        self.runs: dict[str, Run] = {}
        self.marks: list[str] = []
        self.submitted = 0
        self.deleted = 0
        self._connection = connection
        self._chance = chance

    async def run(self, stop: asyncio.Event) -> None:
        """Ends between two steps, so that `runs` says all that it was told."""
        while not stop.is_set():
            await self.step()
            await asyncio.sleep(self._chance.random())

    async def step(self) -> None:
        name = f"{self.name}-{self._chance.randrange(4)}"
        run = self.runs.get(name)
        try:
            await (self._create(name) if run is None else self._delete(run))
        except ApiError as error:
            raise Broken(f"pod {name}, acknowledged as {run}: {error}") from error

    async def _create(self, name: str) -> None:
        # A deleted pod keeps its name until its process has ended.
        if await self._find(name) is not None:
            return
        mark = f"{os.getpid()}{self._chance.randrange(10**8, 10**9)}"
        self.marks.append(mark)
        container = {"name": "c", "image": "none", "command": ["sleep", mark]}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
        try:
            body = {"metadata": {"name": name}, "spec": spec}
            made = await self._connection.create(POD, body, NAMESPACE)
        except (Unreachable, ServerError):
            found = await self._find(name)
            if found is None:
                return
            made = found
        self.runs[name] = Run(name, made["metadata"]["uid"], mark)
        self.submitted += 1

    async def _delete(self, run: Run) -> None:
        try:
            await self._connection.delete(POD, run.name, NAMESPACE, uid=run.uid)
        except (Unreachable, ServerError):
            found = await self._find(run.name)
            if found is not None and not found["metadata"].get("deletionTimestamp"):
                return
        del self.runs[run.name]
        self.deleted += 1

    async def _find(self, name: str) -> dict[str, Any] | None:
        async with asyncio.timeout(SILENCE):
            while True:
                try:
                    return await self._connection.get(POD, name, NAMESPACE)
                except NotFound:
                    return None
                except KubeError:
                    await asyncio.sleep(0.05)


async def misfits(connection: Connection, runners: Sequence[Runner]) -> list[str]:
    """Pods and processes that are not what their clients were told."""
    runs = {run.uid: run for runner in runners for run in runner.runs.values()}
    pods = (await connection.list(POD, NAMESPACE, model=Pod)).items
    alive = processes_marked([mark for runner in runners for mark in runner.marks])
    present = {pod.metadata.uid for pod in pods}
    found = [f"pod {run.name} is gone" for uid, run in runs.items() if uid not in present]
    for pod in pods:
        if pod.metadata.uid not in runs:
            found.append(f"pod {pod.metadata.name} should be gone")
            continue
        again = sum(status.restart_count for status in pod.status.container_statuses)
        if pod.status.phase != "Running" or again:
            found.append(f"pod {pod.metadata.name} is {pod.status.phase} after {again} restarts")
    wanted = {run.mark for run in runs.values()}
    found += [
        f"{alive[mark]} processes of {mark}, which should have {int(mark in wanted)}"
        for mark in sorted({*alive, *wanted})
        if alive[mark] != int(mark in wanted)
    ]
    return found


def processes_marked(marks: Sequence[str]) -> Counter[str]:
    """How many processes `sleep MARK` there are of each."""
    known, found = set(marks), Counter[str]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue  # it ended while we looked
            if words[0] == "sleep" and words[1] in known:
                found[words[1]] += 1
    return found
