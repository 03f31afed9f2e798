"""What became of decisions, on its way back to the view; and what follows from failures.

A gang whose decision failed is simply decided again, once. After that it stands back for longer
and longer, and others go on. If some of its pods are bound already, the seats that it was given
stay counted while it stands back: a gang that has begun does not lose its place. If that goes on
for too long, it is let go whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from posse.engine.decisions import Evict, Release, Seat
from posse.engine.policy import Policy
from posse.engine.resources import count
from posse.objects.groups import PodGroup
from posse.objects.kinds import POD
from posse.objects.pods import Pod
from posse.scheduler.committing import Order
from posse.scheduler.inbox import Inbox
from posse.scheduler.reading.claims import is_alone
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.quarantine import Records
from posse.scheduler.reading.reader import Reader
from posse.scheduler.reading.rebuffs import Rebuffs
from posse.scheduler.releasing import REASON as RELEASED
from posse.scheduler.standing import SCHEDULED
from posse.world import World

_log = logging.getLogger(__name__)

PREEMPTED = "Preempted"
PREEMPTS = "PreemptsOthers"

_STALE = 5.0
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
# So often nodes may turn a whole gang away, or its start be given up, before it stands back, too;
# the pause doubles so often.
_REBUFFS = 3
_ABANDONS = 3
_LONGER = 6
# When no pod of a controller has been turned away for so long, its next may go anywhere again.
_FORGIVEN = 600.0


class _Setback(msgspec.Struct):
    """Failures in a row."""

    since: float
    count: int = 0


class _Refusals(msgspec.Struct):
    """How many pods nodes had turned away when nobody of them sat, and how often that was."""

    seen: int = 0
    rounds: int = 0
    last: float = 0.0


class Outcomes:
    """The committer's Outbox."""

    def __init__(
        self,
        inbox: Inbox,
        reader: Reader,
        events: Records,
        world: World,
        policy: Policy,
        submit: Callable[[Order], None],
    ) -> None:
        self._inbox = inbox
        self._reader = reader
        self._events = events
        self._world = world
        self._policy = policy
        self._submit = submit
        self._setbacks: dict[str, _Setback] = {}
        self._refusals: dict[str, _Refusals] = {}
        # How often in a row a start was given up before anything was bound.
        self._abandons: dict[str, int] = {}

    def takes(self, seat: Seat) -> bool:
        return self._reader.takes(seat.node, seat.uid)

    def refute(self, uids: Sequence[str]) -> None:
        def apply() -> None:
            for uid in uids:
                self._reader.refute(uid)

        self._inbox.post(apply)

    def fact(self, pod: Pod) -> None:
        self._inbox.post(lambda: self._reader.fact(pod))

    def gone(self, uid: str) -> None:
        self._inbox.post(lambda: self._reader.gone(uid))

    def group(self, group: PodGroup) -> None:
        self._reader.wrote(group)
        self._inbox.wake()

    def abandoned(self, gang: str, why: str, awaited: int | None) -> None:
        """Nothing is decided about the gang until the cache has caught up, or has had the time.
        Where that does not help, it stands back for longer and longer, and says why."""
        _log.info("%s: not started: %s", gang, why)
        times = self._abandons[gang] = self._abandons.get(gang, 0) + 1
        pause = _STALE
        if times > _ABANDONS:
            awaited, pause = None, max(_STALE, self._pause(times - _ABANDONS - 1))
        self._inbox.post(lambda: self._withhold(gang, why, awaited, pause))

    def errand(self, gang: str, what: str) -> None:
        self._inbox.post(lambda: self._reader.errand(gang, what))

    def shunned(self, gang: str, nodes: Sequence[str]) -> None:
        self._inbox.post(lambda: self._reader.shun(gang, nodes))

    def failed(self, gang: str, why: str, uids: Sequence[str], *, begun: bool) -> None:
        _log.warning("%s: %s", gang, why)
        now = self._world.monotonic()
        setback = self._setbacks.setdefault(gang, _Setback(now))
        setback.count += 1
        if setback.count == 1:
            self.refute(uids)
            return
        pause = self._pause(setback.count - 2)
        muster = self._reader.musters.get(gang)
        begun = begun or (muster is not None and muster.seated > 0)
        if muster is None or not begun or now - setback.since >= self._policy.release_after:
            if muster is not None and muster.half_bound and muster.recreated:
                self._let_go(muster, why)
            self.refute(uids)
            self._inbox.post(lambda: self._withhold(gang, why, None, pause))
            return

        def again() -> None:
            muster.setback = ""
            self.refute(uids)

        muster.setback = why
        self._inbox.after(gang, pause, again)

    def looked_at(self, gang: str) -> None:
        """Whom nodes turn away again and again has been made anew each time, and would be without
        end: where nobody of it sits anywhere, it stands back for longer and longer."""
        muster = self._reader.musters.get(gang)
        if muster is None or not muster.rebuffs.count:
            self._refusals.pop(gang, None)
        elif muster.rebuffs.controller:
            self._heed(muster.rebuffs)
        elif not muster.seated and (pause := self._refused(gang, muster.rebuffs)):
            number = count(muster.rebuffs.count, "pod")
            why = f"nodes have turned {number} of it away, and are tried again"
            self._withhold(gang, why, None, pause)

    def _heed(self, rebuffs: Rebuffs) -> None:
        """So it is with the pods of one controller that have no gang. Many may have been sent to
        the same nodes together, and are turned away one after the other: that is once."""
        key = rebuffs.controller
        known = self._refusals.setdefault(key, _Refusals())
        if rebuffs.count <= known.seen:
            return
        now, post = self._world.monotonic(), self._inbox.post

        def forgive() -> None:
            self._refusals.pop(key, None)
            self._reader.forgive(rebuffs)

        self._inbox.after(f"forgive {key}", _FORGIVEN, lambda: post(forgive))
        if known.rounds and now < known.last + _FIRST_PAUSE:
            known.seen = rebuffs.count
            return
        known.last = now
        if pause := self._refused(key, rebuffs):
            number = count(rebuffs.count, "pod")
            self._reader.pause(
                rebuffs, f"nodes have turned {number} of its controller away, and are tried again"
            )
            go_on = self._reader.pause
            self._inbox.after(key, pause, lambda: post(lambda: go_on(rebuffs, "")))

    def _refused(self, key: str, rebuffs: Rebuffs) -> float:
        """For how long to stand back, if pods have been turned away since it was last asked."""
        known = self._refusals.setdefault(key, _Refusals())
        if rebuffs.count <= known.seen:
            return 0.0
        known.seen, known.rounds = rebuffs.count, known.rounds + 1
        return 0.0 if known.rounds < _REBUFFS else self._pause(known.rounds - _REBUFFS)

    def started(self, gang: str, seats: Sequence[Seat]) -> None:
        self._setbacks.pop(gang, None)
        self._abandons.pop(gang, None)
        if is_alone(gang):
            # kube-scheduler's words, as others look for them.
            (seat,) = seats
            message = f"Successfully assigned {seat.pod} to {seat.node}"
            self._tell(gang, SCHEDULED, message, warning=False)
            return
        nodes = len({seat.node for seat in seats})
        message = f"bound {count(len(seats), 'pod')} to {count(nodes, 'node')}"
        self._tell(gang, SCHEDULED, message, warning=False)

    def released(self, gang: str, why: str) -> None:
        self._tell(gang, RELEASED, why, warning=True)

    def evicted(self, decision: Evict, left: Sequence[str], why: str) -> None:
        """One event on each victim and one on whom they ended for."""
        stay = set(left)
        ended = 0
        for victim in decision.victims:
            went = sum(1 for uid, _ in victim.pods if uid not in stay)
            ended += went
            if went:
                message = f"{count(went, 'pod')} {victim.why}"
                self._tell(victim.gang, PREEMPTED, message, warning=True)
        whose = ", ".join(victim.gang for victim in decision.victims[:3])
        if len(decision.victims) > 3:
            whose += f" and {len(decision.victims) - 3} more"
        message = f"ended {count(ended, 'pod')} of {whose} to start"
        if left:
            message += f"; {count(len(left), 'pod')} stayed: {why}"
        self._tell(decision.gang, PREEMPTS, message, warning=bool(left))

    def forget(self, gang: str) -> None:
        """Nothing is left of the gang."""
        self._setbacks.pop(gang, None)
        self._refusals.pop(gang, None)
        self._abandons.pop(gang, None)

    def _pause(self, times: int) -> float:
        """For how long whom nothing helped stands back, so many times after the first."""
        longer = _FIRST_PAUSE * 2 ** min(times, _LONGER)
        return self._world.jitter(min(_LONGEST_PAUSE, longer))

    def _let_go(self, muster: Muster, why: str) -> None:
        pods = tuple(
            (uid, f"{member.pod.metadata.namespace}/{member.pod.metadata.name}")
            for uid, member in muster.members.items()
            if member.place.seated
        )
        self._submit(Order(Release(muster.key, pods, f"it cannot be started whole: {why}")))

    def _withhold(self, gang: str, why: str, awaited: int | None, seconds: float) -> None:
        if self._reader.withhold(gang, why, awaited):
            admit = self._reader.admit
            self._inbox.after(gang, seconds, lambda: self._inbox.post(lambda: admit(gang)))

    def _tell(self, gang: str, reason: str, message: str, *, warning: bool) -> None:
        muster = self._reader.musters.get(gang)
        if muster is None:
            return
        if muster.group is not None:
            self._events.record(muster.group, reason, message, warning=warning, kind=muster.kind)
        elif (member := muster.first) is not None:
            self._events.record(member.pod, reason, message, warning=warning, kind=POD)
