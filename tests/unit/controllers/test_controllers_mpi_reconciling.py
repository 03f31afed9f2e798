"""The MPIJob controller at work, also when the API server lets it down."""

from __future__ import annotations

import asyncio

import pytest

from posse.controllers.mpi.controller import mpi_controller
from posse.controllers.program import ControllersConfig, controllers_of, run
from posse.controllers.runtime import Manifest
from posse.kube.connection import Connection
from posse.objects.kinds import (
    CONFIG_MAP,
    EVENT,
    JOB,
    LEASE,
    MPI_JOB,
    POD,
    POD_GROUP,
    SECRET,
    SERVICE,
)
from posse.objects.times import rfc3339
from tests.unit.controllers.api import Api
from tests.unit.controllers.builders import NOW, SETTINGS, mpi_job, owned, world
from tests.unit.controllers.running import running, settle

pytestmark = pytest.mark.looptime

CONTROLLER = mpi_controller(SETTINGS)
WHOLE = {
    POD_GROUP: ["train"],
    POD: ["train-worker-0", "train-worker-1"],
    JOB: ["train-launcher"],
    SERVICE: ["train"],
    CONFIG_MAP: ["train-config"],
    SECRET: ["train-ssh"],
}


def inventory(api: Api) -> dict[object, list[str]]:
    return {kind: api.names(kind) for kind in WHOLE}


def conditions(api: Api) -> dict[str, str]:
    job = api.get(MPI_JOB, "train") or {}
    found = (job.get("status") or {}).get("conditions") or []
    return {item["type"]: item["status"] for item in found}


def run_workers(api: Api) -> None:
    for name in api.names(POD):
        if "-worker-" in name:
            ready = [{"type": "Ready", "status": "True"}]
            api.change(POD, name, status={"phase": "Running", "conditions": ready})


def run_launcher(api: Api) -> None:
    job = api.objects["jobs", "ns", "train-launcher"]
    owner = {"kind": "Job", "apiVersion": "batch/v1", "name": "train-launcher", "controller": True}
    metadata = {
        "name": "train-launcher-x",
        "namespace": "ns",
        "labels": job["spec"]["template"]["metadata"]["labels"],
        "ownerReferences": [owner | {"uid": job["metadata"]["uid"]}],
    }
    api.put(POD, {"metadata": metadata, "status": {"phase": "Running"}})


def end_launcher(api: Api, condition: str = "Complete") -> None:
    ended = [{"type": condition, "status": "True"}]
    stamp = rfc3339(NOW + asyncio.get_running_loop().time())
    api.change(JOB, "train-launcher", status={"conditions": ended, "completionTime": stamp})


def duplicates(api: Api) -> list[str]:
    created = [path for method, path in api.writes if method == "POST" and "/events" not in path]
    return [path for path in created if path.endswith("/pods")][len(WHOLE[POD]) :]


async def test_a_job_from_its_creation_to_its_end() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job(waits=True, run={"cleanPodPolicy": "Running"}))
    async with running(api, CONTROLLER):
        assert inventory(api) == WHOLE | {JOB: []}
        assert conditions(api) == {"Created": "True"}
        run_workers(api)
        await settle()
        assert api.names(JOB) == ["train-launcher"]
        run_launcher(api)
        await settle()
        assert conditions(api) == {"Created": "True", "Running": "True"}
        end_launcher(api)
        await settle()
        assert conditions(api) == {"Created": "True", "Running": "False", "Succeeded": "True"}
        assert api.names(POD) == ["train-launcher-x"]
        assert api.names(POD_GROUP) == []
        reasons = [event["reason"] for event in api.all(EVENT)]
        assert sorted(reasons) == ["MPIJobCreated", "MPIJobRunning", "MPIJobSucceeded"]


async def test_nothing_is_written_when_nothing_changes() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        run_workers(api)
        await settle()
        before = len(api.writes)
        api.change(MPI_JOB, "train", spec=mpi_job()["spec"])
        await settle(600)
        assert api.writes[before:] == []


async def test_a_restart_writes_nothing_where_all_is_well() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        pass
    before = len(api.writes)
    async with running(api, CONTROLLER):
        assert api.writes[before:] == []


async def test_hosts_are_listed_as_they_come_and_go() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        run_workers(api)
        await settle()
        script = (api.get(CONFIG_MAP, "train-config") or {})["data"]["discover_hosts.sh"]
        assert script.splitlines()[1:] == [
            "echo train-worker-0.train.ns.svc",
            "echo train-worker-1.train.ns.svc",
        ]


@pytest.mark.parametrize("writes", range(12))
async def test_a_crash_after_any_write_leaves_nothing_that_a_restart_does_not_mend(
    writes: int,
) -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job())
    api.crash_after = writes
    async with running(api, CONTROLLER):
        pass
    api.crash_after = None
    async with running(api, CONTROLLER):
        assert inventory(api) == WHOLE
        assert duplicates(api) == []
        assert conditions(api) == {"Created": "True"}


