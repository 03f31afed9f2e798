"""The small runtime under every controller: queues, caches, ownership and the loop.

A controller is a declaration: a kind, a coroutine that reconciles one key, and which other kinds
wake it. What the coroutine may touch comes in as a Context, so it has no state of its own and a
restart loses nothing.

    async def reconcile(context: Context, key: Key) -> float | None:
        job = context.get(JOB, key)
        ...
        return 30.0  # look again in half a minute, whatever happens; None: only when woken

    await run_controllers(connection, world, [Controller("job", JOB, reconcile, owns=(POD,))])
"""

from __future__ import annotations

from posse.controllers.runtime.context import Context
from posse.controllers.runtime.controller import Controller, Election, Watch, run_controllers
from posse.controllers.runtime.creating import ForeignObjectError, create_owned, delete_exactly
from posse.controllers.runtime.expectations import Expectations
from posse.controllers.runtime.informing import Informer, Selection
from posse.controllers.runtime.queue import WorkQueue
from posse.objects.ownership import (
    Key,
    Manifest,
    controlled_by,
    controller_of,
    is_leftover,
    key_of,
    metadata_of,
    owner_reference,
    uid_of,
)

__all__ = [
    "Context",
    "Controller",
    "Election",
    "Expectations",
    "ForeignObjectError",
    "Informer",
    "Key",
    "Manifest",
    "Selection",
    "Watch",
    "WorkQueue",
    "controlled_by",
    "controller_of",
    "create_owned",
    "delete_exactly",
    "is_leftover",
    "key_of",
    "metadata_of",
    "owner_reference",
    "run_controllers",
    "uid_of",
]
