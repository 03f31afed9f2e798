"""Keeps the engine's view in step with the caches, one object at a time.

Changes are applied between cycles only, so the view never moves under a deciding engine. An event
touches its own object; what follows for its gang, or for pods that wait for a volume, is worked out
once per round, in `refresh`. Pods are kept in `roster`, nodes in `ground`, queues in `tenancy`,
claims in `storage`.
"""

from __future__ import annotations

from collections.abc import Sequence

from posse.engine.facts import GroupFacts
from posse.engine.gangs import made
from posse.engine.view import View
from posse.kube.cache import Change
from posse.objects.budgets import PodDisruptionBudget
from posse.objects.groups import PodGroup, PriorityClass, Workload
from posse.objects.hypernodes import HyperNode
from posse.objects.kinds import HYPER_NODE, POD, POD_GROUP, WORKLOAD, Kind
from posse.objects.meta import Key
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.scheduler.reading.briefing import facts_of
from posse.scheduler.reading.budgets import read_budget
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.confines import confines_of, sparing
from posse.scheduler.reading.doubts import doubts_of_group
from posse.scheduler.reading.ground import Ground
from posse.scheduler.reading.groups import read_group, speaking, workload_minimums
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.quarantine import Quarantine, Unreadable
from posse.scheduler.reading.rebuffs import Rebuffs
from posse.scheduler.reading.roster import Roster, older
from posse.scheduler.reading.storage import Storage
from posse.scheduler.reading.tenancy import Tenancy
from posse.scheduler.reading.topologies import read_hypernode


