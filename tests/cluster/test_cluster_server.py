"""What an API server owes to our kinds and to those who evict or delete their pods."""

from __future__ import annotations

import pytest

from posse.kube.errors import NotFound, TooManyRequests
from posse.objects import kinds
from tests.cluster.riding import cluster, mpi, pods_of, tf, training, wait_for_status

pytestmark = pytest.mark.looptime


async def test_a_template_passes_through_untouched() -> None:
    """Fields of a pod that no schema of ours names, and odd forms of those that it might."""
    async with cluster(1) as running:
        manifest = mpi(workers=1, gpus=0).manifest()
        template = manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        template["someday"] = {"list": [1, {"deep": None}], "text": "x"}
        template["containers"][0]["resources"] = {"limits": {"cpu": 1, "memory": "1Gi"}}
        await running.connection.create(kinds.MPI_JOB, manifest, running.namespace)
        stored = await running.connection.get(kinds.MPI_JOB, "mpi", running.namespace)
        kept = stored["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
        assert kept["someday"] == {"list": [1, {"deep": None}], "text": "x"}
        assert kept["containers"][0]["resources"]["limits"]["cpu"] == 1


async def test_status_has_its_own_door() -> None:
    async with cluster(1) as running:
        connection, place = running.connection, running.namespace
        group = {"metadata": {"name": "g"}, "spec": {"minMember": 2}}
        made = await connection.create(kinds.POD_GROUP, group | {"status": {"phase": "X"}}, place)
        assert made.get("status", {}).get("phase") != "X"
        assert made["metadata"]["generation"] == 1
        patch = {"spec": {"minMember": 9}, "status": {"running": 1}}
        left = await connection.patch(kinds.POD_GROUP, "g", patch, place, subresource="status")
        assert (left["spec"]["minMember"], left["status"]["running"]) == (2, 1)
        assert left["metadata"]["generation"] == 1


async def test_the_priority_of_a_class_reaches_every_pod_of_a_gang() -> None:
    async with cluster(2) as running:
        name = f"high-{running.namespace}"
        await running.connection.create(
            kinds.PRIORITY_CLASS, {"metadata": {"name": name}, "value": 1234}
        )
        try:
            await training(running).submit(mpi(workers=2, gpus=1, priority=name))
            await wait_for_status(running, "mpi", "RUNNING")
            priorities = {pod.spec.priority for pod in await pods_of(running, "mpi")}
            assert priorities == {1234}
        finally:
            await running.connection.delete(kinds.PRIORITY_CLASS, name)


async def test_an_evicted_worker_comes_back_to_its_seat() -> None:
    async with cluster(2, gpus=1) as running:
        await training(running).submit(tf(workers=2, gpus=1))
        await wait_for_status(running, "tf", "RUNNING")
        before = {pod.metadata.name: pod for pod in await pods_of(running, "tf")}
        victim = before["tf-worker-1"]
        await running.connection.evict(
            victim.metadata.name, running.namespace, uid=victim.metadata.uid
        )

        async def replaced() -> bool:
            now = {pod.metadata.name: pod for pod in await pods_of(running, "tf")}
            back = now.get("tf-worker-1")
            return back is not None and back.metadata.uid != victim.metadata.uid

        await running.until(replaced, "a new worker has come")
        await wait_for_status(running, "tf", "RUNNING")
        after = {pod.metadata.name: pod.spec.node_name for pod in await pods_of(running, "tf")}
        assert after["tf-worker-1"] == victim.spec.node_name


async def test_a_budget_that_is_used_up_holds_an_eviction_back() -> None:
    async with cluster(2, gpus=1) as running:
        await training(running).submit(tf(workers=2, gpus=1))
        await wait_for_status(running, "tf", "RUNNING")
        labels = (await pods_of(running, "tf"))[0].metadata.labels
        selector = {"training.kubeflow.org/job-name": labels["training.kubeflow.org/job-name"]}
        budget = {
            "metadata": {"name": "all"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": selector}},
        }
        await running.connection.create(kinds.POD_DISRUPTION_BUDGET, budget, running.namespace)

        async def counted() -> bool:
            kind = kinds.POD_DISRUPTION_BUDGET
            found = await running.connection.get(kind, "all", running.namespace)
            return bool(found.get("status", {}).get("expectedPods"))

        await running.until(counted, "the budget has counted its pods")
        victim = (await pods_of(running, "tf"))[0]
        with pytest.raises(TooManyRequests):
            await running.connection.evict(
                victim.metadata.name, running.namespace, uid=victim.metadata.uid
            )


async def test_a_job_that_waits_for_a_finalizer_starts_nothing_more() -> None:
    async with cluster(2, gpus=1) as running:
        manifest = tf(workers=2, gpus=1).manifest()
        manifest["metadata"]["finalizers"] = ["example.com/hold"]
        await running.connection.create(kinds.TF_JOB, manifest, running.namespace)
        await wait_for_status(running, "tf", "RUNNING")
        await running.connection.delete(
            kinds.TF_JOB, "tf", running.namespace, propagation="Foreground"
        )

        async def podless() -> bool:
            return not await pods_of(running, "tf")

        await running.until(podless, "the pods are gone")
        await running.linger(5)
        assert await podless()
        free = {"metadata": {"finalizers": None}}
        await running.connection.patch(kinds.TF_JOB, "tf", free, running.namespace)

        async def gone() -> bool:
            try:
                await running.connection.get(kinds.TF_JOB, "tf", running.namespace)
            except NotFound:
                return True
            return False

        await running.until(gone, "the job is gone")
