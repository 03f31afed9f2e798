"""The files by which a shim and the agents before and after it know each other.

`lock` is held by the shim as long as it lives: the kernel's word, never a pid's. `exit.json` is
there, whole, once all is over; `state.json` says what runs until then.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from typing import Any

LAUNCH = "launch.json"
STATE = "state.json"
EXIT = "exit.json"
LOCK = "lock"
CONTROL = "control"
BELL = "bell"
LOG = "log"
ERRORS = "shim.log"


def read_json(path: str) -> dict[str, Any] | None:
    """What the file says, or None where there is none that can be read."""
    try:
        with open(path, "rb") as file:
            value = json.load(file)
    except (FileNotFoundError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def write_json(path: str, value: dict[str, Any], *, durable: bool = True) -> None:
    """Replace the file in one step; a durable one is on the disk when this returns."""
    new = f"{path}.new"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        _write_all(descriptor, json.dumps(value).encode())
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(new, path)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def lock(path: str) -> int:
    """Take the lock, waiting for one who only looks; held until this process ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    return descriptor


def is_locked(path: str) -> bool:
    """Somebody holds the lock now."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def make_fifo(path: str) -> None:
    with contextlib.suppress(FileExistsError):
        os.mkfifo(path, 0o600)
