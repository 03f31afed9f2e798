"""Pods on this machine, asked for and watched through the cluster's own API."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from posse.kube import connect
from posse.kube.config import load_kubeconfig
from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.objects.kinds import NODE, POD
from posse.world import World
from tests.cluster.processes import Commands, eventually

Manifest = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Machine(Commands):
    """A cluster whose only node is this machine, in one isolation mode."""

    isolation: str = ""

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "POSSE_ISOLATION": self.isolation, "TOKEN": "the-users"}

    def ask(self, question: Callable[[Connection], Awaitable[T]]) -> T:
        async def asking() -> T:
            connection = connect(load_kubeconfig([self.kubeconfig], None), World.real())
            try:
                return await question(connection)
            finally:
                await connection.close()

        return asyncio.run(asking())

    def create(self, pod: Manifest) -> Manifest:
        return self.ask(lambda c: c.create(POD, pod))

    def pod(self, name: str) -> Manifest | None:
        async def get(connection: Connection) -> Manifest | None:
            try:
                found: Manifest = await connection.get(POD, name, "default")
            except NotFound:
                return None
            return found

        return self.ask(get)

    def delete(self, name: str, grace: int | None = None) -> None:
        self.ask(lambda c: c.delete(POD, name, "default", grace=grace))
        eventually(lambda: self.pod(name) is None, f"{name} is gone")

    def node(self) -> Manifest:
        (found,) = self.ask(lambda c: c.list(NODE)).items
        assert isinstance(found, dict)
        return found

    def logs(self, name: str, **wanted: Any) -> str:
        async def read(connection: Connection) -> str:
            chunks = [chunk async for chunk in connection.logs(name, "default", **wanted)]
            return b"".join(chunks).decode("utf-8", "replace")

        return self.ask(read)

    def phase(self, name: str) -> str:
        found = self.pod(name)
        return "" if found is None else str((found.get("status") or {}).get("phase", ""))

    def reaches(self, name: str, *phases: str) -> Manifest:
        eventually(lambda: self.phase(name) in phases, f"{name} is {' or '.join(phases)}", 60)
        found = self.pod(name)
        assert found is not None
        return found

    def state(self, name: str, container: int = 0) -> Manifest:
        """The container's state: one of waiting, running, terminated."""
        found = self.pod(name) or {}
        statuses = (found.get("status") or {}).get("containerStatuses") or [{}]
        state = statuses[container].get("state") or {}
        assert isinstance(state, dict)
        return state

    def restarts(self, name: str) -> int:
        statuses = ((self.pod(name) or {}).get("status") or {}).get("containerStatuses") or [{}]
        return int(statuses[0].get("restartCount", 0))

    def marked(self, uid: str) -> list[int]:
        """Processes that belong to the pod, whatever has become of them."""
        if sys.platform != "linux":
            return []
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                try:
                    variables = (entry / "environ").read_bytes().split(b"\0")
                except OSError:
                    continue  # it ended while we looked
                if any(v.startswith(b"POSSE_CONTAINER=" + uid.encode()) for v in variables):
                    found.append(int(entry.name))
        return found


def pod(name: str, script: str, **spec: Any) -> Manifest:
    container = {"name": "main", "image": "image", "command": ["sh", "-c", script]}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "restartPolicy": "Never", **spec},
    }
