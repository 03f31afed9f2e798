"""Sees every write of a cluster on virtual time, and notes each one that breaks a promise.

It reads the journal alone and knows nothing of caches: whatever a service believed, what counts is
what was true in the store when the write was made. It allows what nobody can prevent: a bind that
crosses on its way with another's write made in the last `lag` seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from posse.local.apiserver.journal import Record
from posse.local.node.manifests import simulated_nodes
from posse.objects import keys, kinds
from posse.objects.meta import Key, from_raw
from posse.objects.pods import PodSpec
from posse.objects.quantity import base_units
from posse.objects.requests import pod_requests
from posse.objects.times import parse_time
from posse.scheduler.config import LEASE_NAME
from posse.virtual.cluster import VirtualCluster
from posse.virtual.faults import writer
from posse.virtual.world import virtual_world
from tests.cluster.backends import VirtualRide

Object = dict[str, Any]

_GROUPS = tuple(kind.qualified for kind in kinds.POD_GROUPS)


class Witness:
    def __init__(self, running: VirtualCluster, *, lag: float = 2.0, patience: float = 180.0):
        self.violations: list[str] = []
        self.lag = lag
        self.patience = patience
        """Seconds that a gang may be half-bound when nothing goes wrong any more."""
        self.calm_since: float | None = 0.0
        self._world = running.world
        self._pods: dict[Key, Object] = {}
        self._nodes: dict[str, Object] = {}
        self._groups: dict[str, dict[Key, Object]] = {name: {} for name in _GROUPS}
        self._queues: dict[str, Object] = {}
        self._bound_by: dict[str, float] = {}  # queue -> when what it may use last changed
        self._lease: Object = {}
        self._since: dict[str, float] = {}  # uid -> when somebody else put that pod on its node
        self._lost: dict[Key, float] = {}  # gang -> when its group last ceased to be usable
        self._changed: dict[Key, float] = {}  # gang -> when its group last changed
        self._shrunk: dict[str, float] = {}  # node -> when it last changed what it offers
        self._ran: dict[Key, bool] = {}
        self._half: dict[Key, float] = {}
        for record in running.journal.records:
            self._take(record, "")
        running.journal.witnesses.append(self.see)
        running.overhearing.append(self.hear)

    def see(self, record: Record) -> None:
        self._take(record, writer.get())

    def hear(self, service: str, method: str, path: str) -> None:
        """A write as it leaves a service: a scheduler must hold the lease then."""
        if not service.startswith("scheduler") or "/leases" in path:
            return
        spec = self._lease.get("spec") or {}
        holder = spec.get("holderIdentity")
        until = parse_time(spec.get("renewTime") or "1970-01-01T00:00:00Z")
        until += spec.get("leaseDurationSeconds") or 0
        if holder != service or self._world.now() > until:
            self._object(f"{service} sends {method} {path} while the lease is {holder}'s")

    def trouble(self) -> None:
        """From now on faults happen, and gangs may stay half-bound."""
        self.calm_since = None

    def calm(self) -> None:
        self.calm_since = self._world.monotonic()

    def settled(self) -> list[str]:
        """Every violation, those counted that have only lasted too long."""
        self._look_at_the_half_bound()
        return self.violations

    # What the cluster is.

    def _take(self, record: Record, who: str) -> None:
        key = (record.namespace, record.name)
        obj: Object | None = None if record.value is None else msgspec.json.decode(record.value)
        if record.resource == kinds.POD.qualified:
            self._pod(key, self._pods.get(key), obj, who)
        elif record.resource == kinds.NODE.qualified:
            self._node(record.name, obj)
        elif record.resource in self._groups:
            self._group(record.resource, key, obj)
        elif record.resource == kinds.QUEUE.qualified:
            self._queue(record.name, obj)
        elif record.resource == kinds.LEASE.qualified and record.name == LEASE_NAME:
            self._lease = obj or {}
        self._look_at_the_half_bound()

    def _pod(self, key: Key, old: Object | None, new: Object | None, who: str) -> None:
        if old is not None and new is not None and _uid(old) == _uid(new):
            if _node_of(old) and _node_of(old) != _node_of(new):
                self._object(f"pod {key[1]} moved from {_node_of(old)} to {_node_of(new)}")
            bound = bool(_node_of(new)) and not _node_of(old)
        else:
            bound = new is not None and bool(_node_of(new))
            old = None
        if new is None:
            self._pods.pop(key, None)
        else:
            self._pods[key] = new
        if bound and new is not None:
            if old is None or not who.startswith("scheduler"):
                self._since[_uid(new)] = self._world.monotonic()
            else:
                self._judge(new)
        for pod in (old, new):
            if pod is not None and (gang := _gang_of(pod)) is not None:
                self._count(gang)

    def _node(self, name: str, new: Object | None) -> None:
        old = self._nodes.get(name)
        if old is not None and (new is None or _offers(new) != _offers(old)):
            self._shrunk[name] = self._world.monotonic()
        if new is None:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = new

    def _group(self, resource: str, key: Key, new: Object | None) -> None:
        old = self._groups[resource].get(key)
        if new is None:
            self._groups[resource].pop(key, None)
        else:
            self._groups[resource][key] = new
        if new is None or _deleting(new):
            self._lost.setdefault(key, self._world.monotonic())
        else:
            self._lost.pop(key, None)
        if (old or {}).get("spec") != (new or {}).get("spec"):
            self._changed[key] = self._world.monotonic()
        self._count(key)

    def _queue(self, name: str, new: Object | None) -> None:
        if _capability(new) != _capability(self._queues.get(name)):
            self._bound_by[name] = self._world.monotonic()
        if new is None:
            self._queues.pop(name, None)
        else:
            self._queues[name] = new

    # What must not be.

    def _judge(self, pod: Object) -> None:
        """A pod that a scheduler has just bound."""
        name, node = pod["metadata"]["name"], _node_of(pod)
        if _deleting(pod):
            self._object(f"{name} was bound while it was being deleted")
        if pod["spec"].get("schedulingGates") or pod["spec"].get("resourceClaims"):
            self._object(f"{name} was bound with gates or claims")
        asked = _requests(pod)
        for resource, short in self._shortages(node):
            if resource not in asked:
                continue  # a node that lost its devices under others still takes pods without
            self._object(f"{name} overcommits {node}: {resource} by {short}")
        gang = _gang_of(pod)
        if gang is None:
            return
        groups = [by_key[gang] for by_key in self._groups.values() if gang in by_key]
        if not any(not _deleting(group) for group in groups):
            lost = self._lost.get(gang)
            if lost is None or self._world.monotonic() - lost > self.lag:
                self._object(f"{name} was bound, and its PodGroup {gang[1]} is not there")
            return
        for group in groups:
            self._look_at_the_quota(
                name, asked, (group.get("spec") or {}).get("queue") or "default"
            )
        there = sum(1 for member in self._members(gang) if not _deleting(member))
        changed = self._world.monotonic() - self._changed.get(gang, 0.0)
        if changed > self.lag and there < self._minimum(gang) and not self._ran.get(gang):
            self._object(f"{name} was bound with {there} of {self._minimum(gang)} members there")

    def _look_at_the_quota(self, name: str, asked: Mapping[str, int], queue: str) -> None:
        """Of what the pod asks for, its queue may not have more in use than it is allowed."""
        allowed = _capability(self._queues.get(queue))
        now = self._world.monotonic()
        if not allowed or now - self._bound_by.get(queue, -1e9) <= self.lag:
            return
        used: dict[str, int] = {}
        for pod in self._pods.values():
            gang = _gang_of(pod)
            if gang is None or not _node_of(pod) or _ended(pod):
                continue
            if now - self._since.get(_uid(pod), -1e9) <= self.lag:
                continue
            groups = [by_key[gang] for by_key in self._groups.values() if gang in by_key]
            if any((group.get("spec") or {}).get("queue") == queue for group in groups):
                for resource, amount in _requests(pod).items():
                    used[resource] = used.get(resource, 0) + amount
        for resource, most in allowed.items():
            if resource in asked and used.get(resource, 0) > most:
                self._object(f"{name}: queue {queue} uses {used[resource]} {resource} of {most}")

    def _shortages(self, node: str) -> Iterator[tuple[str, int]]:
        """What the node has too little of, by more than somebody else's pods of just now take."""
        now = self._world.monotonic()
        if node not in self._nodes or now - self._shrunk.get(node, -1e9) <= self.lag:
            return
        used: dict[str, int] = {}
        for pod in self._pods.values():
            if _node_of(pod) != node or _ended(pod):
                continue
            if now - self._since.get(_uid(pod), -1e9) <= self.lag:
                continue
            for resource, amount in _requests(pod).items():
                used[resource] = used.get(resource, 0) + amount
        offered = _offers(self._nodes[node])
        for resource, amount in sorted(used.items()):
            if amount > offered.get(resource, 0):
                yield resource, amount - offered.get(resource, 0)

    def _count(self, gang: Key) -> None:
        """Whether the gang has run whole, is half-bound, or neither, from now on."""
        seated = succeeded = runs = 0
        recreated = True
        for pod in self._members(gang):
            phase = (pod.get("status") or {}).get("phase")
            if phase == "Succeeded":
                succeeded += 1
            elif phase != "Failed":
                seated += bool(_node_of(pod)) and not _deleting(pod)
                runs += phase == "Running"
                recreated = recreated and _controlled(pod)
        if not (seated or succeeded):
            self._ran.pop(gang, None)
        least = self._minimum(gang)
        if seated + succeeded >= least and (succeeded or runs >= least):
            self._ran[gang] = True
        half = 0 < seated < least - succeeded and recreated and not self._ran.get(gang)
        if half and any(gang in by_key for by_key in self._groups.values()):
            self._half.setdefault(gang, self._world.monotonic())
        else:
            self._half.pop(gang, None)

    def _look_at_the_half_bound(self) -> None:
        if self.calm_since is None:
            return
        now = self._world.monotonic()
        for gang, since in list(self._half.items()):
            if now - max(since, self.calm_since) > self.patience:
                seated = [_node_of(p) for p in self._members(gang)]
                self._object(f"{gang[1]} is half-bound since {since:.1f}: {seated}")
                del self._half[gang]

    def _members(self, gang: Key) -> list[Object]:
        return [pod for pod in self._pods.values() if _gang_of(pod) == gang]

    def _minimum(self, gang: Key) -> int:
        for by_key in self._groups.values():
            if gang in by_key:
                return max(1, (by_key[gang].get("spec") or {}).get("minMember") or 1)
        return 1

    def _object(self, what: str) -> None:
        self.violations.append(f"{self._world.monotonic():.3f}s: {what}")


