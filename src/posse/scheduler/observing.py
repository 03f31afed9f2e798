"""What a scheduler lets others see of its work. This observer looks away; `metrics` counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from posse.kube.observing import ServiceObserver


class Stopwatch:
    """The time that each phase of one round takes; it stands still while others have the loop."""

    def enter(self, phase: str) -> None:
        """From here on it is this phase's time."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None:
        """The round is over."""


class Standing:
    """How gangs stand, asked for when somebody looks."""

    def __init__(
        self, waiting: Callable[[], Mapping[str, int]], quarantined: Callable[[], int]
    ) -> None:
        self.waiting = waiting
        self.quarantined = quarantined


_IDLE = Stopwatch()


class Observer(ServiceObserver):
    def round(self) -> Stopwatch:
        return _IDLE

    def stands(self, standing: Standing | None) -> None:
        """Whom to ask from now on; None once there is nobody."""

    def binding(self, uid: str) -> None:
        """A bind is about to be sent."""

    def bind_ended(self, uid: str, outcome: str) -> None:
        """What became of it: bound, gone, otherwise or denied."""

    def seen(self, uid: str) -> None:
        """The watch told that the pod has a node."""

    def started(self) -> None:
        """A gang's binds are through, every one."""

    def released(self) -> None:
        """A gang was let go."""

    def evicted(self) -> None:
        """One of its pods was ended."""

    def stumbled(self) -> None:
        """The engine failed on a gang, which is set aside."""

    def policy(self, *, frozen: bool, bad: bool) -> None:
        """The policy in force, and whether a newer one could not be read."""
