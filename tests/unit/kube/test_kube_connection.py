from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from posse.kube.connection import Connection, Patch
from posse.kube.errors import (
    ApiError,
    Conflict,
    Gone,
    NotFound,
    ServerError,
    TooManyRequests,
    Undecodable,
    Unreachable,
)
from posse.kube.inprocess import AsgiTransport
from posse.objects.kinds import CONFIG_MAP, LEASE, NODE, POD
from posse.virtual.world import virtual_world
from tests.unit.kube.faults import FaultyTransport, times
from tests.unit.kube.modelserver import Answer, ModelServer, Request, status

pytestmark = pytest.mark.looptime


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Thing(msgspec.Struct, omit_defaults=True):
    metadata: Meta
    size: int = 0


@pytest.fixture
def server() -> ModelServer:
    return ModelServer()


@pytest.fixture
async def transport(server: ModelServer) -> FaultyTransport:
    return FaultyTransport(AsgiTransport(server))


@pytest.fixture
async def connection(transport: FaultyTransport) -> Connection:
    return Connection(transport, virtual_world())


def refuse(
    server: ModelServer, answer: Answer, *, count: int = 10**9, method: str = ""
) -> list[float]:
    """Answers the first `count` requests with `answer`; returns the times they came at."""
    at: list[float] = []

    def answers(request: Request) -> Answer | None:
        if method and request.method != method:
            return None
        at.append(asyncio.get_running_loop().time())
        return answer if len(at) <= count else None

    server.answers = answers
    return at


# Verbs: where requests go and what they carry.


async def test_get_reads_a_dict_or_a_model(server: ModelServer, connection: Connection) -> None:
    server.put("configmaps", "a", size=3)
    assert (await connection.get(CONFIG_MAP, "a", "ns"))["size"] == 3
    assert (await connection.get(CONFIG_MAP, "a", "ns", model=Thing)).size == 3


async def test_an_answer_that_the_model_refuses_is_undecodable(
    server: ModelServer, connection: Connection
) -> None:
    server.put("configmaps", "a", size="big")
    with pytest.raises(Undecodable):
        await connection.get(CONFIG_MAP, "a", "ns", model=Thing)


async def test_a_name_cannot_reach_another_object(
    server: ModelServer, connection: Connection
) -> None:
    with pytest.raises(NotFound):
        await connection.get(CONFIG_MAP, "../../nodes/x", "ns")
    assert server.requests[0].path.count("/") == 9  # decoded by the server from one %2F segment


@pytest.mark.parametrize("name", ["get", "patch", "delete"])
async def test_a_namespaced_object_without_a_namespace_is_refused(
    connection: Connection, name: str
) -> None:
    with pytest.raises(ValueError, match="namespace"):
        if name == "patch":
            await connection.patch(CONFIG_MAP, "a", {})
        else:
            await getattr(connection, name)(CONFIG_MAP, "a")


async def test_deleting_a_collection_everywhere_is_refused(connection: Connection) -> None:
    with pytest.raises(ValueError, match="namespace"):
        await connection.delete_collection(CONFIG_MAP, labels="a=b")


async def test_create_takes_the_namespace_of_the_object_then_of_the_connection(
    server: ModelServer, connection: Connection
) -> None:
    await connection.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "mine"}})
    await connection.create(CONFIG_MAP, {"metadata": {"name": "b"}})
    await connection.create(CONFIG_MAP, Thing(Meta("c")), "other", dry_run=True)
    assert [request.path for request in server.requests] == [
        "/api/v1/namespaces/mine/configmaps",
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/other/configmaps",
    ]
    assert server.requests[2].query["dryRun"] == "All"
    assert server.requests[2].document == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "", "uid": "", "resourceVersion": ""},
    }


async def test_creating_leaves_the_callers_dict_alone(connection: Connection) -> None:
    mine = {"metadata": {"name": "a"}}
    await connection.create(CONFIG_MAP, mine)
    assert mine == {"metadata": {"name": "a"}}


async def test_replace_with_an_old_version_is_a_conflict(
    server: ModelServer, connection: Connection
) -> None:
    old = server.put("configmaps", "a")
    server.put("configmaps", "a", size=2)
    with pytest.raises(Conflict):
        await connection.replace(CONFIG_MAP, old)


