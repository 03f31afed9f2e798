"""What a person is told when the cluster cannot do as asked."""

from __future__ import annotations

from collections.abc import Sequence

UNABLE = 78
"""The exit code of a process that would fail again, whenever it is started; its log says why."""


class ClusterError(Exception):
    """One line that says what to do; `log` has the last lines of the service that failed."""

    def __init__(self, message: str, log: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.log = tuple(log)
