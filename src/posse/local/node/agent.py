"""The agent: pods bound to its nodes are admitted, run, reported and removed.

It keeps nothing that the objects do not say. After a restart, running pods are found running, and
what the earlier agent had begun is gone on with. Every pod is worked on by one worker at a time; a
pod that trips the code is left with a logged error and the others go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from posse.controllers.runtime import WorkQueue
from posse.kube.cache import Cache, Change
from posse.kube.connection import Connection, Patch
from posse.kube.errors import Conflict, KubeError, NotFound
from posse.kube.events import Recorder
from posse.local.node.admission import (
    AFFINITY,
    Ledger,
    Rejection,
    judged,
    ports_of,
    requests_of,
    unwanted,
)
from posse.local.node.lifecycle import ending, next_step
from posse.local.node.lives import ContainerLife, Hindrance, Life, Outcome, Running, begin
from posse.local.node.manifests import allocatable_of
from posse.local.node.runtime import Exit, NotYet, PodRuntime
from posse.local.node.statuses import rejected_status, shows, status_of
from posse.objects.kinds import NODE, POD
from posse.objects.meta import from_raw
from posse.objects.nodes import Node
from posse.objects.quantity import QuantityError
from posse.world import World

log = logging.getLogger(__name__)

Manifest = dict[str, Any]

WORKERS = 32


class Agent:
    """Runs the pods of `nodes`. `registered` nodes are somebody else's business (`Registrar`)."""

    def __init__(
        self,
        connection: Connection,
        world: World,
        nodes: Sequence[Manifest],
        runtime: PodRuntime,
        node_cache: Cache[Manifest],
        recorder: Recorder,
    ) -> None:
        self._connection = connection
        self._world = world
        self._runtime = runtime
        self._recorder = recorder
        self._node_cache = node_cache
        self._ledgers = {node["metadata"]["name"]: Ledger(allocatable_of(node)) for node in nodes}
        self._lives: dict[str, Life] = {}
        self._early: dict[str, Manifest] | None = {}
        self._queue: WorkQueue[str] = WorkQueue(world)
        self._cache: Cache[Manifest] = Cache(
            connection, POD, dict[str, Any], fields="spec.nodeName!=", on_change=self._changed
        )
        runtime.attach(self)

    # What the kubelet's API shows.

    def pods(self) -> list[Manifest]:
        return [life.pod for _, life in sorted(self._lives.items())]

    def pod(self, namespace: str, name: str) -> Manifest | None:
        pod = self._cache.get(namespace, name)
        return pod if pod is not None and self._ours(pod) else None

    @property
    def runtime(self) -> PodRuntime:
        return self._runtime

    # The loop.

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._cache.run())
                await self._cache.synced()
                await self._node_cache.synced()
                self._begin()
                await self._runtime.recover(sorted(self._lives))
                for _ in range(WORKERS):
                    tasks.create_task(self._work())
        finally:
            self._queue.close()
            self._runtime.close()

    async def _work(self) -> None:
        while True:
            uid = await self._queue.take()
            try:
                wake = await self._advance(uid)
            except KubeError as error:
                delay = self._queue.retry(uid)
                log.warning("pod %s: %s; again in %.1fs", uid, error, delay)
            except Exception:  # one pod that trips the code must not stop the others
                self._queue.retry(uid)
                log.exception("pod %s", uid)
            else:
                self._queue.forget(uid)
                if wake is not None:
                    self._queue.add_after(uid, wake)
            finally:
                self._queue.done(uid)

    # What comes in.

    def exited(self, uid: str, container: str, attempt: int, how: Exit) -> None:
        life = self._lives.get(uid)
        known = life.containers.get(container) if life is not None else None
        if known is None or known.attempt != attempt:
            return
        known.ended(self._world.now(), how)
        self._queue.add(uid)

    def ready(self, uid: str, container: str, attempt: int, ready: bool) -> None:
        life = self._lives.get(uid)
        known = life.containers.get(container) if life is not None else None
        if known is not None and known.attempt == attempt and known.ready != ready:
            known.ready = ready
            self._queue.add(uid)

    def bound(self) -> Iterable[Manifest]:
        return self._cache.objects.values()

    def warn(self, pod: Manifest, reason: str, message: str) -> None:
        self._recorder.record(pod, reason, message, warning=True, kind=POD)

    def _ours(self, pod: Manifest) -> bool:
        return (pod.get("spec") or {}).get("nodeName") in self._ledgers

    def _changed(self, change: Change[Manifest]) -> None:
        self._runtime.pods_changed()
        pod = change.new
        if pod is None:
            if change.old is not None and self._ours(change.old):
                self._forget(str(change.old["metadata"]["uid"]))
        elif self._ours(pod):
            uid = str(pod["metadata"]["uid"])
            if self._early is not None:
                self._early[uid] = pod
            else:
                self._meet(uid, pod)

    def _begin(self) -> None:
        """Take over what was there: what runs keeps its room, the others in order of binding."""
        early, self._early = self._early or {}, None
        for uid, pod in sorted(early.items(), key=_binding_order):
            self._meet(uid, pod)

    def _forget(self, uid: str) -> None:
        if self._early is not None:
            self._early.pop(uid, None)
        life = self._lives.pop(uid, None)
        if life is not None:
            self._ledgers[life.node].release(uid)
            self._runtime.forget(uid)

    def _meet(self, uid: str, pod: Manifest) -> None:
        """A pod of ours, new or changed. Admission happens here, in the order of arrival."""
        life = self._lives.get(uid)
        if life is not None:
            life.pod = pod
            if life.posted_version == pod["metadata"].get("resourceVersion"):
                life.posted = None
            self._queue.add(uid)
            return
        try:
            life = begin(pod, self._world.now())
            requests = requests_of(life.spec)
            rejection = self._rejection(life)
        except (msgspec.ValidationError, QuantityError) as error:
            self.warn(pod, "MalformedPod", f"the node cannot read this pod: {error}")
            return
        life.scheme = self._runtime.scheme
        self._lives[uid] = life
        self._queue.add(uid)
        if life.outcome is not None:
            return
        ledger = self._ledgers[life.node]
        life.doubted = rejection is not None and rejection.reason == AFFINITY
        if rejection is not None and not life.doubted:
            self._reject(life, rejection)
            return
        ledger.take(uid, requests, ports_of(life.spec))
        life.ip = self._runtime.address(pod, life.node)

    def _reject(self, life: Life, rejection: Rejection) -> None:
        message = f"Pod was rejected: {rejection.message}"
        life.outcome = Outcome("Failed", rejection.reason, message)
        life.containers.clear()
        self._ledgers[life.node].release(life.uid)
        self.warn(life.pod, rejection.reason, rejection.message)

    def _rejection(self, life: Life) -> Rejection | None:
        if life.outcome is not None or life.resumed or life.deleting:
            return None
        raw = self._node_cache.get("", life.node)
        node = None if raw is None else from_raw(raw, Node)
        return judged(life.pod, life.spec, node, self._ledgers[life.node])

    async def _reconsider(self, life: Life) -> None:
        """Labels may have changed since the cached node: whoever bound the pod may know more."""
        node = from_raw(await self._connection.get(NODE, life.node), Node)
        life.doubted = False
        rejection = unwanted(life.spec, node)
        if rejection is not None:
            self._reject(life, rejection)

    # What is done about it.

    async def _advance(self, uid: str) -> float | None:
        """Bring one pod forward; the answer is when to look again."""
        life = self._lives.get(uid)
        if life is None:
            return None
        wake = None
        status = life.pod.get("status") or {}
        if life.outcome is None and status.get("phase") in ("Succeeded", "Failed"):
            # Somebody else has declared it over, and over is final.
            told = Outcome(status["phase"], status.get("reason") or "", status.get("message") or "")
            await self._end(life, told)
        if life.outcome is None and life.doubted and not life.deleting:
            await self._reconsider(life)
        if life.outcome is None:
            wake = await self._drive(life)
        if not life.removed:
            await self._post(life)
        if life.deleting and life.outcome is not None and not life.removed:
            await self._remove(life)
        return wake

    async def _drive(self, life: Life) -> float | None:
        if life.resumed:
            life.resumed = False
            for container in life.running():
                assert isinstance(container.state, Running)
                container.ready = await self._runtime.adopt(
                    life.pod, container.name, container.attempt, container.state.started_at
                )
        while not life.deleting:
            step = next_step(life, self._world.now())
            if step.outcome is not None:
                await self._end(life, step.outcome)
                return None
            if not step.start:
                return step.wake_in
            for name in step.start:
                await self._start(life, life.containers[name])
            # A container that ends at once is seen before its start is reported.
            await asyncio.sleep(0)
        await self._end(life, None)
        return None

    async def _start(self, life: Life, container: ContainerLife) -> None:
        try:
            ready = await self._runtime.start(life.pod, container.name, container.next_attempt)
        except NotYet as hindrance:
            until = self._world.now() + hindrance.again_in
            known, container.hindrance = (
                container.hindrance,
                Hindrance(hindrance.reason, hindrance.message, until),
            )
            if hindrance.warning and (known is None or known.message != hindrance.message):
                self.warn(life.pod, hindrance.reason, hindrance.message)
        else:
            container.started(self._world.now(), ready=ready)

    async def _end(self, life: Life, outcome: Outcome | None) -> None:
        """Stop what runs; without an outcome given, the containers' ends are the outcome."""
        grace = life.pod["metadata"].get("deletionGracePeriodSeconds")
        if grace is None:
            grace = life.spec.termination_grace_period_seconds
        await self._runtime.stop(life.uid, float(30 if grace is None else grace))
        life.outcome = outcome or ending(life)
        self._ledgers[life.node].release(life.uid)

    async def _post(self, life: Life) -> None:
        """Write the status if the API server's differs; nothing is written twice."""
        if life.outcome is not None and not life.containers:
            wanted = rejected_status(life, life.outcome)
        elif (life.pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return
        else:
            wanted = status_of(life, self._world.now())
        if shows(life.pod.get("status"), wanted) or life.posted == wanted:
            return
        metadata = life.pod["metadata"]
        patch = {"metadata": {"uid": life.uid}, "status": wanted}
        try:
            answer = await self._connection.patch(
                POD,
                metadata["name"],
                patch,
                metadata["namespace"],
                how=Patch.STRATEGIC,
                subresource="status",
            )
        except (NotFound, Conflict):
            # Gone, or another pod of that name: the cache will say so.
            log.debug("pod %s is not there any more", life.uid)
            return
        life.posted = wanted
        life.posted_version = answer["metadata"]["resourceVersion"]
        if life.pod["metadata"].get("resourceVersion") == life.posted_version:
            life.posted = None

    async def _remove(self, life: Life) -> None:
        """Nothing of the pod is left here: the object may go."""
        metadata = life.pod["metadata"]
        try:
            await self._connection.delete(
                POD, metadata["name"], metadata["namespace"], uid=life.uid, grace=0
            )
        except (NotFound, Conflict):
            log.debug("pod %s is gone already", life.uid)
        life.removed = True


def _binding_order(item: tuple[str, Manifest]) -> tuple[bool, str, int, str, str]:
    """Running ones first, then by the second of their binding, then by the last write.

    Nothing but its binding has been written to a pod that still waits for its node, so that where
    versions are numbers they tell the order within a second.
    """
    uid, pod = item
    status, metadata = pod.get("status") or {}, pod["metadata"]
    bound = next(
        (
            str(condition.get("lastTransitionTime") or "")
            for condition in status.get("conditions") or []
            if condition.get("type") == "PodScheduled"
        ),
        "",
    )
    waiting = status.get("phase") in (None, "", "Pending")
    version = str(metadata.get("resourceVersion") or "")
    written = int(version) if version.isdecimal() else 0
    return (waiting, bound, written, str(metadata.get("creationTimestamp") or ""), uid)
