"""Descendants of a process, and the end of all of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

ROUNDS = 2000
PAUSE = 0.005


def descendants(root: int) -> list[int]:
    """Every living process below `root`, itself not included."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        for pid in children.get(waiting.pop(), []):
            found.append(pid)
            waiting.append(pid)
    return found


def kill_descendants() -> None:
    """Kill and reap until no process is left below this one, however fast they multiply.

    Where this process is a subreaper, a child that was orphaned on purpose is found as well. A
    process that not even SIGKILL ends, because the kernel is busy for it, is not waited for longer
    than some seconds.
    """
    for _ in range(ROUNDS):
        left = descendants(os.getpid())
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        reap()
        if not left:
            return
        time.sleep(PAUSE)


def reap() -> list[tuple[int, int]]:
    """Pids and wait statuses of the children that have ended."""
    ended = []
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append(found)
    return ended


def _parents() -> list[tuple[int, int]]:
    if sys.platform != "linux":
        listed = subprocess.run(
            ["/bin/ps", "-axo", "pid=,ppid=,stat="], capture_output=True, text=True, check=False
        ).stdout
        rows = [row.split() for row in listed.splitlines()]
        return [(int(r[0]), int(r[1])) for r in rows if len(r) == 3 and not r[2].startswith("Z")]
    found = []
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue  # it ended while we looked
        # The children of a dead process that nobody has reaped belong to somebody else already.
        if state not in (b"Z", b"X"):
            found.append((int(name), int(parent)))
    return found
