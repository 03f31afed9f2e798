"""Groups of every API: which of them speaks for the gang, and what each of them says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.engine.decisions import Reason as EngineReason
from posse.engine.decisions import Verdict
from posse.engine.facts import Topology
from posse.engine.view import View
from posse.kube.cache import Change
from posse.objects.groups import PodGroup, PodGroupSpec, PodGroupStatus, PriorityClass, Workload
from posse.objects.kinds import (
    COSCHEDULING_POD_GROUP,
    INCUBATOR_POD_GROUP,
    NATIVE_POD_GROUPS,
    POD_GROUP,
    SIGS_POD_GROUP,
    Kind,
)
from posse.objects.meta import Condition, ObjectMeta, OwnerReference
from posse.objects.pods import (
    Pod,
    PodSpec,
    PodStatus,
    SchedulingGate,
    SchedulingGroup,
    WorkloadReference,
)
from posse.scheduler.reading.briefing import facts_of
from posse.scheduler.reading.claims import Claims, minimum_named_by
from posse.scheduler.reading.groups import read_group, speaking
from posse.scheduler.reading.quarantine import Quarantine, Unreadable
from posse.scheduler.reading.reader import Reader
from posse.scheduler.standing import Waiting, group_status, waiting
from posse.world import World
from tests.unit.scheduler.rig import Rig
from tests.unit.scheduler.rig import pod as rig_pod

KEY = "ns/train"
NATIVE = next(kind for kind in NATIVE_POD_GROUPS if kind.version == "v1alpha2")


class Silent:
    def record(self, regarding: Any, reason: str, message: str, **rest: Any) -> None:
        return None


def group(minimum: int = 1, *, owned: bool = False, version: int = 1, uid: str = "") -> PodGroup:
    owner = OwnerReference(kind="TFJob", name="train", uid="job", controller=True)
    return PodGroup(
        metadata=ObjectMeta(
            name="train",
            namespace="ns",
            uid=uid or f"group-{minimum}",
            generation=version,
            resource_version=str(version),
            owner_references=[owner] if owned else [],
        ),
        spec=PodGroupSpec(min_member=minimum),
    )


def reader() -> Reader:
    return Reader(View(), Claims(everything=True), Quarantine(Silent()))


def spoken(read: Reader) -> tuple[Kind, int] | None:
    read.refresh()
    muster = read.musters.get(KEY)
    if muster is None or muster.terms is None:
        return None
    assert muster.terms.kind == muster.kind
    return muster.kind, muster.terms.min_member


@pytest.mark.parametrize(
    ("groups", "speaker"),
    [
        ({}, None),
        ({SIGS_POD_GROUP: group()}, SIGS_POD_GROUP),
        ({SIGS_POD_GROUP: group(), INCUBATOR_POD_GROUP: group()}, INCUBATOR_POD_GROUP),
        ({INCUBATOR_POD_GROUP: group(), POD_GROUP: group()}, POD_GROUP),
        ({INCUBATOR_POD_GROUP: group(), POD_GROUP: group(owned=True)}, INCUBATOR_POD_GROUP),
        ({INCUBATOR_POD_GROUP: group(owned=True), POD_GROUP: group(owned=True)}, POD_GROUP),
    ],
)
def test_what_a_user_made_speaks_first(groups: dict[Kind, PodGroup], speaker: Kind | None) -> None:
    assert speaking(groups) == speaker


@pytest.mark.parametrize("first", [POD_GROUP, INCUBATOR_POD_GROUP])
def test_the_order_of_arrival_does_not_matter(first: Kind) -> None:
    read = reader()
    theirs = {POD_GROUP: group(2, owned=True), INCUBATOR_POD_GROUP: group(6)}
    for kind in sorted(theirs, key=lambda kind: kind != first):
        read.group(Change(None, theirs[kind]), kind)
    assert spoken(read) == (INCUBATOR_POD_GROUP, 6)


def test_when_one_goes_the_other_speaks() -> None:
    read = reader()
    users, ours = group(6), group(2, owned=True)
    read.group(Change(None, users), INCUBATOR_POD_GROUP)
    read.group(Change(None, ours), POD_GROUP)
    read.group(Change(users, None), INCUBATOR_POD_GROUP)
    assert spoken(read) == (POD_GROUP, 2)
    read.group(Change(ours, None), POD_GROUP)
    assert spoken(read) is None


def test_a_silent_group_that_changes_or_goes_changes_nothing() -> None:
    read = reader()
    ours = group(2, owned=True)
    read.group(Change(None, group(6)), INCUBATOR_POD_GROUP)
    read.group(Change(None, ours), POD_GROUP)
    read.group(Change(ours, group(3, owned=True, version=2, uid="group-2")), POD_GROUP)
    assert spoken(read) == (INCUBATOR_POD_GROUP, 6)
    read.group(Change(ours, None), POD_GROUP)
    assert spoken(read) == (INCUBATOR_POD_GROUP, 6)


def test_our_own_write_counts_before_its_echo_in_any_dialect() -> None:
    read = reader()
    before, echo = group(6), group(6, version=3)
    read.group(Change(None, before), SIGS_POD_GROUP)
    read.wrote(echo)
    read.group(Change(before, group(6, version=2)), SIGS_POD_GROUP)
    assert spoken(read) == (SIGS_POD_GROUP, 6)
    current = read.musters[KEY].group
    assert current is not None and current.metadata.resource_version == "3"


# -- groups of other makers --------------------------------------------------------------------


def native(spec: dict[str, Any], *conditions: Condition) -> PodGroup:
    return PodGroup(
        metadata=ObjectMeta(name="train", namespace="ns", uid="native", generation=1),
        spec=msgspec.convert(spec, PodGroupSpec),
        status=PodGroupStatus(conditions=list(conditions)),
    )


def pod(number: int, *, phase: str = "", node: str = "", **linked: Any) -> Pod:
    meta = ObjectMeta(
        name=f"train-{number}",
        namespace="ns",
        uid=f"pod-{number}",
        labels=linked.get("labels", {}),
        annotations=linked.get("annotations", {}),
    )
    spec = PodSpec(
        scheduler_name="posse", scheduling_group=linked.get("scheduling_group"), node_name=node
    )
    return Pod(metadata=meta, spec=spec, status=PodStatus(phase=phase))


@pytest.mark.parametrize(
    "linked",
    [
        {"annotations": {"scheduling.k8s.io/group-name": "train"}},
        {"annotations": {"scheduling.volcano.sh/group-name": "train"}},
        {"labels": {"scheduling.x-k8s.io/pod-group": "train"}},
        {"labels": {"pod-group.scheduling.sigs.k8s.io/name": "train"}},
        {"scheduling_group": SchedulingGroup(pod_group_name="train")},
    ],
)
def test_every_link_from_a_pod_to_its_group_is_followed(linked: dict[str, Any]) -> None:
    assert Claims(everything=True).gang_of(pod(0, **linked)) == KEY


@pytest.mark.parametrize(
    ("policy", "mode", "minimum", "ends"),
    [
        ({"gang": {"minCount": 4}}, None, 4, ""),
        ({"basic": {}}, None, 1, ""),
        ({"gang": {"minCount": 4}}, "Pod", 4, "severable"),
        ({"gang": {"minCount": 4}}, "PodGroup", 4, "indivisible"),
        ({"gang": {"minCount": 4}}, {"all": {}}, 4, "indivisible"),
        ({"gang": {"minCount": 4}}, {"single": {}}, 4, "severable"),
        ({"basic": {}}, {"all": {}}, 1, "indivisible"),
    ],
)
@pytest.mark.parametrize("kind", NATIVE_POD_GROUPS, ids=lambda kind: kind.version)
def test_a_native_group_is_read(
    kind: Kind, policy: dict[str, Any], mode: Any, minimum: int, ends: str
) -> None:
    read = reader()
    spec = {"schedulingPolicy": policy, "disruptionMode": mode}
    read.group(Change(None, native(spec)), kind)
    facts = facts_of(read.musters[KEY], {})
    assert facts is not None
    assert facts.min_member == minimum
    assert [way for way in ("severable", "indivisible") if getattr(facts, way)] == (
        [ends] if ends else []
    )
    assert facts.grows
    assert facts.loose == ("basic" in policy)


def test_groups_of_other_apis_end_nobody_beyond_their_minimum() -> None:
    terms = read_group(group(2), POD_GROUP)
    assert not (terms.grows or terms.loose or terms.indivisible)


@pytest.mark.parametrize(
    ("own", "of_class", "of_pods", "may"),
    [
        ("", None, None, True),
        ("", None, "Never", False),
        ("", "Never", None, False),
        ("Never", None, None, False),
        ("Never", "PreemptLowerPriority", "PreemptLowerPriority", False),
        ("PreemptLowerPriority", "Never", "Never", True),
    ],
)
def test_a_native_group_that_says_whether_it_preempts_is_believed(
    own: str, of_class: str | None, of_pods: str | None, may: bool
) -> None:
    read = reader()
    spec: dict[str, Any] = {"priorityClassName": "c"} | ({"preemptionPolicy": own} if own else {})
    read.group(Change(None, native(spec)), NATIVE)
    member = pod(0, scheduling_group=SchedulingGroup(pod_group_name="train"))
    member.spec.preemption_policy = of_pods
    read.pod(Change(None, member))
    named = PriorityClass(metadata=ObjectMeta(name="c"), preemption_policy=of_class)
    facts = facts_of(read.musters[KEY], {("", "c"): named})
    assert facts is not None and facts.preempts == may


def test_a_native_priority_outweighs_the_members() -> None:
    read = reader()
    spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, "priority": 7}
    read.group(Change(None, native(spec)), NATIVE)
    read.refresh()
    facts = facts_of(read.musters[KEY], {})
    assert facts is not None and facts.priority == 7


@pytest.mark.parametrize("least", [0, -1, "4", None, True])
def test_a_native_minimum_that_is_none_is_set_aside(least: Any) -> None:
    with pytest.raises(Unreadable, match="minCount"):
        read_group(native({"schedulingPolicy": {"gang": {"minCount": least}}}), NATIVE)


def test_a_native_group_that_is_part_of_another_is_not_placed_by_itself() -> None:
    with pytest.raises(Unreadable, match="CompositePodGroups are not supported"):
        read_group(native({"parentCompositePodGroupName": "whole"}), NATIVE)


@pytest.mark.parametrize(
    ("version", "condition"),
    [
        ("v1alpha2", "PodGroupScheduled"),
        ("v1alpha3", "PodGroupInitiallyScheduled"),
        ("v1beta1", "PodGroupInitiallyScheduled"),
    ],
)
def test_a_native_group_that_was_placed_says_so(version: str, condition: str) -> None:
    kind = next(kind for kind in NATIVE_POD_GROUPS if kind.version == version)
    placed = native({}, Condition(type=condition, status="True"))
    assert read_group(placed, kind).ran
    assert not read_group(native({}, Condition(type=condition, status="False")), kind).ran


def test_a_native_group_gets_its_condition_and_nothing_else() -> None:
    read = reader()
    link = SchedulingGroup(pod_group_name="train")
    read.group(Change(None, native({"schedulingPolicy": {"gang": {"minCount": 2}}})), NATIVE)
    read.pod(Change(None, pod(0, scheduling_group=link)))
    read.refresh()
    muster, world = read.musters[KEY], World.real()
    patch = group_status(muster, {}, Waiting("Unschedulable", "", "needs 8 GPUs"), world)
    (said,) = patch.pop("conditions")
    assert not patch
    assert (said["type"], said["status"], said["reason"], said["message"]) == (
        "PodGroupScheduled",
        "False",
        "Unschedulable",
        "needs 8 GPUs",
    )
    assert "transitionID" not in said and said["lastTransitionTime"]


def test_a_native_group_that_ran_is_not_said_to_have_what_was_asked_of_it_later() -> None:
    read, world = reader(), World.real()
    link = SchedulingGroup(pod_group_name="train")
    first = native({"schedulingPolicy": {"gang": {"minCount": 2}}})
    read.group(Change(None, first), NATIVE)
    for number in range(2):
        read.pod(Change(None, pod(number, phase="Running", node="n", scheduling_group=link)))
    read.refresh()
    (said,) = group_status(read.musters[KEY], {}, None, world)["conditions"]
    assert said["message"] == "at least 2 members have their nodes"
    more = native({"schedulingPolicy": {"gang": {"minCount": 4}}}, msgspec.convert(said, Condition))
    read.group(Change(first, more), NATIVE)
    read.refresh()
    waits = Waiting("GangIncomplete", "", "2 of 4 pods exist")
    assert group_status(read.musters[KEY], {}, waits, world) == {}
    for number in range(2, 4):
        read.pod(Change(None, pod(number, phase="Running", node="n", scheduling_group=link)))
    read.refresh()
    (said,) = group_status(read.musters[KEY], {}, None, world)["conditions"]
    assert said["message"] == "at least 4 members have their nodes"


@pytest.mark.parametrize(
    ("said_of", "phases", "with_so_many"),
    [
        (1, ["Running", "Running"], 3),
        (1, ["Running", "Succeeded"], 2),
        (None, ["Running", "Running"], 0),  # by another scheduler
        (7, ["Running", "Running"], 0),  # of another minimum
    ],
)
def test_a_native_group_that_ran_had_its_minimum(
    said_of: int | None, phases: list[str], with_so_many: int
) -> None:
    """Its status does not count who runs; who went while nobody looked is missed all the same."""
    read = reader()
    placed = Condition(type="PodGroupScheduled", status="True", observed_generation=said_of)
    read.group(
        Change(None, native({"schedulingPolicy": {"gang": {"minCount": 3}}}, placed)), NATIVE
    )
    for number, phase in enumerate(phases):
        link = SchedulingGroup(pod_group_name="train")
        read.pod(Change(None, pod(number, phase=phase, node="n", scheduling_group=link)))
    read.refresh()
    facts = facts_of(read.musters[KEY], {})
    assert facts is not None and facts.started
    assert facts.ran_with == with_so_many


def test_the_condition_of_a_native_group_tells_which_of_its_minimums_was_met() -> None:
    read, world = reader(), World.real()
    link = SchedulingGroup(pod_group_name="train")
    first = native({"schedulingPolicy": {"gang": {"minCount": 2}}})
    read.group(Change(None, first), NATIVE)
    for number in range(2):
        read.pod(Change(None, pod(number, phase="Running", node="n", scheduling_group=link)))
    read.refresh()
    (said,) = group_status(read.musters[KEY], {}, None, world)["conditions"]
    assert said["observedGeneration"] == 1
    again = native(
        {"schedulingPolicy": {"gang": {"minCount": 2}}}, msgspec.convert(said, Condition)
    )
    again.metadata.generation = 2
    read.group(Change(first, again), NATIVE)
    read.refresh()
    (said,) = group_status(read.musters[KEY], {}, None, world)["conditions"]
    assert said["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("bound", "runs"),
    [("2026-01-01T09:59:59Z", True), ("2026-01-01T10:00:01Z", False)],
    ids=["before the group was made", "for the group"],
)
def test_a_gang_that_ran_before_its_group_was_made_anew_runs_on(bound: str, runs: bool) -> None:
    """It asks for more now, and nobody has cut its start short."""
    read = reader()
    anew = native({"schedulingPolicy": {"gang": {"minCount": 3}}})
    anew.metadata.creation_timestamp = "2026-01-01T10:00:00Z"
    read.group(Change(None, anew), NATIVE)
    link = SchedulingGroup(pod_group_name="train")
    for number in range(2):
        member = pod(number, phase="Running", node="n", scheduling_group=link)
        member.status.conditions.append(
            Condition(type="PodScheduled", status="True", last_transition_time=bound)
        )
        read.pod(Change(None, member))
    read.refresh()
    muster = read.musters[KEY]
    facts = facts_of(muster, {})
    assert facts is not None
    assert (facts.started, facts.ran_with, muster.half_bound) == (runs, 2 * runs, not runs)
    waits = Waiting("GangIncomplete", "", "2 of 3 pods exist")
    (said,) = group_status(muster, {}, waits, World.real())["conditions"]
    assert (said["status"], said["message"]) == ("False", "2 of 3 pods exist")


def test_a_native_group_none_of_whose_pods_is_ours_is_left_alone() -> None:
    read = reader()
    read.group(Change(None, native({"schedulingPolicy": {"gang": {"minCount": 2}}})), NATIVE)
    read.refresh()
    waits = Waiting("GangIncomplete", "", "0 of 2 pods exist")
    assert group_status(read.musters[KEY], {}, waits, World.real()) == {}


def test_pods_that_name_a_gang_without_an_object_make_one() -> None:
    read = reader()
    labels = {
        "pod-group.scheduling.sigs.k8s.io/name": "train",
        "pod-group.scheduling.sigs.k8s.io/min-available": "3",
    }
    for number in range(2):
        read.pod(Change(None, pod(number, labels=labels)))
    read.refresh()
    facts = facts_of(read.musters[KEY], {})
    assert facts is not None and facts.min_member == 3


KUBE_BATCHS_MINIMUM = "scheduling.k8s.io/group-min-member"
VOLCANOS_MINIMUM = "scheduling.volcano.sh/group-min-member"


def owned(number: int, job: str, key: str = KUBE_BATCHS_MINIMUM, **said: str) -> Pod:
    made = pod(number, annotations={key: "3", **said})
    made.metadata.owner_references = [
        OwnerReference(kind="Job", name=job, uid=f"uid-of-{job}", controller=True)
    ]
    return made


@pytest.mark.parametrize("key", [KUBE_BATCHS_MINIMUM, VOLCANOS_MINIMUM])
def test_pods_of_one_controller_that_say_how_many_start_together_are_a_gang(key: str) -> None:
    read = reader()
    for number in range(2):
        read.pod(Change(None, owned(number, "mine", key)))
    read.pod(Change(None, owned(2, "other", key)))
    read.refresh()
    found = {
        key: (facts_of(muster, {}), len(muster.members)) for key, muster in read.musters.items()
    }
    assert {
        key: (facts and facts.min_member, number) for key, (facts, number) in found.items()
    } == {
        "ns/uid-of-mine": (3, 2),
        "ns/uid-of-other": (3, 1),
    }


@pytest.mark.parametrize(
    ("mode", "tier", "expected"),
    [
        (None, None, None),
        (None, "2", Topology(required=True, tier=2)),
        ("hard", "2", Topology(required=True, tier=2)),
        ("Soft", "2", Topology(required=False, tier=2)),
        ("near", "2", Topology(required=True, tier=2)),
        ("hard", None, Topology(required=False)),
        ("hard", "two", Topology(required=False)),
    ],
)
def test_pods_of_one_controller_say_how_near_they_sit(
    mode: str | None, tier: str | None, expected: Topology | None
) -> None:
    said = {
        "volcano.sh/network-topology-mode": mode,
        "volcano.sh/network-topology-highest-tier": tier,
    }
    read = reader()
    for number in range(2):
        spoken = {key: value for key, value in said.items() if value is not None}
        read.pod(Change(None, owned(number, "mine", **spoken)))
    read.refresh()
    facts = facts_of(read.musters["ns/uid-of-mine"], {})
    assert facts is not None and facts.topology == expected


@pytest.mark.parametrize(
    ("said", "gang"),
    [
        ({"scheduling.k8s.io/group-name": "train"}, "ns/train"),
        ({"posse.dev/gang": "false"}, "pod:ns/train-0"),
        ({"scheduling.k8s.io/group-min-member": "many"}, "pod:ns/train-0"),
        ({"scheduling.k8s.io/group-min-member": "0"}, "pod:ns/train-0"),
    ],
)
def test_what_a_controllers_pod_says_otherwise_comes_first(said: dict[str, str], gang: str) -> None:
    member = owned(0, "mine", **said)
    assert Claims(everything=True).gang_of(member) == gang
    assert minimum_named_by(member) == 0


def test_a_pod_of_no_controller_is_not_joined_with_others() -> None:
    alone = pod(0, annotations={"scheduling.k8s.io/group-min-member": "3"})
    assert Claims(everything=True).gang_of(alone) == "pod:ns/train-0"


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "1e9", "99999999999"])
def test_a_gang_without_an_object_or_a_number_waits_for_its_group(text: str) -> None:
    read = reader()
    labels = {
        "pod-group.scheduling.sigs.k8s.io/name": "train",
        "pod-group.scheduling.sigs.k8s.io/min-available": text,
    }
    read.pod(Change(None, pod(0, labels=labels)))
    read.refresh()
    why = waiting(read.musters[KEY], None)
    assert why is not None and "PodGroup train, which does not exist" in why.sentence


LABELS = {"scheduling.x-k8s.io/pod-group": "train"}
WAITS = Waiting("Unschedulable", "", "needs 8 GPUs")


@pytest.mark.parametrize(
    ("pods", "phase"),
    [
        ("", "Pending"),
        ("w", "Pending"),
        ("ww", "Scheduling"),
        ("bb", "Scheduling"),
        ("rb", "Scheduling"),
        ("rr", "Running"),
        ("rs", "Running"),
        ("ss", "Finished"),
        ("ssr", "Finished"),
        ("rf", "Failed"),
        ("rrf", "Failed"),
        ("f", "Pending"),
    ],
)
def test_the_scheduler_plugins_phases_are_theirs(pods: str, phase: str) -> None:
    read = reader()
    read.group(Change(None, group(2)), COSCHEDULING_POD_GROUP)
    words = {"w": "Pending", "b": "Pending", "r": "Running", "s": "Succeeded", "f": "Failed"}
    for number, how in enumerate(pods):
        node = "" if how == "w" else "n"
        read.pod(Change(None, pod(number, phase=words[how], node=node, labels=LABELS)))
    read.refresh()
    patch = group_status(read.musters[KEY], {}, WAITS, World.real())
    assert patch.pop("phase") == phase
    assert patch == {
        field: pods.count(field[0])
        for field in ("running", "succeeded", "failed")
        if pods.count(field[0])
    }


def test_a_gang_of_the_scheduler_plugins_that_ran_and_is_short_says_so_and_is_read_so() -> None:
    read = reader()
    read.group(Change(None, group(2)), COSCHEDULING_POD_GROUP)
    pods = [pod(number, phase="Running", node="n", labels=LABELS) for number in range(2)]
    for each in pods:
        read.pod(Change(None, each))
    read.refresh()
    read.pod(Change(pods[0], None))
    read.refresh()
    patch = group_status(read.musters[KEY], {}, None, World.real())
    assert patch["phase"] == "Unknown"
    for phase in ("Unknown", "Failed", "Running"):
        short = group(2)
        short.status.phase = phase
        assert read_group(short, COSCHEDULING_POD_GROUP).ran


def test_a_phase_that_somebody_else_writes_over_ours_stands() -> None:
    read = reader()
    first = group(1)
    read.group(Change(None, first), COSCHEDULING_POD_GROUP)
    read.pod(Change(None, pod(0, phase="Pending", labels=LABELS)))
    read.refresh()
    muster, world = read.musters[KEY], World.real()
    assert group_status(muster, {}, WAITS, world) == {"phase": "Scheduling"}
    muster.last_phase = "Scheduling"
    theirs = group(1, version=2)
    theirs.status.phase = "Pending"
    read.group(Change(first, theirs), COSCHEDULING_POD_GROUP)
    assert group_status(muster, {}, WAITS, world) == {}
    read.pod(Change(None, pod(0, phase="Running", node="n", labels=LABELS)))
    read.refresh()
    assert group_status(muster, {}, None, world) == {"phase": "Running", "running": 1}


def test_pods_with_gates_are_told_of_where_others_wait_for_them() -> None:
    read = reader()
    read.group(Change(None, group(3)), COSCHEDULING_POD_GROUP)
    for number in range(3):
        member = pod(number, labels=LABELS)
        member.spec.scheduling_gates = [SchedulingGate("quota")] if number else []
        read.pod(Change(None, member))
    read.refresh()
    verdict = Verdict(EngineReason.INCOMPLETE, "1 of 3 pods exist; it starts when all of them do")
    why = waiting(read.musters[KEY], verdict)
    assert why is not None and why.sentence == "2 of its pods have scheduling gates (quota)"


@pytest.mark.looptime
async def test_a_definition_that_keeps_no_status_apart_is_written_all_the_same() -> None:
    """Volcano's own, which stays where it was there before us."""
    rig = Rig()
    rig.api.served.remove("podgroups/status")
    rig.nodes(2)
    rig.gang("fits", 2)
    rig.gang("large", 3)
    async with rig.running():
        await rig.until(lambda: len(rig.bound_of("fits")) == 2)
        await rig.settle(10)
        assert rig.api.get("podgroups", "fits")["status"]["phase"] == "Running"
        large = rig.api.get("podgroups", "large")["status"]
        assert large["phase"] == "Inqueue"
        assert "6 GPUs" in large["conditions"][0]["message"]
        settled = len(rig.api.writes)
        await rig.settle(60)
        assert [w for w in rig.api.writes[settled:] if "podgroups" in w.path] == []
        for name in ("fits-0", "fits-1"):
            rig.api.delete("pods", name)
        await rig.settle(10)
        rig.gang("fits", 2)
        await rig.until(lambda: len(rig.bound_of("fits")) == 2)


