from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.kube.errors import Unreachable
from posse.kube.inprocess import AsgiTransport, Receive, Send

pytestmark = pytest.mark.looptime


def start(status: int = 200, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(content: bytes = b"", *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}


def others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_a_request_arrives_as_over_http() -> None:
    seen: dict[str, Any] = {}

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        seen.update(scope, message=await receive())
        await send(start(201, (b"X-Answer", b"yes")))
        await send(body(b"a", more=True))
        await send(body(b"b"))

    transport = AsgiTransport(app, headers={"Authorization": "Bearer t"})
    answer = await transport.request(
        "POST",
        "/api/v1/a%2Fb",
        query={"labelSelector": "a=b,c in (d)"},
        headers={"Content-Type": "application/json"},
        body=b"{}",
    )
    assert (answer.status, answer.headers, answer.body) == (201, {"x-answer": "yes"}, b"ab")
    assert seen["method"] == "POST"
    assert seen["path"] == "/api/v1/a/b"
    assert seen["raw_path"] == b"/api/v1/a%2Fb"
    assert seen["query_string"] == b"labelSelector=a%3Db%2Cc+in+%28d%29"
    assert dict(seen["headers"]) == {
        b"host": b"localhost",
        b"authorization": b"Bearer t",
        b"content-type": b"application/json",
        b"content-length": b"2",
    }
    assert seen["message"] == {"type": "http.request", "body": b"{}", "more_body": False}
    assert not others()


async def test_an_application_that_fails_answers_500(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        raise KeyError("its own mistake")

    answer = await AsgiTransport(app).request("GET", "/")
    assert answer.status == 500
    assert "its own mistake" in caplog.text


async def test_an_answer_cut_short_is_unreachable() -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await send(start())
        await send(body(b"half", more=True))

    with pytest.raises(Unreachable):
        await AsgiTransport(app).request("GET", "/")


async def test_no_answer_in_time_is_unreachable_and_the_request_goes_on() -> None:
    done: list[str] = []

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await asyncio.sleep(50)
        done.append("committed")
        await send(start())
        await send(body())

    with pytest.raises(Unreachable):
        await AsgiTransport(app).request("POST", "/", timeout=5)
    assert asyncio.get_running_loop().time() == 5
    await asyncio.sleep(60)
    assert done == ["committed"]
    assert not others()


async def test_a_cancelled_caller_does_not_undo_its_write() -> None:
    done: list[str] = []

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await asyncio.sleep(1)
        done.append("committed")
        await send(start())
        await send(body())

    calling = asyncio.create_task(AsgiTransport(app).request("POST", "/"))
    await asyncio.sleep(0.5)
    calling.cancel()
    await asyncio.sleep(1)
    assert done == ["committed"]


async def test_closing_ends_what_callers_gave_up() -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await asyncio.sleep(10_000)

    transport = AsgiTransport(app)
    with pytest.raises(Unreachable):
        await transport.request("GET", "/", timeout=1)
    assert others()
    await transport.close()
    assert not others()


async def test_a_stream_that_is_left_disconnects_the_application() -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await receive()
        await send(start())
        await send(body(b"first", more=True))
        message = await receive()
        seen.append(message["type"])

    async with AsgiTransport(app).stream("GET", "/") as stream:
        async for chunk in stream.chunks():
            assert chunk == b"first"
            break
        assert stream.status == 200
    assert seen == ["http.disconnect"]
    assert not others()


async def test_an_application_that_does_not_listen_is_cancelled_and_cleans_up() -> None:
    cleaned: list[bool] = []

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        try:
            await send(start())
            await asyncio.sleep(10_000)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    async with AsgiTransport(app).stream("GET", "/"):
        pass
    assert cleaned == [True]
    assert not others()


async def test_a_cancelled_reader_takes_its_stream_along() -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await send(start())
        await receive()
        await receive()

    async def read() -> None:
        async with AsgiTransport(app).stream("GET", "/") as stream:
            async for _ in stream.chunks():
                pytest.fail("nothing is sent")

    reading = asyncio.create_task(read())
    await asyncio.sleep(1)
    assert len(others()) == 2
    reading.cancel()
    await asyncio.wait({reading})
    assert not others()


async def test_a_slow_reader_holds_the_application_back() -> None:
    sent = 0

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        nonlocal sent
        await send(start())
        for _ in range(1000):
            await send(body(b"x", more=True))
            sent += 1
        await send(body())

    async with AsgiTransport(app).stream("GET", "/") as stream:
        await asyncio.sleep(10)
        assert sent < 50
        assert b"".join([chunk async for chunk in stream.chunks()]) == b"x" * 1000


async def test_an_answer_that_never_begins_is_unreachable() -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await asyncio.sleep(10_000)

    with pytest.raises(Unreachable):
        async with AsgiTransport(app).stream("GET", "/"):
            pytest.fail("there is no answer")
    assert not others()
