"""What a service lets others see of its work. Without anybody who looks, it costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posse.kube.cache import Cache
from posse.kube.transport import Transport


class ServiceObserver:
    """Told what every service has in common. This one looks away; `metering` counts."""

    def measured(self, transport: Transport) -> Transport:
        """The transport through which the service is to send its requests."""
        return transport

    def leads(self, leading: bool) -> None:
        """The service works, or stands by."""

    def watches(self, caches: Sequence[Cache[Any]]) -> None:
        """These are the caches from now on, in place of any earlier ones."""

    def works(self) -> None:
        """Everything has been listed: the leader begins to decide."""