# -- groups inside of a Workload ---------------------------------------------------------------


def workload(*groups: tuple[str, Any], uid: str = "w") -> Workload:
    policies: list[dict[str, Any]] = [
        {"name": name, "policy": {"basic": {}} if least is None else {"gang": {"minCount": least}}}
        for name, least in groups
    ]
    meta = {"name": "train", "namespace": "ns", "uid": uid}
    return msgspec.convert({"metadata": meta, "spec": {"podGroups": policies}}, Workload)


def referring(number: int, group: str, key: str = "") -> Pod:
    made = pod(number)
    made.spec.workload_ref = WorkloadReference("train", group, key)
    return made


@pytest.mark.parametrize("first", ["pods", "workload"])
def test_groups_inside_of_a_workload_are_gangs_of_their_own(first: str) -> None:
    read = reader()
    told = workload(("workers", 3), ("servers", None))
    if first == "workload":
        read.workload(Change(None, told))
    for number, link in enumerate([("workers", "a"), ("workers", "a"), ("workers", "b")]):
        read.pod(Change(None, referring(number, *link)))
    read.pod(Change(None, referring(3, "servers")))
    if first == "pods":
        read.workload(Change(None, told))
    read.refresh()
    minimums = {}
    for key, muster in read.musters.items():
        facts = facts_of(muster, {})
        assert facts is not None
        minimums[key] = (facts.min_member, len(muster.members))
    assert minimums == {
        "ns/train/workers/a": (3, 2),
        "ns/train/workers/b": (3, 1),
        "ns/train/servers": (1, 1),
    }


