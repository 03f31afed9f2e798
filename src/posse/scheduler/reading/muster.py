"""One gang as its objects show it: the PodGroup, its pods, and what has become of it."""

from __future__ import annotations

from posse.engine.facts import DEFAULT_QUEUE, Purpose
from posse.objects import keys
from posse.objects.groups import PodGroup
from posse.objects.kinds import POD_GROUP, Kind
from posse.scheduler.reading.claims import is_alone, minimum_named_by
from posse.scheduler.reading.confines import Confines
from posse.scheduler.reading.groups import (
    COMPLETED,
    GroupTerms,
    goes_with_its_job,
    is_native,
    phase_of,
)
from posse.scheduler.reading.members import Member, Tally
from posse.scheduler.reading.parts import Partition, has_its_parts
from posse.scheduler.reading.pods import Place, bound_at, created_at, disrupted
from posse.scheduler.reading.rebuffs import Rebuffs
from posse.scheduler.reading.topologies import topology_named_by


class Muster:
    """`ran` says that the gang has run whole once, and has not ended since: from then on members
    are replaced one by one. To have its nodes is not enough: a node may turn a pod away, and a gang
    that never ran is to be completed or let go. It is read from the phase when the gang is first
    seen, since an earlier leader may have started it, and kept by counting after that. The phase
    speaks of nodes: where all members have theirs and none has run or ended, it never ran. A group
    that was made after its members had their nodes took the place of another: they run on, though
    it may ask for more than that one did (`outlived`).

    `returns` says that its members come back, should all of them be gone at once. How they went
    tells little: whoever deletes a job takes its pods away as a dying node does. The group tells:
    see `goes_with_its_job`. Of other groups only those members come back that plainly were not
    sent away. Nobody comes back whom we let go, or to a gang of which somebody has ended well; and
    who was gone before we looked, only if it is written that seats are kept for them.

    Who has ended well is not missing, and may be cleared away while others still run: by whoever
    tidies up, or with its node. It is counted on until the gang begins anew, or is all there again.
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self.alone = is_alone(key)
        self.groups: dict[Kind, PodGroup] = {}  # what each API has under this name
        self.confines: Confines | None = None  # the nodes its queue keeps to
        self.rebuffs = Rebuffs()  # by nodes that have turned a member away
        self.partitions: tuple[Partition, ...] = ()  # by which its pods were last read
        self.kind = POD_GROUP  # the one among them that speaks
        self.group: PodGroup | None = None
        self.last_phase = ""  # as it was last written by us
        self.ahead = False  # `group` is our own write: its cache may still tell of earlier ones
        self.terms: GroupTerms | None = None
        self.problem = ""  # why the PodGroup cannot be used
        self.doubts: tuple[str, ...] = ()  # what it says and can hardly mean
        self.members: dict[str, Member] = {}
        self.tally = Tally()
        self.ran = False
        self._hearsay = False  # only the phase says so
        self._new = False  # its group is seen for the first time
        self._in_pieces = False  # it does not have as many whole parts as it needs
        self.outlived = False  # it runs since before its group, and never was whole in its terms
        self.returns = False
        self._anew = False  # it lost all its members since it ran
        self._let_go: frozenset[str] | None = None  # whole, by us: who was there
        self._sent_away = False  # a member, since it last was whole
        self.aside = ""  # why it is not decided on at all
        self.withheld = ""  # why it may not be decided on for now
        self.awaited: int | None = None  # the generation that ends that
        self.setback = ""  # why what was decided on has not been done yet
        self.errand = ""  # what is seen to before it is done, as a sentence without a subject
        self.promised = 0  # how many start together as a Workload says
        self.ran_with = 0  # how many ran, as its group said at first sight
        # When the first of its members got a node, since it last had none on any.
        self.first_bound: float | None = None

    def put(self, member: Member) -> None:
        uid = member.pod.metadata.uid
        self.tally.change(self.members.get(uid), member)
        self.members[uid] = member
        if member.place.seated:
            since = bound_at(member.pod)
            if since is not None and (self.first_bound is None or since < self.first_bound):
                self.first_bound = since

    def drop(self, uid: str) -> None:
        member = self.members.pop(uid, None)
        if member is None:
            return
        self.tally.remove(member)
        if member.place is Place.SUCCEEDED and self.ran:
            self.tally.clear_away(member)
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
            self.ran_with = terms.ran_with
            self._new, self.outlived = True, False
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
        self.tally.cleared.clear()

    def review(self) -> None:
        """Whether it runs whole, now that the members are as they are."""
        if self.group is None and (self.promised or self.tally.naming or self.bare):
            self.terms = self._bare_terms()
        self._recollect()
        self._in_pieces = self._lacks_parts()
        ended = self.count(Place.SUCCEEDED)
        running = self.count(Place.RUNNING) - self.tally.leaving[Place.RUNNING]
        self._foresee_return()
        if self._new and is_native(self.kind):
            self.ran_with = max(0, self.ran_with - ended)
        if self.whole and (self.tally.ended_well or running >= self.minimum):
            self.ran, self._anew, self.outlived = True, False, False
            if not self.alone:
                self.rebuffs.count = 0
        elif not self.seated and not ended:
            self.ran = self._anew = self.ran and self.returns
            self.first_bound = self._let_go = None
            self.outlived = False
            self.tally.cleared.clear()
        elif self._anew and self.whole:
            self.ran = self._anew = False
        elif self._hearsay and self.whole and not running and not self.count(Place.FAILED):
            self.ran = False
        elif self._new and not self.ran and not self.whole and self._precede(self.terms):
            self.ran = self.outlived = True
            self.ran_with = running
        self._new = self._hearsay = False

    def _recollect(self) -> None:
        """Who ended well and is gone: as its group said at first sight, until it is whole again."""
        tally = self.tally
        if self._hearsay and self.group is not None:
            gone = self.group.status.succeeded - self.count(Place.SUCCEEDED)
            tally.cleared = {"": gone} if gone > 0 else {}
        if tally.cleared:
            there = len(self.members) - self.count(Place.FAILED) - sum(tally.leaving.values())
            if there >= self.minimum:
                tally.cleared.clear()

    def _lacks_parts(self) -> bool:
        """Whether there may be pods enough, but not in as many whole parts as it needs."""
        partitions = () if self.terms is None else self.terms.partitions
        if self.tally.cleared or not any(each.number for each in partitions):
            return False  # of whom no pod is left, nobody knows the part
        there = (
            member.pod
            for member in self.members.values()
            if member.place is Place.SUCCEEDED
            or (member.place.seated and not member.pod.metadata.deleting)
        )
        return not has_its_parts((pod.metadata.labels for pod in there), partitions)

    def _precede(self, terms: GroupTerms | None) -> bool:
        """Whether a member that runs had its node before there was such a group."""
        if terms is None or self.group is None:
            return False
        there = (m.pod for m in self.members.values() if m.place is Place.RUNNING)
        dates = (bound_at(pod) for pod in there if not pod.metadata.deleting)
        return any(date is not None and date < terms.created for date in dates)

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
        ended = self.tally.ended_well > 0 or phase_of(group) == COMPLETED
        return ended or self._let_go is not None

    @property
    def bare(self) -> bool:
        """Only the labels of its pods speak of it."""
        return self.terms is not None and self.terms.bare

    @property
    def empty(self) -> bool:
        return not self.members and self.group is None

    @property
    def stands_back(self) -> str:
        """Why it is not decided on for now; who sits already does not mind what others met with."""
        return self.withheld or ("" if self.seated else self.rebuffs.pause)

    def count(self, place: Place) -> int:
        return self.tally.places[place]

    @property
    def seated(self) -> int:
        return self.tally.places[Place.BOUND] + self.tally.places[Place.RUNNING]

    @property
    def minimum(self) -> int:
        return 1 if self.terms is None else self.terms.min_member

    @property
    def staying(self) -> int:
        """Those that have their nodes and are not being deleted."""
        return self.seated - self.tally.leaving[Place.BOUND] - self.tally.leaving[Place.RUNNING]

    @property
    def whole(self) -> bool:
        """At least the minimum really has its nodes, or has ended well on them."""
        there = self.staying + self.count(Place.SUCCEEDED)
        gone = sum(self.tally.cleared.values())
        return there > 0 and there + gone >= self.minimum and not self._in_pieces

    @property
    def half_bound(self) -> bool:
        return not self.alone and self.staying > 0 and not self.ran and not self.whole

    @property
    def recreated(self) -> bool:
        """Whether somebody makes each of its live members anew when it ends."""
        return bool(self.members) and not self.tally.orphans

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
            topology=topology_named_by(pods),
        )
