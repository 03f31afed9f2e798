"""What a user can be told in one line. Each says what to do."""

from __future__ import annotations


class PosseError(Exception):
    """Refused: the request makes no sense as it stands."""


class JobNotFound(PosseError):
    def __init__(self, name: str, namespace: str) -> None:
        super().__init__(
            f"training job not found,please use 'arena list' to make sure job is existed"
            f" (no job {name} in namespace {namespace})"
        )


class JobExists(PosseError):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"the job {name} is already exist, please delete it first. use 'arena delete {name}'"
        )


class NotAllowed(PosseError):
    """The cluster does not let this user do it."""


class TimedOut(PosseError):
    pass
