"""What an installation is told."""

from __future__ import annotations

import msgspec

from posse.controllers.program import ControllersConfig
from posse.version import __version__

NAMESPACE = "posse-system"
KINDS = ControllersConfig().kinds
"""Every job kind that Posse has a controller for."""
SCHEDULER_NAME = "posse"
METRICS_PORT = 8080
REPLICAS = 2


def default_image(version: str = __version__) -> str:
    return f"posse:{version}"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    image: str = default_image()
    replicas: int = REPLICAS
    namespace: str = NAMESPACE

    kinds: tuple[str, ...] = KINDS
    """The job kinds whose controller Posse is here; without any there are no controllers."""

    claims: tuple[str, ...] = (SCHEDULER_NAME,)
    """The schedulerNames whose pods are Posse's."""

    monitored: bool = False
    """The cluster has ServiceMonitors: whoever serves them scrapes Posse, too."""
