"""A scheduler on virtual time over the double, and builders for the objects it reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from posse.kube.connection import Connection
from posse.scheduler.config import SchedulerConfig
from posse.scheduler.program import run
from posse.virtual.world import virtual_world
from tests.unit.scheduler.double import Api

Object = dict[str, Any]
GPU = "nvidia.com/gpu"


def node(name: str, gpus: int = 2, **fields: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110", GPU: str(gpus)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    } | fields


def pod(
    name: str,
    group: str = "",
    gpus: int = 2,
    *,
    owned: bool = True,
    scheduler: str = "posse",
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    meta: Object = {"name": name, "annotations": dict(annotations or {})}
    if group:
        meta["annotations"]["scheduling.k8s.io/group-name"] = group
    if owned:
        meta["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "J", "name": "j", "uid": "j", "controller": True}
        ]
    asked = {"requests": {"cpu": "1", GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    container = {"name": "c", "image": "i", "resources": asked}
    return {
        "metadata": meta,
        "spec": {"schedulerName": scheduler, "containers": [container]} | spec,
        "status": {"phase": "Pending"},
    }


def group(name: str, members: int, *, annotations: Object | None = None, **spec: Any) -> Object:
    return {
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {"minMember": members, "queue": "default"} | spec,
        "status": {},
    }


class Rig:
    def __init__(self) -> None:
        self.world = virtual_world()
        self.api = Api(self.world)

    def gang(self, name: str, members: int, gpus: int = 2, **options: Any) -> None:
        self.api.put("podgroups", group(name, members))
        for index in range(members):
            self.api.put("pods", pod(f"{name}-{index}", name, gpus, **options))

    def nodes(self, count: int, gpus: int = 2) -> None:
        for index in range(count):
            self.api.put("nodes", node(f"n{index}", gpus))

    def start(self, **options: Any) -> asyncio.Task[None]:
        config = SchedulerConfig(**({"identity": "one"} | options))
        return asyncio.create_task(run(config, Connection(self.api, self.world), self.world))

    @asynccontextmanager
    async def running(self, **options: Any) -> AsyncIterator[None]:
        """A scheduler for the length of the block; that it ended by itself is a failure."""
        task = self.start(**options)
        try:
            yield
            if task.done():
                task.result()
                raise AssertionError("the scheduler has ended")
        finally:
            await crash(task)

    async def until(self, holds: Callable[[], object], within: float = 60.0) -> None:
        """Looks closely at first; whoever waits for minutes need not be seen to the millisecond."""
        deadline = self.world.monotonic() + within
        pause = 0.005
        while not holds():
            if self.world.monotonic() > deadline:
                raise AssertionError(f"not within {within:g} s; placed: {self.api.placed()}")
            await asyncio.sleep(pause)
            pause = min(1.02 * pause, 0.05)

    async def settle(self, seconds: float = 3.0) -> None:
        """Time enough for whatever is going to happen."""
        await asyncio.sleep(seconds)

    def bound_of(self, gang: str) -> dict[str, str]:
        return {
            name: on for name, on in self.api.placed().items() if name.rpartition("-")[0] == gang
        }

    def phase(self, gang: str) -> str:
        found = self.api.get("podgroups", gang).get("status", {}).get("phase", "")
        return str(found)

    def events(self, name: str) -> list[tuple[str, str]]:
        return [
            (event["reason"], event["message"])
            for event in self.api.all("events")
            if event["involvedObject"]["name"] == name
        ]

    def check(self) -> None:
        """Nobody was bound twice, and no node has more than it can bear."""
        uids = [uid for uid, _ in self.api.bound_uids]
        assert len(uids) == len(set(uids)), self.api.binds
        self.check_capacity()

    def check_capacity(self) -> None:
        used: dict[str, int] = {}
        for found in self.api.all("pods"):
            on = found["spec"].get("nodeName")
            if on and found["status"].get("phase") not in ("Succeeded", "Failed"):
                asked = found["spec"]["containers"][0]["resources"]["requests"].get(GPU, "0")
                used[on] = used.get(on, 0) + int(asked)
        for on, gpus in used.items():
            offered = self.api.get("nodes", on)["status"]["allocatable"][GPU]
            assert gpus <= int(offered), f"{on} has {offered} GPUs and {gpus} are used"


async def crash(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
