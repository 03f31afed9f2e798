"""What an agent needs of whatever runs its containers.

The agent decides: admission, order of init containers, restarts, deadlines, statuses, deletion. A
runtime only starts and stops containers and says when one ended; simulated nodes have one that runs
nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import msgspec

Manifest = dict[str, Any]


class Exit(msgspec.Struct, frozen=True):
    """How a container ended."""

    code: int
    reason: str = ""
    message: str = ""


class LogRequest(msgspec.Struct, frozen=True):
    """Which part of a container's output is asked for."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: float | None = None  # wall seconds


class Host(Protocol):
    """The agent, as its runtime sees it."""

    def exited(self, uid: str, container: str, attempt: int, how: Exit) -> None:
        """The container of that attempt ended; never called from inside `start`."""
        ...

    def warn(self, pod: Manifest, reason: str, message: str) -> None:
        """Tell the pod's owner, through an event."""
        ...


class PodRuntime(Protocol):
    def attach(self, host: Host) -> None:
        """Called once, before anything else."""
        ...

    def address(self, pod: Manifest, node: str) -> str:
        """The pod's own address, held until `forget`; one in the pod's status is kept."""
        ...

    async def start(self, pod: Manifest, container: str, attempt: int) -> None: ...

    async def adopt(self, pod: Manifest, container: str, attempt: int, started_at: float) -> None:
        """Go on with a container that an earlier agent started at that wall time."""
        ...

    async def stop(self, uid: str, grace: float) -> None:
        """Nothing of the pod runs when this returns; each running container has `exited`."""
        ...

    def forget(self, uid: str) -> None:
        """The pod is gone; free what it held, and stop what still runs."""
        ...

    def logs(self, pod: Manifest, container: str, wanted: LogRequest) -> AsyncIterator[bytes]: ...


RuntimeFactory = Callable[[], PodRuntime]
