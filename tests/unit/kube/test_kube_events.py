from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from posse.kube.connection import Connection
from posse.kube.events import LONGEST_QUEUE, Recorder
from posse.kube.inprocess import AsgiTransport
from posse.kube.lulls import Lull
from posse.objects.kinds import NODE, POD, POD_GROUP
from posse.virtual.world import virtual_world
from tests.unit.kube.faults import FaultyTransport, times
from tests.unit.kube.modelserver import Answer, ModelServer, status

pytestmark = pytest.mark.looptime


class Meta(msgspec.Struct):
    name: str
    namespace: str
    uid: str
    resource_version: str


class Group(msgspec.Struct):
    metadata: Meta


def pod(name: str = "p", **fields: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "7"}
    return {"metadata": meta | fields}


@pytest.fixture
def server() -> ModelServer:
    return ModelServer()


@pytest.fixture
def transport(server: ModelServer) -> FaultyTransport:
    return FaultyTransport(AsgiTransport(server))


@pytest.fixture
async def recorder(transport: FaultyTransport) -> AsyncIterator[Recorder]:
    world = virtual_world()
    recorder = Recorder(Connection(transport, world), world, "posse-scheduler")
    running = asyncio.create_task(recorder.run())
    yield recorder
    failed = running.done()
    running.cancel()
    await asyncio.wait({running})
    assert not failed


def events(server: ModelServer) -> list[dict[str, Any]]:
    return list(server.names("events").values())


async def test_an_event_says_what_happened_to_what(server: ModelServer, recorder: Recorder) -> None:
    recorder.record(pod(), "Scheduled", "placed on node-1", kind=POD)
    await asyncio.sleep(1)
    (event,) = events(server)
    assert event["metadata"]["namespace"] == "ns"
    assert event["metadata"]["name"].startswith("p.")
    assert {key: value for key, value in event.items() if key != "metadata"} == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "ns",
            "name": "p",
            "uid": "uid-p",
            "resourceVersion": "7",
        },
        "reason": "Scheduled",
        "message": "placed on node-1",
        "type": "Normal",
        "source": {"component": "posse-scheduler"},
        "reportingComponent": "posse-scheduler",
        "reportingInstance": "",
        "firstTimestamp": "2020-09-13T12:26:40Z",
        "lastTimestamp": "2020-09-13T12:26:40Z",
        "count": 1,
    }


async def test_models_and_custom_kinds(server: ModelServer, recorder: Recorder) -> None:
    recorder.record(
        Group(Meta("g", "ns", "u", "3")), "Unschedulable", "short", kind=POD_GROUP, warning=True
    )
    await asyncio.sleep(1)
    (event,) = events(server)
    assert event["type"] == "Warning"
    assert event["involvedObject"]["apiVersion"] == "scheduling.volcano.sh/v1beta1"
    assert event["involvedObject"]["uid"] == "u"


async def test_events_of_cluster_scoped_objects_live_in_default(
    server: ModelServer, recorder: Recorder
) -> None:
    recorder.record({"metadata": {"name": "n", "uid": "u"}}, "Ready", "is ready", kind=NODE)
    await asyncio.sleep(1)
    (event,) = events(server)
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]


async def test_repetitions_raise_the_count_of_one_event(
    server: ModelServer, recorder: Recorder
) -> None:
    for _ in range(3):
        recorder.record(pod(), "Waiting", "2 GPUs short", kind=POD)
    await asyncio.sleep(60)
    recorder.record(pod(resourceVersion="9"), "Waiting", "2 GPUs short", kind=POD)
    await asyncio.sleep(1)
    (event,) = events(server)
    assert event["count"] == 4
    assert event["firstTimestamp"] == "2020-09-13T12:26:40Z"
    assert event["lastTimestamp"] == "2020-09-13T12:27:40Z"


@pytest.mark.parametrize(
    ("regarding", "reason", "message", "warning"),
    [
        (pod(uid="other"), "Waiting", "short", False),
        (pod(), "Other", "short", False),
        (pod(), "Waiting", "other", False),
        (pod(), "Waiting", "short", True),
    ],
)
async def test_what_differs_is_another_event(
    server: ModelServer,
    recorder: Recorder,
    regarding: dict[str, Any],
    reason: str,
    message: str,
    warning: bool,
) -> None:
    recorder.record(pod(), "Waiting", "short", kind=POD)
    recorder.record(regarding, reason, message, kind=POD, warning=warning)
    await asyncio.sleep(1)
    assert [event["count"] for event in events(server)] == [1, 1]


