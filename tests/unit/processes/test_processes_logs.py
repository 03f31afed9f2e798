"""Output kept and read back: partial lines, tails, moments, rotation, following."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from posse.local.node.processes.logs import last_lines, read
from posse.local.node.processes.shim.recording import LONGEST, Recorder, timestamp
from posse.local.node.runtime import LogRequest


def _sizes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in directory.iterdir()}


async def shown(path: Path, **wanted: Any) -> bytes:
    chunks = [chunk async for chunk in read(path, LogRequest(**wanted), over=lambda: True)]
    return b"".join(chunks)


def written(path: Path, *lines: tuple[int, str]) -> Path:
    """A log with these texts at these seconds."""
    path.write_bytes(
        b"".join(b"%s stdout F %s\n" % (timestamp(at * 10**9), text.encode()) for at, text in lines)
    )
    return path


def test_times_compare_as_text() -> None:
    assert timestamp(0) == b"1970-01-01T00:00:00.000000000Z"
    assert timestamp(1_500_000_000) == b"1970-01-01T00:00:01.500000000Z"


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({}, "a\nb\nc\n"),
        ({"tail_lines": 2}, "b\nc\n"),
        ({"tail_lines": 0}, ""),
        ({"tail_lines": 9}, "a\nb\nc\n"),
        ({"since": 2.0}, "b\nc\n"),
        ({"since": 2.5}, "c\n"),
        ({"since": 2.0, "tail_lines": 1}, "c\n"),
        ({"since": 3.0, "tail_lines": 2}, "c\n"),
        ({"limit_bytes": 3}, "a\nb"),
        ({"limit_bytes": 100}, "a\nb\nc\n"),
        ({"timestamps": True, "tail_lines": 1}, "1970-01-01T00:00:03.000000000Z c\n"),
    ],
)
async def test_the_part_that_is_asked_for(
    tmp_path: Path, wanted: dict[str, Any], text: str
) -> None:
    log = written(tmp_path / "log", (1, "a"), (2, "b"), (3, "c"))
    assert (await shown(log, **wanted)).decode() == text


async def test_a_tail_reaches_into_rotated_files(tmp_path: Path) -> None:
    written(tmp_path / "log.2", (1, "a"), (2, "b"))
    written(tmp_path / "log.1", (3, "c"))
    log = written(tmp_path / "log", (4, "d"))
    assert await shown(log) == b"a\nb\nc\nd\n"
    assert await shown(log, tail_lines=3) == b"b\nc\nd\n"
    assert last_lines(log, lines=2, size=100) == b"c\nd\n"


async def test_what_is_written_comes_back_whatever_it_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    recorder = Recorder(str(log), largest=1 << 30, count=2)
    long = b"y" * (3 * LONGEST + 7)
    for piece in (
        b"one\ntw",
        b"o\n",
        b"\n",
        long[:50_000],
        long[50_000:] + b"\n",
        b"\x00\xff\n",
        b"rest",
    ):
        recorder.write(b"stdout", piece)
    recorder.close()
    assert await shown(log) == b"one\ntwo\n\n" + long + b"\n\x00\xff\nrest"
    assert await shown(log, tail_lines=3) == long + b"\n\x00\xff\nrest"
    assert all(len(line) < LONGEST + 100 for line in log.read_bytes().split(b"\n"))


async def test_a_line_gets_one_time_however_often_it_was_cut(tmp_path: Path) -> None:
    log = tmp_path / "log"
    recorder = Recorder(str(log), largest=1 << 30, count=2)
    recorder.write(b"stdout", b"z" * (2 * LONGEST) + b"\n")
    recorder.close()
    assert (await shown(log, timestamps=True)).count(b"Z ") == 1


async def test_no_more_than_the_newest_files_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    recorder = Recorder(str(log), largest=1000, count=3)
    for number in range(200):
        recorder.write(b"stdout", b"line %d\n" % number)
    recorder.close()
    sizes = _sizes(tmp_path)
    assert sorted(sizes) == ["log", "log.1", "log.2"]
    lines = (await shown(log)).decode().splitlines()
    first = int(lines[0].split()[1])
    assert lines == [f"line {n}" for n in range(first, 200)]
    assert sum(sizes.values()) < 4000


async def test_a_follower_loses_nothing_to_rotation(tmp_path: Path) -> None:
    log = tmp_path / "log"
    recorder = Recorder(str(log), largest=2000, count=5)
    over = False
    seen: list[bytes] = []

    async def follow() -> None:
        async for chunk in read(log, LogRequest(follow=True), over=lambda: over):
            seen.append(chunk)  # noqa: PERF401 - each must be seen when it comes

    following = asyncio.create_task(follow())
    for number in range(300):
        recorder.write(b"stdout", b"line %d\n" % number)
        if number % 20 == 0:
            before = len(seen)
            async with asyncio.timeout(10):
                while len(seen) == before:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
    recorder.close()
    over = True
    async with asyncio.timeout(10):
        await following
    assert b"".join(seen).decode().splitlines() == [f"line {n}" for n in range(300)]


async def test_a_torn_line_is_left_out(tmp_path: Path) -> None:
    log = written(tmp_path / "log", (1, "a"))
    with log.open("ab") as file:
        file.write(b"2026-01-01T0\n")
        file.write(timestamp(2 * 10**9) + b" stdout F b\n")
    assert await shown(log) == b"a\nb\n"


async def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert await shown(tmp_path / "log") == b""
