"""Faults of every kind at random, and then peace: each gang whole or wholly waiting."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.unit.scheduler.rig import Rig, crash, node, pod

pytestmark = pytest.mark.looptime

SEEDS = range(8)
GANGS = 8


def faults(rig: Rig, chance: random.Random, rate: float) -> None:
    def decide(method: str, path: str) -> str | int | None:
        if chance.random() > rate:
            return None
        if "leases" in path:
            return "drop"
        kinds: list[str | int] = ["drop", 500]
        if method != "GET":
            kinds += ["lose", 503, 429]
        if path.endswith("binding"):
            kinds += [409, 403]
        return chance.choice(kinds)

    rig.api.fault = decide


@pytest.mark.parametrize("seed", SEEDS)
async def test_after_the_storm_every_gang_is_whole_or_waits(seed: int) -> None:
    chance = random.Random(seed)
    rig = Rig()
    rig.nodes(6, 4)
    sizes = {f"g{index}": chance.randint(1, 5) for index in range(GANGS)}
    faults(rig, chance, chance.choice([0.05, 0.2, 0.5]))
    scheduler = rig.start(lease_duration=5.0, renew_every=1.0)
    for gang, size in sizes.items():
        rig.gang(gang, size, chance.choice([1, 2]))
        await asyncio.sleep(chance.random() * 0.1)
        rig.check()
        match chance.randrange(6):
            case 0:
                rig.api.close_watches()
            case 1:
                await crash(scheduler)
                scheduler = rig.start(lease_duration=5.0, renew_every=1.0)
            case 2:
                rig.api.hold_back("pods", "podgroups")
                await asyncio.sleep(0.05)
                rig.api.catch_up()
            case 3:
                name = f"{gang}-0"
                rig.api.delete("pods", name)
                rig.api.put("pods", pod(name, gang, 1))
    await rig.settle(chance.random() * 5)
    rig.api.fault = lambda method, path: None
    for index in range(4):
        rig.api.put("nodes", node(f"late{index}", 16))
    await rig.until(lambda: all(len(rig.bound_of(g)) == n for g, n in sizes.items()), within=300)
    await rig.until(lambda: all(rig.phase(gang) == "Running" for gang in sizes))
    rig.check()
    await crash(scheduler)


@pytest.mark.parametrize("seed", SEEDS)
async def test_in_a_full_cluster_nobody_is_left_half_bound(seed: int) -> None:
    chance = random.Random(seed)
    rig = Rig()
    rig.nodes(4, 2)
    sizes = {f"g{index}": chance.randint(2, 4) for index in range(4)}
    faults(rig, chance, 0.2)
    scheduler = rig.start()
    for gang, size in sizes.items():
        rig.gang(gang, size, chance.choice([1, 2]))
        await asyncio.sleep(chance.random() * 0.05)
        if chance.random() < 0.4:
            await crash(scheduler)
            scheduler = rig.start()
    rig.api.fault = lambda method, path: None
    await rig.settle(200)
    for gang, size in sizes.items():
        there = len([p for p in rig.api.all("pods") if p["metadata"]["name"].startswith(gang)])
        assert len(rig.bound_of(gang)) in (0, size), f"{gang}: {rig.api.placed()}, {there} left"
    rig.check()
    await crash(scheduler)
