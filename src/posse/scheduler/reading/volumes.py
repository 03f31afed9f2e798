"""Volumes: what a pod's claims say about where it can run."""

from __future__ import annotations

import msgspec

from posse.engine.facts import Requests
from posse.engine.terms import Choice


class Volumes(msgspec.Struct, frozen=True):
    """What the claims of a pod add to its shape."""

    # Where its volumes can be reached.
    choices: tuple[Choice, ...] = ()
    # Claims that no two pods may use.
    exclusive: tuple[str, ...] = ()
    # What they take of each driver's attach limit.
    attachments: Requests = ()
