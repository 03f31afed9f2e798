"""The node lifecycle: silent nodes are marked, their pods leave in time, orphans are removed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import msgspec

from posse.kube.cache import Cache, Change
from posse.kube.connection import Connection, Patch
from posse.kube.errors import Conflict, KubeError, NotFound
from posse.kube.events import Recorder
from posse.local.core.node_health import (
    Pulse,
    Taints,
    evicted_at,
    unknown_conditions,
    wanted_taints,
)
from posse.objects.kinds import LEASE, NODE, POD
from posse.objects.meta import KubeStruct, ObjectMeta
from posse.objects.nodes import Node, Taint
from posse.objects.pods import Pod
from posse.objects.times import rfc3339
from posse.world import World

log = logging.getLogger(__name__)

LEASES = "kube-node-lease"
LISTEN_EVERY = 5.0


class LeaseSpec(KubeStruct):
    renew_time: str | None = None


class Lease(KubeStruct):
    metadata: ObjectMeta
    spec: LeaseSpec | None = None


class NodeMonitor:
    """One look at all nodes every `every` seconds; only the pods of troubled nodes are visited."""

    def __init__(
        self,
        connection: Connection,
        world: World,
        recorder: Recorder,
        *,
        grace: float,
        orphan_grace: float,
        every: float,
    ) -> None:
        self._connection = connection
        self._world = world
        self._recorder = recorder
        self._grace = grace
        self._orphan_grace = orphan_grace
        self._every = every
        self._pulse = Pulse()
        self._taints = Taints()
        self._listened = world.monotonic()
        self._missing: dict[str, float] = {}  # node with pods but no object -> monotonic time
        self._pods: dict[str, dict[str, Pod]] = {}  # by node, by uid
        self._nodes: Cache[Node] = Cache(connection, NODE, Node)
        self._leases: Cache[Lease] = Cache(connection, LEASE, Lease, namespace=LEASES)
        self._pod_cache: Cache[Pod] = Cache(
            connection, POD, Pod, fields="spec.nodeName!=", on_change=self._pod_changed
        )

    async def run(self) -> None:
        caches: tuple[Cache[Any], ...] = (self._nodes, self._leases, self._pod_cache)
        async with asyncio.TaskGroup() as tasks:
            for cache in caches:
                tasks.create_task(cache.run())
            for cache in caches:
                await cache.synced()
            while True:
                await self._listen()
                await self._look()
                await asyncio.sleep(self._every)

    def _pod_changed(self, change: Change[Pod]) -> None:
        for pod in (change.old, change.new):
            if pod is None:
                continue
            on_node = self._pods.setdefault(pod.spec.node_name, {})
            if pod is change.new:
                on_node[pod.metadata.uid] = pod
            else:
                on_node.pop(pod.metadata.uid, None)
            if not on_node:
                del self._pods[pod.spec.node_name]

    async def _listen(self) -> None:
        """While the API server is away no agent can be heard, and silence means nothing."""
        now = self._world.monotonic()
        if now - self._listened < LISTEN_EVERY:
            return
        try:
            await self._connection.version()
        except KubeError as error:
            log.warning("nodes are not judged: %s", error)
            self._pulse.restart(self._world.monotonic())
        self._listened = self._world.monotonic()

    async def _look(self) -> None:
        for _, node in sorted(self._nodes.objects.items()):
            await self._guarded(self._visit(node), node.metadata.name)
        gone = [n for n in self._pulse.names() if self._nodes.get("", n) is None]
        self._pulse.forget(gone)
        for name in sorted(self._pods):
            if self._nodes.get("", name) is None:
                await self._guarded(self._clear_missing(name), name)
        for name in [n for n in self._missing if n not in self._pods]:
            del self._missing[name]

    async def _guarded(self, work: Any, name: str) -> None:
        try:
            await work
        except (Conflict, NotFound) as error:
            log.debug("node %s: %s", name, error)
        except KubeError as error:
            log.warning("node %s: %s", name, error)

    async def _visit(self, node: Node) -> None:
        name = node.metadata.name
        now = rfc3339(self._world.now())
        lease = self._leases.get(LEASES, name)
        sign = f"{lease.spec.renew_time if lease and lease.spec else ''} {_heartbeat(node)}"
        if self._pulse.silent_for(name, sign, self._world.monotonic()) > self._grace:
            node = await self._silence(node, now)
        taints = wanted_taints(node, now)
        if taints is not None:
            await self._taint(node, taints)
        standing = self._taints.since(node, self._world.now())
        if standing:
            await self._evict(node, standing)

    async def _silence(self, node: Node, now: str) -> Node:
        conditions = unknown_conditions(node, now)
        if not conditions:
            return node
        name = node.metadata.name
        log.warning("node %s is silent", name)
        node = await self._connection.patch(
            NODE,
            name,
            {"metadata": {"uid": node.metadata.uid}, "status": {"conditions": conditions}},
            how=Patch.STRATEGIC,
            subresource="status",
            model=Node,
        )
        message = f"Node {name} status is now: NodeNotReady"
        self._recorder.record(node, "NodeNotReady", message, kind=NODE)
        for pod in list(self._pods.get(name, {}).values()):
            if pod.ready:
                await self._patch_pod(pod, _not_ready(now))
        return node

    async def _taint(self, node: Node, taints: list[Taint]) -> None:
        """The list is written whole, so it is guarded by the version it was read at."""
        guard = {"resourceVersion": node.metadata.resource_version}
        written = [msgspec.to_builtins(taint) for taint in taints]
        await self._connection.patch(
            NODE, node.metadata.name, {"metadata": guard, "spec": {"taints": written}}
        )

    async def _evict(self, node: Node, standing: list[tuple[Taint, float]]) -> None:
        now = self._world.now()
        for pod in list(self._pods.get(node.metadata.name, {}).values()):
            if pod.terminal or pod.metadata.deleting:
                continue
            due = evicted_at(pod, standing)
            if due is not None and due <= now:
                message = f"Marking for deletion Pod {pod.metadata.namespace}/{pod.metadata.name}"
                self._recorder.record(pod, "TaintManagerEviction", message, kind=POD)
                reason = (
                    "DeletionByTaintManager",
                    "Taint manager: deleting due to NoExecute taint",
                )
                await self._patch_pod(pod, _disrupted(*reason, rfc3339(now)))
                await self._delete(pod, grace=None)

    async def _clear_missing(self, name: str) -> None:
        """Pods of a node that is no more have nobody who could end them."""
        since = self._missing.setdefault(name, self._world.monotonic())
        if self._world.monotonic() - since < self._orphan_grace:
            return
        try:
            await self._connection.get(NODE, name)
        except NotFound:
            log.info("node %s is gone: its pods are removed", name)
        else:
            return
        now = rfc3339(self._world.now())
        for pod in list(self._pods.get(name, {}).values()):
            if not pod.terminal:
                change = _disrupted("DeletionByPodGC", "PodGC: node no longer exists", now)
                await self._patch_pod(pod, {**change, "phase": "Failed"})
            await self._delete(pod, grace=0)

    async def _patch_pod(self, pod: Pod, status: dict[str, Any]) -> None:
        try:
            await self._connection.patch(
                POD,
                pod.metadata.name,
                {"metadata": {"uid": pod.metadata.uid}, "status": status},
                pod.metadata.namespace,
                how=Patch.STRATEGIC,
                subresource="status",
            )
        except (NotFound, Conflict):
            log.debug("pod %s is gone already", pod.metadata.uid)

    async def _delete(self, pod: Pod, grace: int | None) -> None:
        try:
            await self._connection.delete(
                POD, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid, grace=grace
            )
        except (NotFound, Conflict):
            log.debug("pod %s is gone already", pod.metadata.uid)


def _heartbeat(node: Node) -> str:
    for condition in node.status.conditions:
        if condition.type == "Ready":
            return condition.last_heartbeat_time or ""
    return ""


def _not_ready(now: str) -> dict[str, Any]:
    return {
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "NodeNotReady",
                "message": "the node of this pod fell silent",
                "lastTransitionTime": now,
            }
        ]
    }


def _disrupted(reason: str, message: str, now: str) -> dict[str, Any]:
    return {
        "conditions": [
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": now,
            }
        ]
    }
