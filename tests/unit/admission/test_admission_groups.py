"""PodGroups, queues and pods at the door."""

from __future__ import annotations

from typing import Any

import pytest

from posse.admission.review import Stage
from posse.kube.errors import Unreachable
from posse.objects.keys import GROUP_NAME, HELD, KEEPS, NAMESPACES, QUEUE_NAME
from posse.objects.kinds import POD_GROUPS, QUEUE, Kind
from tests.unit.admission.questions import (
    Known,
    Object,
    Rights,
    answer,
    asking,
    fields,
    namespace,
    patched,
    pod_group,
    queue,
)

_OWNED = {
    "ownerReferences": [
        {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "train", "uid": "1",
         "controller": True}
    ]
}  # fmt: skip
_SEATS = {"annotations": {HELD: '{"launcher": ["node-1"]}'}}


def a_queue(name: str = "team", **spec: Any) -> Object:
    return {
        "apiVersion": QUEUE.api_version,
        "kind": QUEUE.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def a_pod(**annotations: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "annotations": annotations},
        "spec": {"schedulerName": "posse", "containers": [{"name": "main"}]},
    }


@pytest.mark.parametrize("kind", POD_GROUPS)
async def test_every_dialect_of_a_group_is_looked_at(kind: Kind) -> None:
    group = pod_group(-1) | {"apiVersion": kind.api_version}
    assert fields(await answer(asking(group))) == ["spec.minMember"]


GROUPS: list[tuple[str, Object, list[str]]] = [
    ("sound", pod_group(), []),
    ("of nobody", pod_group(0), []),
    ("without a number", pod_group() | {"spec": {}}, []),
    ("a role below nothing", pod_group(minTaskMember={"worker": -1}),
     ["spec.minTaskMember[worker]"]),
    ("resources in words", pod_group(minResources={"cpu": "much"}), ["spec.minResources[cpu]"]),
    ("resources below nothing", pod_group(minResources={"cpu": "-1"}), ["spec.minResources[cpu]"]),
    ("a tier by its number", pod_group(networkTopology={"highestTierAllowed": 1}), []),
    ("a tier by number and name",
     pod_group(networkTopology={"highestTierAllowed": 0, "highestTierName": "rack"}),
     ["spec.networkTopology.highestTierName"]),
    ("so of a part",
     pod_group(subGroupPolicy=[{"networkTopology": {"highestTierName": "rack"}},
                               {"networkTopology": {"highestTierName": "rack",
                                                    "highestTierAllowed": 1}}]),
     ["spec.subGroupPolicy[1].networkTopology.highestTierName"]),
    ("a number in words", pod_group() | {"spec": {"minMember": "two"}}, ["spec"]),
]  # fmt: skip


@pytest.mark.parametrize(("why", "group", "wrong"), GROUPS, ids=[row[0] for row in GROUPS])
async def test_what_a_group_says_must_be_possible(
    why: str, group: Object, wrong: list[str]
) -> None:
    said = await answer(asking(group))
    assert fields(said) == wrong
    assert said.allowed is (not wrong)


async def test_a_group_for_a_queue_that_takes_nothing_in_is_refused() -> None:
    for known in (Known(), Known(queue("q", "Closed"))):
        assert fields(await answer(asking(pod_group(queue="q")), known)) == ["spec.queue"]


async def test_the_group_of_a_job_is_let_in_with_a_warning() -> None:
    """Without it the job would wait and nobody could say why."""
    said = await answer(asking(pod_group(metadata=_OWNED, queue="q")))
    assert said.allowed
    assert said.warnings == ("queue 'q' does not exist",)


async def test_a_group_that_somebody_wrote_gets_the_queue_of_its_namespace() -> None:
    reader = Known(namespace("ns", "team"), queue("team"))
    for group in (pod_group(), pod_group(queue="default")):
        said = await answer(asking(group), reader)
        assert said.allowed
        assert patched(said) == {"/spec/queue": "team"}


@pytest.mark.parametrize("group", [pod_group(queue="own"), pod_group(metadata=_OWNED)])
async def test_a_group_with_a_queue_or_a_job_keeps_what_it_has(group: Object) -> None:
    said = await answer(asking(group), Known(namespace("ns", "team")), stage=Stage.MUTATING)
    assert not said.patch


@pytest.mark.parametrize("key", [HELD, KEEPS])
async def test_held_seats_are_for_those_who_may_bind(key: str) -> None:
    rights = Rights("scheduler")
    seats = {"annotations": {key: "{}"}}
    refused = await answer(asking(pod_group(metadata=seats)), rights=rights)
    assert (refused.allowed, refused.code, refused.reason) == (False, 403, "Forbidden")
    assert key in refused.message
    asked = rights.asked[0]
    assert (asked.verb, asked.resource, asked.subresource) == ("create", "pods", "binding")
    assert asked.namespace == "ns"
    allowed = asking(pod_group(metadata=_SEATS), user="scheduler", old=pod_group())
    assert (await answer(allowed, rights=rights)).allowed


async def test_seats_that_were_held_already_are_no_question() -> None:
    rights = Rights()
    old = pod_group(metadata=_SEATS)
    assert (await answer(asking(pod_group(3, metadata=_SEATS), old=old), rights=rights)).allowed
    assert (await answer(asking(pod_group(), old=old), rights=rights)).allowed
    assert rights.asked == []


