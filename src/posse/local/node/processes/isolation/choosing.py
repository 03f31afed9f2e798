"""Which isolation this machine allows: found out by running something in it."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from posse.local.node.naming import NameBook, Reach
from posse.local.node.processes.attempts import Attempt, spawn
from posse.local.node.processes.isolation.modes import NAMESPACES, NONE, Isolation
from posse.local.node.processes.isolation.namespaces import Namespaces
from posse.local.node.processes.isolation.shared import Shared
from posse.local.node.processes.launching import Draft
from posse.local.node.processes.layout import PodPlace
from posse.local.node.processes.names import write_names
from posse.local.node.processes.shim import files
from posse.local.node.runtime import Exit
from posse.world import World

log = logging.getLogger(__name__)

_POD = {"metadata": {"name": "probe", "namespace": "default"}, "spec": {}}
_PATIENCE = 30.0


class IsolationError(RuntimeError):
    """The mode that was asked for does not work here; the text says why."""


async def choose(
    wanted: str, world: World, home: Path, private: Sequence[Path], lifeline: Path
) -> Isolation:
    """`wanted` is a mode, or empty for the best that works."""
    if wanted not in ("", NAMESPACES, NONE):
        raise IsolationError(f"POSSE_ISOLATION is {NAMESPACES} or {NONE}, not {wanted}")
    if wanted == NONE:
        return Shared(world)
    namespaces = Namespaces(world, home, private)
    problem = await _try(namespaces, home, lifeline)
    if not problem:
        return namespaces
    if wanted == NAMESPACES:
        raise IsolationError(f"namespaces do not work on this machine: {problem}")
    log.info("namespaces do not work on this machine (%s); pods are not isolated", problem)
    return Shared(world)


async def _try(isolation: Namespaces, home: Path, lifeline: Path) -> str:
    """Run a container that does nothing; the answer is what went wrong."""
    if sys.platform != "linux":
        return "they are Linux's"
    pods = home / "pods"
    pods.mkdir(mode=0o700, parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=pods, prefix=".probe-"))
    try:
        place = PodPlace(scratch)
        place.make()
        at = place.attempt("probe", 0)
        at.root.mkdir(parents=True)
        at.last_words.touch()
        book, reach = NameBook(()), Reach("127.0.0.1")
        write_names(_POD, place, reach, book)
        draft = Draft(
            pod=_POD,
            container={},
            place=place,
            attempt=at,
            argv=(sys.executable, "-I", "-S", "-c", ""),
            environment={"PATH": os.environ.get("PATH", os.defpath)},
            working_dir="",
            mounts=(),
            commands={},
        )
        arranged = isolation.arrange(draft, book, reach)
        launch = {
            "argv": list(arranged.argv),
            "env": arranged.environment,
            "cwd": arranged.cwd,
            "grace": 0.0,
            "lifeline": str(lifeline),
            "orphan_after": 5.0,
            "log_bytes": 1 << 20,
            "log_files": 1,
            "sandbox": arranged.sandbox,
        }
        for fifo in (files.CONTROL, files.BELL):
            files.make_fifo(str(at.path / fifo))
        files.write_json(str(at.launch), launch)
        if complaint := await spawn(at):
            return complaint
        ends: list[Exit] = []
        attempt = Attempt("", at, lambda _, how: ends.append(how), lambda _: None)
        if not attempt.watch():
            attempt.conclude()
        try:
            async with asyncio.timeout(_PATIENCE):
                await attempt.over.wait()
        except TimeoutError:
            await attempt.end(0.0)
            return f"a container had not ended after {_PATIENCE:g}s"
        return (
            "" if ends[0].code == 0 else ends[0].message or f"a container ended with {ends[0].code}"
        )
    except OSError as error:
        return str(error)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
