"""One gang as its objects show it: the PodGroup, and its pods counted by how far they have come."""

from __future__ import annotations

import msgspec

from posse.engine.facts import DEFAULT_QUEUE, Expected, GroupFacts, Purpose
from posse.objects import keys
from posse.objects.groups import PodGroup, PriorityClass
from posse.objects.kinds import POD_GROUP, Kind
from posse.objects.meta import Key
from posse.objects.pods import Pod
from posse.scheduler.reading.claims import is_alone, minimum_named_by, role_of
from posse.scheduler.reading.confines import Confines, confined
from posse.scheduler.reading.estimates import Estimates, cooldown_of
from posse.scheduler.reading.groups import (
    COMPLETED,
    GroupTerms,
    goes_with_its_job,
    phase_of,
)
from posse.scheduler.reading.minimums import Times, read_times
from posse.scheduler.reading.parts import Partition, nearer, squads
from posse.scheduler.reading.pods import Place, bound_at, created_at, disrupted
from posse.scheduler.reading.priorities import NEVER, preempts, priority_of
from posse.scheduler.reading.quarantine import Unreadable


class Member(msgspec.Struct, frozen=True):
    pod: Pod
    place: Place
    problem: str = ""  # why it is barred, as a sentence without a subject
    awaits: bool = False  # what bars it is to come, and is nobody's mistake