def _uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def _deleting(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def _node_of(pod: Object) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _ended(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _controlled(pod: Object) -> bool:
    return any(owner.get("controller") for owner in pod["metadata"].get("ownerReferences") or ())


def _gang_of(pod: Object) -> Key | None:
    annotations = pod["metadata"].get("annotations") or {}
    if annotations.get(keys.GANG) == "false":
        return None
    named = annotations.get(keys.GROUP_NAME) or annotations.get(keys.VOLCANO_GROUP_NAME)
    return (pod["metadata"]["namespace"], named) if named else None


def _requests(pod: Object) -> dict[str, int]:
    return pod_requests(from_raw(pod["spec"], PodSpec)) | {"pods": 1}


def _capability(queue: Object | None) -> dict[str, int]:
    allowed = ((queue or {}).get("spec") or {}).get("capability") or {}
    return {name: base_units(name, amount, name) for name, amount in allowed.items()}


def _offers(node: Object) -> dict[str, int]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    return {name: base_units(name, amount, name) for name, amount in allocatable.items()}


@asynccontextmanager
async def open_cluster(
    nodes: int = 4, *, gpus: int = 2, seed: int = 0, agents: int = 1, **capacity: Any
) -> AsyncIterator[VirtualRide]:
    made = simulated_nodes(nodes, gpus=gpus, **capacity)
    running = VirtualRide(virtual_world(seed), made, agents=agents)
    async with running:

        async def ready() -> bool:
            return len((await running.connection.list(kinds.NODE)).items) == nodes

        await running.until(ready, "every node is there")
        await asyncio.sleep(1)
        yield running


@asynccontextmanager
async def witnessed(nodes: int = 4, *, lag: float = 2.0, **rest: Any) -> AsyncIterator[VirtualRide]:
    """A cluster in which no promise may be broken from beginning to end."""
    async with open_cluster(nodes, **rest) as running:
        witness = Witness(running, lag=lag)
        yield running
        assert witness.settled() == []
