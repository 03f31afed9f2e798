"""Who may ask, and what everybody may know; every answer that is no object is a Status."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from posse.local.apiserver import reading
from posse.local.apiserver.journal import JournalError, MemoryJournal, Record
from tests.unit.apiserver.asking import CONFIG_MAPS, PODS, TOKEN, Server, config_map, pod

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    "credentials", ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer \xff"]
)
async def test_without_the_token_nobody_gets_in(server: Server, credentials: str) -> None:
    for path in (PODS, "/api", "/apis", "/openapi/v2", "/"):
        said = await server.get(path, headers={"authorization": credentials})
        assert (said.status, said.reason) == (401, "Unauthorized")


async def test_the_scheme_may_be_written_as_one_likes(server: Server) -> None:
    assert (await server.get(PODS, headers={"authorization": f"bearer {TOKEN}"})).status == 200


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping", "/version"])
async def test_health_and_version_are_for_all(server: Server, path: str) -> None:
    assert (await server.get(path, headers={"authorization": ""})).status == 200


HOSTS = [
    ("localhost", 200),
    ("localhost:6443", 200),
    ("127.0.0.1:6443", 200),
    ("[::1]:6443", 200),
    ("kubernetes.default.svc:443", 200),
    ("LOCALHOST", 200),
    ("evil.example", 403),
    ("evil.example:6443", 403),
    ("localhost.evil.example", 403),
    ("127.0.0.1.evil.example", 403),
    ("localhost:evil", 403),
    ("", 403),
]


@pytest.mark.parametrize(("host", "status"), HOSTS)
async def test_the_host_must_be_this_one(server: Server, host: str, status: int) -> None:
    said = await server.get("/healthz", headers={"host": host})
    assert said.status == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://localhost", 200), ("https://evil.example", 403), ("null", 403), ("", 403)],
)
async def test_other_sites_may_not_ask(server: Server, origin: str, status: int) -> None:
    said = await server.get(PODS, headers={"origin": origin})
    assert said.status == status


async def test_a_body_over_the_limit_is_413(server: Server) -> None:
    said = await server.post(CONFIG_MAPS, b" " * (3 * 2**20 + 1))
    assert (said.status, said.reason) == (413, "RequestEntityTooLarge")


async def test_a_body_in_pieces_is_counted_too(server: Server) -> None:
    sent: list[dict[str, Any]] = []
    pieces = iter([b" " * 2**20] * 5)

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": next(pieces), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": CONFIG_MAPS,
        "headers": [(b"authorization", b"Bearer " + TOKEN.encode())],
    }
    await server.app(scope, receive, send)
    assert sent[0]["status"] == 413
    assert len(list(pieces)) == 1


PATHS = [
    "/nothing",
    "/api/v2",
    "/api/v2/pods",
    "/apis/none",
    "/apis/none/v1/things",
    "/api/v1/things",
    "/api/v1/namespaces/default/nodes",
    "/api/v1/pods/p",
    "/api/v1/namespaces/default/pods/p/exec",
    "/api/v1/namespaces/default/pods/p/log/x/y",
    "/api/v1/namespaces/default/configmaps/c/status",
    "/apis//v1/pods",
]


@pytest.mark.parametrize("path", PATHS)
async def test_a_path_to_nothing_is_404(server: Server, path: str) -> None:
    said = await server.get(path)
    assert (said.status, said.reason) == (404, "NotFound")


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", PODS), ("POST", f"{PODS}/p"), ("OPTIONS", PODS), ("DELETE", "/api/v1/pods")],
)
async def test_a_method_to_no_purpose_is_405(server: Server, method: str, path: str) -> None:
    said = await server.ask(method, path)
    assert (said.status, said.reason) == (405, "MethodNotAllowed")


async def test_a_slash_in_a_name_reaches_no_other_object(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map("c"))
    for name in ("..%2Fconfigmaps%2Fc", "%2e%2e/configmaps/c", "c%00"):
        assert (await server.get(f"{PODS}/{name}")).status == 404


async def test_a_failure_of_the_server_is_a_status_and_the_server_goes_on(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a fault with a secret in it")

    with monkeypatch.context() as patched, caplog.at_level(logging.CRITICAL):
        patched.setattr(reading, "view_of", fail)
        said = await server.get(PODS)
    assert (said.status, said.reason) == (500, "InternalError")
    assert "secret" not in said.message
    assert (await server.get(PODS)).status == 200


class FailingJournal(MemoryJournal):
    """Takes the server's own first writes, then fails when told to."""

    failing = False

    def append(self, record: Record) -> asyncio.Future[None]:
        if not self.failing:
            return super().append(record)
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(1, durable.set_exception, JournalError("disk full"))
        return durable


