"""Ends the victims of a decision, all of them or none.

Nothing is written before every eviction was tried as a dry run: a budget that refuses one victim
spares them all. Then what is kept for whom they end is written on its PodGroup, and on each
victim's that it was one, so that a successor knows; only then are pods marked as disrupted by the
scheduler, which their controllers must not count as a failure, and evicted.

From the first eviction on there is no way back: half a gang is no use to anybody. A budget that
refuses then, because somebody else spent it meanwhile, is asked again for as long as the room is
kept, and never passed over; whoever is left by then stays, and is told so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import msgspec

from posse.engine.decisions import Evict
from posse.kube.backoff import Backoff
from posse.kube.connection import Connection
from posse.kube.errors import (
    ApiError,
    Conflict,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
)
from posse.kube.lulls import Lull
from posse.objects import keys
from posse.objects.groups import PodGroup
from posse.objects.kinds import POD
from posse.objects.pods import Pod
from posse.scheduler.disrupting import mark_disrupted
from posse.scheduler.observing import Observer
from posse.scheduler.reading.claims import is_alone
from posse.scheduler.reading.groups import GroupTerms
from posse.scheduler.reading.keeps import write_keeps
from posse.scheduler.verifying import Stale, annotate, read_live
from posse.world import World

_log = logging.getLogger(__name__)

T = TypeVar("T")

REASON = "PreemptionByScheduler"
GIVEN_UP = "PreemptionGivenUp"
# As what can wait knows them.
_EVICTIONS = "evictions"
_ATTEMPTS = 3
# Answers that may be other ones the next time.
_PASSING = (Conflict, TooManyRequests, ServerError)


class Eviction(msgspec.Struct, frozen=True):
    """A decision, and what was known of the gangs concerned when it was made."""

    decision: Evict
    terms: GroupTerms | None = None
    # Of the victims, in their order.
    victims: tuple[GroupTerms | None, ...] = ()


class Outbox(Protocol):
    """Where it is told what really happened."""

    def refute(self, uids: Sequence[str]) -> None: ...

    def group(self, group: PodGroup) -> None: ...

    def abandoned(self, gang: str, why: str, awaited: int | None) -> None: ...

    def failed(self, gang: str, why: str, uids: Sequence[str], *, begun: bool) -> None: ...

    def evicted(self, decision: Evict, left: Sequence[str], why: str) -> None:
        """The victims end, but for those `left`."""
        ...


class _Refused(Exception):
    pass


class Evictor:
    def __init__(
        self,
        connection: Connection,
        world: World,
        outbox: Outbox,
        observer: Observer,
        *,
        lull: Lull | None = None,
        in_flight: int,
    ) -> None:
        self._connection = connection
        self._world = world
        self._outbox = outbox
        self._observer = observer
        self._lull = lull or Lull()
        self._asking = 0
        self._slots = asyncio.Semaphore(in_flight)
        self._orders: asyncio.Queue[Eviction] = asyncio.Queue()

    def submit(self, order: Eviction) -> None:
        self._orders.put_nowait(order)

    async def run(self) -> None:
        """Each decision takes its own time: one that waits for a budget holds up nobody."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                order = await self._orders.get()
                tasks.create_task(self._carry_out(order))

    async def _carry_out(self, order: Eviction) -> None:
        decision = order.decision
        pods = [pod for victim in decision.victims for pod in victim.pods]
        uids = [uid for uid, _ in pods]
        try:
            with self._urgently():
                await self._prepare(order, pods)
        except Stale as stale:
            self._outbox.refute(uids)
            self._outbox.abandoned(decision.gang, str(stale), stale.awaited)
            return
        except (_Refused, KubeError) as error:
            self._outbox.failed(
                decision.gang, f"nobody was ended for it: {error}", uids, begun=False
            )
            return
        why_of = {uid: victim.why for victim in decision.victims for uid, _ in victim.pods}
        until = self._world.now() if decision.keeps.until is None else decision.keeps.until

        async def end(pod: tuple[str, str]) -> str:
            return await self._end(*pod, why_of[pod[0]], until)

        failures = await self._each(end, pods)
        left = [uid for uid, failure in zip(uids, failures, strict=True) if failure]
        why = next((failure for failure in failures if failure), "")
        if left:
            _log.warning("%s: %d of its victims stay: %s", decision.gang, len(left), why)
            self._outbox.refute(left)
        self._outbox.evicted(decision, left, why)

    # -- before anybody ends -----------------------------------------------------------------

    async def _prepare(self, order: Eviction, pods: Sequence[tuple[str, str]]) -> None:
        decision, decided_on = order.decision, order.terms
        written = not is_alone(decision.gang) and not (decided_on is not None and decided_on.bare)
        if written:
            if decided_on is None:
                raise Stale("its PodGroup is gone")
            await read_live(self._connection, decision.gang, decided_on)
        refusals = await self._each(self._rehearse, pods)
        for (_, name), refusal in zip(pods, refusals, strict=True):
            if refusal:
                raise _Refused(f"{name} cannot be evicted: {refusal}")
        if written and decided_on is not None:
            keeps = {keys.KEEPS: write_keeps(decision.keeps)}
            group = await annotate(self._connection, decision.gang, decided_on, keeps)
            self._outbox.group(group)
        counting = [
            self._count(victim.gang, terms)
            for victim, terms in zip(decision.victims, order.victims, strict=True)
            if victim.whole and terms is not None and not terms.bare
        ]
        for failure in await asyncio.gather(*counting, return_exceptions=True):
            if failure is not None:
                raise failure

    async def _rehearse(self, pod: tuple[str, str]) -> str:
        """Why the pod would not be evicted now, or ""."""
        uid, full = pod
        namespace, _, name = full.partition("/")
        backoff = Backoff(self._world, first=0.1)
        failure = ""
        for _ in range(_ATTEMPTS):
            try:
                async with self._slots:
                    await self._connection.evict(name, namespace, uid=uid, dry_run=True)
            except KubeError as error:
                if await self._is_gone(namespace, name, uid, error):
                    return ""  # its room comes free in any case
                failure = str(error)
                await asyncio.sleep(backoff.pause())
            else:
                return ""
        return failure

    async def _count(self, gang: str, terms: GroupTerms) -> None:
        """Write on a victim's PodGroup that it was one, once more."""
        try:
            counted = {keys.EVICTIONS: str(terms.evictions + 1)}
            async with self._slots:
                group = await annotate(self._connection, gang, terms, counted)
            self._outbox.group(group)
        except (Stale, Conflict):
            _log.debug("%s: gone before it was ended", gang)

    # -- ending them -------------------------------------------------------------------------

    async def _end(self, uid: str, full: str, why: str, until: float) -> str:
        """Ends the pod; answers why it could not, or ""."""
        namespace, _, name = full.partition("/")
        backoff = Backoff(self._world, first=0.2, most=10.0)
        while True:
            try:
                with self._urgently():
                    async with self._slots:
                        await self._mark(namespace, name, uid, "True", REASON, why)
                        await self._connection.evict(name, namespace, uid=uid)
            except KubeError as error:
                if await self._is_gone(namespace, name, uid, error):
                    return ""
                failure = str(error)
                if isinstance(error, ApiError) and not isinstance(error, _PASSING):
                    break
            else:
                self._observer.evicted()
                return ""
            if self._world.now() >= until:
                break
            await asyncio.sleep(backoff.pause())
        await self._take_back(namespace, name, uid, failure)
        return f"{full} could not be evicted: {failure}"

    async def _is_gone(self, namespace: str, name: str, uid: str, error: KubeError) -> bool:
        """Whether that is what the error says. A conflict may say that another pod has the name, or
        only that somebody else wrote at the same time: who is still there has to end."""
        if not isinstance(error, Conflict):
            return isinstance(error, NotFound)
        try:
            async with self._slots:
                pod = await self._connection.get(POD, name, namespace, model=Pod)
        except KubeError as unread:
            return isinstance(unread, NotFound)
        return pod.metadata.uid != uid

    async def _take_back(self, namespace: str, name: str, uid: str, why: str) -> None:
        try:
            await self._mark(namespace, name, uid, "False", GIVEN_UP, why)
        except KubeError as error:
            _log.info("%s/%s stays marked as disrupted: %s", namespace, name, error)

    async def _mark(
        self, namespace: str, name: str, uid: str, status: str, reason: str, why: str
    ) -> None:
        await mark_disrupted(
            self._connection,
            self._world,
            namespace=namespace,
            name=name,
            uid=uid,
            reason=reason,
            why=why,
            status=status,
        )

    @contextmanager
    def _urgently(self) -> Iterator[None]:
        """What can wait lets this go first; while a budget is waited for, it need not."""
        self._asking += 1
        self._lull.end(_EVICTIONS)
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._lull.begin(_EVICTIONS)

    async def _each(
        self, do: Callable[[T], Coroutine[Any, Any, str]], items: Sequence[T]
    ) -> list[str]:
        async with asyncio.TaskGroup() as tasks:
            doing = [tasks.create_task(do(item)) for item in items]
        return [task.result() for task in doing]
