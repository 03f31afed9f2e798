"""Logs that cannot fill a disk."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

LARGEST = 4 << 20


class BoundedLog:
    """A file and its predecessor, each of at most `largest` bytes and readable by us alone."""

    def __init__(self, path: Path, largest: int = LARGEST) -> None:
        self._path = path
        self._largest = largest
        self._file = self._open()
        self._size = self._file.tell()

    def write(self, data: bytes) -> None:
        if self._size and self._size + len(data) > self._largest:
            self._file.close()
            rotate(self._path)
            self._file = self._open()
            self._size = 0
        self._file.write(data)
        self._size += len(data)

    def close(self) -> None:
        self._file.close()

    def _open(self) -> BinaryIO:
        self._path.touch(mode=0o600)
        return self._path.open("ab", buffering=0)


def rotate(path: Path) -> None:
    path.replace(path.with_name(f"{path.name}.1"))


def last_words(path: Path) -> str:
    """The message of the last line, without its date and place."""
    lines = tail(path, 1)
    head, colon, message = lines[-1].partition(": ") if lines else ("", "", "")
    return message if colon else head


def tail(path: Path, lines: int = 10) -> list[str]:
    """The last lines, from however large a file."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 65_536))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    return text.splitlines()[-lines:]
