"""Reading what a shim wrote down: from the end, from a moment, as it grows, across rotation."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from posse.local.node.processes.shim.recording import timestamp
from posse.local.node.runtime import LogRequest

POLL = 0.1
CHUNK = 256 << 10


class Entry(msgspec.Struct, frozen=True):
    """One written line; a partial one goes on in the next entry of its stream."""

    time: bytes
    stream: bytes
    whole: bool
    text: bytes


def parse(line: bytes) -> Entry | None:
    """A line as a shim writes it; None where it is torn, by a full disk perhaps."""
    parts = line.split(b" ", 3)
    if len(parts) != 4 or parts[2] not in (b"F", b"P") or not parts[0].endswith(b"Z"):
        return None
    return Entry(parts[0], parts[1], parts[2] == b"F", parts[3])


async def read(log: Path, wanted: LogRequest, over: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The output asked for; with `follow`, until `over` says that no more will come."""
    since = b"" if wanted.since is None else timestamp(int(wanted.since * 1_000_000_000))
    budget = wanted.limit_bytes
    printer = _Printer(timestamps=wanted.timestamps)
    reader = _Reader(log, since)
    try:
        if wanted.tail_lines is not None:
            reader.skip_to_last(wanted.tail_lines)
        while True:
            # Asked first: what is written before the end is read after asking.
            ended = over()
            for entries in reader.more():
                data = printer.show(entries)
                if budget is not None:
                    data, budget = data[:budget], budget - len(data)
                if data:
                    yield data
                if budget is not None and budget <= 0:
                    return
                await asyncio.sleep(0)
            if not wanted.follow or ended:
                return
            await asyncio.sleep(POLL)
    finally:
        reader.close()


def last_lines(log: Path, *, lines: int, size: int) -> bytes:
    reader = _Reader(log, b"")
    try:
        reader.skip_to_last(lines)
        printer = _Printer(timestamps=False)
        return b"".join(printer.show(entries) for entries in reader.more())[-size:]
    finally:
        reader.close()


class _Printer:
    """Entries as a kubelet shows them: a time only where a line begins."""

    def __init__(self, *, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._open = b""  # the stream whose line has begun and not ended

    def show(self, entries: list[Entry]) -> bytes:
        out = bytearray()
        for entry in entries:
            if self._open and self._open != entry.stream:
                self._open = b""
            if self._timestamps and not self._open:
                out += entry.time + b" "
            out += entry.text
            if entry.whole:
                out += b"\n"
            self._open = b"" if entry.whole else entry.stream
        return bytes(out)


class _Reader:
    """The files of one log, oldest first, then whatever is appended."""

    def __init__(self, log: Path, since: bytes) -> None:
        self._log = log
        self._since = since
        self._files: list[BinaryIO] = []
        self._rest = b""
        for path in [*reversed(_rotated(log)), log]:
            self._open(path)

    def skip_to_last(self, lines: int) -> None:
        """Go to where the last `lines` lines begin that are not older than asked for."""
        kept: list[BinaryIO] = []
        for file in reversed(self._files):
            data = file.read()
            starts = _line_starts(data, self._since)
            kept.insert(0, file)
            if len(starts) >= lines:
                file.seek(starts[-lines] if lines else len(data))
                break
            lines -= len(starts)
            file.seek(0)
        for file in self._files:
            if file not in kept:
                file.close()
        self._files = kept

    def more(self) -> Iterator[list[Entry]]:
        while self._files:
            data = self._files[0].read(CHUNK)
            if data:
                *lines, self._rest = (self._rest + data).split(b"\n")
                entries = [e for line in lines if (e := parse(line)) and e.time >= self._since]
                if entries:
                    yield entries
            elif len(self._files) > 1 or self._replaced():
                self._files.pop(0).close()
                self._rest = b""
                if not self._files:
                    self._open(self._log)
            else:
                return

    def close(self) -> None:
        for file in self._files:
            file.close()
        self._files.clear()

    def _open(self, path: Path) -> None:
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return
        known = {os.fstat(f.fileno()).st_ino for f in self._files}
        if os.fstat(file.fileno()).st_ino in known:  # it was rotated while we opened them
            file.close()
            return
        self._files.append(file)

    def _replaced(self) -> bool:
        """The file that we are at the end of is not the current one any more."""
        try:
            return self._log.stat().st_ino != os.fstat(self._files[0].fileno()).st_ino
        except FileNotFoundError:
            return False


def _rotated(log: Path) -> list[Path]:
    """`log.1`, `log.2`, ... as far as there are any: younger ones first."""
    found: list[Path] = []
    while (path := log.with_name(f"{log.name}.{len(found) + 1}")).exists():
        found.append(path)
    return found


def _line_starts(data: bytes, since: bytes) -> list[int]:
    """Offsets at which whole lines of output begin, their partial entries joined."""
    starts: list[int] = []
    offset = 0
    begun: dict[bytes, int] = {}
    for line in data.split(b"\n"):
        entry = parse(line)
        if entry is not None and entry.time >= since:
            at = begun.pop(entry.stream, offset)
            if entry.whole:
                starts.append(at)
            else:
                begun[entry.stream] = at
        offset += len(line) + 1
    starts += begun.values()
    return sorted(starts)
