"""What an agent needs of whatever runs its containers.

The agent decides: admission, order of init containers, restarts, deadlines, statuses, deletion. A
runtime only starts and stops containers and says when one ended; simulated nodes have one that runs
nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Protocol

import msgspec

Manifest = dict[str, Any]


class Exit(msgspec.Struct, frozen=True):
    """How a container ended."""

    code: int
    reason: str = ""
    message: str = ""
    started_at: float | None = None  # wall seconds, where the runtime knows better
    finished_at: float | None = None


class NotYet(Exception):
    """A container cannot be started now, but later it may: the pod waits and says why."""

    def __init__(
        self, reason: str, message: str, again_in: float = 2.0, *, warning: bool = True
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.again_in = again_in
        self.warning = warning  # somebody has to do something about it


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

    def ready(self, uid: str, container: str, attempt: int, ready: bool) -> None:
        """Whether the running container serves; one that nobody asks is ready from its start."""
        ...

    def bound(self) -> Iterable[Manifest]:
        """Every pod that has a node, of this agent or not."""
        ...


class PodRuntime(Protocol):
    @property
    def scheme(self) -> str:
        """What the ids of its containers begin with."""
        ...

    def attach(self, host: Host) -> None:
        """Called once, before anything else."""
        ...

    async def run(self) -> None:
        """What it does beside being asked; until cancelled."""
        ...

    async def recover(self, uids: Sequence[str]) -> None:
        """These are all the pods of its nodes; what an earlier agent left of others is ended."""
        ...

    def pods_changed(self) -> None:
        """Some pod, here or elsewhere, has come, gone or changed."""
        ...

    def address(self, pod: Manifest, node: str) -> str:
        """The pod's own address, held until `forget`; one in the pod's status is kept."""
        ...

    async def start(self, pod: Manifest, container: str, attempt: int) -> bool:
        """Start it, or raise NotYet. One that an earlier agent started is gone on with.

        The answer is whether it is ready at once: nobody will ask it.
        """
        ...

    async def adopt(self, pod: Manifest, container: str, attempt: int, started_at: float) -> bool:
        """Go on with a container that an earlier agent started at that wall time."""
        ...

    async def stop(self, uid: str, grace: float) -> None:
        """Nothing of the pod runs when this returns; each running container has `exited`."""
        ...

    def forget(self, uid: str) -> None:
        """The pod is gone; free what it held, and stop what still runs."""
        ...

    def close(self) -> None:
        """The agent ends. What runs goes on; another agent will take it over."""
        ...

    def logs(self, pod: Manifest, container: str, wanted: LogRequest) -> AsyncIterator[bytes]: ...


RuntimeFactory = Callable[[], PodRuntime]
