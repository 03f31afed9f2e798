"""Keeps the engine's view in step with the caches, one object at a time.

Changes are applied between cycles only, so the view never moves under a deciding engine. An event
touches its own object; what follows for its gang is worked out once per round, in `refresh`.

Two facts of Kubernetes are relied on: a bind cannot be undone, so a pod that was seen on a node
never reads as unbound again, however stale the event; and a pod's requests do not change while its
spec reads the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from posse.engine.facts import GroupFacts, Shape
from posse.engine.gangs import made
from posse.engine.view import View
from posse.kube.cache import Change
from posse.objects.budgets import PodDisruptionBudget
from posse.objects.groups import PodGroup, PriorityClass, Workload
from posse.objects.hypernodes import HyperNode
from posse.objects.kinds import HYPER_NODE, NODE, POD, POD_GROUP, WORKLOAD, Kind
from posse.objects.meta import Key, ObjectMeta
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.scheduler.reading.budgets import read_budget
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.confines import confined, confines_of
from posse.scheduler.reading.groups import read_group, speaking, workload_minimums
from posse.scheduler.reading.muster import Member, Muster
from posse.scheduler.reading.nodes import read_node
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
from posse.scheduler.reading.storage import Storage
from posse.scheduler.reading.tenancy import Tenancy
from posse.scheduler.reading.topologies import read_hypernode
from posse.scheduler.reading.volumes import NotYet


class _Known(msgspec.Struct):
    """What was made of a pod when it was last read."""

    pod: Pod
    gang: str | None
    shape: Shape | None
    ahead: bool = False  # read live: its cache may still tell of earlier versions


class Reader:
    def __init__(self, view: View, claims: Claims, quarantine: Quarantine) -> None:
        self.musters: dict[str, Muster] = {}
        self._view = view
        self._claims = claims
        self._quarantine = quarantine
        self._shapes = Shapes()
        self._pods: dict[str, _Known] = {}
        self._nodes: dict[str, Node] = {}
        self.storage = Storage(self._nodes, self._read_again, self._limits_changed)
        self.tenancy = Tenancy(view, quarantine, self._touch_all)
        self._classes: dict[Key, PriorityClass] = {}
        # How many pods of each group inside of a Workload start together.
        self._workloads: dict[Key, dict[str, int]] = {}
        self._told: dict[str, GroupFacts] = {}
        self._touched: dict[str, None] = {}
        # Pods whose requests nobody can tell, by the node that they are on.
        self._spoilers: dict[str, dict[str, None]] = {}
        self._undecodable: dict[Key, str] = {}
        self._taking: dict[str, bool] = {}

    # Changes, one method per kind.

    def pod(self, change: Change[Pod]) -> None:
        if change.new is None:
            if change.old is not None:
                self._forget(change.old.metadata.uid)
        elif not self._lags(change.new):
            self._remember(change.new)

    def node(self, change: Change[Node]) -> None:
        if change.new is not None:
            self._nodes[change.new.metadata.name] = change.new
            self._set_node(change.new)
        elif change.old is not None:
            name = change.old.metadata.name
            self._nodes.pop(name, None)
            self._taking.pop(name, None)
            self._quarantine.discharge(change.old.metadata.uid)
            self._view.remove_node(name)
            self._read_again(self.storage.shelves.unbound())

    def group(self, change: Change[PodGroup], kind: Kind = POD_GROUP) -> None:
        group = change.new or change.old
        if group is None:
            return
        muster = self._muster(f"{group.metadata.namespace}/{group.metadata.name}")
        if change.new is not None:
            muster.groups[kind] = group
        else:
            self._quarantine.discharge(group.metadata.uid)
            self._quarantine.doubt(kind, group, group.metadata.uid, "")
            muster.groups.pop(kind, None)
        speaker = speaking(muster.groups)
        if speaker is None or speaker != muster.kind:
            muster.lose_group()
        if speaker is None or (speaker != kind and muster.group is not None):
            return
        group, muster.kind = muster.groups[speaker], speaker
        if muster.ahead and muster.group is not None:
            if _older(group.metadata, muster.group.metadata):
                return
            muster.ahead = False
        try:
            muster.take_group(group, read_group(group, speaker), "")
            self._quarantine.discharge(group.metadata.uid)
        except Unreadable as error:
            muster.take_group(group, None, str(error))
            self._quarantine.admit(speaker, group, group.metadata.uid, str(error))
        if muster.awaited is not None and group.metadata.generation >= muster.awaited:
            self.admit(muster.key)

    def workload(self, change: Change[Workload]) -> None:
        workload = change.new or change.old
        if workload is None:
            return
        self._workloads.pop(workload.key, None)
        if change.new is not None:
            try:
                self._workloads[workload.key] = workload_minimums(workload)
                self._quarantine.discharge(workload.metadata.uid)
            except Unreadable as error:
                self._quarantine.admit(WORKLOAD, workload, workload.metadata.uid, str(error))
        else:
            self._quarantine.discharge(workload.metadata.uid)
        inside = "/".join(workload.key) + "/"
        for key, muster in self.musters.items():
            if key.startswith(inside):
                muster.promised = self._promised(key)
                self._touch(key)

    def _promised(self, gang: str) -> int:
        namespace, workload, group, *_ = gang.split("/")
        return self._workloads.get((namespace, workload), {}).get(group, 0)

    def budget(self, change: Change[PodDisruptionBudget]) -> None:
        if change.new is not None:
            self._view.set_budget(read_budget(change.new))
        elif change.old is not None:
            self._view.remove_budget(*change.old.key)

    def hypernode(self, change: Change[HyperNode]) -> None:
        """One that cannot be read joins nothing; those that can stand without it."""
        node = change.new or change.old
        if node is None:
            return
        name, uid = node.metadata.name, node.metadata.uid
        if change.new is not None and not node.metadata.deleting:
            try:
                self._view.set_hypernode(read_hypernode(node))
                self._quarantine.discharge(uid)
                return
            except Unreadable as error:
                self._quarantine.admit(HYPER_NODE, node, uid, str(error))
        else:
            self._quarantine.discharge(uid)
        self._view.remove_hypernode(name)

    def priority_class(self, change: Change[PriorityClass]) -> None:
        if change.new is not None:
            self._classes[change.new.key] = change.new
        elif change.old is not None:
            self._classes.pop(change.old.key, None)
        self._touch_all()

    def undecodable(self, nodes: Mapping[Key, str]) -> None:
        """The pods that are no pods to us, each with its node ("" for none), as they are now."""
        before, self._undecodable = self._undecodable, dict(nodes)
        for node in dict.fromkeys((*before.values(), *nodes.values())):
            if found := self._nodes.get(node):
                self._set_node(found)

    # What the scheduler itself learns.

    def refute(self, uid: str) -> None:
        """A bind or a release that was decided did not happen."""
        self._view.refute(uid)
        if known := self._pods.get(uid):
            self._touch(known.gang)
            if known.gang is not None and (muster := self.musters.get(known.gang)):
                muster.stays()

    def let_go(self, gang: str) -> None:
        """It was decided that all of the gang's members end."""
        if muster := self.musters.get(gang):
            muster.let_go()
            self._touch(gang)

    def gone(self, uid: str) -> None:
        """A pod is not there any more, whatever its cache still has."""
        self._forget(uid)

    def fact(self, pod: Pod) -> None:
        """A pod as a request has just shown it; its cache will follow."""
        known = self._pods.get(pod.metadata.uid)
        if known is not None and not _older(pod.metadata, known.pod.metadata):
            self._remember(pod)
            self._pods[pod.metadata.uid].ahead = True

    def wrote(self, group: PodGroup) -> None:
        """A PodGroup as our own write left it; its cache will follow."""
        muster = self.musters.get(f"{group.metadata.namespace}/{group.metadata.name}")
        if muster is None or muster.group is None:
            return
        if muster.group.metadata.uid == group.metadata.uid:
            self.group(Change(muster.group, group), muster.kind)
            muster.ahead = True

    def pod_of(self, uid: str) -> Pod | None:
        """The pod as decisions know it."""
        known = self._pods.get(uid)
        return None if known is None else known.pod

    def withhold(self, gang: str, why: str, awaited: int | None = None) -> bool:
        """Decide nothing about the gang until `admit`, or until its PodGroup reaches `awaited`.

        False when there is nothing to wait for.
        """
        muster = self.musters.get(gang)
        if muster is None:
            return False
        seen = muster.group.metadata.generation if muster.group is not None else 0
        if awaited is not None and seen >= awaited:
            return False
        muster.withheld, muster.awaited = why, awaited
        self._touch(gang)
        return True

    def admit(self, gang: str) -> None:
        if muster := self.musters.get(gang):
            muster.withheld, muster.awaited = "", None
            self._touch(gang)

    def errand(self, gang: str, what: str) -> None:
        """What is seen to before the gang is bound; "" when that is over."""
        if muster := self.musters.get(gang):
            muster.errand = what
            self._touch(gang)

    def labels_of(self, node: str) -> Mapping[str, str]:
        found = self._nodes.get(node)
        return {} if found is None else found.metadata.labels

    def takes_pods(self, node: str) -> bool:
        """Whether the node can still be given to anybody."""
        return self._taking.get(node, False)

    def allocated(self, queue: str) -> dict[str, int]:
        """What the queue takes, in base units."""
        return self._view.tree.named(self._view.tree.allocated(queue))

    def room_made_for(self, gang: str) -> dict[str, list[str]]:
        """The nodes where others were ended for it, by the role of who is to sit there."""
        known = self._view.gangs.get(gang)
        nodes: dict[str, list[str]] = {}
        for hold in () if known is None else made(known):
            nodes.setdefault(hold.role, []).append(self._view.columns.names[hold.row])
        return {role: sorted(names) for role, names in nodes.items()}

    # Once per round.

    def refresh(self) -> dict[str, None]:
        """Tells the view what the changes mean for their gangs; answers with those gangs."""
        self.tenancy.judge()
        touched, self._touched = self._touched, {}
        for key in touched:
            muster = self.musters.get(key)
            if muster is None:
                continue
            self._confine(muster)
            muster.review()
            self._doubt(muster)
            try:
                facts = None if muster.empty else muster.facts(self._classes)
            except Unreadable:
                facts = None  # the pod itself is in quarantine for the same reason
            if facts is None:
                if self._told.pop(key, None) is not None:
                    self._view.remove_group(key)
                if muster.queue:
                    self._view.set_queue_of(key, muster.queue)
            elif self._told.get(key) != facts:
                self._told[key] = facts
                self._view.set_group(facts)
            if muster.empty:
                del self.musters[key]
        return touched

    def _doubt(self, muster: Muster) -> None:
        """A class that nobody made counts for nothing, which hardly is what was meant."""
        group, terms = muster.group, muster.terms
        if group is None or terms is None:
            return
        named, why = terms.priority_class, ""
        if named and ("", named) not in self._classes:
            why = f"priority class {named} does not exist: the priority of its pods counts"
        self._quarantine.doubt(muster.kind, group, group.metadata.uid, why)

    def _confine(self, muster: Muster) -> None:
        """Pods are other ones to the engine where their queue keeps to other nodes, or where they
        are another part of their gang."""
        confines = confines_of(muster.queue, self.tenancy.queues)
        partitions = () if muster.terms is None else muster.terms.partitions
        if (confines, partitions) == (muster.confines, muster.partitions):
            return
        muster.confines, muster.partitions = confines, partitions
        for uid in list(muster.members):
            self._reread(uid)
        self._touched.pop(muster.key, None)

    def _remember(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        known = self._pods.get(uid)
        if known is not None and known.pod.spec.node_name and not pod.spec.node_name:
            return
        gang = self._claims.gang_of(pod)
        self._part(known, gang, uid)
        place = place_of(pod)
        shape, problem = None, ""
        lacking = ""
        promised = nominated(pod) if gang is None else ""
        if not place.finished and (gang is not None or pod.spec.node_name or promised):
            if pod.spec.volumes:
                self.storage.shelves.use(pod)
            try:
                shape, problem = self._shape_of(pod, known, gang)
            except NotYet as claim:
                lacking, place = str(claim), Place.BARRED
        if promised and shape is None:
            problem = ""  # it is nobody's concern before it has its node
        self._pods[uid] = _Known(pod, gang, shape)
        self._spoil(pod.spec.node_name, uid, bool(problem) and not place.finished)
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
        self._muster(gang).put(Member(pod, place, problem, awaits=bool(lacking)))

    def _lags(self, pod: Pod) -> bool:
        known = self._pods.get(pod.metadata.uid)
        return known is not None and known.ahead and _older(pod.metadata, known.pod.metadata)

    def _forget(self, uid: str) -> None:
        known = self._pods.pop(uid, None)
        if known is None:
            return
        self._spoil(known.pod.spec.node_name, uid, False)
        self.storage.shelves.leave(known.pod)
        self._quarantine.discharge(uid)
        self._view.remove_pod(uid)
        self._part(known, None, uid)

    def _part(self, known: _Known | None, gang: str | None, uid: str) -> None:
        """Takes the pod out of the gang that it was in, if that is another one now."""
        if known is not None and known.gang is not None and known.gang != gang:
            self._muster(known.gang).drop(uid)

    def _shape_of(
        self, pod: Pod, known: _Known | None, gang: str | None
    ) -> tuple[Shape | None, str]:
        if known is not None and known.shape is not None and _asks_the_same(known.pod, pod):
            return known.shape, ""
        volumes = self.storage.shelves.read(pod) if pod.spec.volumes else None
        try:
            shape = self._shapes.of(pod, volumes)
            muster = None if gang is None else self.musters.get(gang)
            return confined(shape, None if muster is None else muster.confines), ""
        except Unreadable as error:
            return None, str(error)

    def _part_of(self, pod: Pod, gang: str | None) -> str:
        muster = None if gang is None else self.musters.get(gang)
        return "" if muster is None else part_of(pod.metadata.labels, muster.partitions)

    def _limits_changed(self, node: str | None) -> None:
        """What a node attaches has changed; None: what all of them do."""
        for each in self._nodes.values() if node is None else filter(None, [self._nodes.get(node)]):
            self._set_node(each)

    def _read_again(self, claims: list[Key]) -> None:
        """What these claims say has changed, and with it the shapes of the pods that use them."""
        for uid in self.storage.shelves.users(claims):
            self._reread(uid)

    def _reread(self, uid: str) -> None:
        """The same pod, which is to be understood anew."""
        known = self._pods[uid]
        known.shape, ahead = None, known.ahead
        self._remember(known.pod)
        self._pods[uid].ahead = ahead

    def _spoil(self, node: str, uid: str, spoils: bool) -> None:
        """Nothing new goes to a node while a pod there takes nobody knows how much."""
        there = self._spoilers.get(node, {})
        if not node or (uid in there) == spoils:
            return
        if spoils:
            self._spoilers.setdefault(node, {})[uid] = None
        else:
            del there[uid]
            if not there:
                del self._spoilers[node]
        if found := self._nodes.get(node):
            self._set_node(found)

    def _set_node(self, node: Node) -> None:
        name = node.metadata.name
        trusted = name not in self._spoilers and name not in self._undecodable.values()
        facts, why = read_node(
            node, trusted=trusted, attachable=self.storage.shelves.attachable(name)
        )
        if why:
            self._quarantine.admit(NODE, node, node.metadata.uid, why)
        else:
            self._quarantine.discharge(node.metadata.uid)
        self._taking[facts.name] = facts.ready and facts.schedulable
        self._view.set_node(facts)

    def _muster(self, key: str) -> Muster:
        muster = self.musters.get(key)
        if muster is None:
            muster = self.musters[key] = Muster(key)
            if key.count("/") > 1:
                muster.promised = self._promised(key)
        self._touch(key)
        return muster

    def _touch(self, gang: str | None) -> None:
        if gang is not None:
            self._touched[gang] = None

    def _touch_all(self) -> None:
        self._touched.update(dict.fromkeys(self.musters))


def _older(one: ObjectMeta, other: ObjectMeta) -> bool:
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
