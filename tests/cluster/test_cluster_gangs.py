"""Gangs through every layer: submitted by a user, run by controllers, placed by the scheduler."""

from __future__ import annotations

import asyncio

import pytest

from posse.kube.errors import NotFound
from posse.objects import keys, kinds
from posse.objects.groups import PodGroup
from tests.cluster.backends import Riding
from tests.cluster.manifests import pod, pod_group
from tests.cluster.riding import cluster, mpi, pods_of, seated, tf, training, wait_for_status

pytestmark = pytest.mark.looptime

TEN_MINUTES = 600.0


async def test_a_gang_one_seat_short_waits_whole() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi("mpi-dist", workers=5))

        async def all_created() -> bool:
            return len(await pods_of(running, "mpi-dist")) == 5

        await running.until(all_created, "five workers exist")
        await running.linger(TEN_MINUTES)
        job = await training(running).get("mpi-dist")
        assert [(i.name, i.status, i.node) for i in job.instances] == [
            (f"mpi-dist-worker-{index}", "Pending", "N/A") for index in range(5)
        ]


async def test_why_names_what_is_asked_and_what_there_is() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi("mpi-dist", workers=5))
        sentence = (await training(running).why("mpi-dist")).sentence
        assert sentence.startswith("mpi-dist waits: ")
        assert "10 GPUs" in sentence
        assert "8" in sentence


async def test_a_gang_that_fits_runs_whole_with_its_launcher() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi(workers=4))
        await wait_for_status(running, "mpi", "RUNNING")
        job = await training(running).get("mpi")
        assert [i.status for i in job.instances] == ["Running"] * 5
        assert [i.chief for i in job.instances] == [True, False, False, False, False]
        assert sorted(i.node for i in job.instances[1:]) == [f"node-{n}" for n in range(4)]


async def test_the_launcher_comes_after_its_workers() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi(workers=4))
        seen: list[tuple[bool, int]] = []

        async def launched() -> bool:
            pods = await pods_of(running, "mpi")
            launcher = any("launcher" in pod.metadata.name for pod in pods)
            seen.append((launcher, sum(pod.status.phase == "Running" for pod in pods)))
            return launcher

        await running.until(launched, "the launcher exists")
        assert all(running_pods < 5 for launcher, running_pods in seen if not launcher)
        assert seen[-1][1] >= 4, "every worker runs when the launcher appears"


async def test_workers_never_start_without_room_for_their_launcher() -> None:
    async with cluster(1, gpus=8, cpus="4") as running:
        # Four CPUs: two workers fit, but not with their launcher.
        await training(running).submit(mpi(workers=2, gpus=1, cpu="2"))

        async def explained() -> bool:
            return "waits" in (await training(running).why("mpi")).sentence

        await running.until(explained, "the job says that it waits")
        await running.linger(TEN_MINUTES)
        assert await seated(running, "mpi") == 0


async def test_a_held_launcher_seat_is_not_given_away() -> None:
    async with cluster(1, gpus=8, cpus="4") as running:
        await training(running).submit(mpi("first", workers=1, gpus=1, cpu="2"))
        await asyncio.sleep(2)  # creation times have whole seconds
        await training(running).submit(mpi("second", workers=1, gpus=1, cpu="2"))
        await wait_for_status(running, "first", "RUNNING")
        assert await seated(running, "second") == 0


async def test_without_a_gang_some_run_and_some_wait() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi(workers=5, gang=False))

        async def four() -> bool:
            return await seated(running, "mpi") == 4

        await running.until(four, "four workers have a node")
        await running.linger(60)
        phases = sorted(pod.status.phase for pod in await pods_of(running, "mpi"))
        assert phases == ["Pending"] + ["Running"] * 4
        with pytest.raises(NotFound):
            await _group(running, "mpi")


async def test_room_that_becomes_free_starts_the_one_who_waits() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi("first", workers=4))
        await wait_for_status(running, "first", "RUNNING")
        await training(running).submit(mpi("second", workers=4))
        await running.linger(60)
        assert await seated(running, "second") == 0
        await training(running).delete("first")
        await wait_for_status(running, "second", "RUNNING")


async def test_a_name_is_free_again_after_a_delete() -> None:
    async with cluster(4, gpus=2) as running:
        for workers in (5, 4):
            await training(running).submit(mpi(workers=workers, tensorboard=True))
            await running.linger(5)
            if workers == 5:
                await training(running).delete("mpi")
        await wait_for_status(running, "mpi", "RUNNING")
        assert len(await pods_of(running, "mpi")) == 5


async def test_deleting_a_job_leaves_nothing_behind() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi(workers=4, tensorboard=True))
        await wait_for_status(running, "mpi", "RUNNING")
        await training(running).delete("mpi")

        async def leftovers() -> list[str]:
            return [
                f"{kind.plural}/{item['metadata']['name']}"
                for kind in (
                    kinds.POD, kinds.JOB, kinds.SERVICE, kinds.CONFIG_MAP, kinds.SECRET,
                    kinds.POD_GROUP, kinds.DEPLOYMENT, kinds.REPLICA_SET, kinds.MPI_JOB,
                )
                for item in (await running.connection.list(kind, running.namespace)).items
                if item["metadata"]["name"].startswith("mpi")
            ]  # fmt: skip

        async def gone() -> bool:
            return await leftovers() == []

        await running.until(gone, "nothing is left of the job", within=120)


