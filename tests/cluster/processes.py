"""A cluster of real processes in a temporary home, driven by the command line alone."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posse.local.supervisor.home import Home
from posse.local.supervisor.states import State

CEILING = 90.0


@dataclass(frozen=True)
class Commands:
    """`posse ...` as a user with a home, a kubeconfig and nothing else."""

    directory: Path

    @property
    def home(self) -> Path:
        return self.directory / "posse"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "POSSE_HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "LANG": "C.UTF-8",
        }

    @staticmethod
    def program(name: str) -> str:
        """The script that the package installs under that name."""
        return str(Path(sys.executable).parent / name)

    def run(self, line: str, *, exits: int | None = 0) -> subprocess.CompletedProcess[str]:
        """One command line, split as a shell would; the program is `posse` or `arena`."""
        words = shlex.split(line)
        assert words[0] in ("posse", "arena"), line
        done = subprocess.run(
            [self.program(words[0]), *words[1:]],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        if exits is not None:
            assert done.returncode == exits, f"{line}\n{done.stdout}\n{done.stderr}"
        return done

    def instances(self, job: str) -> list[dict[str, Any]]:
        found = json.loads(self.run(f"posse get {job} -o json").stdout)["instances"]
        assert isinstance(found, list)
        return found

    def jobs(self) -> dict[str, dict[str, Any]]:
        return {job["name"]: job for job in json.loads(self.run("posse list -o json").stdout)}

    def services(self) -> dict[str, int]:
        """Names and pids of the services that run now, as their supervisor says."""
        state = Home(self.home).load(Home(self.home).state, State)
        return {s.name: s.pid for s in state.services if s.pid} if state is not None else {}

    def kill(self, service: str) -> None:
        os.kill(self.services()[service], signal.SIGKILL)

    def processes(self) -> list[int]:
        """Every process that names this home on its command line."""
        if sys.platform != "linux":
            listed = subprocess.run(
                ["ps", "-axo", "pid=,command="], capture_output=True, text=True, check=True
            ).stdout
            return [int(row.split()[0]) for row in listed.splitlines() if str(self.home) in row]
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    words = (entry / "cmdline").read_bytes()
                except OSError:
                    continue  # it ended while we looked
                if str(self.home).encode() in words:
                    found.append(int(entry.name))
        return found


def eventually(holds: Callable[[], bool], what: str, within: float = CEILING) -> None:
    deadline = time.monotonic() + within
    while not holds():
        assert time.monotonic() < deadline, f"after {within:g}s still not: {what}"
        time.sleep(0.1)