async def test_a_right_that_cannot_be_checked_is_for_the_failure_policy() -> None:
    rights = Rights(error=Unreachable("no answer"))
    with pytest.raises(Unreachable):
        await answer(asking(pod_group(metadata=_SEATS)), rights=rights)


WRONG_QUEUES: list[tuple[str, Object, list[str]]] = [
    ("sound", a_queue(weight=1, capability={"cpu": "10"}, deserved={"cpu": "10"}), []),
    ("nothing said", a_queue(), []),
    ("no weight", a_queue(weight=0), ["spec.weight"]),
    ("no quantity", a_queue(capability={"x/gpu": "x"}), ["spec.capability[x/gpu]"]),
    ("below nothing", a_queue(deserved={"cpu": -1}), ["spec.deserved[cpu]"]),
    ("deserves more than it may have", a_queue(deserved={"cpu": "2"}, capability={"cpu": "1500m"}),
     ["spec.deserved[cpu]"]),
    ("is sure of more than it deserves",
     a_queue(guarantee={"resource": {"memory": "2Gi"}}, deserved={"memory": "1Gi"}),
     ["spec.guarantee.resource[memory]"]),
    ("is sure of more than it may have",
     a_queue(guarantee={"resource": {"cpu": 3}}, capability={"cpu": 2}),
     ["spec.guarantee.resource[cpu]"]),
    ("other resources are unlimited", a_queue(deserved={"cpu": 9}, capability={"memory": 1}), []),
    ("a part of itself", a_queue(parent="team"), ["spec.parent"]),
    ("for namespaces that nobody understands",
     {**a_queue(), "metadata": {"name": "team", "annotations": {NAMESPACES: "a b"}}},
     [f"metadata.annotations[{NAMESPACES}]"]),
    ("a capability that is a list", a_queue(capability=["cpu"]), ["spec"]),
]  # fmt: skip


@pytest.mark.parametrize(("why", "given", "wrong"), WRONG_QUEUES, ids=[r[0] for r in WRONG_QUEUES])
async def test_what_a_queue_says_must_be_possible(
    why: str, given: Object, wrong: list[str]
) -> None:
    said = await answer(asking(given))
    assert fields(said) == wrong
    assert said.allowed is (not wrong)


async def test_a_queue_is_refused_for_what_a_change_brings_alone() -> None:
    assert (await answer(asking(a_queue(weight=0, priority=1), old=a_queue(weight=0)))).allowed


async def test_a_tree_of_queues_may_be_built_in_any_order() -> None:
    child = a_queue(parent="all", capability={"cpu": 9})
    lonely = await answer(asking(child))
    assert lonely.allowed
    assert "does not exist" in lonely.warnings[0]
    greedy = await answer(asking(child), Known(queue("all", capability={"cpu": 8})))
    assert greedy.allowed
    assert greedy.warnings == ("spec.capability[cpu] is more than queue 'all' has",)


async def test_the_default_queue_stays() -> None:
    said = await answer(asking(None, old=a_queue("default")))
    assert (said.allowed, said.code) == (False, 403)


async def test_a_queue_with_parts_stays() -> None:
    reader = Known(queue("a", parent="team"), queue("b", parent="team"), queue("c"))
    said = await answer(asking(None, old=a_queue()), reader)
    assert not said.allowed
    assert said.message.endswith("other queues are part of this one: a, b")


async def test_the_root_stays_while_there_are_queues_that_name_no_parent() -> None:
    root = queue("root")
    said = await answer(asking(None, old=a_queue("root")), Known(root, queue("c")))
    assert not said.allowed
    alone = await answer(asking(None, old=a_queue("root")), Known(root, queue("a", parent="c")))
    assert alone.allowed


async def test_a_root_that_nobody_made_is_no_missing_parent() -> None:
    said = await answer(asking(a_queue(parent="root")))
    assert said.allowed
    assert not said.warnings


async def test_a_queue_without_parts_may_go() -> None:
    assert (await answer(asking(None, old=a_queue()), Known(queue("c")))).allowed
    unseen = await answer(asking(None, old=a_queue()), Known(broken=(QUEUE,)))
    assert unseen.allowed
    assert unseen.warnings


PODS = [
    ("for a closed queue", {QUEUE_NAME: "shut"}, "queue 'shut' is closed"),
    ("for a missing queue", {QUEUE_NAME: "gone"}, "queue 'gone' does not exist"),
    ("for an open queue", {QUEUE_NAME: "open"}, ""),
    ("without a queue", {}, ""),
    ("of a group", {QUEUE_NAME: "gone", GROUP_NAME: "g"}, ""),
]


@pytest.mark.parametrize(("why", "annotations", "warned"), PODS, ids=[row[0] for row in PODS])
async def test_a_pod_is_warned_of_and_never_refused(
    why: str, annotations: dict[str, str], warned: str
) -> None:
    reader = Known(queue("open"), queue("shut", "Closed"))
    said = await answer(asking(a_pod(**annotations)), reader)
    assert said.allowed
    assert not said.patch
    assert [words.startswith(warned) for words in said.warnings] == ([True] if warned else [])
