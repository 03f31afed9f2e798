"""Posse: gang scheduling for distributed training. A posse rides together, or not at all.

The public names are exported here and nowhere else; they load when first asked for, so that
`posse --help` does not pay for the client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from posse.version import __version__

if TYPE_CHECKING:
    from posse.client.errors import JobExists, JobNotFound, PosseError, TimedOut
    from posse.client.jobs import Instance, TrainingJob
    from posse.client.posse_client import PosseClient
    from posse.client.submitting.mpi import MPIJob
    from posse.client.submitting.tf import TFJob, TFRole

__all__ = [
    "Instance",
    "JobExists",
    "JobNotFound",
    "MPIJob",
    "PosseClient",
    "PosseError",
    "TFJob",
    "TFRole",
    "TimedOut",
    "TrainingJob",
    "__version__",
]

_HOME = {
    "Instance": "posse.client.jobs",
    "JobExists": "posse.client.errors",
    "JobNotFound": "posse.client.errors",
    "MPIJob": "posse.client.submitting.mpi",
    "PosseClient": "posse.client.posse_client",
    "PosseError": "posse.client.errors",
    "TFJob": "posse.client.submitting.tf",
    "TFRole": "posse.client.submitting.tf",
    "TimedOut": "posse.client.errors",
    "TrainingJob": "posse.client.jobs",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'posse' has no attribute {name!r}")
