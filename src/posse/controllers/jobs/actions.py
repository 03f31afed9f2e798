"""What a decision asks for, as data; `performing` carries it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from posse.controllers.runtime import Manifest
from posse.objects.kinds import Kind
from posse.world import World


class Say(msgspec.Struct, frozen=True):
    """An event on the job."""

    reason: str
    message: str
    warning: bool = False


class Create(msgspec.Struct, frozen=True):
    """Create this object; one of the same name and owner that is there already will do.

    `unless`: kinds of which an object of that name takes its place. `said`, once it is done.
    """

    kind: Kind
    manifest: Manifest
    unless: tuple[Kind, ...] = ()
    said: Say | None = None


class Keep(msgspec.Struct, frozen=True):
    """Have this object exist with these fields in it: created, or merged where it differs."""

    kind: Kind
    manifest: Manifest


class Merge(msgspec.Struct, frozen=True):
    """Merge fields into this very object (by uid)."""

    kind: Kind
    present: Manifest
    patch: dict[str, Any]


class Delete(msgspec.Struct, frozen=True):
    """Delete this very object (by uid). `said`, once it is done."""

    kind: Kind
    present: Manifest
    said: Say | None = None


class Blocked(msgspec.Struct, frozen=True):
    """A name that we need is taken, by somebody else's object or by one on its way out."""

    kind: Kind
    present: Manifest


class Provide(msgspec.Struct, frozen=True):
    """Have an object that is not cached, such as a Secret; `fill` completes it when it is new."""

    kind: Kind
    manifest: Manifest
    fill: Callable[[World, Manifest], Manifest]


Action = Create | Keep | Merge | Delete | Blocked | Provide


class Decision(msgspec.Struct, frozen=True):
    """What to do about one job, in order; then the status to be written, None for unchanged.

    What is said belongs to the status, and is said once that is written. `after`: when to look
    again even if nothing happens, in seconds.
    """

    actions: tuple[Action, ...] = ()
    status: dict[str, Any] | None = None
    says: tuple[Say, ...] = ()
    after: float | None = None


NOTHING = Decision()
