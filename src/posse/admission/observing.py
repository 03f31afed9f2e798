"""What the webhook lets others see of its work. Without anybody who looks, it costs nothing."""

from __future__ import annotations

from posse.kube.observing import ServiceObserver


class Observer(ServiceObserver):
    def reviewed(self, kind: str, stage: str, outcome: str, seconds: float) -> None:
        """One question: `outcome` is allowed, denied or failed."""

    def certified(self, certificate: bytes, authority: bytes) -> None:
        """These are shown from now on, as PEM."""