@pytest.mark.parametrize(
    ("how", "patch", "content_type"),
    [
        (Patch.JSON, [{"op": "add", "path": "/a", "value": 1}], "application/json-patch+json"),
        (Patch.MERGE, {"a": None}, "application/merge-patch+json"),
        (Patch.STRATEGIC, {"a": 1}, "application/strategic-merge-patch+json"),
        (Patch.APPLY, {"a": 1}, "application/apply-patch+yaml"),
    ],
)
async def test_each_patch_has_its_content_type(
    server: ModelServer, connection: Connection, how: Patch, patch: Any, content_type: str
) -> None:
    server.answers = lambda request: Answer(200, {})
    await connection.patch(POD, "p", patch, "ns", how=how, subresource="status", force=True)
    sent = server.requests[0]
    assert sent.path == "/api/v1/namespaces/ns/pods/p/status"
    assert sent.headers["content-type"] == content_type
    assert sent.query == {"fieldManager": "posse", "force": "true"}
    assert sent.document == patch


async def test_delete_carries_its_preconditions(
    server: ModelServer, connection: Connection
) -> None:
    server.put("pods", "p")
    await connection.delete(
        POD, "p", "ns", uid="u1", resource_version="1", grace=0, propagation="Background"
    )
    assert server.requests[0].document == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u1", "resourceVersion": "1"},
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Background",
    }


async def test_bind_names_the_very_pod(server: ModelServer, connection: Connection) -> None:
    server.answers = lambda request: Answer(201, status(201, ""))
    await connection.bind("p", "ns", "node-1", uid="u", resource_version="5")
    assert server.requests[0].path == "/api/v1/namespaces/ns/pods/p/binding"
    assert server.requests[0].document == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "5"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
    }


async def test_an_eviction_refused_by_a_budget_is_told_at_once(
    server: ModelServer, connection: Connection
) -> None:
    refused = Answer(429, status(429, "TooManyRequests"), {"retry-after": "1"})
    at = refuse(server, refused)
    with pytest.raises(TooManyRequests):
        await connection.evict("p", "ns", uid="u")
    assert len(at) == 1
    sent = server.requests[0].document
    assert sent["apiVersion"] == "policy/v1"
    assert sent["deleteOptions"]["preconditions"] == {"uid": "u"}


async def test_cluster_scoped_kinds_have_no_namespace_in_their_path(
    server: ModelServer, connection: Connection
) -> None:
    server.answers = lambda request: Answer(200, {})
    await connection.get(NODE, "n")
    await connection.patch(NODE, "n", {}, "ignored")
    assert {request.path for request in server.requests} == {"/api/v1/nodes/n"}


async def test_discovery(server: ModelServer, connection: Connection) -> None:
    documents = {
        "/version": {"gitVersion": "v1.36.0"},
        "/apis": {"groups": [{"name": "batch"}]},
        "/api/v1": {"resources": [{"name": "pods"}]},
        "/apis/batch/v1": {"resources": None},
    }

    def answers(request: Request) -> Answer | None:
        found = documents.get(request.path)
        return None if found is None else Answer(200, found)

    server.answers = answers
    assert await connection.version() == {"gitVersion": "v1.36.0"}
    assert await connection.groups() == [{"name": "batch"}]
    assert await connection.resources("", "v1") == [{"name": "pods"}]
    assert await connection.resources("batch", "v1") == []
    with pytest.raises(NotFound):
        await connection.resources("nobody", "v1")


async def test_logs_pass_their_options_and_their_bytes(
    server: ModelServer, connection: Connection
) -> None:
    server.answers = lambda request: Answer(200, raw=b"one\n\xfftwo\n")
    chunks = [
        chunk
        async for chunk in connection.logs(
            "p", "ns", container="c", follow=True, tail_lines=0, previous=True, timestamps=True
        )
    ]
    assert b"".join(chunks) == b"one\n\xfftwo\n"
    assert server.requests[0].query == {
        "container": "c",
        "follow": "true",
        "tailLines": "0",
        "previous": "true",
        "timestamps": "true",
    }


