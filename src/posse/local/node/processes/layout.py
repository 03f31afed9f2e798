"""Where the files of a pod lie: everything below one directory that only this user can enter.

<pods>/<uid>/pod.json                       what the pod was given at admission
             etc/{hosts,hostname,...}       its names
             volumes/<volume>/              what its containers share
             tmp/                           its /tmp
             containers/<name>/<attempt>/   launch.json, log, exit.json, root/, ...
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from posse.local.node.processes.shim import files


class UnsafeName(ValueError):
    """A name that would lead out of the pod's directory."""


def safe(name: str) -> str:
    """The API server checks names; a directory is made of one only if it is a plain one."""
    if not name or name in (".", "..") or "/" in name or "\0" in name or len(name) > 255:
        raise UnsafeName(f"{name!r} cannot be the name of a directory")
    return name


@dataclass(frozen=True, slots=True)
class AttemptPlace:
    """One attempt of one container: the directory of its shim."""

    path: Path

    @property
    def number(self) -> int:
        return int(self.path.name)

    @property
    def container(self) -> str:
        return self.path.parent.name

    @property
    def root(self) -> Path:
        """The container's own root, fresh with every attempt."""
        return self.path / "root"

    @property
    def launch(self) -> Path:
        return self.path / files.LAUNCH

    @property
    def state(self) -> Path:
        return self.path / files.STATE

    @property
    def exit(self) -> Path:
        return self.path / files.EXIT

    @property
    def log(self) -> Path:
        return self.path / files.LOG

    @property
    def last_words(self) -> Path:
        """What the container leaves at its terminationMessagePath."""
        return self.path / "last-words"

    def alive(self) -> bool:
        """Its shim runs; the lock tells, never a pid."""
        return files.is_locked(str(self.path / files.LOCK))


@dataclass(frozen=True, slots=True)
class PodPlace:
    path: Path

    @property
    def uid(self) -> str:
        return self.path.name

    @property
    def record(self) -> Path:
        return self.path / "pod.json"

    @property
    def etc(self) -> Path:
        return self.path / "etc"

    @property
    def tmp(self) -> Path:
        return self.path / "tmp"

    def volume(self, name: str) -> Path:
        return self.path / "volumes" / safe(name)

    def attempt(self, container: str, number: int) -> AttemptPlace:
        return AttemptPlace(self.path / "containers" / safe(container) / str(int(number)))

    def attempts(self, container: str) -> list[AttemptPlace]:
        """In order, the latest last; an attempt that was never launched is not one."""
        found = [
            AttemptPlace(entry)
            for entry in _directories(self.path / "containers" / safe(container))
            if entry.name.isdecimal()
        ]
        return sorted((a for a in found if a.launch.exists()), key=lambda a: a.number)

    def latest(self) -> list[AttemptPlace]:
        """The last attempt of each container."""
        names = [entry.name for entry in _directories(self.path / "containers")]
        return [attempts[-1] for name in names if (attempts := self.attempts(name))]

    def make(self) -> None:
        for directory in (self.path, self.etc, self.path / "volumes", self.path / "containers"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.tmp.exists():
            self.tmp.mkdir(mode=0o700)
            self.tmp.chmod(0o1777)


def pods_below(path: Path) -> list[PodPlace]:
    return [PodPlace(entry) for entry in _directories(path) if not entry.name.startswith(".")]


def _directories(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            names = sorted(e.name for e in entries if e.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    return [path / name for name in names]
