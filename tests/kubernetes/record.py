"""Asks a real API server everything in tests/golden and writes its answers down.

`python -m tests.kubernetes.record [CONVERSATION...]`, after a change of the table or of the pinned
versions.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from pathlib import Path

from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.kube.http import HttpTransport
from posse.kube.transport import Response
from posse.objects import kinds
from posse.world import World
from tests.golden import recordings
from tests.golden.conversations import CONVERSATIONS
from tests.golden.talking import Answer, Conversation, Request, hold
from tests.kubernetes.building import build, find
from tests.kubernetes.plane import ControlPlane, Plane
from tests.kubernetes.preparing import prepare


async def answers(plane: Plane, conversation: Conversation) -> dict[str, Answer]:
    """In the conversation's own namespace, which goes away afterwards."""
    world = World.real()
    transport = HttpTransport(plane.settings(), world)
    connection = Connection(transport, world)

    async def ask(request: Request) -> Response:
        body = request.body
        return await transport.request(
            request.method,
            request.path,
            query=request.query,
            headers={"content-type": request.content_type, "accept": request.accept},
            body=None if body is None else encoded(body),
        )

    try:
        await connection.create(kinds.NAMESPACE, {"metadata": {"name": conversation.name}})
        await _accounted(connection, conversation.name)
        return await hold(conversation, ask)
    finally:
        await connection.delete(kinds.NAMESPACE, conversation.name)
        await connection.delete_collection(kinds.POD, conversation.name, grace=0)
        await connection.close()


def encoded(body: object) -> bytes:
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


async def _accounted(connection: Connection, namespace: str) -> None:
    """No pod is let into a namespace before that has its account and its authority."""
    for kind, name in ((kinds.SERVICE_ACCOUNT, "default"), (kinds.CONFIG_MAP, "kube-root-ca.crt")):
        while True:
            try:
                await connection.get(kind, name, namespace)
                break
            except NotFound:
                await asyncio.sleep(0.1)


async def _record(plane: Plane, chosen: list[str]) -> None:
    for conversation in CONVERSATIONS:
        if chosen and conversation.name not in chosen:
            continue
        given = await answers(plane, conversation)
        recordings.write(conversation.name, given)
        print(f"{conversation.name}: {len(given)} answers", file=sys.stderr)


def main() -> int:
    build()
    with tempfile.TemporaryDirectory() as directory:
        plane = ControlPlane(find(), Path(directory))
        try:
            plane.start()
            prepare(plane)
            plane.controller_manager.start()
            asyncio.run(_record(plane, sys.argv[1:]))
        finally:
            plane.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
