"""batch/v1 Jobs over a real API server and simulated nodes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.objects.kinds import EVENT, JOB, POD
from tests.unit.node.embedded import Embedded, conditions, embedded

pytestmark = pytest.mark.looptime

Manifest = dict[str, Any]


def job(
    name: str = "work", *, lasts: str = "", code: int = 0, restart: str = "Never", **spec: Any
) -> Manifest:
    annotations = {"posse.dev/simulated-exit-code": str(code)}
    if lasts:
        annotations["posse.dev/simulated-duration"] = lasts
    template = {
        "metadata": {"annotations": annotations, "labels": {"app": "x"}},
        "spec": {
            "containers": [{"name": "main", "image": "image"}],
            "restartPolicy": restart,
            "nodeName": "node-0",
        },
    }
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": template, **spec},
    }


async def reached(cluster: Embedded, condition: str, within: float = 120.0) -> Manifest:
    async def holds() -> Manifest | None:
        found = await cluster.find(JOB, "work")
        return found if found and conditions(found).get(condition) == "True" else None

    found: Manifest = await cluster.until(holds, within)
    return found


async def running(cluster: Embedded, count: int) -> list[Manifest]:
    async def holds() -> list[Manifest] | None:
        pods = [p for p in await cluster.all(POD) if p["status"]["phase"] == "Running"]
        return pods if len(pods) == count else None

    found: list[Manifest] = await cluster.until(holds)
    return found


async def idle(cluster: Embedded) -> None:
    async def holds() -> bool:
        return not await cluster.all(POD)

    await cluster.until(holds)


def reason(found: Manifest, kind: str) -> str:
    return str(next(c["reason"] for c in found["status"]["conditions"] if c["type"] == kind))


async def test_a_job_makes_a_named_and_labelled_pod_and_completes() -> None:
    async with embedded("core", "node") as cluster:
        created = await cluster.connection.create(JOB, job(lasts="10s"))
        (pod,) = await running(cluster, 1)
        assert pod["metadata"]["name"].startswith("work-")
        assert len(pod["metadata"]["name"]) == len("work-") + 5
        labels = pod["metadata"]["labels"]
        assert labels["job-name"] == labels["batch.kubernetes.io/job-name"] == "work"
        assert labels["controller-uid"] == created["metadata"]["uid"]
        assert labels["app"] == "x"
        assert pod["metadata"]["ownerReferences"][0]["controller"] is True
        await asyncio.sleep(2)
        status = (await cluster.connection.get(JOB, "work", "default"))["status"]
        assert (status["active"], status["ready"]) == (1, 1)
        done = await reached(cluster, "Complete")
        assert conditions(done)["SuccessCriteriaMet"] == "True"
        assert done["status"]["succeeded"] == 1
        assert not done["status"].get("active")
        assert done["status"]["completionTime"] > done["status"]["startTime"]


async def test_parallelism_bounds_how_many_run_until_all_completions_are_there() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(JOB, job(lasts="10s", parallelism=2, completions=5))
        await running(cluster, 2)
        most = 0
        while not conditions(await cluster.connection.get(JOB, "work", "default")).get("Complete"):
            pods = await cluster.all(POD)
            most = max(most, sum(p["status"]["phase"] in ("Pending", "Running") for p in pods))
            await asyncio.sleep(0.5)
        assert most == 2
        pods = await cluster.all(POD)
        assert [p["status"]["phase"] for p in pods] == ["Succeeded"] * 5


async def test_a_job_fails_when_its_pods_fail_once_too_often() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(JOB, job(lasts="1s", code=1, backoffLimit=2))
        failed = await reached(cluster, "Failed", within=200)
        assert reason(failed, "Failed") == "BackoffLimitExceeded"
        assert failed["status"]["failed"] == 3
        assert len(await cluster.all(POD)) == 3


async def test_failures_are_followed_by_longer_and_longer_pauses() -> None:
    async with embedded("core", "node") as cluster:
        began = cluster.world.monotonic()
        await cluster.connection.create(JOB, job(lasts="1s", code=1, backoffLimit=2))
        await reached(cluster, "Failed", within=200)
        assert 32 <= cluster.world.monotonic() - began <= 40


async def test_restarts_in_place_count_against_the_limit() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(
            JOB, job(lasts="1s", code=1, restart="OnFailure", backoffLimit=2)
        )
        failed = await reached(cluster, "Failed", within=200)
        assert reason(failed, "Failed") == "BackoffLimitExceeded"

        async def nothing_runs() -> bool:
            return all(p["status"]["phase"] == "Failed" for p in await cluster.all(POD))

        await cluster.until(nothing_runs)


async def test_a_job_that_takes_too_long_fails_by_itself() -> None:
    async with embedded("core", "node") as cluster:
        began = cluster.world.monotonic()
        await cluster.connection.create(JOB, job(activeDeadlineSeconds=30))
        failed = await reached(cluster, "Failed")
        assert reason(failed, "Failed") == "DeadlineExceeded"
        assert cluster.world.monotonic() - began == pytest.approx(31, abs=2)
        assert not failed["status"].get("active")


async def test_a_finished_job_is_deleted_with_its_pods_when_its_time_is_up() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(JOB, job(lasts="1s", ttlSecondsAfterFinished=60))
        await reached(cluster, "Complete")
        await asyncio.sleep(50)
        assert await cluster.find(JOB, "work") is not None
        await cluster.until(lambda: cluster.gone(JOB, "work"))
        assert await cluster.all(POD) == []


async def test_a_suspended_job_has_no_pods_and_starts_its_clock_when_resumed() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(JOB, job(parallelism=2, completions=2))
        await running(cluster, 2)
        await cluster.connection.patch(JOB, "work", {"spec": {"suspend": True}}, "default")
        suspended = await reached(cluster, "Suspended")
        await idle(cluster)
        await asyncio.sleep(20)
        suspended = await cluster.connection.get(JOB, "work", "default")
        assert not suspended["status"].get("startTime")
        assert not suspended["status"].get("failed")
        await cluster.connection.patch(JOB, "work", {"spec": {"suspend": False}}, "default")
        await running(cluster, 2)
        await asyncio.sleep(2)
        resumed = await cluster.connection.get(JOB, "work", "default")
        assert conditions(resumed)["Suspended"] == "False"
        assert resumed["status"]["startTime"]


async def test_a_pod_that_somebody_deletes_is_replaced_and_counts_as_failed() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(JOB, job())
        (pod,) = await running(cluster, 1)
        await cluster.connection.delete(POD, pod["metadata"]["name"], "default")
        await cluster.until(lambda: cluster.gone(POD, pod["metadata"]["name"]))
        (other,) = await running(cluster, 1)
        assert other["metadata"]["uid"] != pod["metadata"]["uid"]
        await asyncio.sleep(2)
        assert (await cluster.connection.get(JOB, "work", "default"))["status"]["failed"] == 1


def moved_is_not_failed() -> Manifest:
    condition = {"type": "DisruptionTarget", "status": "True"}
    return {"rules": [{"action": "Ignore", "onPodConditions": [condition]}]}


async def test_a_pod_that_is_moved_is_replaced_and_does_not_count_where_the_job_says_so() -> None:
    async with embedded("core", "node") as cluster:
        made = job(backoffLimit=0, podFailurePolicy=moved_is_not_failed())
        await cluster.connection.create(JOB, made)
        (pod,) = await running(cluster, 1)
        for _ in range(2):
            meta = pod["metadata"]
            await cluster.connection.evict(meta["name"], "default", uid=meta["uid"])
            await cluster.until(lambda name=meta["name"]: cluster.gone(POD, name))  # type: ignore[misc]
            (pod,) = await running(cluster, 1)
        status = (await cluster.connection.get(JOB, "work", "default"))["status"]
        assert "failed" not in status
        assert "conditions" not in status


async def test_a_failure_of_its_own_counts_whatever_the_job_says_of_moves() -> None:
    async with embedded("core", "node") as cluster:
        made = job(lasts="5s", code=3, backoffLimit=0, podFailurePolicy=moved_is_not_failed())
        await cluster.connection.create(JOB, made)
        failed = await reached(cluster, "Failed")
        assert reason(failed, "Failed") == "BackoffLimitExceeded"


async def test_an_exit_code_may_fail_the_whole_job() -> None:
    async with embedded("core", "node") as cluster:
        codes = {"containerName": "main", "operator": "In", "values": [3, 4]}
        rules = {"rules": [{"action": "FailJob", "onExitCodes": codes}]}
        await cluster.connection.create(JOB, job(lasts="5s", code=4, podFailurePolicy=rules))
        failed = await reached(cluster, "Failed")
        assert reason(failed, "Failed") == "PodFailurePolicy"
        assert failed["status"]["failed"] == 1


async def test_a_replacement_waits_for_the_end_of_its_predecessor_where_the_job_says_so() -> None:
    async with embedded("core") as cluster:
        await cluster.connection.create(JOB, job(podReplacementPolicy="Failed"))

        async def made() -> list[Manifest]:
            return await cluster.all(POD)

        (pod,) = await cluster.until(made)
        name = pod["metadata"]["name"]
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await cluster.connection.patch(POD, name, held, "default")
        await cluster.connection.delete(POD, name, "default")
        await asyncio.sleep(60)
        assert [one["metadata"]["name"] for one in await cluster.all(POD)] == [name]
        await cluster.connection.patch(POD, name, {"metadata": {"finalizers": None}}, "default")
        await cluster.until(lambda: cluster.gone(POD, name))
        (other,) = await cluster.until(made)
        assert other["metadata"]["name"] != name


async def test_finished_pods_are_counted_once_across_restarts_of_the_controller() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(JOB, job(lasts="10s", parallelism=1, completions=4))
        for _ in range(6):
            await asyncio.sleep(6)
            await cluster.stop("core")
            await asyncio.sleep(1)
            cluster.start("core")
        done = await reached(cluster, "Complete")
        assert done["status"]["succeeded"] == 4
        assert len(await cluster.all(POD)) == 4


async def test_a_pod_that_finished_while_nobody_looked_is_counted() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(JOB, job(lasts="5s"))
        await running(cluster, 1)
        await cluster.stop("core")
        await asyncio.sleep(10)
        cluster.start("core")
        assert (await reached(cluster, "Complete"))["status"]["succeeded"] == 1


async def test_an_indexed_job_is_told_that_it_is_not_run() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(
            JOB, job(completionMode="Indexed", completions=2, parallelism=2)
        )

        async def told() -> bool:
            return any(e["reason"] == "IndexedNotRun" for e in await cluster.all(EVENT))

        await cluster.until(told)
        assert await cluster.all(POD) == []


async def test_a_job_deleted_in_the_background_takes_its_pods_along() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(JOB, job())
        await running(cluster, 1)
        await cluster.connection.delete(JOB, "work", "default", propagation="Background")
        await idle(cluster)
