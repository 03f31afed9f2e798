"""Processes are kept running, and none is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from posse.local.supervisor.supervision import Supervision, environment
from posse.world import World

pytestmark = pytest.mark.process

HOLDING = """
import asyncio, sys
from posse.local.supervisor import lifeline
async def service():
    print("up", flush=True)
    await asyncio.sleep(600)
asyncio.run(lifeline.hold(service()))
"""
DYING = "import sys; print('last words', flush=True); sys.exit(3)"
STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(600)
"""


async def until(holds: Callable[[], bool], ceiling: float = 20.0) -> None:
    async with asyncio.timeout(ceiling):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@asynccontextmanager
async def supervising(tmp_path: Path, **scripts: str) -> AsyncIterator[Supervision]:
    supervision = Supervision(
        World.real(),
        argv=lambda name: [sys.executable, "-c", scripts[name]],
        log_of=lambda name: tmp_path / f"{name}.log",
        environment=environment(tmp_path, os.environ),
        changed=lambda: None,
    )
    try:
        yield supervision
    finally:
        await supervision.stop()


async def test_a_service_that_is_killed_comes_back(tmp_path: Path) -> None:
    async with supervising(tmp_path, a=HOLDING) as supervision:
        supervision.start("a")
        child = supervision.children["a"]
        await until(lambda: child.running)
        first = child.pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: child.running and child.pid != first)
        assert child.restarts == 1
        assert child.exit_code == -signal.SIGKILL


async def test_a_service_that_keeps_dying_is_started_less_and_less_often(tmp_path: Path) -> None:
    async with supervising(tmp_path, a=DYING) as supervision:
        supervision.start("a")
        child = supervision.children["a"]
        await until(lambda: child.restarts >= 3)
        assert child.exit_code == 3
        assert (tmp_path / "a.log").read_text().count("last words") >= 3


async def test_stopping_leaves_no_process(tmp_path: Path) -> None:
    async with supervising(tmp_path, a=HOLDING, b=HOLDING) as supervision:
        for name in ("a", "b"):
            supervision.start(name)
        children = list(supervision.children.values())
        await until(lambda: all("up" in _log(tmp_path, c.name) for c in children))
        pids = [child.pid for child in children]
        await supervision.stop()
        assert not any(alive(pid) for pid in pids)
        assert [child.exit_code for child in children] == [0, 0]


async def test_a_service_that_ignores_being_asked_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posse.local.supervisor.supervision.GRACE", 0.2)
    async with supervising(tmp_path, a=STUBBORN) as supervision:
        supervision.start("a")
        child = supervision.children["a"]
        await until(lambda: "up" in _log(tmp_path, "a"))
        pid = child.pid
        await supervision.stop()
        assert not alive(pid)
        assert child.exit_code == -signal.SIGKILL


async def test_a_service_ends_when_the_other_end_of_its_pipe_does(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        HOLDING,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=environment(tmp_path, os.environ),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert await process.stdout.readline() == b"up\n"
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 20) == 0


def test_a_service_inherits_nothing_but_what_it_needs(tmp_path: Path) -> None:
    inherited = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "x", "KUBECONFIG": "/k", "LANG": "C"}
    assert environment(tmp_path, inherited) == {
        "PATH": "/bin",
        "LANG": "C",
        "POSSE_HOME": str(tmp_path),
        "POSSE_LIFELINE": "stdin",
    }


def _log(tmp_path: Path, name: str) -> str:
    path = tmp_path / f"{name}.log"
    return path.read_text() if path.exists() else ""
