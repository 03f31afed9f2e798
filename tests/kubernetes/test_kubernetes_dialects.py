"""Groups in the words of others, on a real API server: what they say and what is said on them."""

from __future__ import annotations

from typing import Any

import pytest

from posse.kube.errors import NotFound
from posse.objects import kinds
from posse.objects.keys import EXPECTS, HELD
from posse.objects.kinds import Kind
from tests.cluster.backends import Riding
from tests.cluster.riding import cluster

NATIVE = next(kind for kind in kinds.NATIVE_POD_GROUPS if kind.version == "v1alpha2")


def gang(least: int, **more: Any) -> dict[str, Any]:
    return {"schedulingPolicy": {"gang": {"minCount": least}}, **more}


def member(name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "schedulerName": "posse",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "train",
                    "resources": {"limits": {"nvidia.com/gpu": "1"}},
                }
            ],
            **spec,
        },
    }


async def bound(running: Riding, names: list[str]) -> list[bool]:
    pods = [await running.connection.get(kinds.POD, name, running.namespace) for name in names]
    return [bool(pod["spec"].get("nodeName")) for pod in pods]


async def condition(running: Riding, kind: Kind, name: str, which: str) -> dict[str, Any]:
    group = await running.connection.get(kind, name, running.namespace)
    said = (group.get("status") or {}).get("conditions") or []
    return next((one for one in said if one["type"] == which), {})


@pytest.fixture
async def running() -> Any:
    async with cluster(2, gpus=2) as ride:
        try:
            await ride.connection.resources(NATIVE.group, NATIVE.version)
        except NotFound:
            pytest.skip(f"this API server does not serve {NATIVE.api_version}")
        yield ride


async def test_a_native_gang_waits_whole_and_says_why_and_then_starts_whole(
    running: Riding,
) -> None:
    names = [f"five-{number}" for number in range(5)]
    link: dict[str, Any] = {"schedulingGroup": {"podGroupName": "five"}}
    for name in names:
        await running.connection.create(kinds.POD, member(name, **link), running.namespace)
    group = {"metadata": {"name": "five"}, "spec": gang(5)}
    await running.connection.create(NATIVE, group, running.namespace)

    async def says_why() -> bool:
        said = await condition(running, NATIVE, "five", "PodGroupScheduled")
        return said.get("status") == "False" and "5 GPUs" in said["message"]

    await running.until(says_why, "the group says why it waits")
    assert not any(await bound(running, names))

    names = [f"four-{number}" for number in range(4)]
    link = {"schedulingGroup": {"podGroupName": "four"}}
    group = {"metadata": {"name": "four"}, "spec": gang(4)}
    await running.connection.create(NATIVE, group, running.namespace)
    for name in names:
        await running.connection.create(kinds.POD, member(name, **link), running.namespace)

    async def started() -> bool:
        said = await condition(running, NATIVE, "four", "PodGroupScheduled")
        return said.get("status") == "True" and all(await bound(running, names))

    await running.until(started, "the gang that fits is placed, and its group says so")


async def test_a_pod_whose_native_group_is_missing_is_held_back(running: Riding) -> None:
    pod = member("lone", schedulingGroup={"podGroupName": "absent"})
    await running.connection.create(kinds.POD, pod, running.namespace)

    async def told() -> bool:
        found = await running.connection.get(kinds.POD, "lone", running.namespace)
        said = [c for c in found["status"].get("conditions", []) if c["type"] == "PodScheduled"]
        return bool(said) and "does not exist" in said[0].get("message", "")

    await running.until(told, "the pod says that its group does not exist")
    assert await bound(running, ["lone"]) == [False]


async def test_a_seat_is_held_in_a_native_group(running: Riding) -> None:
    expects = '[{"role": "launcher", "count": 1, "requests": {"nvidia.com/gpu": "1"}}]'
    group = {"metadata": {"name": "led", "annotations": {EXPECTS: expects}}, "spec": gang(1)}
    await running.connection.create(NATIVE, group, running.namespace)
    pod = member("led-0", schedulingGroup={"podGroupName": "led"})
    await running.connection.create(kinds.POD, pod, running.namespace)

    async def held() -> bool:
        found = await running.connection.get(NATIVE, "led", running.namespace)
        return HELD in (found["metadata"].get("annotations") or {})

    await running.until(held, "the launcher's seat is held")


