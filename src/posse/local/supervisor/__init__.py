"""The embedded cluster as processes: its home, its supervision, up, down and status."""

from __future__ import annotations

from posse.local.supervisor.errors import ClusterError
from posse.local.supervisor.home import Home
from posse.local.supervisor.options import Options
from posse.local.supervisor.reporting import Report, status
from posse.local.supervisor.starting import Started, foreground, up
from posse.local.supervisor.stopping import Stopped, down

__all__ = [
    "ClusterError",
    "Home",
    "Options",
    "Report",
    "Started",
    "Stopped",
    "down",
    "foreground",
    "status",
    "up",
]
