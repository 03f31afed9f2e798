"""What a supervisor tells of itself, in a file that others read."""

from __future__ import annotations

import msgspec

from posse.version import __version__


class ServiceState(msgspec.Struct, frozen=True):
    name: str
    pid: int = 0  # 0: it does not run just now
    restarts: int = 0
    since: float = 0.0  # wall seconds of its last start
    exit_code: int | None = None


class State(msgspec.Struct, frozen=True):
    """Written whole at every change; worth something only while the supervisor's lock is held."""

    pid: int
    services: tuple[ServiceState, ...] = ()
    ready: bool = False
    failing: str = ""  # the service that keeps the cluster from being ready
    problem: str = ""
    version: str = __version__


class Address(msgspec.Struct, frozen=True):
    port: int

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"
