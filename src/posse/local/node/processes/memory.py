"""Memory limits, looked after from outside: who uses more than it may is found within a second."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import psutil


def exceeding(limits: Mapping[int, int]) -> list[int]:
    """The roots of those process trees that use more than their limit, in bytes.

    Resident sizes count what processes share once for each of them, which is too much for a family
    of forked workers; so a tree that seems too large is measured again by its proportional size.
    """
    processes: dict[int, psutil.Process] = {}
    children: dict[int, list[int]] = {}
    resident: dict[int, int] = {}
    for process in psutil.process_iter(["ppid", "memory_info"]):
        memory = process.info["memory_info"]
        processes[process.pid] = process
        children.setdefault(process.info["ppid"] or 0, []).append(process.pid)
        resident[process.pid] = 0 if memory is None else memory.rss
    found = []
    for root, limit in sorted(limits.items()):
        family = _family(root, children)
        if sum(resident.get(pid, 0) for pid in family) <= limit:
            continue
        if sum(_proportional(processes.get(pid)) for pid in family) > limit:
            found.append(root)
    return found


def _family(root: int, children: Mapping[int, list[int]]) -> list[int]:
    """Everything below the root; the root is the shim's and not the container's."""
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _proportional(process: psutil.Process | None) -> int:
    if process is None:
        return 0
    with contextlib.suppress(psutil.Error, OSError):
        full = process.memory_full_info()
        return int(getattr(full, "pss", 0) or getattr(full, "uss", 0) or full.rss)
    return 0
