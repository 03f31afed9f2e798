"""A container's output as a kubelet keeps it: `<time> <stream> <F|P> <text>`, bounded.

A line longer than `LONGEST` is cut into partial ones (`P`) that a reader joins again, so that
whatever a container prints, binary or a line without end, costs no memory here.
"""

from __future__ import annotations

import contextlib
import os
import time

from posse.local.node.processes.shim.clocks import wall_nanoseconds

LONGEST = 16_384


class Recorder:
    """`log` and its predecessors `log.1`, `log.2`, ...: `count` files of about `largest` bytes."""

    def __init__(self, path: str, *, largest: int, count: int) -> None:
        self._path = path
        self._largest = largest
        self._count = count
        self._rest: dict[bytes, bytes] = {}  # per stream, the beginning of a line not yet ended
        self._descriptor = self._open()
        self._size = os.fstat(self._descriptor).st_size

    def write(self, stream: bytes, data: bytes) -> None:
        stamp = timestamp(wall_nanoseconds())
        data = self._rest.pop(stream, b"") + data
        lines = data.split(b"\n")
        rest = lines.pop()
        out = bytearray()
        for line in lines:
            _append(out, stamp, stream, line, ended=True)
        while len(rest) > LONGEST:
            out += b"%s %s P %s\n" % (stamp, stream, rest[:LONGEST])
            rest = rest[LONGEST:]
        if rest:
            self._rest[stream] = rest
        self._put(out)

    def close(self) -> None:
        """What was printed without an end of line is kept all the same."""
        stamp = timestamp(wall_nanoseconds())
        for stream, rest in self._rest.items():
            out = bytearray()
            _append(out, stamp, stream, rest, ended=False)
            self._put(out)
        self._rest.clear()
        os.close(self._descriptor)

    def _put(self, data: bytearray) -> None:
        if not data:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
            self._size += len(data)
            if self._size >= self._largest:
                self._rotate()
        except OSError:
            # A full disk costs output, never the container.
            return

    def _rotate(self) -> None:
        for index in range(self._count - 2, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self._path}.{index}", f"{self._path}.{index + 1}")
        if self._count > 1:
            os.replace(self._path, f"{self._path}.1")
        else:
            os.unlink(self._path)
        os.close(self._descriptor)
        self._descriptor = self._open()
        self._size = 0

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(self._path, flags, 0o600)


def _append(out: bytearray, stamp: bytes, stream: bytes, line: bytes, *, ended: bool) -> None:
    while len(line) > LONGEST:
        out += b"%s %s P %s\n" % (stamp, stream, line[:LONGEST])
        line = line[LONGEST:]
    out += b"%s %s %s %s\n" % (stamp, stream, b"F" if ended else b"P", line)


def timestamp(nanoseconds: int) -> bytes:
    """RFC 3339 with nine digits always, so that times compare as text."""
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    return b"%s.%09dZ" % (
        time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode(),
        fraction,
    )