async def test_a_stale_cache_creates_nothing_twice() -> None:
    api = Api()
    api.held = dict.fromkeys(kind.plural for kind in WHOLE)
    async with running(api, CONTROLLER):
        api.put(MPI_JOB, mpi_job())
        await settle()
        for number in range(3):
            api.change(MPI_JOB, "train", spec=mpi_job(slotsPerWorker=number + 1)["spec"])
            await settle()
        assert any(path.endswith("/pods") for _, path in api.refusals)
        assert inventory(api) == WHOLE
        api.release_watches()
        await settle()
        assert inventory(api) == WHOLE
        assert duplicates(api) == []


async def test_a_status_is_not_written_again_before_the_cache_shows_it() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job())
    api.held = {"mpijobs": None}
    async with running(api, CONTROLLER):
        run_workers(api)
        await settle()
        run_launcher(api)
        await settle()
        assert conditions(api) == {"Created": "True", "Running": "True"}
        assert api.refusals == []
        api.release_watches()
        await settle()
        assert api.refusals == []
        assert [event["count"] for event in api.all(EVENT)] == [1, 1]


async def test_an_outdated_view_of_the_job_never_overwrites_its_status() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        api.held = {"mpijobs": None}
        ended = {"conditions": [{"type": "Failed", "status": "True"}], "completionTime": "x"}
        api.change(MPI_JOB, "train", status=ended)
        run_workers(api)
        await settle(10)
        assert api.objects["mpijobs", "ns", "train"]["status"] == ended


@pytest.mark.parametrize("kind", list(WHOLE), ids=lambda kind: kind.plural)
async def test_an_answer_that_is_lost_creates_nothing_twice(kind: object) -> None:
    api = Api()
    lost: dict[str, None] = {}

    def lose(method: str, path: str) -> bool:
        if method == "POST" and path.endswith(f"/{kind.plural}") and path not in lost:  # type: ignore[attr-defined]
            lost[path] = None
            return True
        return False

    api.lose = lose
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        await settle(5)
        assert lost
        assert inventory(api) == WHOLE
        assert duplicates(api) == []


async def test_a_deleted_worker_comes_back() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        before = api.objects["pods", "ns", "train-worker-0"]["metadata"]["uid"]
        api.remove(POD, "train-worker-0")
        await settle()
        assert api.objects["pods", "ns", "train-worker-0"]["metadata"]["uid"] != before


async def test_scaling_changes_pods_group_and_hostfile() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job(workers=2))
    async with running(api, CONTROLLER):
        for workers in (4, 1):
            api.change(MPI_JOB, "train", spec=mpi_job(workers=workers)["spec"])
            await settle()
            assert api.names(POD) == [f"train-worker-{index}" for index in range(workers)]
            assert api.objects["podgroups", "ns", "train"]["spec"]["minMember"] == workers + 1
            hosts = api.objects["configmaps", "ns", "train-config"]["data"]["hostfile"]
            assert len(hosts.splitlines()) == workers


async def test_a_job_applied_anew_waits_for_the_pods_of_the_old_one() -> None:
    api = Api()
    labels = {"training.kubeflow.org/operator-name": "mpi-operator"} | {
        "training.kubeflow.org/job-name": "train"
    }
    leaving = {"labels": labels, "deletionTimestamp": rfc3339(NOW)}
    for index in range(2):
        api.put(POD, owned(f"train-worker-{index}", uid="older", metadata=leaving))
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        await settle(20)
        assert all(p["metadata"]["ownerReferences"][0]["uid"] == "older" for p in api.all(POD))
        assert api.names(EVENT) == [api.all(EVENT)[0]["metadata"]["name"]]  # MPIJobCreated alone
        for index in range(2):
            api.remove(POD, f"train-worker-{index}")
            await settle()
        assert inventory(api) == WHOLE
        assert all(p["metadata"]["ownerReferences"][0]["uid"] == "job-1" for p in api.all(POD))


async def test_everything_of_an_earlier_job_is_waited_out() -> None:
    api = Api()
    remains = [
        (SERVICE, "train"),
        (CONFIG_MAP, "train-config"),
        (SECRET, "train-ssh"),
        (POD_GROUP, "train"),
        (JOB, "train-launcher"),
    ]
    for kind, name in remains:
        api.put(kind, owned(name, uid="older"))
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        await settle(20)
        for kind, name in remains:
            assert api.objects[kind.plural, "ns", name]["metadata"]["uid"] == f"uid-{name}"
            api.remove(kind, name)
        await settle(120)
        assert inventory(api) == WHOLE
        assert [event["reason"] for event in api.all(EVENT)] == ["MPIJobCreated"]


