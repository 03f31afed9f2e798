"""The roles of a job."""

from __future__ import annotations

import msgspec

from posse.objects.ownership import Manifest


class Part(msgspec.Struct, frozen=True):
    """One role of the gang: so many pods of one template."""

    role: str
    replicas: int
    template: Manifest
