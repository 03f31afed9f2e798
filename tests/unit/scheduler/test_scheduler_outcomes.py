"""A gang whose decisions fail stands back for longer and longer, and for ever if need be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.engine.policy import Policy
from posse.engine.view import View
from posse.kube.cache import Change
from posse.objects.groups import PodGroup
from posse.objects.kinds import Kind
from posse.scheduler.inbox import Inbox
from posse.scheduler.outcomes import Outcomes
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.quarantine import Quarantine
from posse.scheduler.reading.reader import Reader
from posse.virtual.world import virtual_world
from tests.unit.scheduler.rig import group

pytestmark = pytest.mark.looptime


class Silent:
    def record(
        self, regarding: Any, reason: str, message: str, *, warning: bool = False, kind: Kind
    ) -> None:
        pass


@pytest.mark.parametrize(
    ("failures", "pause"), [(2, 1.0), (3, 2.0), (7, 32.0), (8, 60.0), (9, 60.0), (5000, 60.0)]
)
async def test_it_stands_back_for_longer_and_longer_up_to_a_minute(
    failures: int, pause: float
) -> None:
    world, inbox = virtual_world(), Inbox()
    reader = Reader(View(), Claims(), Quarantine(Silent()))
    made = msgspec.convert(group("g", 1), PodGroup)
    made.metadata.namespace = "ns"
    reader.group(Change(None, made))
    outcomes = Outcomes(inbox, reader, Silent(), world, Policy(), lambda order: None)
    for _ in range(failures):
        outcomes.failed("ns/g", "denied", [], begun=False)
    await inbox.apply()
    assert reader.musters["ns/g"].withheld == "denied"
    began = world.monotonic()
    while reader.musters["ns/g"].withheld:
        await inbox.news()
        await inbox.apply()
    assert pause <= world.monotonic() - began <= 1.1 * pause
