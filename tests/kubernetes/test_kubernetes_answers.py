"""What the embedded server is held against is what a real one says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from posse.kube.http import HttpTransport
from posse.kube.transport import Response
from tests.golden import recordings
from tests.golden.conversations import CONVERSATIONS
from tests.golden.talking import Conversation
from tests.kubernetes.plane import ControlPlane
from tests.kubernetes.record import answers
from tests.unit.apiserver.asking import DEFINITIONS, WIDGETS
from tests.unit.apiserver.test_apiserver_answers import CASES, Ask, _found

NOW = {"gracePeriodSeconds": "0", "propagationPolicy": "Background"}


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.name)
async def test_the_recordings_are_true(
    control_plane: ControlPlane, conversation: Conversation
) -> None:
    given, recorded = await answers(control_plane, conversation), recordings.read(conversation.name)
    for label in recorded:
        assert given[label] == recorded[label], label


@pytest.mark.parametrize("case", CASES)
async def test_facts_that_the_embedded_server_is_held_to(
    control_plane: ControlPlane, case: str
) -> None:
    asks, status, facts = CASES[case]
    transport = HttpTransport(control_plane.settings())
    try:
        *before, last = asks
        for ask in before:
            answer = await _asked(transport, ask)
            for pause in (0.2, 0.5, 1, 2):
                if ask.path != WIDGETS or answer.status < 400:
                    break
                await asyncio.sleep(pause)
                answer = await _asked(transport, ask)
        # New kinds, and what is read from a cache, take a moment to be seen.
        answer = await _asked(transport, last)
        for pause in (0.2, 0.5, 1, 2):
            if last.method != "GET" or _holds(answer, status, facts):
                break
            await asyncio.sleep(pause)
            answer = await _asked(transport, last)
        assert answer.status == status, answer.body
        assert _facts(answer, facts) == facts
    finally:
        for ask in reversed(asks):
            await _undo(transport, ask)
        await transport.close()


def _facts(answer: Response, facts: dict[str, Any]) -> dict[str, Any]:
    body = json.loads(answer.body) if facts else {}
    return {path: _found(body, path) for path in facts}


def _holds(answer: Response, status: int, facts: dict[str, Any]) -> bool:
    return answer.status == status and _facts(answer, facts) == facts


async def _asked(transport: HttpTransport, ask: Ask) -> Response:
    if ask.path == WIDGETS and ask.method == "POST":
        await _served(transport)
    if ask.path == DEFINITIONS and isinstance(ask.body, dict):
        await _gone(transport, f"{DEFINITIONS}/{ask.body.get('metadata', {}).get('name', '')}")
    kind = "application/merge-patch+json" if ask.method == "PATCH" else "application/json"
    headers = {"content-type": kind} | ({"accept": ask.accept} if ask.accept else {})
    body = ask.body if ask.body is None or isinstance(ask.body, bytes) else _encoded(ask.body)
    return await transport.request(
        ask.method, ask.path, query=dict(ask.query), headers=headers, body=body
    )


async def _served(transport: HttpTransport) -> None:
    for _ in range(50):
        if (await transport.request("GET", WIDGETS)).status == 200:
            return
        await asyncio.sleep(0.1)


async def _gone(transport: HttpTransport, definition: str) -> None:
    """The one of an earlier case may still be on its way out, with everything of its kind."""
    for _ in range(50):
        if (await transport.request("GET", definition)).status != 200:
            return
        await asyncio.sleep(0.1)


def _encoded(body: object) -> bytes:
    return json.dumps(body).encode()


async def _undo(transport: HttpTransport, ask: Ask) -> None:
    """The next case finds the namespace as this one did."""
    if ask.method not in ("POST", "PUT") or not isinstance(ask.body, dict):
        return
    name = ask.body.get("metadata", {}).get("name", "")
    place = ask.path if ask.method == "PUT" else f"{ask.path}/{name}"
    free = json.dumps({"metadata": {"finalizers": []}}).encode()
    merge = {"content-type": "application/merge-patch+json"}
    await transport.request("PATCH", place, headers=merge, body=free)
    await transport.request("DELETE", place, query=NOW)