def test_a_pod_whose_workload_is_missing_or_has_no_such_group_is_held_back() -> None:
    read = reader()
    read.pod(Change(None, referring(0, "workers")))
    read.refresh()
    muster = read.musters["ns/train/workers"]
    for _ in range(2):
        assert facts_of(muster, {}) is None
        why = waiting(muster, None)
        assert why is not None
        assert why.sentence == "waits for a group workers in Workload train, which does not exist"
        read.workload(Change(None, workload(("others", 2))))
        read.refresh()


def test_a_workload_that_makes_no_sense_is_set_aside_and_its_pods_held_back() -> None:
    read = reader()
    read.pod(Change(None, referring(0, "workers")))
    read.workload(Change(None, workload(("workers", 1))))
    read.refresh()
    assert facts_of(read.musters["ns/train/workers"], {}) is not None
    read.workload(Change(workload(("workers", 1)), workload(("workers", 0))))
    read.refresh()
    assert facts_of(read.musters["ns/train/workers"], {}) is None


@pytest.mark.looptime
async def test_a_gang_without_an_object_is_told_of_on_its_first_pod() -> None:
    rig = Rig()
    rig.nodes(2)
    said = {"scheduling.k8s.io/group-min-member": "3"}
    for number in range(2):
        rig.api.put("pods", rig_pod(f"train-{number}", annotations=said))
    async with rig.running():
        await rig.until(lambda: rig.events("train-0"))
        sentence = "2 of 3 pods exist; it starts when all of them do"
        assert rig.events("train-0") == [("FailedScheduling", sentence)]
        rig.nodes(3)
        rig.api.put("pods", rig_pod("train-2", annotations=said))
        await rig.until(lambda: len(rig.bound_of("train")) == 3)
        await rig.until(lambda: len(rig.events("train-0")) == 2)
        assert rig.events("train-0")[1] == ("Scheduled", "bound 3 pods to 3 nodes")
        assert rig.events("train-1") == rig.events("train-2") == []


@pytest.mark.looptime
async def test_a_gang_of_a_workload_starts_whole() -> None:
    rig = Rig()
    rig.api.served.add("workloads")
    rig.nodes(3)
    policy = {"gang": {"minCount": 3}}
    groups = {"podGroups": [{"name": "workers", "policy": policy}]}
    rig.api.put("workloads", {"metadata": {"name": "train"}, "spec": groups})
    link = {"name": "train", "podGroup": "workers", "podGroupReplicaKey": "0"}
    for number in range(2):
        rig.api.put("pods", rig_pod(f"train-{number}", workloadRef=link))
    async with rig.running():
        await rig.settle(10)
        assert rig.bound_of("train") == {}
        rig.api.put("pods", rig_pod("train-2", workloadRef=link))
        await rig.until(lambda: len(rig.bound_of("train")) == 3)