class Muster:
    """Counts are kept as members come and go, so that a gang of ten thousand costs no more per
    event than a gang of two.

    `ran` says that the gang has run whole once, and has not ended since: from then on members are
    replaced one by one. To have its nodes is not enough: a node may turn a pod away, and a gang
    that never ran is to be completed or let go. It is read from the phase when the gang is first
    seen, since an earlier leader may have started it, and kept by counting after that. The phase
    speaks of nodes: where all members have theirs and none has run or ended, it never ran.

    `returns` says that its members come back, should all of them be gone at once. How they went
    tells little: whoever deletes a job takes its pods away as a dying node does. The group tells:
    see `goes_with_its_job`. Of other groups only those members come back that plainly were not
    sent away. Nobody comes back whom we let go, or to a gang of which somebody has ended well; and
    who was gone before we looked, only if it is written that seats are kept for them.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.alone = is_alone(key)
        self.groups: dict[Kind, PodGroup] = {}  # what each API has under this name
        self.confines: Confines | None = None  # the nodes its queue keeps to
        self.partitions: tuple[Partition, ...] = ()  # by which its pods were last read
        self.kind = POD_GROUP  # the one among them that speaks
        self.group: PodGroup | None = None
        self.last_phase = ""  # as it was last written by us
        self.ahead = False  # `group` is our own write: its cache may still tell of earlier ones
        self.terms: GroupTerms | None = None
        self.problem = ""  # why the PodGroup cannot be used
        self.members: dict[str, Member] = {}
        self.ran = False
        self._hearsay = False  # only the phase says so
        self.returns = False
        self._anew = False  # it lost all its members since it ran
        self._let_go: frozenset[str] | None = None  # whole, by us: who was there
        self._sent_away = False  # a member, since it last was whole
        self.withheld = ""  # why it may not be decided on for now
        self.awaited: int | None = None  # the generation that ends that
        self.setback = ""  # why what was decided on has not been done yet
        self.errand = ""  # what is seen to before it is done, as a sentence without a subject
        self._counts = dict.fromkeys(Place, 0)
        self._leaving = dict.fromkeys(Place, 0)  # those among them that are being deleted
        self._priorities: dict[int, int] = {}
        self._policies: dict[str, int] = {}  # of preemption
        self._orphans = 0  # live members that nobody would recreate
        self.promised = 0  # how many start together as a Workload says
        self._bare = 0  # members that say by themselves how many start together
        self._estimates = Estimates()
        self._cooldowns: dict[float, int] = {}
        self._ended: dict[str, int] = {}  # members that ended well, by role
        self.ran_with = 0  # how many ran, as its group said at first sight
        # When the first of its members got a node, since it last had none on any.
        self.first_bound: float | None = None

    def put(self, member: Member) -> None:
        uid = member.pod.metadata.uid
        before = self.members.get(uid)
        if before is not None and _only_moved(before, member):
            self._counts[before.place] -= 1
            self._counts[member.place] += 1
        else:
            if before is not None:
                self._count(before, -1)
            self._count(member, 1)
        self.members[uid] = member
        if member.place.seated:
            since = bound_at(member.pod)
            if since is not None and (self.first_bound is None or since < self.first_bound):
                self.first_bound = since

    def drop(self, uid: str) -> None:
        member = self.members.pop(uid, None)
        if member is None:
            return
        self._count(member, -1)
        if not disrupted(member.pod):
            self._sent_away = True

    def let_go(self) -> None:
        """All its members are ended by us: it begins anew like any other."""
        self._let_go = frozenset(self.members)

    def stays(self) -> None:
        """It was not let go after all."""
        self._let_go = None

    def take_group(self, group: PodGroup, terms: GroupTerms | None, problem: str) -> None:
        """The PodGroup as it is now. Its word on having run counts only at first sight."""
        if terms is not None and (self.terms is None or self.terms.uid != terms.uid):
            self.ran = self._hearsay = terms.ran
            self.ran_with = group.status.running
        self.group, self.problem = group, problem
        self.terms = terms if terms is not None else self.terms

    def lose_group(self) -> None:
        self.kind = POD_GROUP
        self.group = self.terms = None
        self.last_phase = ""
        self.ahead = False
        self.problem = self.withheld = self.setback = ""
        self.awaited = None
        self.ran = self.returns = self._anew = False
        self._let_go = None

    def review(self) -> None:
        """Whether it runs whole, now that the members are as they are."""
        if self.group is None and (self.promised or self._bare or self.bare):
            self.terms = self._bare_terms()
        ended = self.count(Place.SUCCEEDED)
        running = self.count(Place.RUNNING) - self._leaving[Place.RUNNING]
        self._foresee_return()
        if self.whole and (ended or running >= self.minimum):
            self.ran, self._anew = True, False
        elif not self.seated and not ended:
            self.ran = self._anew = self.ran and self.returns
            self.first_bound = self._let_go = None
        elif self._anew and self.whole:
            self.ran = self._anew = False
        elif self._hearsay and self.whole and not running and not self.count(Place.FAILED):
            self.ran = False
        self._hearsay = False

    def _foresee_return(self) -> None:
        if self.whole:
            self._sent_away = False
            if self._let_go is not None and self._let_go.isdisjoint(self.members):
                self._let_go = None
        group = self.group
        if group is None or group.metadata.deleting or self._is_over(group):
            self.returns = False
        elif self.staying:
            self.returns = self.recreated
        elif self._hearsay:
            keeps = None if self.terms is None else self.terms.keeps
            self.returns = keeps is not None and keeps.purpose is Purpose.REPAIR
        elif self.returns and not goes_with_its_job(group, self.kind):
            left = (m for m in self.members.values() if m.place.seated or m.place.finished)
            self.returns = not self._sent_away and all(disrupted(m.pod) for m in left)

    def _is_over(self, group: PodGroup) -> bool:
        ended = self.count(Place.SUCCEEDED) > 0 or phase_of(group) == COMPLETED
        return ended or self._let_go is not None

    @property
    def bare(self) -> bool:
        """Only the labels of its pods speak of it."""
        return self.terms is not None and self.terms.bare

    @property
    def empty(self) -> bool:
        return not self.members and self.group is None

    def count(self, place: Place) -> int:
        return self._counts[place]

    @property
    def seated(self) -> int:
        return self._counts[Place.BOUND] + self._counts[Place.RUNNING]

    @property
    def minimum(self) -> int:
        return 1 if self.terms is None else self.terms.min_member

    @property
    def staying(self) -> int:
        """Those that have their nodes and are not being deleted."""
        return self.seated - self._leaving[Place.BOUND] - self._leaving[Place.RUNNING]

    @property
    def whole(self) -> bool:
        """At least the minimum really has its nodes, or has ended well on them."""
        there = self.staying + self.count(Place.SUCCEEDED)
        return there > 0 and there >= self.minimum

    @property
    def half_bound(self) -> bool:
        return not self.alone and self.staying > 0 and not self.ran and not self.whole

    @property
    def recreated(self) -> bool:
        """Whether somebody makes each of its live members anew when it ends."""
        return bool(self.members) and not self._orphans

    @property
    def finished(self) -> bool:
        """Every member has ended well, and nobody is left to start."""
        return 0 < len(self.members) == self.count(Place.SUCCEEDED)

    @property
    def first(self) -> Member | None:
        """The one that came first, of a group of one the only one; None where nobody has."""
        return next(iter(self.members.values()), None)

    @property
    def queue(self) -> str:
        """Where it belongs, whether or not the rest of it can be read; "" while nobody knows."""
        if self.alone:
            member = self.first
            named = "" if member is None else member.pod.metadata.annotations.get(keys.QUEUE_NAME)
            return named or DEFAULT_QUEUE
        if self.terms is not None:
            return self.terms.queue
        return "" if self.group is None else self.group.spec.queue or DEFAULT_QUEUE

    def facts(self, classes: dict[Key, PriorityClass]) -> GroupFacts | None:
        """What the engine is to know of the gang; None while it must not be decided on."""
        if self.alone:
            return self._facts_of_one()
        if self.terms is None or self.problem or self.withheld or self.finished:
            return None
        if self.group is not None and self.group.metadata.deleting:
            return None
        ended = self.count(Place.SUCCEEDED) if self.ran else 0
        return GroupFacts(
            key=self.key,
            uid=self.terms.uid,
            queue=self.terms.queue,
            priority=self.terms.priority
            if self.terms.priority is not None
            else priority_of(self.terms.priority_class, classes, self._priorities),
            created=self.terms.created,
            min_member=max(0, self.terms.min_member - ended),
            started=self.ran,
            expects=self._expects(),
            holds=self.terms.holds,
            recreated=self.recreated or (self.ran and self.returns),
            returns=self.ran and self.returns,
            severable=self.terms.severable,
            indivisible=self.terms.indivisible,
            grows=self.terms.grows,
            loose=self.terms.loose,
            role_minimums=self._role_minimums(),
            min_resources=self.terms.min_resources,
            keeps=self.terms.keeps,
            ran_with=self.ran_with if self.ran else 0,
            preempts=self.terms.preemption_policy != NEVER
            if self.terms.preemption_policy
            else preempts(self.terms.priority_class, classes, self._policies),
            preemptable=self.terms.preemptable,
            evictions=self.terms.evictions,
            overtaken=self.terms.overtaken,
            began=self.first_bound if self.ran or self.whole else None,
            start_timeout=self.terms.times.start_timeout,
            runs_for=self._runs_for,
            min_runtime=self._min_runtime(self.terms.times),
            checkpoint_interval=self.terms.times.checkpoint_interval,
            topology=self.terms.topology,
            nearer=nearer(self.terms.partitions),
            squads=squads(self.terms.partitions),
        )

    def _expects(self) -> tuple[Expected, ...]:
        assert self.terms is not None
        if self.confines is None:
            return self.terms.expects
        return tuple(
            msgspec.structs.replace(each, shape=confined(each.shape, self.confines))
            for each in self.terms.expects
        )

    def _role_minimums(self) -> tuple[tuple[str, int], ...]:
        """What each role is still to have: who ended well is not missing."""
        assert self.terms is not None
        if not self.ran or not self._ended:
            return self.terms.role_minimums
        left = ((role, n - self._ended.get(role, 0)) for role, n in self.terms.role_minimums)
        return tuple((role, n) for role, n in left if n > 0)

    def _bare_terms(self) -> GroupTerms | None:
        """What a Workload, or the pods, say of their gang: the most that is asked for counts."""
        pods = [member.pod for member in self.members.values()]
        least = max([self.promised, *map(minimum_named_by, pods)])
        if not least or not pods:
            return None
        queues = sorted(pod.metadata.annotations.get(keys.QUEUE_NAME, "") for pod in pods)
        return GroupTerms(
            uid=self.key,
            generation=0,
            queue=queues[-1] or DEFAULT_QUEUE,
            min_member=least,
            priority_class="",
            created=min(created_at(pod.metadata) for pod in pods),
            ran=False,
            bare=True,
        )

    def _facts_of_one(self) -> GroupFacts | None:
        member = self.first
        if member is None or not (member.place is Place.WAITING or member.place.seated):
            return None
        if self.withheld:
            return None
        meta = member.pod.metadata
        try:
            times = read_times(meta.annotations)
        except Unreadable:
            times = Times()  # a pod is not kept from running for words about its time
        return GroupFacts(
            key=self.key,
            uid=meta.uid,
            queue=self.queue,
            priority=member.pod.spec.priority or 0,
            created=created_at(meta),
            min_member=1,
            started=member.place.seated,
            recreated=self.recreated,
            preempts=member.pod.spec.preemption_policy != NEVER,
            began=self.first_bound,
            runs_for=self._runs_for,
            min_runtime=self._min_runtime(times),
            checkpoint_interval=times.checkpoint_interval,
            start_timeout=times.start_timeout,
        )

    def _min_runtime(self, times: Times) -> float | None:
        """As its group says, else the longest that a member does."""
        if times.min_runtime is not None:
            return times.min_runtime
        return max((each for each, number in self._cooldowns.items() if number), default=None)

    @property
    def _runs_for(self) -> float | None:
        """As its group says, else as all its members do."""
        said = None if self.terms is None else self.terms.times.runs_for
        return self._estimates.longest if said is None else said

    def _count(self, member: Member, step: int) -> None:
        self._counts[member.place] += step
        if member.pod.metadata.deleting:
            self._leaving[member.place] += step
        if member.place is Place.SUCCEEDED:
            role = role_of(member.pod)
            self._ended[role] = self._ended.get(role, 0) + step
        if member.place.finished:
            return
        self._estimates.count(member.pod, step)
        if cooldown := cooldown_of(member.pod):
            self._cooldowns[cooldown] = self._cooldowns.get(cooldown, 0) + step
        priority = member.pod.spec.priority or 0
        left = self._priorities.get(priority, 0) + step
        if left:
            self._priorities[priority] = left
        else:
            self._priorities.pop(priority, None)
        policy = member.pod.spec.preemption_policy or ""
        left = self._policies.get(policy, 0) + step
        if left:
            self._policies[policy] = left
        else:
            self._policies.pop(policy, None)
        if member.pod.metadata.controller is None:
            self._orphans += step
        if minimum_named_by(member.pod):
            self._bare += step


def _only_moved(before: Member, after: Member) -> bool:
    """Whether it lives on and says the same, so that only its place has to be counted anew.

    So it is with nearly every event: a pod gets its node, and comes to run.
    """
    if before.place.finished or after.place.finished:
        return False
    old, new = before.pod, after.pod
    return (
        not (old.metadata.deleting or new.metadata.deleting)
        and old.metadata.annotations == new.metadata.annotations
        and old.metadata.labels == new.metadata.labels
        and old.metadata.owner_references == new.metadata.owner_references
        and old.spec.priority == new.spec.priority
        and old.spec.preemption_policy == new.spec.preemption_policy
        and old.spec.active_deadline_seconds == new.spec.active_deadline_seconds
    )
