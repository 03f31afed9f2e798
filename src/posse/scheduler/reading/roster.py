"""What is known of each pod, brought up to date one event at a time.

Two facts of Kubernetes are relied on: a bind cannot be undone, so a pod that was seen on a node
never reads as unbound again, however stale the event; and a pod's requests do not change while its
spec reads the same, and its node has given it what that says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from posse.engine.facts import Constraints, Shape
from posse.engine.view import View
from posse.objects.kinds import POD
from posse.objects.meta import Key, ObjectMeta
from posse.objects.pods import Pod
from posse.objects.requests import as_held
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.confines import confined
from posse.scheduler.reading.ground import Ground
from posse.scheduler.reading.members import Member
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.parts import part_of
from posse.scheduler.reading.pods import (
    CLAIMS_ARE_NOT_ALLOCATED,
    Place,
    Shapes,
    nominated,
    place_of,
    read_pod,
    turned_away,
)
from posse.scheduler.reading.quarantine import Quarantine, Unreadable
from posse.scheduler.reading.rebuffs import Controllers, Rebuffs, controller_of
from posse.scheduler.reading.volumes import NotYet, Shelves


class _Known(msgspec.Struct):
    """What was made of a pod when it was last read."""

    pod: Pod
    gang: str | None
    shape: Shape | None
    ahead: bool = False  # read live: its cache may still tell of earlier versions


class Roster:
    """`muster_of` finds the gang of a key, or begins it, and marks it as changed."""

    def __init__(
        self,
        view: View,
        claims: Claims,
        quarantine: Quarantine,
        *,
        ground: Ground,
        shelves: Shelves,
        musters: dict[str, Muster],
        muster_of: Callable[[str], Muster],
    ) -> None:
        self._view = view
        self._claims = claims
        self._quarantine = quarantine
        self._ground = ground
        self._shelves = shelves
        self._musters = musters
        self._muster_of = muster_of
        self._shapes = Shapes()
        self._controllers = Controllers()
        self._pods: dict[str, _Known] = {}
        # The node that another scheduler makes room on for a pod of its own.
        self._nominees: dict[str, str] = {}

    def pod_of(self, uid: str) -> Pod | None:
        known = self._pods.get(uid)
        return None if known is None else known.pod

    def gang_of(self, uid: str) -> str | None:
        known = self._pods.get(uid)
        return None if known is None else known.gang

    def constraints_of(self, uid: str) -> Constraints:
        known = self._pods.get(uid)
        return Constraints() if known is None or known.shape is None else known.shape.constraints

    def hear(self, pod: Pod) -> None:
        """A pod as its cache has it."""
        known = self._pods.get(pod.metadata.uid)
        if known is None or not known.ahead or not older(pod.metadata, known.pod.metadata):
            self._put(pod, known)

    def learn(self, pod: Pod) -> None:
        """A pod as a request has just shown it; its cache will follow."""
        known = self._pods.get(pod.metadata.uid)
        if known is not None and not older(pod.metadata, known.pod.metadata):
            self._put(pod, known)
            self._pods[pod.metadata.uid].ahead = True

    def forget(self, uid: str) -> None:
        known = self._pods.pop(uid, None)
        if known is None:
            return
        self._ground.spoil(known.pod.spec.node_name, uid, False)
        self._shelves.leave(known.pod)
        self._nominees.pop(uid, None)
        self._quarantine.discharge(uid)
        self._quarantine.doubt(POD, known.pod, uid, "")
        self._view.remove_pod(uid)
        self._part(known, None, uid)

    def read_users(self, claims: list[Key]) -> None:
        """What these claims say has changed, and with it the shapes of the pods that use them."""
        self.read_again(self._shelves.users(claims))

    def read_nominees(self, node: str) -> None:
        """The node is another one now: whom it is promised to may be able to use it, or not."""
        self.read_again([uid for uid, on in self._nominees.items() if on == node])

    def read_again(self, uids: Iterable[str]) -> None:
        """The same pods, which are to be understood anew."""
        for uid in uids:
            known = self._pods[uid]
            known.shape = None
            self._put(known.pod, known)
            self._pods[uid].ahead = known.ahead

    def _put(self, pod: Pod, known: _Known | None) -> None:
        uid = pod.metadata.uid
        if known is not None and known.pod.spec.node_name and not pod.spec.node_name:
            return
        if pod.spec.node_name:
            pod = as_held(pod)
        gang = self._claims.gang_of(pod)
        self._part(known, gang, uid)
        place = place_of(pod)
        shape, problem = None, ""
        lacking = ""
        promised = self._promised(pod, gang)
        if not place.finished and (gang is not None or pod.spec.node_name or promised):
            if pod.spec.volumes:
                self._shelves.use(pod)
            try:
                shape, problem = self._shape_of(pod, known, gang)
            except NotYet as claim:
                lacking, place = str(claim), Place.BARRED
        if promised:
            problem = ""  # it is nobody's concern before it has its node
            if shape is not None and not self._ground.takes(promised, shape.constraints):
                shape = None  # it can never have it
        self._pods[uid] = _Known(pod, gang, shape)
        self._ground.spoil(pod.spec.node_name, uid, bool(problem) and not place.finished)
        counts = shape is not None and (place.seated or place is Place.WAITING)
        if shape is not None and counts:
            try:
                part = self._part_of(pod, gang)
                self._view.set_pod(read_pod(pod, gang, shape, promised, part))
            except Unreadable as error:
                problem, counts = str(error), False
        if not counts:
            self._view.remove_pod(uid, shunned=turned_away(pod))
        if problem:
            self._quarantine.admit(POD, pod, uid, problem)
        else:
            self._quarantine.discharge(uid)
        if gang is None:
            return
        if problem and not pod.spec.node_name:
            place = Place.BARRED
        elif place is Place.BARRED:
            problem = lacking or CLAIMS_ARE_NOT_ALLOCATED
        muster = self._muster_of(gang)
        before = muster.members.get(uid)
        muster.put(Member(pod, place, problem, awaits=bool(lacking)))
        news = before is None or before.place is not Place.FAILED
        if news and place is Place.FAILED and turned_away(pod):
            if muster.alone:
                muster.rebuffs = self._rebuffs_of_all_like(pod) or muster.rebuffs
            muster.rebuffs.add(pod.spec.node_name)
            self.spread(muster.rebuffs)
        elif muster.alone and place is Place.WAITING:
            self._bear_in_mind(muster, self._controllers.of(pod))

    def _rebuffs_of_all_like(self, pod: Pod) -> Rebuffs | None:
        """Those of its controller, of which whoever else waits is to know from now on."""
        controller = controller_of(pod)
        known = self._controllers.of(pod)
        if known is None and controller:
            known = self._controllers.begin(controller)
            for muster in self._musters.values():
                other = muster.first if muster.alone and muster.count(Place.WAITING) else None
                if other is not None and controller_of(other.pod) == controller:
                    self._bear_in_mind(muster, known)
        return known

    def _bear_in_mind(self, muster: Muster, rebuffs: Rebuffs | None) -> None:
        if rebuffs is not None:
            muster.rebuffs = rebuffs
            rebuffs.gangs[muster.key] = None

    def spread(self, rebuffs: Rebuffs) -> None:
        """They have changed: a concern of all that wait and bear them in mind."""
        for gang in list(rebuffs.gangs):
            muster = self._musters.get(gang)
            if muster is not None and muster.count(Place.WAITING):
                self._muster_of(gang)
            else:
                del rebuffs.gangs[gang]

    def forgive(self, rebuffs: Rebuffs) -> None:
        self._controllers.forget(rebuffs)
        rebuffs.forget()
        self.spread(rebuffs)

    def _promised(self, pod: Pod, gang: str | None) -> str:
        promised = nominated(pod) if gang is None else ""
        if promised:
            self._nominees[pod.metadata.uid] = promised
        else:
            self._nominees.pop(pod.metadata.uid, None)
        return promised

    def _part(self, known: _Known | None, gang: str | None, uid: str) -> None:
        """Takes the pod out of the gang that it was in, if that is another one now."""
        if known is not None and known.gang is not None and known.gang != gang:
            self._muster_of(known.gang).drop(uid)

    def _shape_of(
        self, pod: Pod, known: _Known | None, gang: str | None
    ) -> tuple[Shape | None, str]:
        if known is not None and known.shape is not None and _asks_the_same(known.pod, pod):
            return known.shape, ""
        volumes = self._shelves.read(pod) if pod.spec.volumes else None
        try:
            shape = self._shapes.of(pod, volumes)
            muster = None if gang is None else self._musters.get(gang)
            return confined(shape, None if muster is None else muster.confines), ""
        except Unreadable as error:
            return None, str(error)

    def _part_of(self, pod: Pod, gang: str | None) -> str:
        muster = None if gang is None else self._musters.get(gang)
        return "" if muster is None else part_of(pod.metadata.labels, muster.partitions)


def older(one: ObjectMeta, other: ObjectMeta) -> bool:
    """Whether two versions of one object can be told apart, and the first is the earlier."""
    versions = (one.resource_version, other.resource_version)
    if one.uid != other.uid or not all(version.isdecimal() for version in versions):
        return False
    return int(versions[0]) < int(versions[1])


def _asks_the_same(one: Pod, other: Pod) -> bool:
    """Whether two versions of a pod ask for the same; then they have their words together.

    A pod that was given its node asks for what it did, unless its volumes have something to say.
    """
    if one.metadata.labels != other.metadata.labels:
        return False
    spec = one.spec
    if spec.node_name != other.spec.node_name and not spec.volumes:
        spec = msgspec.structs.replace(spec, node_name=other.spec.node_name)
    if spec != other.spec:
        return False
    other.spec = spec
    return True