class Reader:
    def __init__(self, view: View, claims: Claims, quarantine: Quarantine) -> None:
        self.musters: dict[str, Muster] = {}
        self._view = view
        self._quarantine = quarantine
        nodes: dict[str, Node] = {}
        self.storage = Storage(nodes, self._limits_changed)
        self.tenancy = Tenancy(view, quarantine, self._touch_all)
        shelves = self.storage.shelves
        self.ground = Ground(view, quarantine, nodes, shelves.attachable)
        self._roster = Roster(
            view,
            claims,
            quarantine,
            ground=self.ground,
            shelves=shelves,
            musters=self.musters,
            muster_of=self._muster,
        )
        self._classes: dict[Key, PriorityClass] = {}
        # How many pods of each group inside of a Workload start together.
        self._workloads: dict[Key, dict[str, int]] = {}
        self._told: dict[str, GroupFacts] = {}
        self._touched: dict[str, None] = {}
        # Gangs that are not decided on at all, and why.
        self._aside: dict[str, str] = {}

    # Changes, one method per kind.

    def pod(self, change: Change[Pod]) -> None:
        if change.new is not None:
            self._roster.hear(change.new)
        elif change.old is not None:
            self._roster.forget(change.old.metadata.uid)

    def node(self, change: Change[Node]) -> None:
        if change.new is not None:
            self.ground.put(change.new)
        elif change.old is not None:
            self.ground.remove(change.old)
            self.storage.node_gone()
        if (node := change.new or change.old) is not None:
            self._roster.read_nominees(node.metadata.name)

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
            if older(group.metadata, muster.group.metadata):
                return
            muster.ahead = False
        try:
            muster.take_group(group, read_group(group, speaker), "")
            self._quarantine.discharge(group.metadata.uid)
        except Unreadable as error:
            muster.take_group(group, None, str(error))
            self._quarantine.admit(speaker, group, group.metadata.uid, str(error))
        muster.doubts = tuple(doubts_of_group(group, speaker))
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

    # What the scheduler itself learns.

    def refute(self, uid: str) -> None:
        """A bind or a release that was decided did not happen."""
        self._view.refute(uid)
        if (gang := self._roster.gang_of(uid)) is not None:
            self._touch(gang)
            if muster := self.musters.get(gang):
                muster.stays()

    def let_go(self, gang: str) -> None:
        """It was decided that all of the gang's members end."""
        if muster := self.musters.get(gang):
            muster.let_go()
            self._touch(gang)

    def gone(self, uid: str) -> None:
        """A pod is not there any more, whatever its cache still has."""
        self._roster.forget(uid)

    def fact(self, pod: Pod) -> None:
        """A pod as a request has just shown it; its cache will follow."""
        self._roster.learn(pod)

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
        return self._roster.pod_of(uid)

    def takes(self, node: str, uid: str) -> bool:
        """Whether the node may still be given to this pod."""
        return self.ground.takes(node, self._roster.constraints_of(uid))

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

    def pause(self, rebuffs: Rebuffs, why: str) -> None:
        """Decide nothing about pods that bear these in mind; "": from now on again."""
        rebuffs.pause = why
        self._roster.spread(rebuffs)

    def forgive(self, rebuffs: Rebuffs) -> None:
        """What nodes did is long ago."""
        self._roster.forgive(rebuffs)

    def shun(self, gang: str, nodes: Sequence[str]) -> None:
        """What the gang needs cannot be had on these nodes for now."""
        if muster := self.musters.get(gang):
            for node in nodes:
                muster.rebuffs.shun(node)
            self._touch(gang)
            self._roster.spread(muster.rebuffs)

    def set_aside(self, gang: str, why: str) -> None:
        """Decide nothing about the gang, whatever becomes of it; "": from now on again."""
        self._aside[gang] = why
        if muster := self.musters.get(gang):
            muster.aside = why
            self._touch(gang)

    def errand(self, gang: str, what: str) -> None:
        """What is seen to before the gang is bound; "" when that is over."""
        if muster := self.musters.get(gang):
            muster.errand = what
            self._touch(gang)

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
        self._roster.read_users(self.storage.stale())
        touched, self._touched = self._touched, {}
        for key in touched:
            muster = self.musters.get(key)
            if muster is None:
                continue
            self._confine(muster)
            muster.review()
            self._doubt(muster)
            try:
                facts = None if muster.empty else facts_of(muster, self._classes)
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
        """What it says and can hardly mean: on its group or, where there is none, on a pod. What a
        job's controller wrote on both is said of the group alone."""
        group, said_by_pods = muster.group, sorted(muster.tally.doubts)
        if group is None:
            if (member := muster.first) is not None:
                why = "; ".join(said_by_pods)
                self._quarantine.doubt(POD, member.pod, member.pod.metadata.uid, why)
            return
        told = list(muster.doubts)
        named = group.spec.priority_class_name
        if named and ("", named) not in self._classes:
            told.append(f"priority class {named} does not exist: the priority of its pods counts")
        told += [f"its pods say {doubt}" for doubt in said_by_pods if doubt not in muster.doubts]
        self._quarantine.doubt(muster.kind, group, group.metadata.uid, "; ".join(told))

    def _confine(self, muster: Muster) -> None:
        """Pods are other ones to the engine where their queue keeps to other nodes, where nodes
        have turned fellows away, or where they are another part of their gang."""
        confines = sparing(confines_of(muster.queue, self.tenancy.queues), muster.rebuffs.nodes)
        partitions = () if muster.terms is None else muster.terms.partitions
        if (confines, partitions) == (muster.confines, muster.partitions):
            return
        muster.confines, muster.partitions = confines, partitions
        self._roster.read_again(list(muster.members))
        self._touched.pop(muster.key, None)

    def _limits_changed(self, node: str | None) -> None:
        self.ground.limits_changed(node)

    def _muster(self, key: str) -> Muster:
        muster = self.musters.get(key)
        if muster is None:
            muster = self.musters[key] = Muster(key)
            muster.aside = self._aside.get(key, "")
            if key.count("/") > 1:
                muster.promised = self._promised(key)
        self._touch(key)
        return muster

    def _touch(self, gang: str) -> None:
        self._touched[gang] = None

    def _touch_all(self) -> None:
        self._touched.update(dict.fromkeys(self.musters))
