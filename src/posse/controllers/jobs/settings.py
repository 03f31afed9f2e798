"""What the program is told that concerns every job."""

from __future__ import annotations

import msgspec

from posse.controllers.jobs.grouping import GangSettings


class Settings(msgspec.Struct, frozen=True):
    gang: GangSettings = GangSettings()
    cluster_domain: str = ""
