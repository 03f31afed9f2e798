from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.unit.apiserver.asking import Server


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    await server.app.start()
    yield server
    await server.transport.close()