async def test_a_job_whose_command_ends_succeeds_and_its_workers_are_cleaned() -> None:
    async with cluster(4, gpus=2) as running:
        # The launcher runs for some seconds; workers wait for ssh for ever, as sshd does.
        job = mpi(workers=4)
        manifest = job.manifest()
        launcher = manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["metadata"]
        launcher["annotations"]["posse.dev/simulated-duration"] = "3s"
        await running.connection.create(kinds.MPI_JOB, manifest, running.namespace)
        await wait_for_status(running, "mpi", "SUCCEEDED")

        async def workers_gone() -> bool:
            return not [p for p in await pods_of(running, "mpi") if "worker" in p.metadata.name]

        await running.until(workers_gone, "cleanPodPolicy All removed the workers")


async def test_a_launcher_that_is_moved_has_not_failed() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi(workers=4))
        await wait_for_status(running, "mpi", "RUNNING")
        before = await pods_of(running, "mpi")
        (moved,) = [pod for pod in before if "launcher" in pod.metadata.name]
        await running.connection.evict(
            moved.metadata.name, running.namespace, uid=moved.metadata.uid
        )

        async def comes_back() -> bool:
            job = await training(running).get("mpi")
            assert job.status != "FAILED"
            now = [pod for pod in await pods_of(running, "mpi") if "launcher" in pod.metadata.name]
            return [pod.status.phase for pod in now] == ["Running"] and now != [moved]

        await running.until(comes_back, "another launcher runs")
        await wait_for_status(running, "mpi", "RUNNING")
        workers = {pod.metadata.uid for pod in before if pod is not moved}
        assert workers <= {pod.metadata.uid for pod in await pods_of(running, "mpi")}


async def test_the_group_says_that_it_runs() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi(workers=4))
        await wait_for_status(running, "mpi", "RUNNING")

        async def says_so() -> bool:
            return (await _group(running, "mpi")).status.phase == "Running"

        await running.until(says_so, "phase is Running")


async def _group(running: Riding, name: str) -> PodGroup:
    return await running.connection.get(kinds.POD_GROUP, name, running.namespace, model=PodGroup)


async def test_a_dead_workers_seat_is_its_successors_though_others_wait() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi("first", workers=4))
        await wait_for_status(running, "first", "RUNNING")
        await training(running).submit(mpi("greedy", workers=1))
        before = await running.connection.get(kinds.POD, "first-worker-2", running.namespace)
        await running.connection.delete(kinds.POD, "first-worker-2", running.namespace, grace=0)

        async def healed() -> bool:
            try:
                now = await running.connection.get(kinds.POD, "first-worker-2", running.namespace)
            except NotFound:
                return False
            fresh = now["metadata"]["uid"] != before["metadata"]["uid"]
            return bool(fresh and now["spec"].get("nodeName") == before["spec"]["nodeName"])

        await running.until(healed, "its successor sits where it sat")
        assert await seated(running, "greedy") == 0


async def test_a_job_that_loses_all_its_pods_at_once_keeps_its_seats_until_it_rests() -> None:
    async with cluster(1, gpus=2) as running:
        await training(running).submit(tf("first", workers=2, gpus=1))
        await wait_for_status(running, "first", "RUNNING")
        before = {one.metadata.uid for one in await pods_of(running, "first")}
        rival = pod("rival-0", "rival", gpus=1, schedulerName="posse")
        await running.connection.create(kinds.POD_GROUP, pod_group("rival", 1), running.namespace)
        await running.connection.create(kinds.POD, rival, running.namespace)

        async def rival_sits() -> bool:
            found = await running.connection.get(kinds.POD, "rival-0", running.namespace)
            return bool(found["spec"].get("nodeName"))

        async def kept() -> bool:
            annotations = (await _group(running, "first")).metadata.annotations
            return annotations.get(keys.KEEPS, "").count("node-0") == 2

        async def runs_again() -> bool:
            now = await pods_of(running, "first")
            fresh = [one for one in now if one.metadata.uid not in before]
            return [one.status.phase for one in fresh] == ["Running"] * 2

        await running.stop("controllers")
        for one in await pods_of(running, "first"):
            await running.connection.delete(
                kinds.POD, one.metadata.name, running.namespace, grace=0
            )
        await running.until(kept, "both seats are kept")
        await running.linger(60)
        assert not await rival_sits()
        running.start("controllers")
        await running.until(runs_again, "both pods run again")
        assert not await rival_sits()
        rest = {"spec": {"runPolicy": {"suspend": True}}}
        await running.connection.patch(kinds.TF_JOB, "first", rest, running.namespace)
        await running.until(rival_sits, "a job that rests leaves its room to others")


async def test_a_role_below_its_minimum_keeps_the_others_waiting() -> None:
    async with cluster(4, gpus=2) as running:
        group = pod_group("tf", 2)
        group["spec"]["minTaskMember"] = {"ps": 1, "worker": 1}
        await running.connection.create(kinds.POD_GROUP, group, running.namespace)

        async def create(name: str, role: str) -> None:
            one = pod(name, "tf", gpus=1, schedulerName="posse")
            one["metadata"]["annotations"][keys.TASK_SPEC] = role
            await running.connection.create(kinds.POD, one, running.namespace)

        async def says() -> str:
            found = await running.connection.get(
                kinds.POD_GROUP, "tf", running.namespace, model=PodGroup
            )
            return next((c.reason for c in found.status.conditions if c.status == "True"), "")

        async def told() -> bool:
            return await says() == "NotEnoughPodsOfTask"

        async def placed() -> bool:
            pods = (await running.connection.list(kinds.POD, running.namespace)).items
            return sum(bool(one["spec"].get("nodeName")) for one in pods) == 3

        await create("tf-0", "worker")
        await create("tf-1", "worker")
        await running.until(told, "the group says which role is missing")
        await create("tf-2", "ps")
        await running.until(placed, "all three have their nodes")
