"""The TFJob controller at work, also when the API server lets it down."""

from __future__ import annotations

import asyncio

import pytest

from posse.controllers.jobs.settings import Settings
from posse.controllers.runtime import Manifest
from posse.controllers.tf.kind import tf_controller
from posse.objects.keys import QUEUE_NAME
from posse.objects.kinds import (
    EVENT,
    INCUBATOR_POD_GROUP,
    NAMESPACE,
    POD,
    POD_GROUP,
    SERVICE,
    TF_JOB,
)
from tests.unit.controllers.api import Api
from tests.unit.controllers.running import running, settle
from tests.unit.controllers.tf_builders import replicas, tf_job

pytestmark = pytest.mark.looptime

CONTROLLER = tf_controller(Settings())
MEMBERS = ["train-ps-0", "train-worker-0", "train-worker-1"]
WHOLE = {POD_GROUP: ["train"], POD: MEMBERS, SERVICE: MEMBERS}


class KubeApi(Api):
    """Tells PodGroups of different APIs apart, which share their plural."""

    def __init__(self) -> None:
        super().__init__()
        self.incubated: list[str] = []
        self.refuse = self._other_dialects

    def _other_dialects(self, method: str, path: str) -> tuple[int, str] | None:
        if "/scheduling.volcano.sh/" in path or "/podgroups" not in path:
            return None
        found = INCUBATOR_POD_GROUP.group in path and path.rsplit("/", 1)[-1] in self.incubated
        return (200, "Found") if found else (404, "NotFound")


def inventory(api: Api) -> dict[object, list[str]]:
    return {kind: api.names(kind) for kind in WHOLE}


def conditions(api: Api) -> dict[str, str]:
    status = (api.get(TF_JOB, "train") or {}).get("status") or {}
    return {item["type"]: item["status"] for item in status.get("conditions", [])}


def report(api: Api, phase: str, *names: str, code: int | None = None) -> None:
    state = {} if code is None else {"terminated": {"exitCode": code}}
    container = {"name": "tensorflow", "restartCount": 0, "state": state}
    for name in names or api.names(POD):
        api.change(POD, name, status={"phase": phase, "containerStatuses": [container]})


def reasons(api: Api) -> list[str]:
    return sorted({event["reason"] for event in api.all(EVENT)})


def exit_code_job(**run: object) -> Manifest:
    roles = {"PS": replicas(1, "ExitCode"), "Worker": replicas(2, "ExitCode")}
    return tf_job(roles, run=dict(run))


async def test_a_job_from_its_creation_to_its_end() -> None:
    api = KubeApi()
    api.put(TF_JOB, tf_job(run={"cleanPodPolicy": "Running"}))
    async with running(api, CONTROLLER):
        assert inventory(api) == WHOLE
        assert conditions(api) == {"Created": "True"}
        report(api, "Running")
        await settle()
        assert conditions(api) == {"Created": "True", "Running": "True"}
        report(api, "Succeeded", "train-worker-0", "train-worker-1", code=0)
        await settle()
        assert conditions(api) == {"Created": "True", "Running": "False", "Succeeded": "True"}
        assert inventory(api) == {
            POD_GROUP: [],
            POD: ["train-worker-0", "train-worker-1"],
            SERVICE: ["train-worker-0", "train-worker-1"],
        }
        assert reasons(api) == [
            "ExitedWithCode",
            "SuccessfulCreatePod",
            "SuccessfulCreateService",
            "SuccessfulDeletePod",
            "SuccessfulDeleteService",
            "TFJobCreated",
            "TFJobRunning",
            "TFJobSucceeded",
        ]


async def test_nothing_is_written_when_nothing_changes() -> None:
    api = KubeApi()
    api.put(TF_JOB, tf_job())
    async with running(api, CONTROLLER):
        report(api, "Running")
        await settle()
        before = len(api.writes)
        api.change(TF_JOB, "train", spec=tf_job()["spec"])
        await settle(600)
        assert api.writes[before:] == []


@pytest.mark.parametrize("writes", range(16))
async def test_a_crash_after_any_write_leaves_nothing_that_a_restart_does_not_mend(
    writes: int,
) -> None:
    api = KubeApi()
    api.put(TF_JOB, tf_job())
    api.crash_after = writes
    async with running(api, CONTROLLER):
        pass
    api.crash_after = None
    async with running(api, CONTROLLER):
        assert inventory(api) == WHOLE
        made = [path for method, path in api.writes if method == "POST" and path.endswith("/pods")]
        assert len(made) == len(MEMBERS)


async def test_answers_that_get_lost_make_nothing_twice() -> None:
    api = KubeApi()
    seen: list[str] = []

    def lose(method: str, path: str) -> bool:
        seen.append(path)
        return method == "POST" and seen.count(path) == 1

    api.lose = lose
    api.put(TF_JOB, tf_job())
    async with running(api, CONTROLLER):
        await settle(30)
        assert inventory(api) == WHOLE
        assert api.refusals == [] or all(method == "POST" for method, _ in api.refusals)


async def test_a_stale_cache_makes_nothing_twice() -> None:
    api = KubeApi()
    async with running(api, CONTROLLER):
        api.held = {"pods": None, "services": None}
        api.put(TF_JOB, tf_job())
        await settle(30)
        api.release_watches()
        await settle()
        assert inventory(api) == WHOLE