async def test_others_end_for_every_pod_of_a_group_without_a_minimum(running: Riding) -> None:
    urgent = {"metadata": {"name": "dialects-urgent"}, "value": 1000}
    await running.connection.create(kinds.PRIORITY_CLASS, urgent)
    low, names = [f"low-{at}" for at in range(4)], [f"each-{at}" for at in range(4)]
    try:
        for name in low:
            await running.connection.create(kinds.POD, member(name), running.namespace)

        async def full() -> bool:
            return all(await bound(running, low))

        await running.until(full, "pods without a group take all the room")
        spec = {"schedulingPolicy": {"basic": {}}, "priorityClassName": "dialects-urgent"}
        group = {"metadata": {"name": "each"}, "spec": spec}
        await running.connection.create(NATIVE, group, running.namespace)
        link: dict[str, Any] = {
            "schedulingGroup": {"podGroupName": "each"},
            "priorityClassName": "dialects-urgent",
        }
        for name in names:
            await running.connection.create(kinds.POD, member(name, **link), running.namespace)

        async def taken_over() -> bool:
            return all(await bound(running, names))

        await running.until(taken_over, "each of the group has the room of another")
        for name in names:
            found = await running.connection.get(kinds.POD, name, running.namespace)
            assert "nominatedNodeName" not in found["status"]
    finally:
        await running.connection.delete(kinds.PRIORITY_CLASS, "dialects-urgent")


async def test_a_gang_of_the_scheduler_plugins_starts_whole(running: Riding) -> None:
    kind = kinds.COSCHEDULING_POD_GROUP
    labels = {"scheduling.x-k8s.io/pod-group": "plugged"}
    group = {"metadata": {"name": "plugged"}, "spec": {"minMember": 2}}
    await running.connection.create(kind, group, running.namespace)
    await running.connection.create(
        kinds.POD, member("plugged-0", labels=labels), running.namespace
    )

    async def told() -> bool:
        found = await running.connection.get(kinds.POD, "plugged-0", running.namespace)
        said = [c for c in found["status"].get("conditions", []) if c["type"] == "PodScheduled"]
        return bool(said) and "1 of 2 pods" in said[0].get("message", "")

    await running.until(told, "one of two waits for the other")
    await running.connection.create(
        kinds.POD, member("plugged-1", labels=labels), running.namespace
    )

    async def placed() -> bool:
        found = await running.connection.get(kind, "plugged", running.namespace)
        pods = [
            await running.connection.get(kinds.POD, f"plugged-{at}", running.namespace)
            for at in range(2)
        ]
        phase = (found.get("status") or {}).get("phase")
        return all(pod["spec"].get("nodeName") for pod in pods) and phase in (
            "Scheduling",
            "Running",
        )

    await running.until(placed, "both are placed, and the group says how far they are")


async def test_a_gang_that_only_labels_name_starts_whole(running: Riding) -> None:
    labels = {
        "pod-group.scheduling.sigs.k8s.io/name": "bare",
        "pod-group.scheduling.sigs.k8s.io/min-available": "3",
    }
    names = [f"bare-{number}" for number in range(3)]
    for name in names[:2]:
        await running.connection.create(kinds.POD, member(name, labels=labels), running.namespace)

    async def told() -> bool:
        found = await running.connection.get(kinds.POD, "bare-0", running.namespace)
        said = [c for c in found["status"].get("conditions", []) if c["type"] == "PodScheduled"]
        return bool(said) and "2 of 3 pods" in said[0].get("message", "")

    await running.until(told, "two of three wait for the third")
    await running.connection.create(kinds.POD, member(names[2], labels=labels), running.namespace)

    async def whole() -> bool:
        return all(await bound(running, names))

    await running.until(whole, "all three have their nodes")


async def test_a_native_gang_sits_in_one_domain_of_its_label(running: Riding) -> None:
    """One GPU of the first rack is taken, so that only the second has room for both."""
    nodes = (await running.connection.list(kinds.NODE)).items
    for number, node in enumerate(nodes):
        labels = {"example.com/rack": f"rack-{number}"}
        await running.connection.patch(
            kinds.NODE, node["metadata"]["name"], {"metadata": {"labels": labels}}
        )
    second = nodes[1]["metadata"]["name"]
    taken = member("taken", nodeSelector={"example.com/rack": "rack-0"})
    await running.connection.create(kinds.POD, taken, running.namespace)

    async def there() -> bool:
        return all(await bound(running, ["taken"]))

    await running.until(there, "one GPU is taken")
    constraint = {"topology": [{"key": "example.com/rack"}]}
    for name, least in (("near", 2), ("far", 3)):
        group = {
            "metadata": {"name": name},
            "spec": gang(least, schedulingConstraints=constraint, disruptionMode="PodGroup"),
        }
        await running.connection.create(NATIVE, group, running.namespace)
        for number in range(least):
            pod = member(f"{name}-{number}", schedulingGroup={"podGroupName": name})
            await running.connection.create(kinds.POD, pod, running.namespace)

    async def placed() -> bool:
        return all(await bound(running, ["near-0", "near-1"]))

    await running.until(placed, "the gang that one rack has room for is placed")
    for name in ("near-0", "near-1"):
        pod = await running.connection.get(kinds.POD, name, running.namespace)
        assert pod["spec"]["nodeName"] == second

    async def says_why() -> bool:
        said = await condition(running, NATIVE, "far", "PodGroupScheduled")
        return said.get("status") == "False" and "rack" in said["message"]

    await running.until(says_why, "the gang that no rack can take says so")
    assert not any(await bound(running, [f"far-{number}" for number in range(3)]))
