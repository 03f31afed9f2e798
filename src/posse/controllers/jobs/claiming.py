"""Whose an object is that bears a name which a job needs."""

from __future__ import annotations

import msgspec

from posse.controllers.jobs.pods import is_ending
from posse.controllers.runtime import Manifest, controlled_by, is_leftover, uid_of
from posse.objects.kinds import Kind


class Claim(msgspec.Struct, frozen=True):
    """The claim of one job, of this kind."""

    kind: Kind
    job: Manifest

    def owns(self, obj: Manifest | None) -> bool:
        return obj is not None and controlled_by(obj, uid_of(self.job))

    def passes(self, obj: Manifest) -> bool:
        """Not ours to use, but on its way out: the remains of an earlier job of this name."""
        return is_ending(obj) or is_leftover(obj, self.kind, self.job)
