"""Letting go of a half-bound gang's pods, so that whoever made them makes them anew.

A bind cannot be undone, so a release ends the pod: first it is marked as disrupted by the
scheduler, which its controller must not count as a failure; then it is evicted, and deleted where
eviction is not to be had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from posse.kube.backoff import Backoff
from posse.kube.connection import Connection
from posse.kube.errors import ApiError, KubeError, NotFound, TooManyRequests
from posse.objects.kinds import POD
from posse.objects.pods import Pod
from posse.scheduler.disrupting import mark_disrupted
from posse.world import World

ATTEMPTS = 5
REASON = "GangReleased"


class Releaser:
    def __init__(
        self, connection: Connection, world: World, known: Callable[[str], Pod | None]
    ) -> None:
        self._connection = connection
        self._world = world
        self._known = known

    async def release(self, uid: str, pod_name: str, why: str) -> str:
        """Ends the pod; answers why it could not, or ""."""
        namespace, _, name = pod_name.partition("/")
        pod = self._known(uid)
        if pod is None or pod.metadata.deleting:
            return ""
        if pod.metadata.controller is None:
            return f"nobody would recreate {pod_name}"
        backoff = Backoff(self._world, first=0.2)
        failure = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await mark_disrupted(
                    self._connection,
                    self._world,
                    namespace=namespace,
                    name=name,
                    uid=uid,
                    reason=REASON,
                    why=why,
                )
                await self._end(namespace, name, uid, patient=attempt < ATTEMPTS)
            except NotFound:
                return ""
            except KubeError as error:
                failure = str(error)
                await asyncio.sleep(backoff.pause())
            else:
                return ""
        return failure

    async def _end(self, namespace: str, name: str, uid: str, *, patient: bool) -> None:
        try:
            await self._connection.evict(name, namespace, uid=uid)
        except TooManyRequests:
            if patient:
                raise
            await self._connection.delete(POD, name, namespace, uid=uid)
        except ApiError:
            # No such subresource, or more budgets than it can reckon with.
            await self._connection.delete(POD, name, namespace, uid=uid)
