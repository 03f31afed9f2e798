"""One pod's bind, until its outcome is known.

A bind carries the pod's uid and the resourceVersion that the decision was made on. An answer that
leaves a doubt (none at all, 5xx, 409) is settled by reading the pod back, never by guessing: a
lost answer may belong to a bind that happened.

A bind that is given up must not happen later either: a request may still be on its way. Writing
the pod's condition moves its resourceVersion, and with that voids every bind sent before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from posse.engine.decisions import Seat
from posse.kube.backoff import Backoff
from posse.kube.connection import Connection, Patch
from posse.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
)
from posse.objects.kinds import POD
from posse.objects.pods import Pod
from posse.objects.times import rfc3339
from posse.world import World

ATTEMPTS = 6
NOT_BOUND = "BindFailed"


class Bound(msgspec.Struct, frozen=True):
    """The pod has the node that it was given."""


class Gone(msgspec.Struct, frozen=True):
    """The pod does not exist any more."""


class Otherwise(msgspec.Struct, frozen=True):
    """The pod is no longer what was decided on: bound elsewhere, being deleted, or changed."""

    pod: Pod


class Denied(msgspec.Struct, frozen=True):
    """The API server will not have it, and the pod surely has no node."""

    why: str


Outcome = Bound | Gone | Otherwise | Denied

BOUND = Bound()
GONE = Gone()

# Answers after which it is still open whether the pod was bound, or whether it can be.
_DOUBTFUL = (NotFound, Conflict, AlreadyExists, ServerError, TooManyRequests)


class Binder:
    def __init__(
        self, connection: Connection, world: World, known: Callable[[str], Pod | None]
    ) -> None:
        self._connection = connection
        self._world = world
        self._known = known

    async def bind(self, seat: Seat) -> Outcome:
        namespace, _, name = seat.pod.partition("/")
        pod = self._known(seat.uid)
        if pod is None:
            return GONE
        if pod.spec.node_name or pod.metadata.deleting:
            return _outcome(pod, seat)
        decided_on = pod
        backoff = Backoff(self._world, most=2.0)
        attempt = 0
        while True:
            attempt += 1
            try:
                await self._connection.bind(
                    name,
                    namespace,
                    seat.node,
                    uid=seat.uid,
                    resource_version=pod.metadata.resource_version,
                )
            except ApiError as error:
                if not isinstance(error, _DOUBTFUL):
                    return Denied(str(error))
                why, stale = str(error), isinstance(error, Conflict) and attempt == 1
            except KubeError as error:
                why, stale = str(error), False
            else:
                return BOUND
            if not stale:
                await asyncio.sleep(backoff.pause())
            found = await self._read_back(name, namespace, seat, decided_on)
            if not isinstance(found, Pod):
                return found
            pod = found
            if attempt >= ATTEMPTS:
                outcome = await self._give_up(pod, seat, why)
                if outcome is not None:
                    return outcome

    async def _read_back(
        self, name: str, namespace: str, seat: Seat, decided_on: Pod
    ) -> Outcome | Pod:
        """What became of it; the pod itself when it is still as it was, and may be tried again."""
        backoff = Backoff(self._world)
        while True:
            try:
                pod = await self._connection.get(POD, name, namespace, model=Pod)
            except NotFound:
                return GONE
            except KubeError:
                await asyncio.sleep(backoff.pause())
                continue
            if pod.metadata.uid != seat.uid:
                return GONE
            if pod.spec.node_name or pod.metadata.deleting or not _same(pod, decided_on):
                return _outcome(pod, seat)
            return pod

    async def _give_up(self, pod: Pod, seat: Seat, why: str) -> Outcome | None:
        """Denied once no bind sent so far can still succeed; None when that is not certain."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": NOT_BOUND,
            "message": f"could not be bound to {seat.node}: {why}",
            "lastProbeTime": rfc3339(self._world.now()),
        }
        try:
            left = await self._connection.patch(
                POD,
                pod.metadata.name,
                {"metadata": {"uid": seat.uid}, "status": {"conditions": [condition]}},
                pod.metadata.namespace,
                how=Patch.STRATEGIC,
                subresource="status",
                model=Pod,
            )
        except KubeError:
            return None
        if left.spec.node_name:
            return _outcome(left, seat)
        if left.metadata.resource_version == pod.metadata.resource_version:
            return None
        return Denied(why)


def _outcome(pod: Pod, seat: Seat) -> Outcome:
    return BOUND if pod.spec.node_name == seat.node else Otherwise(pod)


def _same(pod: Pod, decided_on: Pod) -> bool:
    """Whether everything that the decision rested on still stands."""
    return (
        pod.spec == decided_on.spec
        and pod.metadata.annotations == decided_on.metadata.annotations
        and pod.metadata.labels == decided_on.metadata.labels
    )
