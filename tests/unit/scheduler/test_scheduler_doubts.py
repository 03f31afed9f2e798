"""What an object says that nobody understands keeps nobody from running, and is said once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.objects import keys
from posse.objects.groups import PodGroup
from posse.objects.kinds import NATIVE_POD_GROUPS, POD_GROUP
from posse.objects.pods import Pod
from posse.scheduler.reading.doubts import doubts_of_group, doubts_of_pod
from tests.unit.scheduler.rig import Rig, group, pod

NO_DURATION = "is not a duration such as 30s, 5m or 1h30m; it is ignored"


@pytest.mark.parametrize(
    ("annotations", "labels", "doubt"),
    [
        ({keys.MAX_RUNTIME: "90m", keys.PREEMPTABLE: "false", keys.GANG: "false"}, {}, ""),
        ({keys.MAX_RUNTIME: "2 hours"}, {}, f"{keys.MAX_RUNTIME}: '2 hours' {NO_DURATION}"),
        ({keys.MIN_RUNTIME: "-1h"}, {}, f"{keys.MIN_RUNTIME}: '-1h' {NO_DURATION}"),
        ({keys.START_TIMEOUT: "600"}, {}, f"{keys.START_TIMEOUT}: '600' {NO_DURATION}"),
        ({keys.CHECKPOINT_INTERVAL: ""}, {}, f"{keys.CHECKPOINT_INTERVAL}: '' {NO_DURATION}"),
        ({keys.MAX_RUNTIME: "x" * 9000}, {}, f"{keys.MAX_RUNTIME}: '{'x' * 60}...' {NO_DURATION}"),
        ({}, {keys.COOLDOWN_TIME: "10mins"}, f"{keys.COOLDOWN_TIME}: '10mins' {NO_DURATION}"),
        (
            {keys.PREEMPTABLE: "no"},
            {},
            f"{keys.PREEMPTABLE}: 'no' is neither true nor false; it is taken for false",
        ),
        (
            {keys.GANG: "False"},
            {},
            f"{keys.GANG}: 'False' is neither true nor false; it is taken for true",
        ),
        (
            {keys.GROUP_MIN_MEMBER: "all"},
            {},
            f"{keys.GROUP_MIN_MEMBER}: 'all' is not a whole number from 1 on;"
            " the pod is a gang of its own",
        ),
        ({keys.VOLCANO_GROUP_MIN_MEMBER: "3"}, {}, ""),
        ({keys.GROUP_MIN_MEMBER: "all", keys.GROUP_NAME: "g"}, {}, ""),
        (
            {},
            {keys.BARE_GROUP_LABEL: "g", keys.BARE_MINIMUM_LABEL: "two"},
            f"{keys.BARE_MINIMUM_LABEL}: 'two' is not a whole number from 1 on;"
            " nobody knows how many start together",
        ),
        ({}, {keys.BARE_GROUP_LABEL: "g", keys.BARE_MINIMUM_LABEL: "2"}, ""),
    ],
)
def test_what_a_pod_can_hardly_mean(
    annotations: dict[str, str], labels: dict[str, str], doubt: str
) -> None:
    document = pod("p", annotations=annotations)
    document["metadata"]["labels"] = labels
    assert list(doubts_of_pod(msgspec.convert(document, Pod))) == ([doubt] if doubt else [])


@pytest.mark.parametrize(
    ("spec", "doubt"),
    [
        ({}, ""),
        ({"minMember": None}, ""),
        ({"minMember": 0}, "spec.minMember: 0 is less than 1; it starts with its first pod"),
        ({"minMember": -3}, "spec.minMember: -3 is less than 1; it starts with its first pod"),
        ({"minTaskMember": {"ps": 1, "worker": 2}}, ""),
        (
            {"minTaskMember": {"ps": 1, "worker": 4}},
            "spec.minTaskMember adds up to 5, more than spec.minMember (3); it is ignored",
        ),
    ],
)
def test_what_a_group_can_hardly_mean(spec: dict[str, Any], doubt: str) -> None:
    made = msgspec.convert(group("g", 3, **spec), PodGroup)
    assert list(doubts_of_group(made, POD_GROUP)) == ([doubt] if doubt else [])


def test_a_group_of_kubernetes_has_no_such_minimum() -> None:
    made = msgspec.convert(group("g", 0), PodGroup)
    assert list(doubts_of_group(made, NATIVE_POD_GROUPS[0])) == []


def doubts(rig: Rig, name: str) -> list[str]:
    return [message for reason, message in rig.events(name) if reason == "Doubtful"]


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def test_a_group_starts_though_its_times_make_no_sense(rig: Rig) -> None:
    rig.nodes(2)
    rig.api.put("podgroups", group("train", 2, annotations={keys.START_TIMEOUT: "soon"}))
    for number in range(2):
        rig.api.put("pods", pod(f"train-{number}", "train", annotations={keys.MAX_RUNTIME: "long"}))
    async with rig.running():
        await rig.until(lambda: rig.phase("train") == "Running")
        await rig.settle()
        rig.api.change("podgroups", "train", metadata={"labels": {"touched": "yes"}})
        await rig.settle()
    (said,) = doubts(rig, "train")
    assert said == (
        f"{keys.START_TIMEOUT}: 'soon' {NO_DURATION};"
        f" its pods say {keys.MAX_RUNTIME}: 'long' {NO_DURATION}"
    )


async def test_what_a_group_and_its_pods_say_alike_is_said_once(rig: Rig) -> None:
    rig.nodes(2)
    soon = {keys.MAX_RUNTIME: "soon"}
    async with rig.running():
        rig.api.put("podgroups", group("train", 2, annotations=soon))
        await rig.until(lambda: bool(doubts(rig, "train")))
        for number in range(2):
            rig.api.put("pods", pod(f"train-{number}", "train", annotations=soon))
        await rig.until(lambda: rig.phase("train") == "Running")
        await rig.settle()
    assert doubts(rig, "train") == [f"{keys.MAX_RUNTIME}: 'soon' {NO_DURATION}"]


async def test_a_pod_without_a_group_is_told_itself(rig: Rig) -> None:
    rig.nodes(1)
    async with rig.running():
        rig.api.put("pods", pod("alone", annotations={keys.MAX_RUNTIME: "long"}))
        await rig.until(lambda: "alone" in rig.api.placed())
        rig.api.change("pods", "alone", status={"phase": "Running"})
        await rig.settle()
        assert doubts(rig, "alone") == [f"{keys.MAX_RUNTIME}: 'long' {NO_DURATION}"]
