"""Faults of a real control plane and of leaders on it, each in the middle of a gang's binds.

Whatever happens: in the end the gang is whole, no node is overcommitted, no pod was bound twice.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from posse.local.node.manifests import simulated_nodes
from posse.objects import kinds
from posse.objects.keys import GROUP_NAME
from posse.objects.times import parse_time
from posse.virtual.faults import TOO_MANY, Fault, Loss
from tests.kubernetes.bystanding import Bystander, bystander
from tests.kubernetes.plane import ADMIN, SYSTEM, ControlPlane
from tests.kubernetes.programs import Program
from tests.kubernetes.riding import RealBackend, RealRide

pytestmark = pytest.mark.process

SIZE = 200  # so many binds that something can happen between the first and the last


@asynccontextmanager
async def riding(plane: ControlPlane, *services: str) -> AsyncIterator[tuple[RealRide, Bystander]]:
    """Room for one gang of SIZE, and not for a second one."""
    backend = RealBackend(plane, services)
    async with backend.riding(simulated_nodes(4, gpus=100, cpus=100)) as ride:
        await ride.until(lambda: _untainted(ride), "no node is tainted any more")
        async with bystander(ride) as standing:
            yield ride, standing
            assert standing.violations == []
            assert bound_twice(plane, ride.namespace) == []


async def _untainted(ride: RealRide) -> bool:
    nodes = (await ride.connection.list(kinds.NODE)).items
    return len(nodes) == 4 and not any(node["spec"].get("taints") for node in nodes)


async def create_gang(ride: RealRide, name: str, size: int = SIZE) -> None:
    """Pods that nobody would make again: such a gang is completed, never let go."""
    group = {"metadata": {"name": name}, "spec": {"minMember": size, "queue": "default"}}
    await ride.connection.create(kinds.POD_GROUP, group, ride.namespace)
    await asyncio.gather(*(_create_pod(ride, name, index) for index in range(size)))


async def _create_pod(ride: RealRide, gang: str, index: int) -> None:
    requests = {"nvidia.com/gpu": "1", "cpu": "100m"}
    limits = {"nvidia.com/gpu": "1"}
    pod: dict[str, Any] = {
        "metadata": {"name": f"{gang}-{index}", "annotations": {GROUP_NAME: gang}},
        "spec": {
            "schedulerName": "posse",
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "i",
                    "resources": {"requests": requests, "limits": limits},
                }
            ],
        },
    }
    await ride.connection.create(kinds.POD, pod, ride.namespace)


async def until_whole(ride: RealRide, standing: Bystander, gang: str, size: int = SIZE) -> None:
    async def whole() -> bool:
        return standing.seated(gang) == size

    await ride.until(whole, f"all {size} of {gang} have a node", within=90)


async def interrupted(standing: Bystander, gang: str) -> None:
    """In the middle of the binds, or the story would tell nothing."""
    count = await standing.first_seated(gang)
    assert count < SIZE, "every bind was done before anything could be broken"


def bound_twice(plane: ControlPlane, namespace: str) -> list[str]:
    """Pods for which the API server granted more than one bind, by its own log."""
    granted: Counter[str] = Counter()
    for entry in plane.audited():
        about = entry.get("objectRef") or {}
        if about.get("namespace") == namespace and about.get("subresource") == "binding":
            granted[about["name"]] += entry["responseStatus"]["code"] == 201
    return [name for name, count in granted.items() if count > 1]


async def test_the_api_server_restarts_in_mid_gang(control_plane: ControlPlane) -> None:
    async with riding(control_plane, "node") as (ride, standing):
        await create_gang(ride, "gang")
        ride.start("scheduler")
        await interrupted(standing, "gang")
        control_plane.restart_api_server()
        await until_whole(ride, standing, "gang")
        await ride.until(lambda: asyncio.to_thread(control_plane.settled), "it is ready")


async def test_etcd_stands_still_in_mid_gang(control_plane: ControlPlane) -> None:
    async with riding(control_plane, "node") as (ride, standing):
        await create_gang(ride, "gang")
        ride.start("scheduler")
        await interrupted(standing, "gang")
        control_plane.etcd.pause()
        try:
            await asyncio.sleep(8)
            assert standing.seated("gang") < SIZE
        finally:
            control_plane.etcd.resume()
        await until_whole(ride, standing, "gang")


async def test_refusals_and_lost_answers_to_every_kind_of_write(
    control_plane: ControlPlane,
) -> None:
    """Of five writes one is refused with 429; of seven, one is done and its answer lost."""
    async with riding(control_plane, "node") as (ride, standing):
        await create_gang(ride, "gang")
        sent = 0

        def plan(method: str, path: str) -> Fault | None:
            nonlocal sent
            if method in ("GET", "WATCH"):
                return None
            sent += 1
            if sent % 5 == 0:
                return TOO_MANY
            return Loss.ANSWER if sent % 7 == 0 else None

        ride.start("scheduler")
        await asyncio.sleep(0)
        ride.lines["scheduler"].plan = plan
        await until_whole(ride, standing, "gang")
        assert sent > SIZE


async def test_every_watch_expires_in_mid_gang(control_plane: ControlPlane) -> None:
    async with riding(control_plane, "node") as (ride, standing):
        await create_gang(ride, "gang")
        ride.start("scheduler")
        await asyncio.sleep(0)
        memory = ride.memories["scheduler"]
        await interrupted(standing, "gang")
        memory.forgets = True
        ride.lines["scheduler"].cut()
        await asyncio.sleep(2)
        memory.forgets = False
        assert any(path.endswith("/pods") for path in memory.forgotten)
        await until_whole(ride, standing, "gang")
        await create_gang(ride, "late", 50)
        await until_whole(ride, standing, "late", 50)


@pytest.fixture
def schedulers(control_plane: ControlPlane, tmp_path: Path) -> Iterator[dict[str, Program]]:
    """Two schedulers as programs, told apart in the audit log by whom they are."""
    made = {
        user: Program(
            f"scheduler-{user}",
            [
                str(Path(sys.executable).parent / "posse"),
                "scheduler",
                f"--kubeconfig={control_plane.kubeconfig(user)}",
                f"--identity={user}",
                f"--lease-namespace={SYSTEM}",
                f"--lease-namespace={SYSTEM}",
            ],
            tmp_path,
            {"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        )
        for user in ("posse-scheduler", ADMIN)
    }
    yield made
    for program in made.values():
        program.kill()


async def leads(ride: RealRide, identity: str) -> bool:
    leases = (await ride.connection.list(kinds.LEASE, SYSTEM)).items
    held = {lease["metadata"]["name"]: lease["spec"].get("holderIdentity") for lease in leases}
    return held.get("posse-scheduler") == identity


async def under_one_leader(ride: RealRide, schedulers: dict[str, Program]) -> Program:
    """The first leads before the second looks; returns the first."""
    first, second = schedulers["posse-scheduler"], schedulers[ADMIN]
    first.start()
    await ride.until(lambda: leads(ride, "posse-scheduler"), "the first one leads")
    second.start()
    return first


async def test_a_leader_is_killed_with_binds_in_flight(
    control_plane: ControlPlane, schedulers: dict[str, Program]
) -> None:
    async with riding(control_plane, "node") as (ride, standing):
        first = await under_one_leader(ride, schedulers)
        await create_gang(ride, "gang")
        await interrupted(standing, "gang")
        first.kill()
        await until_whole(ride, standing, "gang")


async def test_a_paused_leader_that_wakes_up_writes_nothing(
    control_plane: ControlPlane, schedulers: dict[str, Program]
) -> None:
    async with riding(control_plane, "node") as (ride, standing):
        first = await under_one_leader(ride, schedulers)
        await create_gang(ride, "gang")
        await interrupted(standing, "gang")
        first.pause()
        await until_whole(ride, standing, "gang")
        assert await leads(ride, ADMIN)
        # It knows of this gang nothing, and of its own one that it is not yet whole.
        await create_gang(ride, "second", 50)
        await until_whole(ride, standing, "second", 50)
        awake = ride.world.now()
        first.resume()
        await asyncio.sleep(5)
        assert first.running
        assert await leads(ride, ADMIN)
        late = [entry for entry in written_by(control_plane, "posse-scheduler") if entry[0] > awake]
        assert late == []


def written_by(plane: ControlPlane, account: str) -> Iterator[tuple[float, str]]:
    """When the API server received a write of this account, granted or not, and which."""
    for entry in plane.audited():
        if entry["user"]["username"].endswith(f":{account}") and entry["verb"] not in (
            "get",
            "list",
            "watch",
        ):
            yield parse_time(entry["requestReceivedTimestamp"]), entry["requestURI"]