async def test_logs_of_no_pod_are_not_found(connection: Connection) -> None:
    with pytest.raises(NotFound):
        async for _ in connection.logs("p", "ns"):
            pytest.fail("there is nothing to read")


# Lists.


async def test_a_list_follows_its_pages(server: ModelServer, connection: Connection) -> None:
    for index in range(7):
        server.put("configmaps", f"c{index}")
    listing = await connection.list(CONFIG_MAP, limit=3, resource_version="0", model=Thing)
    assert [item.metadata.name for item in listing.items] == [f"c{index}" for index in range(7)]
    assert listing.resource_version == "7"
    assert [request.query.get("continue") for request in server.requests] == [None, "7:3", "7:6"]
    assert [request.query.get("resourceVersion") for request in server.requests] == [
        "0", None, None,
    ]  # fmt: skip


async def test_a_token_that_expires_between_pages_starts_the_list_afresh(
    server: ModelServer, connection: Connection
) -> None:
    for index in range(4):
        server.put("configmaps", f"c{index}")
    moves = iter(["late"])

    def move_between_pages(request: Request) -> None:
        if "continue" in request.query and (name := next(moves, None)):
            server.put("configmaps", name)

    server.answers = move_between_pages
    listing = await connection.list(CONFIG_MAP, limit=3)
    names = [item["metadata"]["name"] for item in listing.items]
    assert names == ["c0", "c1", "c2", "c3", "late"]
    assert listing.resource_version == "5"


async def test_a_list_that_never_holds_still_is_asked_for_whole(
    server: ModelServer, connection: Connection
) -> None:
    for index in range(4):
        server.put("configmaps", f"c{index}")

    def always_move(request: Request) -> None:
        if "continue" in request.query:
            server.put("configmaps", "c0", size=len(server.requests))

    server.answers = always_move
    assert len((await connection.list(CONFIG_MAP, limit=1)).items) == 4
    assert "limit" not in server.requests[-1].query


async def test_a_list_at_a_version_long_gone_is_gone(
    server: ModelServer, connection: Connection
) -> None:
    refuse(server, Answer(410, status(410, "Expired")))
    with pytest.raises(Gone):
        await connection.list(CONFIG_MAP, resource_version="3")


# What is sent twice, and what never is.


async def test_a_read_is_repeated_while_nobody_answers(
    server: ModelServer, transport: FaultyTransport, connection: Connection
) -> None:
    server.put("configmaps", "a")
    transport.before = times(3)
    assert await connection.get(CONFIG_MAP, "a", "ns")
    assert len(transport.attempts) == 4


async def test_a_read_gives_up_in_the_end(
    transport: FaultyTransport, connection: Connection
) -> None:
    transport.before = times(100)
    with pytest.raises(Unreachable):
        await connection.get(CONFIG_MAP, "a", "ns")
    assert len(transport.attempts) == 4


@pytest.mark.parametrize("code", [429, 503])
async def test_a_read_waits_as_long_as_the_server_asks(
    server: ModelServer, connection: Connection, code: int
) -> None:
    server.put("configmaps", "a")
    answer = Answer(code, status(code, "TooManyRequests"), {"retry-after": "3"})
    at = refuse(server, answer, count=2)
    await connection.get(CONFIG_MAP, "a", "ns")
    gaps = [later - earlier for earlier, later in pairwise(at)]
    assert len(gaps) == 2
    assert all(3.0 <= gap <= 3.4 for gap in gaps)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 500, 504])
async def test_a_read_that_was_refused_is_not_repeated(
    server: ModelServer, connection: Connection, code: int
) -> None:
    at = refuse(server, Answer(code, status(code, "")))
    with pytest.raises(ApiError) as caught:
        await connection.get(CONFIG_MAP, "a", "ns")
    assert caught.value.code == code
    assert len(at) == 1


async def test_a_server_that_asks_for_an_hour_is_told_to_the_caller(
    server: ModelServer, connection: Connection
) -> None:
    at = refuse(server, Answer(429, status(429, "TooManyRequests"), {"retry-after": "3600"}))
    with pytest.raises(TooManyRequests):
        await connection.get(CONFIG_MAP, "a", "ns")
    assert len(at) == 1


