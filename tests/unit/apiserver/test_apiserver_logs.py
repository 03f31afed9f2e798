"""Logs come from the node's agent, and its complaints too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

import pytest

from posse.kube.inprocess import AsgiTransport
from tests.unit.apiserver.asking import PODS, Server, binding, pod

pytestmark = pytest.mark.looptime


class Agent:
    """A kubelet that answers with what the test says, and remembers what it was asked."""

    def __init__(self, status: int = 200, chunks: tuple[bytes, ...] = (b"one\n", b"two\n")) -> None:
        self.status = status
        self.chunks = chunks
        self.pause = 0.0
        self.asked: list[tuple[str, dict[str, list[str]]]] = []
        self.left = False

    async def __call__(
        self,
        scope: Any,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        self.asked.append((scope["path"], parse_qs(scope["query_string"].decode())))
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        for chunk in self.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await asyncio.sleep(self.pause)
        if self.pause:
            await receive()
            await receive()
            self.left = True
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def agent() -> Agent:
    return Agent()


@pytest.fixture
async def logs(agent: Agent) -> AsyncIterator[Server]:
    server = Server(nodes={"n": AsgiTransport(agent)})
    await server.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    await server.post(PODS, pod())
    await server.post(f"{PODS}/p/binding", binding("p", "n"))
    yield server
    await server.transport.close()


async def test_the_log_of_the_only_container(logs: Server, agent: Agent) -> None:
    said = await logs.get(f"{PODS}/p/log", tailLines=5, timestamps="true", pretty="true")
    assert (said.status, said.raw) == (200, b"one\ntwo\n")
    assert said.headers["content-type"] == "text/plain"
    assert agent.asked == [
        ("/containerLogs/default/p/main", {"tailLines": ["5"], "timestamps": ["true"]})
    ]


async def test_a_followed_log_arrives_as_it_is_written(logs: Server, agent: Agent) -> None:
    agent.pause = 5.0
    query = {"follow": "true"}
    async with logs.transport.stream("GET", f"{PODS}/p/log", query=query) as stream:
        chunks = stream.chunks()
        assert await anext(chunks) == b"one\n"
        begun = asyncio.get_running_loop().time()
        assert await anext(chunks) == b"two\n"
        assert asyncio.get_running_loop().time() - begun == pytest.approx(5, abs=0.1)


async def test_who_stops_following_is_told_to_the_agent(logs: Server, agent: Agent) -> None:
    agent.pause = 0.5
    async with logs.transport.stream("GET", f"{PODS}/p/log", query={"follow": "true"}) as stream:
        await anext(stream.chunks())
        await asyncio.sleep(10)
    await asyncio.sleep(1)
    assert agent.left


async def test_of_several_containers_one_must_be_named(server: Server) -> None:
    containers = [{"name": name, "image": "i"} for name in ("a", "b")]
    await server.post(
        PODS, pod(containers=containers, initContainers=[{"name": "i", "image": "i"}])
    )
    said = await server.get(f"{PODS}/p/log")
    assert said.status == 400
    assert said.message == (
        "a container name must be specified for pod p, choose one of: [a b] or one of the init"
        " containers: [i]"
    )
    said = await server.get(f"{PODS}/p/log", container="x")
    assert (said.status, said.message) == (400, "container x is not valid for pod p")


async def test_a_pod_without_a_node_has_no_log_yet(server: Server) -> None:
    await server.post(PODS, pod())
    assert (await server.get(f"{PODS}/p/log")).status == 204


async def test_no_pod_no_log(server: Server) -> None:
    assert (await server.get(f"{PODS}/p/log")).status == 404


@pytest.mark.parametrize(
    ("status", "answered", "reason"),
    [
        (400, 400, "BadRequest"),
        (404, 404, "NotFound"),
        (500, 500, "InternalError"),
        (503, 500, "InternalError"),
    ],
)
async def test_the_agents_complaint_is_a_status(
    logs: Server, agent: Agent, status: int, answered: int, reason: str
) -> None:
    agent.status, agent.chunks = status, (b'container "main" in pod "p" is waiting to start',)
    said = await logs.get(f"{PODS}/p/log")
    assert (said.status, said.reason) == (answered, reason)
    assert "waiting to start" in said.message


async def test_an_agent_that_is_gone_is_a_status(logs: Server) -> None:
    await logs.delete("/api/v1/nodes/n")
    assert (await logs.get(f"{PODS}/p/log")).status == 404


@pytest.mark.parametrize(
    "query", [{"tailLines": "-1"}, {"sinceSeconds": "0"}, {"sinceSeconds": "1", "sinceTime": "x"}]
)
async def test_options_that_mean_nothing_are_422(logs: Server, query: dict[str, str]) -> None:
    said = await logs.get(f"{PODS}/p/log", **query)
    assert (said.status, said.reason) == (422, "Invalid")
