"""The embedded server against answers that a real one gave (tests/golden)."""

from __future__ import annotations

import json

import pytest

from posse.kube.transport import Response
from posse.objects.crds import definitions
from tests.golden import recordings
from tests.golden.conversations import CONVERSATIONS
from tests.golden.differences import DIFFERENCES
from tests.golden.talking import Conversation, Request, hold
from tests.unit.apiserver.asking import DEFINITIONS, Server

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.name)
async def test_answers_are_a_real_servers(server: Server, conversation: Conversation) -> None:
    for definition in definitions():
        await server.post(DEFINITIONS, definition)
    await server.post("/api/v1/namespaces", {"metadata": {"name": conversation.name}})

    async def ask(request: Request) -> Response:
        body = request.body
        if body is not None:
            body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        return await server.transport.request(
            request.method,
            request.path,
            query=request.query,
            headers={"content-type": request.content_type, "accept": request.accept},
            body=body,
        )

    given, recorded = await hold(conversation, ask), recordings.read(conversation.name)
    assert list(given) == list(recorded), "the table has changed: record it again"
    known = [label for label in recorded if (conversation.name, label) in DIFFERENCES]
    alike = [label for label in known if given[label] == recorded[label]]
    assert alike == [], "these differ no longer: take them out of tests/golden/differences.py"
    for label in recorded:
        if label not in known:
            assert given[label] == recorded[label], label
