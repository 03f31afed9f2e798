"""What has gone wrong in gang schedulers before, told again from end to end.

Each story names the state that somebody met; a witness watches every write of it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.kube.errors import NotFound
from posse.objects import keys, kinds
from posse.objects.pods import Pod
from posse.virtual.faults import Delay, Fault, Refusal
from tests.cluster.backends import VirtualRide
from tests.cluster.manifests import GPU, NAMESPACE, pod, pod_group, queue
from tests.cluster.riding import mpi, pods_of, seated, training, wait_for_status
from tests.cluster.witness import witnessed

pytestmark = pytest.mark.looptime(noop_cycles=0)

TEN_MINUTES = 600.0


async def gang(
    running: VirtualRide, name: str, size: int, *, minimum: int | None = None, gpus: int = 1
) -> None:
    """A PodGroup and its pods, made by hand."""
    least = size if minimum is None else minimum
    await running.connection.create(kinds.POD_GROUP, pod_group(name, least), NAMESPACE)
    for index in range(size):
        await running.connection.create(
            kinds.POD, pod(f"{name}-{index}", name, gpus=gpus), NAMESPACE
        )


async def bound(running: VirtualRide, prefix: str) -> int:
    listed = await running.connection.list(kinds.POD, NAMESPACE, model=Pod)
    return sum(
        1
        for one in listed.items
        if one.metadata.name.startswith(f"{prefix}-") and one.spec.node_name
    )


async def wait_for_bound(running: VirtualRide, prefix: str, count: int) -> None:
    async def holds() -> bool:
        return await bound(running, prefix) == count

    await running.until(holds, f"{count} pods of {prefix} are bound")


async def verdict_of(running: VirtualRide, group: str) -> str:
    found = await running.connection.get(kinds.POD_GROUP, group, NAMESPACE)
    for condition in (found.get("status") or {}).get("conditions") or []:
        if condition["type"] == "Unschedulable" and condition["status"] == "True":
            return str(condition["message"])
    return ""


async def change_node(running: VirtualRide, name: str, spec: dict[str, Any]) -> None:
    await running.connection.patch(kinds.NODE, name, {"spec": spec})


# No partial gang.


async def test_a_minimum_that_was_raised_unseen_binds_nothing() -> None:
    async with witnessed() as running:
        await running.connection.create(kinds.POD_GROUP, pod_group("g", 2), NAMESPACE)
        await asyncio.sleep(1)
        running.line("scheduler").silence("podgroups")
        await running.connection.patch(kinds.POD_GROUP, "g", {"spec": {"minMember": 3}}, NAMESPACE)
        for index in range(2):
            await running.connection.create(kinds.POD, pod(f"g-{index}", "g"), NAMESPACE)
        await asyncio.sleep(120)
        assert await bound(running, "g") == 0
        running.line("scheduler").listen()
        await running.connection.create(kinds.POD, pod("g-2", "g"), NAMESPACE)
        await wait_for_bound(running, "g", 3)


async def test_a_minimum_that_was_lowered_starts_the_gang() -> None:
    async with witnessed() as running:
        await gang(running, "g", 10)
        await asyncio.sleep(60)
        assert await bound(running, "g") == 0
        await running.connection.patch(kinds.POD_GROUP, "g", {"spec": {"minMember": 8}}, NAMESPACE)
        await wait_for_bound(running, "g", 8)


async def test_a_minimum_raised_above_what_runs_ends_nothing() -> None:
    async with witnessed() as running:
        await gang(running, "g", 4)
        await wait_for_bound(running, "g", 4)
        await running.connection.patch(kinds.POD_GROUP, "g", {"spec": {"minMember": 9}}, NAMESPACE)
        await asyncio.sleep(TEN_MINUTES)
        assert await bound(running, "g") == 4


async def test_of_twenty_with_room_for_eight_none_starts() -> None:
    async with witnessed() as running:
        await gang(running, "g", 20)
        await asyncio.sleep(TEN_MINUTES)
        assert await bound(running, "g") == 0
        assert "20 GPUs" in await verdict_of(running, "g")


async def test_of_two_gangs_that_need_every_node_one_gets_them_all() -> None:
    async with witnessed(12, gpus=1) as running:
        await asyncio.gather(gang(running, "a", 12), gang(running, "b", 12))
        await asyncio.sleep(120)
        assert sorted([await bound(running, "a"), await bound(running, "b")]) == [0, 12]


async def test_several_jobs_race_for_the_last_seats_and_each_is_whole_or_waits() -> None:
    async with witnessed() as running:
        for name in ("a", "b", "c", "d"):
            await training(running).submit(mpi(name, workers=3, gpus=1))
        await asyncio.sleep(120)
        seats = sorted([await seated(running, name) for name in ("a", "b", "c", "d")])
        assert seats == [0, 0, 4, 4]


async def test_a_pod_that_its_node_turns_away_does_not_leave_half_a_gang() -> None:
    async with witnessed(2, gpus=2, lag=60.0) as running:
        # Somebody takes a node by hand while the scheduler looks away.
        running.line("scheduler").silence("pods")
        for index in range(2):
            foreign = pod(f"f-{index}", "", gpus=1, nodeName="node-0")
            foreign["spec"]["schedulerName"] = "somebody"
            await running.connection.create(kinds.POD, foreign, NAMESPACE)
        running.line("scheduler").listen()
        await training(running).submit(mpi("j", workers=2))
        await asyncio.sleep(TEN_MINUTES)
        assert await seated(running, "j") == 0
        await running.connection.delete(kinds.POD, "f-0", NAMESPACE)
        await running.connection.delete(kinds.POD, "f-1", NAMESPACE)
        await wait_for_status(running, "j", "RUNNING")


async def test_a_gang_turned_away_after_it_was_bound_comes_back_whole() -> None:
    async with witnessed(2, gpus=2, lag=60.0) as running:
        running.pause("node")
        await training(running).submit(mpi("j", workers=2))

        async def both() -> bool:
            return await seated(running, "j") == 2

        await running.until(both, "both workers have a node", within=30)
        # The agent wakes up and finds a pod of somebody else there first.
        await running.kill("node")
        foreign = pod("f", "", gpus=2, nodeName="node-0", schedulerName="somebody")
        await running.connection.create(kinds.POD, foreign, NAMESPACE)
        await running.connection.patch(
            kinds.POD, "f", {"status": {"phase": "Running"}}, NAMESPACE, subresource="status"
        )
        running.start("node")
        await asyncio.sleep(TEN_MINUTES)
        assert await seated(running, "j") == 0, "released whole, since one can never be seated"
        await running.connection.delete(kinds.POD, "f", NAMESPACE, grace=0)
        await wait_for_status(running, "j", "RUNNING")


# No overcommit.


async def test_a_restart_with_slow_answers_oversells_nothing() -> None:
    async with witnessed() as running:
        await gang(running, "a", 6)
        await wait_for_bound(running, "a", 6)
        await running.kill("scheduler")

        def slow(method: str, path: str) -> Fault | None:
            return Delay(back=2.0) if path.endswith("/pods") and method == "GET" else None

        running.line("scheduler").plan = slow
        await gang(running, "b", 4)
        running.start("scheduler")
        await asyncio.sleep(120)
        assert (await bound(running, "a"), await bound(running, "b")) == (6, 0)


@pytest.mark.parametrize("nap", [8, 14, 60])
async def test_a_leader_that_slept_sends_only_what_its_lease_still_covers(nap: float) -> None:
    async with witnessed() as running:
        await asyncio.sleep(5)
        running.start_standby("scheduler-2")
        running.line("scheduler").plan = lambda method, path: (
            Delay(back=1.0) if path.endswith("/binding") else None
        )
        await gang(running, "a", 5)
        await asyncio.sleep(0.2)
        running.pause("scheduler")
        await gang(running, "b", 5)
        await asyncio.sleep(nap)
        running.resume("scheduler")
        await asyncio.sleep(120)
        assert sorted([await bound(running, "a"), await bound(running, "b")]) == [0, 5]


async def test_two_schedulers_and_one_slot() -> None:
    async with witnessed(1, gpus=1) as running:
        running.start_standby("scheduler-2")
        await gang(running, "a", 1)
        await gang(running, "b", 1)
        await asyncio.sleep(120)
        assert await bound(running, "a") + await bound(running, "b") == 1


async def test_a_node_short_of_gpus_still_takes_pods_without() -> None:
    async with witnessed(1, gpus=2) as running:
        for index in range(3):
            foreign = pod(f"f-{index}", "", gpus=1, nodeName="node-0", schedulerName="somebody")
            await running.connection.create(kinds.POD, foreign, NAMESPACE)
        await gang(running, "g", 2, gpus=0)
        await wait_for_bound(running, "g", 2)


# No starvation, no deadlock.


async def test_a_running_gang_that_loses_a_pod_heals_before_others_are_served() -> None:
    async with witnessed() as running:
        await training(running).submit(mpi("first", workers=4))
        await wait_for_status(running, "first", "RUNNING")
        await gang(running, "greedy", 1, gpus=2)
        await running.connection.delete(kinds.POD, "first-worker-2", NAMESPACE, grace=0)
        await wait_for_status(running, "first", "RUNNING")
        await asyncio.sleep(120)
        assert await bound(running, "greedy") == 0
        assert await seated(running, "first") == 5


async def test_a_running_gang_heals_on_another_node_when_its_own_is_shut() -> None:
    async with witnessed(5, gpus=2) as running:
        await training(running).submit(mpi("first", workers=4))
        await wait_for_status(running, "first", "RUNNING")
        lost = next(p for p in await pods_of(running, "first") if p.metadata.name[-1] == "2")
        await change_node(running, lost.spec.node_name, {"unschedulable": True})
        await running.connection.delete(kinds.POD, lost.metadata.name, NAMESPACE, grace=0)
        await asyncio.sleep(5)
        await wait_for_status(running, "first", "RUNNING")


async def test_two_drivers_that_fit_do_not_lock_each_other_out() -> None:
    async with witnessed(1, gpus=0, cpus="4") as running:
        for name in ("a", "b"):
            await training(running).submit(mpi(name, workers=1, gpus=0, cpu="2"))
        await asyncio.sleep(60)
        statuses = sorted([(await training(running).get(name)).status for name in ("a", "b")])
        assert statuses == ["PENDING", "RUNNING"]


async def test_one_member_that_fits_nowhere_keeps_all_others_waiting() -> None:
    async with witnessed() as running:
        await running.connection.create(kinds.POD_GROUP, pod_group("g", 4), NAMESPACE)
        for index in range(3):
            await running.connection.create(kinds.POD, pod(f"g-{index}", "g", gpus=1), NAMESPACE)
        wide = pod("g-3", "g", gpus=1, nodeSelector={"zone": "nowhere"})
        await running.connection.create(kinds.POD, wide, NAMESPACE)
        await asyncio.sleep(TEN_MINUTES)
        assert await bound(running, "g") == 0
        assert await verdict_of(running, "g")


async def test_a_pod_whose_bind_is_always_denied_holds_up_nobody_else() -> None:
    async with witnessed() as running:
        running.line("scheduler").plan = lambda method, path: (
            Refusal(403, "Forbidden") if path.endswith("/a-1/binding") else None
        )
        await gang(running, "a", 2)
        await gang(running, "b", 2)
        await wait_for_bound(running, "b", 2)
        await asyncio.sleep(120)
        assert await bound(running, "a") in (0, 1)


# Deleted, made again, finished.


async def test_a_job_deleted_and_applied_again_at_once_runs() -> None:
    async with witnessed() as running:
        for workers in (4, 3, 2, 4):
            await training(running).submit(mpi("j", workers=workers))
            await asyncio.sleep(0.3)
            if workers != 4 or not await pods_of(running, "j"):
                await training(running).delete("j")
                continue
            await training(running).delete("j")
        await training(running).submit(mpi("j", workers=4))
        await wait_for_status(running, "j", "RUNNING")
        assert len(await pods_of(running, "j")) == 5


async def test_one_pod_that_starts_again_keeps_its_group() -> None:
    async with witnessed() as running:
        await training(running).submit(mpi("j", workers=4))
        await wait_for_status(running, "j", "RUNNING")
        before = await running.connection.get(kinds.POD_GROUP, "j", NAMESPACE)
        await running.connection.delete(kinds.POD, "j-worker-1", NAMESPACE)
        await asyncio.sleep(60)
        await wait_for_status(running, "j", "RUNNING")
        after = await running.connection.get(kinds.POD_GROUP, "j", NAMESPACE)
        assert after["metadata"]["uid"] == before["metadata"]["uid"]


async def test_a_finished_job_stays_finished_when_everybody_restarts() -> None:
    async with witnessed() as running:
        manifest = mpi("j", workers=2, clean_task_policy="None").manifest()
        for role in ("Launcher", "Worker"):
            metadata = manifest["spec"]["mpiReplicaSpecs"][role]["template"]["metadata"]
            metadata["annotations"][keys.SIMULATED_DURATION] = "20s"
        await running.connection.create(kinds.MPI_JOB, manifest, NAMESPACE)
        await wait_for_status(running, "j", "SUCCEEDED")
        uids = [one.metadata.uid for one in await pods_of(running, "j")]
        for service in list(running.services):
            await running.kill(service)
            running.start(service)
        await asyncio.sleep(120)
        assert (await training(running).get("j")).status == "SUCCEEDED"
        assert [one.metadata.uid for one in await pods_of(running, "j")] == uids


async def test_pods_of_a_group_that_is_gone_are_not_bound() -> None:
    async with witnessed() as running:
        await gang(running, "g", 10)
        await asyncio.sleep(5)
        await running.connection.delete(kinds.POD_GROUP, "g", NAMESPACE)
        for index in range(4):
            await running.connection.delete(kinds.POD, f"g-{index}", NAMESPACE, grace=0)
        await asyncio.sleep(60)
        assert await bound(running, "g") == 0
        one = await running.connection.get(kinds.POD, "g-5", NAMESPACE, model=Pod)
        assert any("does not exist" in c.message for c in one.status.conditions)
        await running.connection.create(kinds.POD_GROUP, pod_group("g", 6), NAMESPACE)
        await wait_for_bound(running, "g", 6)


# Nodes.


async def test_a_node_that_was_away_is_used_again() -> None:
    async with witnessed(2, gpus=2, agents=2) as running:
        running.pause("node-1")
        await asyncio.sleep(120)
        await gang(running, "g", 4)
        await asyncio.sleep(60)
        assert await bound(running, "g") == 0
        running.resume("node-1")
        await wait_for_bound(running, "g", 4)


async def test_a_node_whose_end_nobody_told_is_not_used() -> None:
    async with witnessed(2, gpus=2) as running:
        running.line("scheduler").silence("nodes")
        await running.connection.delete(kinds.NODE, "node-1")
        running.line("scheduler").cut()
        running.line("scheduler").listen()
        await asyncio.sleep(30)
        await gang(running, "g", 4)
        await asyncio.sleep(120)
        assert await bound(running, "g") == 0


async def test_a_node_lost_under_a_gang_gives_its_members_back() -> None:
    async with witnessed(5, gpus=2, lag=60.0) as running:
        await training(running).submit(mpi("j", workers=4))
        await wait_for_status(running, "j", "RUNNING")
        worker = next(p for p in await pods_of(running, "j") if "worker" in p.metadata.name)
        await running.connection.delete(kinds.NODE, worker.spec.node_name)

        async def over() -> bool:
            job = await training(running).get("j")
            nodes = {i.node for i in job.instances}
            return job.status in ("RUNNING", "FAILED") and worker.spec.node_name not in nodes

        await running.until(over, "nobody is left on the lost node", within=TEN_MINUTES)


# Malformed objects.

MALFORMED_GROUPS: dict[str, dict[str, Any]] = {
    "expects is no JSON": pod_group("m", 1, {keys.EXPECTS: "{"}),
    "expects is null": pod_group("m", 1, {keys.EXPECTS: "null"}),
    "expects is a number": pod_group("m", 1, {keys.EXPECTS: "7"}),
    "expects less than none": pod_group("m", 1, {keys.EXPECTS: '[{"role":"x","count":-1}]'}),
    "expects too many": pod_group("m", 1, {keys.EXPECTS: '[{"role":"x","count":99999999999}]'}),
    "expects a strange amount": pod_group(
        "m", 1, {keys.EXPECTS: '[{"role":"x","count":1,"requests":{"cpu":"1e999"}}]'}
    ),
    "expects nested for ever": pod_group("m", 1, {keys.EXPECTS: "[" * 100_000}),
    "held on a node without a name": pod_group("m", 1, {keys.HELD: '{"launcher":[""]}'}),
    "held is a list": pod_group("m", 1, {keys.HELD: "[]"}),
    "a minimum beyond all reason": pod_group("m", 2**31 - 1),
}


@pytest.mark.parametrize("name", MALFORMED_GROUPS)
async def test_a_malformed_group_says_so_and_stops_nobody(name: str) -> None:
    async with witnessed() as running:
        await running.connection.create(kinds.POD_GROUP, MALFORMED_GROUPS[name], NAMESPACE)
        await running.connection.create(kinds.POD, pod("m-0", "m", gpus=1), NAMESPACE)
        await gang(running, "g", 8)
        await wait_for_bound(running, "g", 8)
        await asyncio.sleep(30)
        assert await bound(running, "m") == 0
        assert await verdict_of(running, "m")


HARMLESS_GROUPS: dict[str, dict[str, Any]] = {
    "no minimum": pod_group("m", None),
    "held on a node that is not there": pod_group("m", 1, {keys.HELD: '{"x":["no-such-node"]}'}),
    "expects nobody": pod_group("m", 1, {keys.EXPECTS: "[]"}),
    "a priority class that is not there": pod_group("m", 1, priorityClassName="urgent"),
}


@pytest.mark.parametrize("name", HARMLESS_GROUPS)
async def test_an_odd_group_is_served_all_the_same(name: str) -> None:
    async with witnessed() as running:
        await running.connection.create(kinds.POD_GROUP, HARMLESS_GROUPS[name], NAMESPACE)
        await running.connection.create(kinds.POD, pod("m-0", "m", gpus=1), NAMESPACE)
        await wait_for_bound(running, "m", 1)


UNPLACEABLE: dict[str, tuple[dict[str, Any], str]] = {
    "gated": (
        {"schedulingGates": [{"name": "later"}]},
        "1 of its pods has scheduling gates (later)",
    ),
    "claims": (
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
        "1 of its pods cannot be placed: g-1 has resourceClaims",
    ),
}


@pytest.mark.parametrize("name", UNPLACEABLE)
async def test_a_member_that_cannot_be_placed_keeps_its_gang_waiting(name: str) -> None:
    async with witnessed() as running:
        await running.connection.create(kinds.POD_GROUP, pod_group("g", 2), NAMESPACE)
        await running.connection.create(kinds.POD, pod("g-0", "g"), NAMESPACE)
        spec, why = UNPLACEABLE[name]
        odd = pod("g-1", "g", **spec)
        await running.connection.create(kinds.POD, odd, NAMESPACE)
        await asyncio.sleep(120)
        assert await bound(running, "g") == 0
        assert why in await verdict_of(running, "g")


async def test_a_gate_that_opens_starts_the_gang() -> None:
    async with witnessed() as running:
        await running.connection.create(kinds.POD_GROUP, pod_group("g", 2), NAMESPACE)
        await running.connection.create(kinds.POD, pod("g-0", "g"), NAMESPACE)
        gated = pod("g-1", "g", schedulingGates=[{"name": "later"}])
        await running.connection.create(kinds.POD, gated, NAMESPACE)
        await asyncio.sleep(30)
        opened: dict[str, Any] = {"spec": {"schedulingGates": []}}
        await running.connection.patch(kinds.POD, "g-1", opened, NAMESPACE)
        await wait_for_bound(running, "g", 2)


# Queues.


async def test_a_closed_queue_starts_nothing_and_ends_nothing() -> None:
    async with witnessed() as running:
        await running.connection.create(kinds.QUEUE, queue("q"))
        first = mpi("first", workers=2).manifest()
        first["spec"]["runPolicy"]["schedulingPolicy"] = {"queue": "q"}
        await running.connection.create(kinds.MPI_JOB, first, NAMESPACE)
        await wait_for_status(running, "first", "RUNNING")
        closed = {"status": {"state": "Closed"}}
        await running.connection.patch(kinds.QUEUE, "q", closed, subresource="status")
        second = mpi("second", workers=1).manifest()
        second["spec"]["runPolicy"]["schedulingPolicy"] = {"queue": "q"}
        await running.connection.create(kinds.MPI_JOB, second, NAMESPACE)
        await running.connection.delete(kinds.POD, "first-worker-0", NAMESPACE, grace=0)
        await asyncio.sleep(60)
        assert (await training(running).get("first")).status == "RUNNING"
        assert await seated(running, "second") == 0
        assert "queue q is closed" in (await training(running).why("second")).sentence
        await running.connection.patch(
            kinds.QUEUE, "q", {"status": {"state": "Open"}}, subresource="status"
        )
        await wait_for_status(running, "second", "RUNNING")


# MPIJobs as people edit them.


async def edit(running: VirtualRide, name: str, spec: dict[str, Any]) -> None:
    await running.connection.patch(kinds.MPI_JOB, name, {"spec": spec}, NAMESPACE)


def workers(count: int) -> dict[str, Any]:
    return {"mpiReplicaSpecs": {"Worker": {"replicas": count}}}


async def wait_for_pods(running: VirtualRide, job: str, count: int) -> None:
    async def holds() -> bool:
        found = await pods_of(running, job)
        return len(found) == count == sum(p.status.phase == "Running" for p in found)

    await running.until(holds, f"{job} has {count} running pods")


async def test_a_job_grows_and_shrinks_while_it_runs() -> None:
    async with witnessed() as running:
        await training(running).submit(mpi("j", workers=2, gpus=1))
        await wait_for_status(running, "j", "RUNNING")
        await edit(running, "j", workers(5))
        await wait_for_pods(running, "j", 6)
        await edit(running, "j", workers(1))
        await wait_for_pods(running, "j", 2)


async def test_a_job_that_does_not_fit_runs_when_it_is_made_smaller() -> None:
    async with witnessed() as running:
        await training(running).submit(mpi("j", workers=5))
        await asyncio.sleep(60)
        assert await seated(running, "j") == 0
        await edit(running, "j", workers(4))
        await wait_for_pods(running, "j", 5)


async def test_a_suspended_job_gives_up_its_seats_and_gets_them_back() -> None:
    async with witnessed() as running:
        await training(running).submit(mpi("first", workers=4))
        await wait_for_status(running, "first", "RUNNING")
        await training(running).submit(mpi("second", workers=4))
        await edit(running, "first", {"runPolicy": {"suspend": True}})
        await wait_for_status(running, "second", "RUNNING")
        await edit(running, "first", {"runPolicy": {"suspend": False}})
        await asyncio.sleep(60)
        assert await seated(running, "first") == 0
        await training(running).delete("second")
        await wait_for_status(running, "first", "RUNNING")


@pytest.mark.parametrize("policy", ["AtStartup", "WaitForWorkersReady"])
async def test_suspended_and_resumed_in_one_breath_it_still_runs(policy: str) -> None:
    async with witnessed() as running:
        job = mpi("j", workers=2).manifest()
        job["spec"]["launcherCreationPolicy"] = policy
        await running.connection.create(kinds.MPI_JOB, job, NAMESPACE)
        await wait_for_status(running, "j", "RUNNING")
        for suspend in (True, False, True, False):
            await edit(running, "j", {"runPolicy": {"suspend": suspend}})
        await asyncio.sleep(60)
        await wait_for_pods(running, "j", 3)


async def test_an_invalid_job_that_is_mended_runs() -> None:
    async with witnessed() as running:
        job = mpi("j", workers=2).manifest()
        template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
        containers, template["spec"]["containers"] = template["spec"]["containers"], []
        await running.connection.create(kinds.MPI_JOB, job, NAMESPACE)
        await asyncio.sleep(30)
        assert await pods_of(running, "j") == []
        spec = {"mpiReplicaSpecs": {"Worker": {"template": {"spec": {"containers": containers}}}}}
        await edit(running, "j", spec)
        await wait_for_pods(running, "j", 3)


async def test_a_launcher_at_startup_is_a_member_and_starts_with_the_rest() -> None:
    async with witnessed(1, gpus=2, cpus="2") as running:
        job = mpi("j", workers=2, gpus=1, cpu="1").manifest()
        job["spec"]["launcherCreationPolicy"] = "AtStartup"
        await running.connection.create(kinds.MPI_JOB, job, NAMESPACE)
        await asyncio.sleep(120)
        assert await seated(running, "j") == 0, "two CPUs are not enough for three pods"


async def test_a_launcher_that_works_too_runs_with_its_workers() -> None:
    async with witnessed() as running:
        job = mpi("j", workers=3).manifest()
        job["spec"]["runLauncherAsWorker"] = True
        await running.connection.create(kinds.MPI_JOB, job, NAMESPACE)
        await wait_for_pods(running, "j", 4)


async def test_a_smaller_minimum_starts_with_those_that_fit() -> None:
    async with witnessed() as running:
        job = mpi("j", workers=6).manifest()
        job["spec"]["launcherCreationPolicy"] = "AtStartup"
        job["spec"]["runPolicy"]["schedulingPolicy"] = {"minAvailable": 3}
        await running.connection.create(kinds.MPI_JOB, job, NAMESPACE)
        await asyncio.sleep(60)
        assert await seated(running, "j") == 5


async def test_workers_that_their_launcher_waits_for_do_not_sit_there_without_the_last() -> None:
    """mpi-operator#608: it could do with three, but its launcher begins with four alone, and the
    next in line would have waited for those three."""
    async with witnessed(1, gpus=4) as running:
        thief = pod("f", "", gpus=1, nodeName="node-0", schedulerName="somebody")
        await running.connection.create(kinds.POD, thief, NAMESPACE)
        job = mpi("j", workers=4, gpus=1).manifest()
        job["spec"]["runPolicy"]["schedulingPolicy"] = {"minAvailable": 3}
        await running.connection.create(kinds.MPI_JOB, job, NAMESPACE)
        await asyncio.sleep(60)
        assert await seated(running, "j") == 0
        await running.connection.delete(kinds.POD, "f", NAMESPACE, grace=0)
        await wait_for_status(running, "j", "RUNNING")
        group = await running.connection.get(kinds.POD_GROUP, "j", NAMESPACE)
        assert group["spec"]["minMember"] == 3, "from now on it can do with fewer"


async def test_a_launcher_that_fails_is_tried_again_and_then_the_job_fails() -> None:
    async with witnessed() as running:
        job = mpi("j", workers=2, retry=1).manifest()
        job["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
        metadata = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["metadata"]
        metadata["annotations"] |= {
            keys.SIMULATED_DURATION: "5s",
            keys.SIMULATED_EXIT_CODE: "1",
        }
        await running.connection.create(kinds.MPI_JOB, job, NAMESPACE)
        await wait_for_status(running, "j", "FAILED")
        launchers = [p for p in await pods_of(running, "j") if "launcher" in p.metadata.name]
        assert len(launchers) == 2
        await asyncio.sleep(60)
        assert await seated(running, "j") == len(launchers), "its workers are gone"


@pytest.mark.parametrize("policy", ["All", "Running", "None"])
async def test_what_a_finished_job_leaves_behind(policy: str) -> None:
    async with witnessed() as running:
        job = mpi("j", workers=2, clean_task_policy=policy).manifest()
        metadata = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["metadata"]
        metadata["annotations"][keys.SIMULATED_DURATION] = "5s"
        await running.connection.create(kinds.MPI_JOB, job, NAMESPACE)
        await wait_for_status(running, "j", "SUCCEEDED")
        await asyncio.sleep(60)
        left = [p for p in await pods_of(running, "j") if "worker" in p.metadata.name]
        assert len(left) == (2 if policy == "None" else 0)
        with pytest.raises(NotFound):
            await running.connection.get(kinds.POD_GROUP, "j", NAMESPACE)


async def test_a_group_that_the_user_made_under_the_jobs_name_is_used() -> None:
    async with witnessed() as running:
        await running.connection.create(kinds.POD_GROUP, pod_group("j", 6), NAMESPACE)
        await training(running).submit(mpi("j", workers=4))
        await asyncio.sleep(60)
        assert await seated(running, "j") == 0
        assert "4 of 6 pods" in (await training(running).why("j")).sentence
        await running.connection.patch(kinds.POD_GROUP, "j", {"spec": {"minMember": 4}}, NAMESPACE)
        await wait_for_status(running, "j", "RUNNING")


async def test_a_group_named_in_the_templates_is_used() -> None:
    async with witnessed() as running:
        await running.connection.create(kinds.POD_GROUP, pod_group("mine", 3), NAMESPACE)
        job = mpi("j", workers=3).manifest()
        for role in job["spec"]["mpiReplicaSpecs"].values():
            role["template"]["metadata"]["annotations"][keys.GROUP_NAME] = "mine"
        await running.connection.create(kinds.MPI_JOB, job, NAMESPACE)
        await wait_for_status(running, "j", "RUNNING")
        with pytest.raises(NotFound):
            await running.connection.get(kinds.POD_GROUP, "j", NAMESPACE)


async def test_a_group_that_somebody_deletes_comes_back_and_its_gang_runs_on() -> None:
    async with witnessed() as running:
        await training(running).submit(mpi("j", workers=3))
        await wait_for_status(running, "j", "RUNNING")
        await running.connection.delete(kinds.POD_GROUP, "j", NAMESPACE)
        await asyncio.sleep(60)
        assert (await training(running).get("j")).status == "RUNNING"
        group = await running.connection.get(kinds.POD_GROUP, "j", NAMESPACE)
        assert group["status"]["phase"] == "Running"


async def test_no_gpu_is_asked_for_twice() -> None:
    """Every GPU of a full cluster is used once, whoever came and went."""
    async with witnessed() as running:
        for name in ("a", "b"):
            await training(running).submit(mpi(name, workers=2))
        await asyncio.sleep(30)
        for index in range(6):
            victim = f"{'ab'[index % 2]}-worker-{index % 2}"
            await running.connection.delete(kinds.POD, victim, NAMESPACE, grace=0)
            await asyncio.sleep(1)
        await asyncio.sleep(60)
        listed = await running.connection.list(kinds.POD, NAMESPACE, model=Pod)
        used = sum(
            int(container.resources.limits.get(GPU, 0))
            for one in listed.items
            for container in one.spec.containers
            if one.spec.node_name
        )
        assert used == 8


async def test_a_launcher_whose_seat_somebody_took_says_so_and_starts_when_it_is_free() -> None:
    async with witnessed(1, gpus=2, cpus="4", lag=10.0) as running:
        running.pause("node")
        await training(running).submit(mpi("j", workers=1, gpus=1, cpu="2"))

        async def worker_seated() -> bool:
            return await seated(running, "j") == 1

        await running.until(worker_seated, "the worker has its node")
        thief = pod("f", "", nodeName="node-0", schedulerName="somebody")
        thief["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
        await running.connection.create(kinds.POD, thief, NAMESPACE)
        running.resume("node")
        await asyncio.sleep(120)
        assert "needs 2 cores" in (await training(running).why("j")).sentence
        assert await seated(running, "j") == 1
        await running.connection.delete(kinds.POD, "f", NAMESPACE, grace=0)
        await wait_for_status(running, "j", "RUNNING")


async def test_a_namespace_that_is_deleted_frees_what_its_gangs_held() -> None:
    async with witnessed(lag=10.0) as running:
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
        await running.connection.create(kinds.NAMESPACE, space)
        await running.connection.create(kinds.MPI_JOB, mpi("j", workers=4).manifest(), "team")
        await asyncio.sleep(30)
        await training(running).submit(mpi("next", workers=4))
        await asyncio.sleep(30)
        assert await seated(running, "next") == 0
        await running.connection.delete(kinds.NAMESPACE, "team")
        await wait_for_status(running, "next", "RUNNING")
