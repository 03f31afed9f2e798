"""A real API server to measure on: etcd, kube-apiserver, nodes without kubelets, nothing else.

Who answers for what takes no part: there is no audit log, and no controller that would find the
nodes silent. Every contender signs in as the same administrator.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from bench.peers import workload
from bench.peers.workload import NAMESPACE, Dialect
from posse.kube import Connection, connect
from posse.kube.errors import NotFound, ServerError
from posse.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITION,
    EVENT,
    LEASE,
    NODE,
    POD,
    QUEUE,
    SERVICE_ACCOUNT,
    Kind,
)
from posse.objects.kinds import NAMESPACE as NAMESPACES
from posse.world import World
from tests.kubernetes.building import find
from tests.kubernetes.plane import SYSTEM, ControlPlane
from tests.kubernetes.preparing import prepare

T = TypeVar("T")

AT_ONCE = 32
_GONE_WITHIN = 300.0


class Plane(ControlPlane):
    def _api_server(self, etcd: int) -> list[str]:
        audit = "--audit-"
        words = [word for word in super()._api_server(etcd) if not word.startswith(audit)]
        return [*words, "--delete-collection-workers=16"]

    def _etcd(self, client: int, peer: int) -> list[str]:
        return [*super()._etcd(client, peer), f"--quota-backend-bytes={8 << 30}"]


class Ground:
    def __init__(self, plane: Plane, connection: Connection) -> None:
        self.plane = plane
        self.connection = connection
        self.directory = plane.directory

    async def lay(self, nodes: int) -> None:
        # Pods that do not talk to the API server, as training pods do not.
        account = {
            "metadata": {"name": "default", "namespace": NAMESPACE},
            "automountServiceAccountToken": False,
        }
        await self.connection.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await self.connection.create(SERVICE_ACCOUNT, account)
        # As Volcano's controllers would; its scheduler leaves a queue alone that is not open.
        opened = {"status": {"state": "Open"}}
        await self.connection.patch(QUEUE, "default", opened, subresource="status")
        await each(self._node, range(nodes))

    async def define(self, definition: dict[str, Any]) -> None:
        """Has the kind served in this way, before there is an object of it."""
        name, spec = definition["metadata"]["name"], definition["spec"]
        now = await self.connection.get(CUSTOM_RESOURCE_DEFINITION, name)
        (version,) = spec["versions"]
        part = f"{spec['names']['plural']}/status"
        wanted = "status" in (version.get("subresources") or {})
        served = await self._parts(spec["group"], version["name"])
        if (part in served) == wanted:
            return
        metadata = {field: now["metadata"][field] for field in ("name", "resourceVersion")}
        annotations = definition["metadata"].get("annotations") or {}
        made = definition | {"metadata": metadata | {"annotations": annotations}}
        await self.connection.replace(CUSTOM_RESOURCE_DEFINITION, made)
        while (  # noqa: ASYNC110 - discovery cannot be watched
            part in await self._parts(spec["group"], version["name"])
        ) != wanted:
            await asyncio.sleep(0.1)

    async def _parts(self, group: str, version: str) -> list[str]:
        return [found["name"] for found in await self.connection.resources(group, version)]

    async def clear(self) -> None:
        """As if nobody had been here: no pods, no groups, no events, nobody who leads."""
        deadline = time.monotonic() + _GONE_WITHIN
        for kind in (POD, *(dialect.kind for dialect in Dialect)):
            while await self._some(kind):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{kind.qualified} would not go")
                await self._delete(kind)
        await self._delete(EVENT)
        await self.connection.delete_collection(LEASE, SYSTEM)

    async def _delete(self, kind: Kind) -> None:
        """As much as one request does: the server ends it after a minute, however far it is."""
        try:
            await self.connection.delete_collection(kind, NAMESPACE, grace=0)
        except NotFound:
            return
        except ServerError as error:
            if error.code != 504:
                raise
        finalized = [meta for meta in await self._some(kind) if meta.get("finalizers")]
        await each(lambda meta: self._let_go(kind, meta["name"]), finalized)

    async def _let_go(self, kind: Kind, name: str) -> None:
        """A finalizer waits for a controller that does not run here."""
        try:
            await self.connection.patch(kind, name, {"metadata": {"finalizers": None}}, NAMESPACE)
        except NotFound:
            return

    async def _some(self, kind: Kind) -> list[dict[str, Any]]:
        try:
            found = await self.connection.list(kind, NAMESPACE, limit=500)
        except NotFound:
            return []
        return [item["metadata"] for item in found.items]

    async def _node(self, number: int) -> None:
        made = await self.connection.create(NODE, workload.node(number))
        # Admission taints every new node; who would take that away is a controller.
        patch = {"spec": {"taints": None}}
        await self.connection.patch(NODE, made["metadata"]["name"], patch)


@asynccontextmanager
async def ground(directory: Path, nodes: int) -> AsyncIterator[Ground]:
    plane = Plane(find(), directory)
    connection = connect(plane.settings(), World.real())
    try:
        plane.start()
        prepare(plane)
        laid = Ground(plane, connection)
        await laid.lay(nodes)
        yield laid
    finally:
        await connection.close()
        plane.stop()


async def each(do: Callable[[T], Awaitable[object]], items: Iterable[T]) -> None:
    """For all of them, so many at a time."""
    left = iter(items)

    async def worker() -> None:
        for item in left:
            await do(item)

    async with asyncio.TaskGroup() as workers:
        for _ in range(AT_ONCE):
            workers.create_task(worker())