async def test_an_event_that_the_server_forgot_is_written_anew(
    server: ModelServer, recorder: Recorder
) -> None:
    recorder.record(pod(), "Waiting", "short", kind=POD)
    await asyncio.sleep(1)
    server.objects.clear()
    recorder.record(pod(), "Waiting", "short", kind=POD)
    await asyncio.sleep(1)
    (event,) = events(server)
    assert event["count"] == 1


async def test_a_lost_answer_does_not_double_an_event(
    server: ModelServer, transport: FaultyTransport, recorder: Recorder
) -> None:
    transport.after = times(1)
    recorder.record(pod(), "Waiting", "short", kind=POD)
    await asyncio.sleep(10)
    assert len(transport.attempts) == 2
    (event,) = events(server)
    assert event["count"] == 1
    recorder.record(pod(), "Waiting", "short", kind=POD)
    await asyncio.sleep(1)
    assert [event["count"] for event in events(server)] == [2]


async def test_a_refused_event_is_logged_and_the_next_goes_out(
    server: ModelServer, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    refusals = iter([Answer(403, status(403, "Forbidden", "namespace is being terminated"))])
    server.answers = lambda request: next(refusals, None)
    recorder.record(pod("a"), "Waiting", "short", kind=POD)
    recorder.record(pod("b"), "Waiting", "short", kind=POD)
    await asyncio.sleep(10)
    assert [event["involvedObject"]["name"] for event in events(server)] == ["b"]
    assert "namespace is being terminated" in caplog.text


async def test_while_the_server_is_away_the_oldest_are_dropped(
    server: ModelServer,
    transport: FaultyTransport,
    recorder: Recorder,
    caplog: pytest.LogCaptureFixture,
) -> None:
    transport.before = lambda method, path: True
    for index in range(LONGEST_QUEUE + 500):
        recorder.record(pod(f"p{index}"), "Waiting", "short", kind=POD)
    transport.before = times(0)
    await asyncio.sleep(1000)
    names = [event["involvedObject"]["name"] for event in events(server)]
    assert names == [f"p{index}" for index in range(500, LONGEST_QUEUE + 500)]
    assert "too many events" in caplog.text


@pytest.mark.parametrize("regarding", [{}, {"metadata": None}, {"metadata": {"name": 5}}])
async def test_a_malformed_subject_raises_nothing(
    server: ModelServer, recorder: Recorder, regarding: dict[str, Any]
) -> None:
    recorder.record(regarding, "Malformed", "cannot be read", kind=POD)
    recorder.record(pod(), "Waiting", "short", kind=POD)
    await asyncio.sleep(10)
    assert "p" in [event["involvedObject"].get("name") for event in events(server)]


async def test_a_long_name_leaves_room_for_the_suffix(
    server: ModelServer, recorder: Recorder
) -> None:
    recorder.record(pod("x" * 253), "Waiting", "short", kind=POD)
    await asyncio.sleep(1)
    (event,) = events(server)
    assert len(event["metadata"]["name"]) == 253


async def test_equal_worlds_give_equal_names(server: ModelServer) -> None:
    names = []
    for _ in range(2):
        fresh = ModelServer()
        world = virtual_world(5)
        recorder = Recorder(Connection(AsgiTransport(fresh), world), world, "c")
        running = asyncio.create_task(recorder.run())
        recorder.record(pod(), "Waiting", "short", kind=POD)
        await asyncio.sleep(1)
        running.cancel()
        names.append([event["metadata"]["name"] for event in events(fresh)])
    assert names[0] == names[1]


async def test_while_others_are_busy_each_event_waits_for_as_long_as_it_can_bear(
    server: ModelServer, transport: FaultyTransport
) -> None:
    world, busy = virtual_world(), Lull()
    busy.end("binds")
    recorder = Recorder(Connection(transport, world), world, "posse-scheduler", busy)
    running = asyncio.create_task(recorder.run())
    recorder.record(pod("first"), "Waiting", "short", kind=POD)
    await asyncio.sleep(6)
    recorder.record(pod("second"), "Waiting", "short", kind=POD)
    seen = []
    for _ in range(3):
        seen.append([event["involvedObject"]["name"] for event in events(server)])
        await asyncio.sleep(5.5)
    running.cancel()
    await asyncio.wait({running})
    assert seen == [[], ["first"], ["first", "second"]]