async def test_somebody_elses_object_is_reported_and_left_alone() -> None:
    api = Api()
    stranger: Manifest = {
        "metadata": {"name": "train-config", "namespace": "ns"},
        "data": {"a": "b"},
    }
    before = api.put(CONFIG_MAP, stranger)
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        await settle(60)
        assert api.get(CONFIG_MAP, "train-config") == before
        assert "ErrResourceExists" in [event["reason"] for event in api.all(EVENT)]
        assert conditions(api) == {"Created": "True"}
        assert api.names(POD) == []


async def test_a_refused_pod_is_reported_and_tried_again() -> None:
    api = Api()
    api.refuse = lambda method, path: (
        (403, "Forbidden") if method == "POST" and path.endswith("/pods") else None
    )
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        assert conditions(api) == {"Created": "True"}
        assert "FailedCreate" in [event["reason"] for event in api.all(EVENT)]
        api.refuse = lambda method, path: None
        await settle(60)
        assert inventory(api) == WHOLE


async def test_suspending_and_resuming() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        api.change(MPI_JOB, "train", spec=mpi_job(run={"suspend": True})["spec"])
        await settle()
        assert api.names(POD) == []
        assert api.names(POD_GROUP) == []
        assert api.objects["jobs", "ns", "train-launcher"]["spec"]["suspend"] is True
        api.change(MPI_JOB, "train", spec=mpi_job()["spec"])
        await settle()
        assert inventory(api) == WHOLE
        assert api.objects["jobs", "ns", "train-launcher"]["spec"]["suspend"] is False
        assert conditions(api)["Suspended"] == "False"


async def test_a_deadline_fires_by_itself() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job(waits=True, run={"activeDeadlineSeconds": 100}))
    async with running(api, CONTROLLER):
        run_workers(api)
        await settle(98)
        assert conditions(api) == {"Created": "True"}
        await settle(3)
        assert conditions(api) == {"Created": "True", "Failed": "True"}
        assert api.names(POD) == []
        assert api.names(POD_GROUP) == []


async def test_a_time_to_live_fires_by_itself() -> None:
    api = Api()
    api.put(MPI_JOB, mpi_job(run={"ttlSecondsAfterFinished": 100}))
    async with running(api, CONTROLLER):
        end_launcher(api)
        await settle(98)
        assert api.names(MPI_JOB) == ["train"]
        await settle(3)
        assert api.names(MPI_JOB) == []


async def test_one_nonsensical_job_stops_no_other() -> None:
    api = Api()
    broken = mpi_job(metadata={"name": "broken", "uid": "job-2"})
    broken["spec"] = {"mpiReplicaSpecs": ["not", "a", "mapping"]}
    api.put(MPI_JOB, broken)
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        assert inventory(api) == WHOLE
        status = api.objects["mpijobs", "ns", "broken"]["status"]
        assert status["conditions"][0]["reason"] == "InvalidMPIJobSpec"


async def test_secrets_are_never_listed() -> None:
    api = Api()
    asked: list[str] = []

    def note(method: str, path: str) -> None:
        asked.append(f"{method} {path}")

    api.refuse = note
    api.put(MPI_JOB, mpi_job())
    async with running(api, CONTROLLER):
        listed = [call for call in asked if call.startswith("GET") and call.endswith("/secrets")]
        assert listed == []
        assert any("/secrets/train-ssh" in call for call in asked)


async def test_two_runs_write_the_same() -> None:
    async def written() -> list[Manifest]:
        api = Api()
        async with running(api, CONTROLLER):
            api.put(MPI_JOB, mpi_job(workers=20, waits=True))
            await settle()
            run_workers(api)
            await settle()
        return [obj for kind in WHOLE for obj in api.all(kind)]

    first = await written()
    second = await written()

    def names(objects: list[Manifest]) -> list[str]:
        return [obj["metadata"]["name"] for obj in objects]

    assert names(first) == names(second)
    assert [obj.get("data") for obj in first] == [obj.get("data") for obj in second]


async def test_the_program_runs_its_kinds_under_its_lease() -> None:
    api, chance = Api(), world()
    api.put(MPI_JOB, mpi_job())
    config = ControllersConfig(identity="me")
    program = asyncio.create_task(run(config, Connection(api, chance), chance))
    await settle()
    lease = api.get(LEASE, "posse-controllers", "kube-system") or {}
    assert lease["spec"]["holderIdentity"] == "me"
    assert inventory(api) == WHOLE
    program.cancel()
    await asyncio.gather(program, return_exceptions=True)


def test_a_kind_without_a_controller_is_named() -> None:
    with pytest.raises(ValueError, match="'XJob'"):
        controllers_of(ControllersConfig(kinds=("MPIJob", "XJob")))


def test_without_gang_scheduling_no_pod_group_is_needed() -> None:
    for controller in controllers_of(ControllersConfig(enable_gang_scheduling=False)):
        watched = [getattr(watch.kind, "kind", watch.kind) for watch in controller.watches]
        assert POD_GROUP not in watched