async def test_a_pod_that_was_killed_comes_back_and_is_counted() -> None:
    api = KubeApi()
    api.put(TF_JOB, exit_code_job(backoffLimit=2))
    async with running(api, CONTROLLER):
        report(api, "Running")
        await settle()
        uids = []
        for _ in range(2):
            uids.append((api.get(POD, "train-worker-1") or {})["metadata"]["uid"])
            report(api, "Failed", "train-worker-1", code=137)
            await settle()
            assert (api.get(POD, "train-worker-1") or {})["metadata"]["uid"] not in uids
            report(api, "Running")
            await settle()
            assert conditions(api) == {"Created": "True", "Running": "True"}
        report(api, "Failed", "train-worker-1", code=137)
        await settle()
        assert conditions(api) == {"Created": "True", "Running": "False", "Failed": "True"}
        assert "train-worker-0" not in api.names(POD), "nobody else would end what still runs"


@pytest.mark.parametrize("writes", range(6))
async def test_a_crash_while_a_pod_is_replaced_counts_it_once(writes: int) -> None:
    api = KubeApi()
    api.put(TF_JOB, exit_code_job(backoffLimit=1))
    async with running(api, CONTROLLER):
        report(api, "Running")
        await settle()
        report(api, "Failed", "train-worker-1", code=137)
        api.crash_after = writes
        await settle()
    api.crash_after = None
    async with running(api, CONTROLLER):
        await settle()
        assert "Failed" not in conditions(api)
        memory = (api.get(TF_JOB, "train") or {})["metadata"]["annotations"]["posse.dev/restarts"]
        assert memory.startswith('{"train-worker-1":[1,')


async def test_a_deadline_fires_by_itself() -> None:
    api = KubeApi()
    api.put(TF_JOB, tf_job(run={"activeDeadlineSeconds": 60}))
    async with running(api, CONTROLLER):
        report(api, "Running")
        await settle(30)
        assert "Failed" not in conditions(api)
        await settle(31)
        assert conditions(api)["Failed"] == "True"
        assert api.names(POD) == []


async def test_a_finished_job_goes_when_its_time_is_over() -> None:
    api = KubeApi()
    api.put(TF_JOB, tf_job(run={"ttlSecondsAfterFinished": 60}))
    async with running(api, CONTROLLER):
        report(api, "Running")
        await settle()
        report(api, "Succeeded", "train-worker-0", code=0)
        await settle(58)
        assert api.names(TF_JOB) == ["train"]
        await settle(3)
        assert api.names(TF_JOB) == []


async def test_suspend_and_resume() -> None:
    api = KubeApi()
    api.put(TF_JOB, tf_job())
    async with running(api, CONTROLLER):
        report(api, "Running")
        await settle()
        api.change(TF_JOB, "train", spec=tf_job(run={"suspend": True})["spec"])
        await settle(20)
        assert inventory(api) == {POD_GROUP: [], POD: [], SERVICE: []}
        assert conditions(api) == {"Created": "True", "Running": "False", "Suspended": "True"}
        before = (api.get(TF_JOB, "train") or {})["status"]["startTime"]
        api.change(TF_JOB, "train", spec=tf_job(run={"suspend": False})["spec"])
        await settle()
        assert inventory(api) == WHOLE
        assert (api.get(TF_JOB, "train") or {})["status"]["startTime"] > before
        report(api, "Running")
        await settle()
        assert conditions(api) == {"Created": "True", "Suspended": "False", "Running": "True"}


async def test_a_users_group_of_kube_batch_takes_the_place_of_ours() -> None:
    api = KubeApi()
    api.incubated = ["train"]
    api.put(TF_JOB, tf_job())
    async with running(api, CONTROLLER):
        await settle()
        assert api.names(POD_GROUP) == []
        assert api.names(POD) == MEMBERS


async def test_pods_that_vanish_come_back() -> None:
    api = KubeApi()
    api.put(TF_JOB, tf_job())
    async with running(api, CONTROLLER):
        report(api, "Running")
        await settle()
        api.remove(POD, "train-worker-1")
        await asyncio.sleep(1)
        assert api.names(POD) == MEMBERS


async def test_one_malformed_job_does_not_stop_the_others() -> None:
    api = KubeApi()
    broken = tf_job(metadata={"name": "broken", "uid": "job-2"})
    broken["spec"] = {"tfReplicaSpecs": {"Worker": "many"}}
    api.put(TF_JOB, broken)
    api.put(TF_JOB, tf_job())
    async with running(api, CONTROLLER):
        assert inventory(api) == WHOLE


@pytest.mark.parametrize(
    ("named", "said", "queue"),
    [("", "vision", "vision"), ("speech", "vision", "speech"), ("", "", None)],
    ids=["the namespace's", "the job's own", "nobody's"],
)
async def test_a_group_is_in_the_queue_of_its_job_or_else_of_its_namespace(
    named: str, said: str, queue: str | None
) -> None:
    api = KubeApi()
    annotations = {QUEUE_NAME: said} if said else {}
    api.put(NAMESPACE, {"metadata": {"name": "ns", "annotations": annotations}})
    run = {"schedulingPolicy": {"queue": named}} if named else {}
    api.put(TF_JOB, tf_job(run=run))
    async with running(api, CONTROLLER):
        assert _queue(api) == queue
        api.put(NAMESPACE, {"metadata": {"name": "ns", "annotations": {QUEUE_NAME: "later"}}})
        api.change(TF_JOB, "train", status={})
        await settle()
        assert _queue(api) == queue


async def test_a_namespace_that_may_not_be_read_holds_up_no_job() -> None:
    api = KubeApi()

    def refuse(method: str, path: str) -> tuple[int, str] | None:
        closed = path.endswith("/namespaces/ns")
        return (403, "Forbidden") if closed else api._other_dialects(method, path)

    api.refuse = refuse
    api.put(TF_JOB, tf_job())
    async with running(api, CONTROLLER):
        assert inventory(api) == WHOLE


def _queue(api: Api) -> str | None:
    group = api.get(POD_GROUP, "train")
    assert group is not None
    found: str | None = group["spec"].get("queue")
    return found
