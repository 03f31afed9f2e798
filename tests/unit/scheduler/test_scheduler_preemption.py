"""Ending others to start: from objects to what is written, and through faults."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, TypeVar

import msgspec
import pytest

from posse.engine.facts import BudgetFacts, Shape, requests_of
from posse.engine.fit.terms import Requirement, Selector
from posse.engine.policy import Policy
from posse.kube.connection import Connection
from posse.objects import keys
from posse.objects.budgets import PodDisruptionBudget
from posse.objects.groups import PodGroup, PriorityClass
from posse.objects.pods import Pod
from posse.scheduler.config import SchedulerConfig
from posse.scheduler.program import run
from posse.scheduler.reading.briefing import facts_of
from posse.scheduler.reading.budgets import read_budget
from posse.scheduler.reading.groups import read_count, read_group
from posse.scheduler.reading.members import Member
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.pods import Place, read_pod
from posse.scheduler.reading.priorities import preempts
from posse.scheduler.reading.quarantine import Unreadable
from tests.unit.scheduler.rig import Rig, crash, group, pod

POLICY = Policy(backfill=False, preemption_hold=60.0)


T = TypeVar("T")


@pytest.fixture
async def rig() -> Rig:
    return Rig()


def _as(model: type[T], obj: dict[str, Any]) -> T:
    return msgspec.convert(obj, model)


def running(rig: Rig, name: str, nodes: list[str], *, labels: dict[str, str] | None = None) -> None:
    """A gang that runs, one pod on each node."""
    rig.api.put("podgroups", group(name, len(nodes)) | {"status": {"phase": "Running"}})
    for index, on in enumerate(nodes):
        made = pod(f"{name}-{index}", name, nodeName=on, priority=0)
        made["metadata"]["labels"] = labels or {}
        made["status"] = {"phase": "Running", "startTime": "2020-09-13T12:00:00Z"}
        rig.api.put("pods", made)


def arriving(rig: Rig, name: str, members: int, priority: int = 10, **spec: Any) -> None:
    rig.api.put("podgroups", group(name, members))
    for index in range(members):
        rig.api.put("pods", pod(f"{name}-{index}", name, priority=priority, **spec))


def evicted(rig: Rig) -> list[str]:
    """Pods that were evicted, in order; rehearsals do not count."""
    return [re.findall(r"pods/([^/]+)/", w.path)[0] for w in rig.api.sent("POST", "eviction$")]


def rehearsed(rig: Rig) -> int:
    attempts = sum(1 for _, _, path in rig.api.attempts if path.endswith("/eviction"))
    return attempts - len(evicted(rig))


# -- what objects say --------------------------------------------------------------------------


def test_a_budget_is_read() -> None:
    budget = _as(
        PodDisruptionBudget,
        {
            "metadata": {"namespace": "ns", "name": "b"},
            "spec": {"selector": {"matchLabels": {"app": "x"}}, "minAvailable": 1},
            "status": {"disruptionsAllowed": 2, "currentHealthy": 3},
        },
    )
    selector = Selector((Requirement("app", "In", ("x",)),))
    assert read_budget(budget) == BudgetFacts("ns", "b", selector, 2)


def test_a_budget_that_nobody_reckoned_allows_nothing() -> None:
    budget = _as(
        PodDisruptionBudget,
        {"metadata": {"namespace": "ns", "name": "b"}, "spec": {"selector": {}}, "status": None},
    )
    assert read_budget(budget) == BudgetFacts("ns", "b", Selector(()), 0)


def test_a_budget_without_a_selector_speaks_of_no_pod() -> None:
    budget = _as(PodDisruptionBudget, {"metadata": {"namespace": "ns", "name": "b"}})
    assert read_budget(budget).selector is None


@pytest.mark.parametrize("text", ["", "-1", "1.5", "many", "٣", "1" * 20])
def test_a_count_of_evictions_that_is_none_is_not_guessed_at(text: str) -> None:
    with pytest.raises(Unreadable):
        read_count({keys.EVICTIONS: text}, keys.EVICTIONS)


@pytest.mark.parametrize(
    ("where", "value", "expected"),
    [
        ("annotations", "false", False),
        ("annotations", "False", False),
        ("annotations", "true", True),
        ("labels", "false", False),
        ("labels", "1", True),
        ("annotations", "0", False),
        ("annotations", "no", False),
        ("annotations", "", False),
    ],
)
def test_a_group_may_say_that_it_is_not_to_be_ended(where: str, value: str, expected: bool) -> None:
    meta = {"name": "g", "namespace": "ns", where: {keys.PREEMPTABLE: value}}
    terms = read_group(_as(PodGroup, {"metadata": meta, "spec": {"minMember": 1}}))
    assert terms.preemptable is expected


@pytest.mark.parametrize(
    ("meta", "spec", "expected"),
    [
        ({}, {}, True),
        ({"annotations": {keys.PREEMPTABLE: "false"}}, {}, False),
        ({"labels": {keys.PREEMPTABLE: "false"}}, {}, False),
        ({"namespace": "kube-system"}, {}, False),
        ({}, {"priorityClassName": "system-node-critical"}, False),
        ({}, {"priorityClassName": "system-cluster-critical"}, False),
        ({}, {"priorityClassName": "critical"}, True),
    ],
)
def test_a_pod_that_is_not_to_be_ended(
    meta: dict[str, Any], spec: dict[str, Any], expected: bool
) -> None:
    document = pod("a", **spec)
    document["metadata"] = {"name": "a", "namespace": "ns", **meta}
    facts = read_pod(_as(Pod, document), None, Shape(requests_of({})))
    assert facts.preemptable is expected


@pytest.mark.parametrize(
    ("of_group", "of_pods", "expected"),
    [
        ({}, [{}, {}], None),
        ({}, [{}, {"labels": {keys.COOLDOWN_TIME: "10m"}}], 600.0),
        ({}, [{"annotations": {keys.COOLDOWN_TIME: "90s"}}, {"labels": {keys.COOLDOWN_TIME: "1m"}}],
         90.0),
        ({}, [{"labels": {keys.COOLDOWN_TIME: "soon"}}], None),
        ({keys.MIN_RUNTIME: "5s"}, [{"labels": {keys.COOLDOWN_TIME: "10m"}}], 5.0),
        ({keys.MIN_RUNTIME: "0s"}, [{"labels": {keys.COOLDOWN_TIME: "10m"}}], 0.0),
    ],
)  # fmt: skip
def test_how_long_a_gang_is_left_alone(
    of_group: dict[str, str], of_pods: list[dict[str, dict[str, str]]], expected: float | None
) -> None:
    muster = Muster("ns/g")
    said = group("g", 1) | {"metadata": {"name": "g", "annotations": of_group}}
    muster.take_group(_as(PodGroup, said), read_group(_as(PodGroup, said)), "")
    for at, meta in enumerate(of_pods):
        document = pod(f"g-{at}", "g") | {"metadata": {"name": f"g-{at}", "uid": f"{at}", **meta}}
        muster.put(Member(_as(Pod, document), Place.RUNNING))
    facts = facts_of(muster, {})
    assert facts is not None
    assert facts.min_runtime == expected
    for at in range(len(of_pods)):
        muster.drop(f"{at}")
    without = facts_of(muster, {})
    assert without is not None
    assert without.min_runtime == (expected if of_group else None)


def test_the_class_of_the_group_and_each_member_may_forbid_it_to_preempt() -> None:
    never = PriorityClass(value=5, preemption_policy="Never")
    classes = {("", "meek"): never, ("", "bold"): PriorityClass(value=5)}
    assert not preempts("meek", classes, [""])
    assert preempts("bold", classes, [""])
    assert not preempts("bold", classes, ["Never"])
    assert not preempts("", classes, ["", "Never"])
    assert preempts("unknown", classes, ["", "PreemptLowerPriority"])


# -- the whole of it ---------------------------------------------------------------------------


@pytest.mark.looptime
async def test_victims_end_and_the_gang_starts_where_they_were(rig: Rig) -> None:
    rig.nodes(2)
    running(rig, "old", ["n0", "n1"])
    arriving(rig, "new", 2)
    async with rig.running(policy=POLICY):
        await rig.until(lambda: len(rig.bound_of("new")) == 2)
        await rig.settle()
    assert sorted(evicted(rig)) == ["old-0", "old-1"]
    assert rig.api.get("podgroups", "old")["metadata"]["annotations"][keys.EVICTIONS] == "1"
    assert keys.KEEPS not in rig.api.get("podgroups", "new")["metadata"]["annotations"]
    assert rig.phase("old") == "Inqueue"
    assert ("Preempted", "2 pods ended for ns/new: priority 10 comes before 0") in rig.events("old")
    assert ("PreemptsOthers", "ended 2 pods of ns/old to start") in rig.events("new")
    rig.check()


@pytest.mark.looptime
async def test_what_must_outlive_us_is_written_before_the_first_eviction(rig: Rig) -> None:
    rig.nodes(2)
    running(rig, "old", ["n0", "n1"])
    arriving(rig, "new", 2)
    async with rig.running(policy=POLICY):
        await rig.until(lambda: len(rig.bound_of("new")) == 2)
    paths = [(write.method, write.path, write.document) for write in rig.api.writes]
    first = next(at for at, (_, path, _) in enumerate(paths) if path.endswith("/eviction"))
    before = [document for _, _, document in paths[:first]]
    written = [
        d["metadata"]["annotations"] for d in before if d.get("metadata", {}).get("annotations")
    ]
    kept = next(json.loads(a[keys.KEEPS]) for a in written if a.get(keys.KEEPS))
    assert kept["purpose"] == "preemption"
    assert kept["seats"] == {"": ["n0", "n1"]}
    assert any(a.get(keys.EVICTIONS) == "1" for a in written)
    marks = [
        d["status"]["conditions"][0]
        for d in before
        if "status" in d and "conditions" in d["status"]
    ]
    marked = [m for m in marks if m["type"] == "DisruptionTarget"]
    assert marked and {(m["status"], m["reason"]) for m in marked} == {
        ("True", "PreemptionByScheduler")
    }


@pytest.mark.looptime
async def test_a_pod_that_must_not_preempt_waits(rig: Rig) -> None:
    rig.nodes(1)
    running(rig, "old", ["n0"])
    arriving(rig, "new", 1, preemptionPolicy="Never")
    async with rig.running(policy=POLICY):
        await rig.settle(5)
    assert evicted(rig) == []


@pytest.mark.looptime
async def test_a_gang_with_a_protected_pod_is_spared(rig: Rig) -> None:
    rig.nodes(2)
    running(rig, "old", ["n0", "n1"])
    rig.api.change("pods", "old-1", metadata={"annotations": {keys.PREEMPTABLE: "false"}})
    arriving(rig, "new", 1)
    async with rig.running(policy=POLICY):
        await rig.settle(5)
    assert evicted(rig) == []


@pytest.mark.looptime
async def test_a_gang_ended_too_often_is_spared(rig: Rig) -> None:
    rig.nodes(1)
    running(rig, "old", ["n0"])
    rig.api.change("podgroups", "old", metadata={"annotations": {keys.EVICTIONS: "3"}})
    arriving(rig, "new", 1)
    async with rig.running(policy=POLICY):
        await rig.settle(5)
    assert evicted(rig) == []


@pytest.mark.looptime
async def test_a_single_pod_preempts_another(rig: Rig) -> None:
    rig.nodes(1)
    one = pod("old-0", nodeName="n0", priority=0, owned=False)
    rig.api.put("pods", one | {"status": {"phase": "Running"}})
    rig.api.put("pods", pod("new-0", priority=5))
    async with rig.running(policy=POLICY):
        await rig.until(lambda: rig.api.placed().get("new-0") == "n0")
    assert evicted(rig) == ["old-0"]


# -- budgets -----------------------------------------------------------------------------------


def budget(rig: Rig, app: str, allowed: int) -> None:
    rig.api.put(
        "poddisruptionbudgets",
        {
            "metadata": {"name": app},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed},
        },
    )


@pytest.mark.looptime
async def test_a_budget_that_does_not_allow_all_of_a_gang_is_not_even_asked(rig: Rig) -> None:
    rig.nodes(2)
    running(rig, "old", ["n0", "n1"], labels={"app": "x"})
    budget(rig, "x", 1)
    arriving(rig, "new", 1)
    async with rig.running(policy=POLICY):
        await rig.settle(5)
        assert evicted(rig) == []
        assert rehearsed(rig) == 0
        budget(rig, "x", 2)
        await rig.until(lambda: rig.bound_of("new"))
    assert sorted(evicted(rig)) == ["old-0", "old-1"]


@pytest.mark.looptime
async def test_a_budget_that_is_used_up_meanwhile_spares_all_and_is_not_pestered(rig: Rig) -> None:
    rig.nodes(2)
    running(rig, "old", ["n0", "n1"], labels={"app": "x"})
    budget(rig, "x", 2)  # what its status still says
    rig.api.budgets["x"] = [0]
    arriving(rig, "new", 2)
    async with rig.running(policy=POLICY):
        await rig.settle(30)
        assert evicted(rig) == []
        assert rehearsed(rig) < 60
        assert keys.KEEPS not in rig.api.get("podgroups", "new")["metadata"]["annotations"]
        assert not rig.api.condition("pods", "old-0", "DisruptionTarget")
        rig.api.budgets["x"] = [2]
        await rig.until(lambda: len(rig.bound_of("new")) == 2, within=120)
    rig.check()


@pytest.mark.looptime
async def test_a_budget_that_refuses_halfway_is_asked_again_until_it_allows(rig: Rig) -> None:
    rig.nodes(2)
    running(rig, "old", ["n0", "n1"], labels={"app": "x"})
    budget(rig, "x", 2)
    rig.api.budgets["x"] = [1]
    arriving(rig, "new", 2)
    async with rig.running(policy=POLICY):
        await rig.until(lambda: len(evicted(rig)) == 1)
        await rig.settle(5)
        assert rig.bound_of("new") == {}
        rig.api.budgets["x"] = [1]
        await rig.until(lambda: len(rig.bound_of("new")) == 2)
    assert len(evicted(rig)) == 2
    rig.check()


@pytest.mark.looptime
async def test_a_budget_that_never_allows_the_rest_leaves_it_and_says_so(rig: Rig) -> None:
    rig.nodes(2)
    running(rig, "old", ["n0", "n1"], labels={"app": "x"})
    budget(rig, "x", 2)
    rig.api.budgets["x"] = [1]
    arriving(rig, "new", 2)
    async with rig.running(policy=POLICY):
        await rig.until(lambda: len(evicted(rig)) == 1)
        budget(rig, "x", 0)
        await rig.until(
            lambda: any(reason == "PreemptsOthers" for reason, _ in rig.events("new")), within=120
        )
        await rig.settle()
    (left,) = [name for name in ("old-0", "old-1") if name in rig.api.placed()]
    assert rig.api.condition("pods", left, "DisruptionTarget")["status"] == "False"
    assert rig.bound_of("new") == {}
    told = dict(rig.events("new"))["PreemptsOthers"]
    assert "1 pod stayed" in told and "disruption budget" in told
    rig.check()


# -- room that is slow to come free ------------------------------------------------------------


@pytest.mark.looptime
async def test_room_is_kept_while_victims_end(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.lingering = True
    running(rig, "old", ["n0", "n1"])
    arriving(rig, "new", 2)
    async with rig.running(policy=POLICY):
        await rig.until(lambda: len(evicted(rig)) == 2)
        await rig.settle()
        said = rig.api.condition("podgroups", "new", "Unschedulable")["message"]
        assert said == "waits for 2 pods of ns/old to end: they were preempted for it"
        rig.api.delete("pods", "old-0")
        arriving(rig, "small", 1, priority=0)
        await rig.settle()
        assert rig.bound_of("small") == {}
        rig.api.delete("pods", "old-1")
        await rig.until(lambda: len(rig.bound_of("new")) == 2)
    rig.check()


@pytest.mark.looptime
async def test_a_victim_that_never_ends_is_not_waited_for_for_ever(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.lingering = True
    running(rig, "old", ["n0"])
    running(rig, "other", ["n1"])
    rig.api.change("pods", "other-0", status={"startTime": "2019-09-13T12:00:00Z"})
    arriving(rig, "new", 1)
    async with rig.running(policy=POLICY):
        await rig.until(lambda: len(evicted(rig)) == 1)
        first = evicted(rig)[0]
        await rig.until(lambda: len(evicted(rig)) == 2, within=90)
        second = evicted(rig)[1]
        assert first != second
        rig.api.delete("pods", second)
        await rig.until(lambda: rig.bound_of("new"))
    rig.check()


@pytest.mark.looptime
async def test_a_node_that_goes_while_its_room_is_waited_for(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.lingering = True
    running(rig, "old", ["n0"])
    running(rig, "other", ["n1"])
    arriving(rig, "new", 1)
    async with rig.running(policy=POLICY):
        await rig.until(lambda: len(evicted(rig)) == 1)
        await rig.settle(1)
        on = rig.api.get("pods", evicted(rig)[0])["spec"]["nodeName"]
        rig.api.delete("nodes", on)
        await rig.until(lambda: len(evicted(rig)) == 2)
        rig.api.delete("pods", evicted(rig)[1])
        await rig.until(lambda: rig.bound_of("new"))


# -- successors --------------------------------------------------------------------------------


@pytest.mark.looptime
async def test_a_successor_keeps_the_room_of_pods_that_still_end(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.lingering = True
    running(rig, "old", ["n0", "n1"])
    arriving(rig, "new", 2)
    async with rig.running(policy=POLICY):
        await rig.until(lambda: len(evicted(rig)) == 2)
    arriving(rig, "small", 1, priority=0)
    async with rig.running(policy=POLICY, identity="two"):
        await rig.settle(30)
        rig.api.delete("pods", "old-0")
        await rig.settle()
        assert rig.bound_of("small") == {}
        rig.api.delete("pods", "old-1")
        await rig.until(lambda: len(rig.bound_of("new")) == 2)
    assert len(evicted(rig)) == 2
    rig.check()


@pytest.mark.looptime
@pytest.mark.parametrize("evictions", range(4))
async def test_a_crash_among_the_evictions_is_made_good(rig: Rig, evictions: int) -> None:
    """After the keeps were written and so many victims evicted, the scheduler is no more."""
    rig.nodes(4)
    running(rig, "old", [f"n{at}" for at in range(4)])
    arriving(rig, "new", 4)

    def fault(method: str, path: str) -> str | None:
        if path.endswith("/eviction") and len(evicted(rig)) >= evictions and done():
            return "drop"
        return None

    def done() -> bool:
        annotations = rig.api.get("podgroups", "old")["metadata"]["annotations"]
        return bool(annotations.get(keys.EVICTIONS))

    rig.api.fault = fault
    task = asyncio.create_task(
        run(
            SchedulerConfig(identity="one", policy=POLICY),
            Connection(rig.api, rig.world),
            rig.world,
        )
    )
    await rig.until(lambda: done() and len(evicted(rig)) >= evictions)
    await rig.settle(1)
    await crash(task)
    rig.api.fault = lambda method, path: None
    async with rig.running(policy=POLICY, identity="two"):
        await rig.until(lambda: len(rig.bound_of("new")) == 4, within=120)
        await rig.settle()
    assert rig.bound_of("old") == {}
    assert sorted(set(evicted(rig))) == [f"old-{at}" for at in range(4)]
    rig.check()


@pytest.mark.looptime
async def test_answers_that_are_lost_evict_nobody_twice(rig: Rig) -> None:
    rig.nodes(3)
    running(rig, "old", ["n0", "n1", "n2"])
    arriving(rig, "new", 3)
    lost: list[str] = []

    def fault(method: str, path: str) -> str | None:
        if path.endswith("/eviction") and path not in lost and len(lost) < 6:
            lost.append(path)
            return "lose"
        return None

    rig.api.fault = fault
    async with rig.running(policy=POLICY):
        await rig.until(lambda: len(rig.bound_of("new")) == 3)
    assert sorted(evicted(rig)) == ["old-0", "old-1", "old-2"]
    rig.check()


@pytest.mark.looptime
@pytest.mark.parametrize("what", ["/eviction", "/status"])
async def test_who_was_written_by_somebody_else_just_then_is_evicted_all_the_same(
    rig: Rig, what: str
) -> None:
    """A conflict does not say that the pod is gone: it stayed, and counted as ended for ever."""
    rig.nodes(2)
    running(rig, "old", ["n0", "n1"])
    arriving(rig, "new", 2)
    refused: list[str] = []

    def fault(method: str, path: str) -> int | None:
        if path.endswith(f"/pods/old-1{what}") and method != "GET" and len(refused) < 2:
            refused.append(path)
            return 409
        return None

    rig.api.fault = fault
    async with rig.running(policy=POLICY):
        await rig.until(lambda: len(rig.bound_of("new")) == 2)
    assert refused and rig.bound_of("old") == {}
    rig.check()


@pytest.mark.looptime
async def test_a_victim_that_returns_waits_and_is_not_counted_again(rig: Rig) -> None:
    rig.nodes(1)
    running(rig, "old", ["n0"])
    arriving(rig, "new", 1)
    async with rig.running(policy=POLICY):
        await rig.until(lambda: rig.bound_of("new"))
        rig.api.put("pods", pod("old-0", "old", priority=0))
        await rig.settle(10)
        assert rig.bound_of("old") == {}
        rig.api.delete("pods", "new-0")
        await rig.until(lambda: rig.bound_of("old"))
    assert rig.api.get("podgroups", "old")["metadata"]["annotations"][keys.EVICTIONS] == "1"
    assert evicted(rig) == ["old-0"]


@pytest.mark.looptime
async def test_a_frozen_policy_ends_nobody(rig: Rig) -> None:
    rig.nodes(1)
    running(rig, "old", ["n0"])
    arriving(rig, "new", 1)
    async with rig.running(policy=Policy(frozen=True)):
        await rig.settle(5)
    assert rig.api.attempts and not [a for a in rig.api.attempts if a[2].endswith("/eviction")]