async def test_a_write_that_cannot_be_kept_is_5xx_and_was_never_there() -> None:
    journal = FailingJournal()
    server = Server(journal)
    await server.app.start()
    journal.failing = True
    async with server.watch(CONFIG_MAPS, resourceVersion=server.store.revision) as events:
        answers = await asyncio.gather(
            server.post(CONFIG_MAPS, config_map("c")),
            server.post(CONFIG_MAPS, config_map("c")),
            server.get(CONFIG_MAPS),
        )
        assert [said.status for said in answers] == [500, 500, 200]
        assert answers[2].names == []
        assert "disk full" in answers[0].message
        journal.failing = False
        assert (await server.post(CONFIG_MAPS, config_map("c"))).status == 201
        assert await events.told(1) == [("ADDED", "c")]


async def test_discovery_says_what_is_served(server: Server) -> None:
    assert (await server.get("/api")).body["versions"] == ["v1"]
    core = (await server.get("/api/v1")).body
    names = [one["name"] for one in core["resources"]]
    for name in ("pods", "pods/status", "pods/binding", "pods/eviction", "pods/log", "bindings"):
        assert name in names
    assert "namespaces/finalize" in names
    groups = [group["name"] for group in (await server.get("/apis")).body["groups"]]
    for group in ("apps", "batch", "coordination.k8s.io", "apiextensions.k8s.io"):
        assert group in groups


async def test_every_listed_resource_answers(server: Server) -> None:
    paths = ["/api/v1"]
    for group in (await server.get("/apis")).body["groups"]:
        paths += [f"/apis/{one['groupVersion']}" for one in group["versions"]]
    for path in paths:
        for one in (await server.get(path)).body["resources"]:
            if "list" in one["verbs"]:
                assert (await server.get(f"{path}/{one['name']}")).status == 200


async def test_aggregated_discovery(server: Server) -> None:
    accept = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,*/*"}
    said = await server.get("/apis", headers=accept)
    assert said.body["kind"] == "APIGroupDiscoveryList"
    assert "apidiscovery.k8s.io" in said.headers["content-type"]


async def test_what_kubectl_apply_asks(server: Server) -> None:
    accept = {"accept": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}
    said = await server.get("/openapi/v2", headers=accept)
    assert said.status == 200
    assert said.raw.startswith(b"\n\x032.0")
    document = (await server.get("/openapi/v2")).body
    assert document["swagger"] == "2.0"
    assert "io.k8s.Pod" in document["definitions"]
    assert "protobuf" in said.headers["content-type"]


async def test_the_first_objects_are_there(server: Server) -> None:
    assert (await server.get("/api/v1/namespaces")).names == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]
    service = (await server.get("/api/v1/namespaces/default/services/kubernetes")).body
    assert service["spec"]["clusterIP"] == "10.96.0.1"


async def test_a_start_on_a_full_store_writes_nothing(server: Server) -> None:
    assert isinstance(server.journal, MemoryJournal)
    again = Server(MemoryJournal(server.journal.records))
    await again.app.start()
    assert again.store.revision == server.store.revision


async def test_two_runs_write_the_same_bytes() -> None:
    async def run() -> list[Record]:
        server = Server()
        await server.post(PODS, {**pod(), "metadata": {"generateName": "p-"}})
        await server.post(CONFIG_MAPS, config_map(x="1"))
        assert isinstance(server.journal, MemoryJournal)
        return server.journal.records

    first, second = await run(), await run()
    assert [(r.name, r.value) for r in first] == [(r.name, r.value) for r in second]
    assert json.loads(first[-1].value or b"")["data"] == {"x": "1"}