async def test_a_write_whose_answer_is_lost_is_sent_once(
    server: ModelServer, transport: FaultyTransport, connection: Connection
) -> None:
    transport.after = times(1)
    with pytest.raises(Unreachable):
        await connection.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "ns"}})
    assert len(transport.attempts) == 1
    assert ("configmaps", "ns", "a") in server.objects


async def test_a_write_refused_for_load_is_sent_again_when_told(
    server: ModelServer, connection: Connection
) -> None:
    at = refuse(server, Answer(429, status(429, "TooManyRequests"), {"retry-after": "2"}), count=2)
    await connection.create(CONFIG_MAP, {"metadata": {"name": "a"}})
    assert len(at) == 3
    assert at[1] - at[0] >= 2.0


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(429, status(429, "TooManyRequests")), TooManyRequests),
        (Answer(503, status(503, "ServiceUnavailable"), {"retry-after": "1"}), ServerError),
    ],
)
async def test_other_refusals_of_a_write_are_told(
    server: ModelServer, connection: Connection, answer: Answer, error: type[Exception]
) -> None:
    at = refuse(server, answer)
    with pytest.raises(error):
        await connection.create(CONFIG_MAP, {"metadata": {"name": "a"}})
    assert len(at) == 1


# Watches.


async def test_a_watch_tells_what_happened_after_its_version(
    server: ModelServer, connection: Connection
) -> None:
    server.put("configmaps", "before")
    server.put("configmaps", "a", size=1)
    server.delete("configmaps", "a")
    watch = connection.watch(CONFIG_MAP, "ns", resource_version="1", model=Thing)
    seen = [
        (e.type, e.object and e.object.metadata.name, e.resource_version) async for e in _two(watch)
    ]
    assert seen == [("ADDED", "a", "2"), ("DELETED", "a", "3")]
    asked = server.requests[0].query
    assert asked["allowWatchBookmarks"] == "true"
    assert asked["resourceVersion"] == "1"


async def _two(watch: Any) -> Any:
    seen = 0
    async for event in watch:
        yield event
        seen += 1
        if seen == 2:
            await watch.aclose()
            return


async def test_leaving_a_watch_disconnects_it(server: ModelServer, connection: Connection) -> None:
    server.put("configmaps", "a")
    watch = connection.watch(CONFIG_MAP, resource_version="0")
    async for _ in watch:
        assert len(server.watchers) == 1
        break
    await watch.aclose()
    assert not server.watchers


async def test_what_came_before_an_error_is_delivered(
    server: ModelServer, connection: Connection
) -> None:
    lines = (
        b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"4"}}}\n'
        b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'
    )
    server.answers = lambda request: Answer(200, raw=lines)
    seen = []
    with pytest.raises(Gone):
        async for event in connection.watch(CONFIG_MAP, resource_version="1"):
            seen.append(event.type)  # noqa: PERF401 - it ends by raising
    assert seen == ["ADDED"]


async def test_a_watch_refused_over_http_raises_its_status(
    server: ModelServer, connection: Connection
) -> None:
    server.answers = lambda request: Answer(410, status(410, "Expired"))
    with pytest.raises(Gone):
        async for _ in connection.watch(LEASE, resource_version="1"):
            pytest.fail("there is nothing to tell")


async def test_an_event_cut_in_the_middle_is_no_clean_end(
    server: ModelServer, connection: Connection
) -> None:
    server.answers = lambda request: Answer(200, raw=b'{"type":"ADDED","object":{"meta')
    with pytest.raises(Unreachable):
        async for _ in connection.watch(CONFIG_MAP, resource_version="1"):
            pytest.fail("half an event is none")


async def test_a_watch_that_outlives_its_timeout_is_given_up(
    server: ModelServer, connection: Connection
) -> None:
    with pytest.raises(Unreachable):
        async for _ in connection.watch(CONFIG_MAP, resource_version="0", timeout_seconds=60):
            pytest.fail("there is nothing to tell")
    assert 60 < asyncio.get_running_loop().time() < 120
    assert not server.watchers
