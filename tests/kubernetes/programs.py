"""A program that a test runs: its log, its end, and the faults that can be done to it."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_PR_SET_PDEATHSIG = 1


class Program:
    """In a session of its own; on Linux it ends with the tests, even if those are killed."""

    def __init__(
        self,
        name: str,
        command: list[str],
        directory: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        self._command = command
        self._environment = None if environment is None else dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert not self.running, f"{self.name} runs already"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    def signal(self, number: int) -> None:
        assert self._process is not None, f"{self.name} was not started"
        self._process.send_signal(number)

    def pause(self) -> None:
        """It stands still and does not know it; its sockets stay open."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self, within: float = 10.0) -> None:
        """As politely as it lets itself be stopped."""
        self._end(signal.SIGTERM, within)

    def _end(self, number: int, within: float = 10.0) -> None:
        if not self.running:
            return
        assert self._process is not None
        self._process.send_signal(number)
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def tail(self, lines: int = 15) -> str:
        said = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join(said[-lines:])


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:
        os._exit(1)
