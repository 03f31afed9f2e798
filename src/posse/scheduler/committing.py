"""Carries out decisions: gang by gang in the order of the plan, a few gangs at a time.

What is decided already counts in the view, so nothing here is in a hurry to be right: every doubt
is settled by reading, and whatever did not happen is refuted, for the next cycle to decide again.

The order within a gang is what makes a crash harmless: first the PodGroup is read live, then the
phase and the held seats that a successor would rely on are written, and only then are its pods
bound, all together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from posse.engine.decisions import Release, Seat, Start
from posse.engine.facts import Purpose
from posse.kube.connection import Connection
from posse.kube.errors import KubeError
from posse.kube.lulls import Lull
from posse.objects import keys
from posse.objects.groups import PodGroup
from posse.objects.pods import Pod
from posse.scheduler.binding import Binder, Bound, Denied, Gone, Otherwise, Outcome
from posse.scheduler.claiming import Claimer
from posse.scheduler.groupwriting import GroupWriter
from posse.scheduler.observing import Observer
from posse.scheduler.reading.claims import is_alone
from posse.scheduler.reading.groups import (
    INQUEUE,
    STARTED,
    GroupTerms,
    phase_of,
    spoken,
    write_holds,
)
from posse.scheduler.releasing import Releaser
from posse.scheduler.verifying import Stale, annotate, read_live, verify

_log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

# As what can wait knows them.
_BINDS = "binds"

Holds = tuple[tuple[str, str], ...]


class Order(msgspec.Struct, frozen=True):
    """A decision, and what was known of the gang when it was made."""

    decision: Start | Release
    terms: GroupTerms | None = None
    ran: bool = False
    # Its claims were seen to.
    claimed: bool = False


class Outbox(Protocol):
    """Where it is told what really happened."""

    def refute(self, uids: Sequence[str]) -> None:
        """Binds or releases that did not happen."""
        ...

    def fact(self, pod: Pod) -> None:
        """A pod turned out to be other than the cache has it."""
        ...

    def gone(self, uid: str) -> None: ...

    def group(self, group: PodGroup) -> None:
        """A PodGroup as it is after our own write."""
        ...

    def abandoned(self, gang: str, why: str, awaited: int | None) -> None:
        """Nothing was bound: what the decision was made on is not so any more.

        Where the view does not know it yet, `awaited` is the generation of the PodGroup that it
        has to see first, or None if no generation tells.
        """
        ...

    def errand(self, gang: str, what: str) -> None:
        """What is seen to before anybody is bound, which may take minutes; "" when it is over."""
        ...

    def shunned(self, gang: str, nodes: Sequence[str]) -> None:
        """Nodes where no volumes could be had for it: others are to be tried first."""
        ...

    def failed(self, gang: str, why: str, uids: Sequence[str], *, begun: bool) -> None:
        """The API server would not do it to these pods; others of the gang may be bound."""
        ...

    def started(self, gang: str, seats: Sequence[Seat]) -> None: ...

    def released(self, gang: str, why: str) -> None: ...

    def takes(self, seat: Seat) -> bool:
        """Whether the node of the seat may still have its pod."""
        ...


class Committer:
    def __init__(
        self,
        connection: Connection,
        binder: Binder,
        releaser: Releaser,
        outbox: Outbox,
        observer: Observer,
        *,
        claimer: Claimer | None = None,
        lull: Lull | None = None,
        gangs_in_flight: int,
        binds_in_flight: int,
    ) -> None:
        self._connection = connection
        self._groups = GroupWriter(connection)
        self._binder = binder
        self._releaser = releaser
        self._outbox = outbox
        self._observer = observer
        self._claimer = claimer
        self._lull = lull or Lull()
        self._working = 0
        self._gangs_in_flight = gangs_in_flight
        self._binds_in_flight = binds_in_flight
        self._slots = asyncio.Semaphore(binds_in_flight)
        self._orders: asyncio.Queue[Order] = asyncio.Queue()
        self._under_way: dict[str, list[Order]] = {}

    def submit(self, order: Order) -> None:
        """To be carried out after all earlier orders for the same gang."""
        behind = self._under_way.get(order.decision.gang)
        if behind is not None:
            behind.append(order)
            return
        self._under_way[order.decision.gang] = []
        self._enqueue(order)

    def _enqueue(self, order: Order) -> None:
        self._lull.end(_BINDS)
        self._orders.put_nowait(order)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._gangs_in_flight):
                workers.create_task(self._work(workers))

    async def _work(self, workers: asyncio.TaskGroup) -> None:
        while True:
            if self._orders.empty() and not self._working:
                self._lull.begin(_BINDS)
            order = await self._orders.get()
            if isinstance(order.decision, Start) and self._claims(order, order.decision):
                # It may take minutes; others go on meanwhile.
                workers.create_task(self._claim(order, order.decision))
                continue
            self._working += 1
            try:
                if isinstance(order.decision, Start):
                    await self._start(order.decision, order)
                else:
                    await self._release(order.decision)
            finally:
                self._working -= 1
            self._done(order)

    def _done(self, order: Order) -> None:
        behind = self._under_way[order.decision.gang]
        if behind:
            self._enqueue(behind.pop(0))
        else:
            del self._under_way[order.decision.gang]

    # Claims.

    def _claims(self, order: Order, start: Start) -> bool:
        """Whether it has claims to see to before anybody is bound."""
        return self._claimer is not None and not order.claimed and self._claimer.wants(start.seats)

    async def _claim(self, order: Order, start: Start) -> None:
        assert self._claimer is not None
        self._outbox.errand(start.gang, self._claimer.awaited(start.seats))
        failure = await self._claimer.claim(start.seats)
        self._outbox.errand(start.gang, "")
        if failure is None:
            self._enqueue(msgspec.structs.replace(order, claimed=True))
            return
        uids = [seat.uid for seat in start.seats]
        if failure.nodes:
            self._outbox.shunned(start.gang, failure.nodes)
        self._outbox.failed(start.gang, str(failure), uids, begun=False)
        self._done(order)

    # Starting.

    async def _start(self, start: Start, order: Order) -> None:
        holds = tuple((held.role, held.node) for held in start.holds)
        try:
            for seat in start.seats:
                if not self._outbox.takes(seat):
                    raise Stale(f"node {seat.node} does not take {seat.pod} any more", awaited=0)
            if not is_alone(start.gang):
                await self._prepare(start.gang, order, holds)
        except Stale as abandon:
            self._outbox.refute([seat.uid for seat in start.seats])
            self._outbox.abandoned(start.gang, str(abandon), abandon.awaited)
            return
        except KubeError as error:
            why = f"its PodGroup could not be read or written: {error}"
            self._outbox.failed(start.gang, why, [s.uid for s in start.seats], begun=False)
            return
        outcomes = await self._each(self._bind, start.seats)
        bound: list[Seat] = []
        denied: list[str] = []
        why = ""
        for seat, outcome in zip(start.seats, outcomes, strict=True):
            match outcome:
                case Bound():
                    bound.append(seat)
                case Gone():
                    self._outbox.gone(seat.uid)
                case Otherwise(pod=pod):
                    if not pod.spec.node_name:
                        self._outbox.refute([seat.uid])
                    self._outbox.fact(pod)
                case Denied():
                    why = why or f"{seat.pod} could not be bound to {seat.node}: {outcome.why}"
                    denied.append(seat.uid)
        if denied:
            self._outbox.failed(start.gang, why, denied, begun=bool(bound))
        elif bound:
            self._outbox.started(start.gang, bound)
            self._observer.started()
        if len(bound) == len(start.seats) and not is_alone(start.gang):
            await self._let_go_of_holds(start.gang, order, holds)

    async def _bind(self, seat: Seat) -> Outcome:
        self._observer.binding(seat.uid)
        outcome = await self._binder.bind(seat)
        self._observer.bind_ended(seat.uid, type(outcome).__name__.lower())
        return outcome

    async def _prepare(self, gang: str, order: Order, holds: Holds) -> None:
        """Makes sure that the PodGroup is the one decided on, and that it says what must outlive
        us, before the first bind."""
        decided_on = order.terms
        if decided_on is None:
            raise Stale("its PodGroup is gone")
        if decided_on.bare:
            return  # there is no object to read, or to write on
        namespace, _, name = gang.partition("/")
        group, now = await read_live(self._connection, gang, decided_on)
        if phase_of(group) in STARTED and not order.ran:
            # Its earlier run is over. Half-bound under the old phase, it would look like a running
            # gang that lost members.
            status = {"phase": spoken(INQUEUE, decided_on.kind)}
            group = await self._groups.status(
                decided_on.kind, name, namespace, decided_on.uid, status
            )
            self._outbox.group(group)
        missing = [hold for hold in holds if hold not in now.holds]
        if missing:
            # Seats given up by this decision stay written until its binds are through.
            await self._write_holds(gang, decided_on, (*now.holds, *missing))

    async def _write_holds(
        self, gang: str, decided_on: GroupTerms, holds: Holds, *, forget: bool = False
    ) -> None:
        """`forget`: what else was kept for the gang, up to its start, is no longer written."""
        annotations: dict[str, str | None] = {keys.HELD: write_holds(holds) if holds else None}
        if forget:
            annotations[keys.KEEPS] = None
        group = await annotate(self._connection, gang, decided_on, annotations)
        verify(group, decided_on)
        self._outbox.group(group)

    async def _let_go_of_holds(self, gang: str, order: Order, holds: Holds) -> None:
        """Seats that found their owners, or moved, are no longer written down.

        Left behind, they do no harm: a seat is held only while an announced member is missing.
        """
        decided_on = order.terms
        if decided_on is None or decided_on.bare:
            return
        kept = decided_on.keeps is not None and decided_on.keeps.purpose is not Purpose.REPAIR
        if not kept and all(hold in holds for hold in decided_on.holds):
            return
        try:
            await self._write_holds(gang, decided_on, holds, forget=kept)
        except (KubeError, Stale) as error:
            _log.info("%s: held seats stay written: %s", gang, error)

    async def _each(self, do: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
        """All at once, as far as there are slots; the first failure ends the others."""
        results: dict[int, R] = {}
        left = iter(enumerate(items))

        async def worker() -> None:
            for index, item in left:
                async with self._slots:
                    results[index] = await do(item)

        async with asyncio.TaskGroup() as workers:
            for _ in range(min(len(items), self._binds_in_flight)):
                workers.create_task(worker())
        return [results[index] for index in range(len(items))]

    # Releasing.

    async def _release(self, release: Release) -> None:
        async def let_go(pod: tuple[str, str]) -> str:
            failure = await self._releaser.release(*pod, release.why)
            if not failure:
                self._observer.evicted()
            return failure

        failures = await self._each(let_go, release.pods)
        failed = [
            (uid, f"{name} could not be released: {why}")
            for (uid, name), why in zip(release.pods, failures, strict=True)
            if why
        ]
        if failed:
            uids = [uid for uid, _ in failed]
            self._outbox.failed(release.gang, failed[0][1], uids, begun=True)
        else:
            self._outbox.released(release.gang, release.why)
            self._observer.released()
