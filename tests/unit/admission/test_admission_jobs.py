"""Training jobs at the door."""

from __future__ import annotations

from typing import Any

import pytest

from posse.admission.review import Stage
from posse.objects.keys import QUEUE_NAME, WRITTEN_AS
from posse.objects.kinds import NAMESPACE, QUEUE
from tests.unit.admission.questions import (
    Known,
    Object,
    answer,
    asking,
    fields,
    in_queue,
    mpi_job,
    namespace,
    patched,
    queue,
    template,
    tf_job,
)

_QUEUE_FIELD = "spec.runPolicy.schedulingPolicy.queue"
_NOTE = "/metadata/annotations"


def _changed(job: Object, **spec: Any) -> Object:
    return job | {"spec": job["spec"] | spec}


@pytest.mark.parametrize("job", [mpi_job(), tf_job(), tf_job(version="v1beta1")])
async def test_a_sound_job_passes(job: Object) -> None:
    said = await answer(asking(job), stage=Stage.VALIDATING)
    assert said.allowed
    assert not said.patch
    assert not said.warnings


BROKEN: list[tuple[str, Object, str]] = [
    ("no workers", mpi_job(0), "spec.mpiReplicaSpecs[Worker].replicas"),
    ("workers that nobody counted", mpi_job(None), "spec.mpiReplicaSpecs[Worker].replicas"),
    ("too many workers", mpi_job(200_000), "spec.mpiReplicaSpecs[Worker].replicas"),
    ("an unknown MPI", mpi_job(mpiImplementation="Other"), "spec.mpiImplementation"),
    ("no launcher", mpi_job(mpiReplicaSpecs={}), "spec.mpiReplicaSpecs[Launcher]"),
    ("a name that no pod can have", mpi_job(name="x" * 60), "metadata.name"),
    ("a name with dots", mpi_job(name="a.b"), "metadata.name"),
    ("slots below nothing", mpi_job(slotsPerWorker=-1), "spec.slotsPerWorker"),
    ("slots in words", mpi_job(slotsPerWorker="two"), "spec"),
    ("a deadline below nothing", mpi_job(run={"activeDeadlineSeconds": -1}),
     "spec.runPolicy.activeDeadlineSeconds"),
    ("replicas below nothing", tf_job(-1), "spec.tfReplicaSpecs[Worker].replicas"),
    ("a policy nobody knows", tf_job(run={"cleanPodPolicy": "Some"}),
     "spec.runPolicy.cleanPodPolicy"),
    ("no roles", tf_job() | {"spec": {"tfReplicaSpecs": {}}}, "spec.tfReplicaSpecs"),
    ("a role nobody knows",
     tf_job() | {"spec": {"tfReplicaSpecs": {"Boss": {"template": template("tensorflow")}}}},
     "spec.tfReplicaSpecs"),
    ("a wrong container",
     tf_job() | {"spec": {"tfReplicaSpecs": {"Worker": {"template": template("main")}}}},
     "spec.tfReplicaSpecs[Worker].template.spec.containers"),
    ("a spec that is a list", tf_job() | {"spec": []}, "spec.tfReplicaSpecs"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "job", "field"), BROKEN, ids=[row[0] for row in BROKEN])
async def test_a_job_that_can_never_run_is_refused(why: str, job: Object, field: str) -> None:
    said = await answer(asking(job))
    assert not said.allowed
    assert (said.code, said.reason) == (422, "Invalid")
    assert field in fields(said)
    assert job["metadata"]["name"] in said.message


async def test_every_mistake_is_said_at_once() -> None:
    said = await answer(asking(mpi_job(0, slotsPerWorker=-1)))
    assert len(said.causes) == 2
    assert said.message.startswith('MPIJob.kubeflow.org "train" is invalid: [')


async def test_a_job_of_another_controller_is_not_judged() -> None:
    said = await answer(asking(mpi_job(0, run={"managedBy": "kueue.x-k8s.io/multikueue"})))
    assert said.allowed
    assert not said.patch


async def test_a_change_is_refused_for_what_it_brings_alone() -> None:
    """One that was let in before anybody looked can still lose a finalizer or be mended in part."""
    old = mpi_job(0, slotsPerWorker=-1)
    assert (await answer(asking(old | {"metadata": {"name": "train"}}, old=old))).allowed
    assert (await answer(asking(_changed(old, slotsPerWorker=1), old=old))).allowed
    worse = await answer(asking(_changed(old, mpiImplementation="Other"), old=old))
    assert fields(worse) == ["spec.mpiImplementation"]


async def test_a_job_on_its_way_out_is_not_held_back() -> None:
    old = mpi_job()
    metadata = old["metadata"] | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    said = await answer(asking(mpi_job(0) | {"metadata": metadata}, old=old))
    assert said.allowed


async def test_deleting_a_job_is_nobody_elses_business() -> None:
    assert (await answer(asking(None, old=mpi_job(0)))).allowed


async def test_a_status_is_not_looked_at() -> None:
    assert (await answer(asking(mpi_job(0), sub_resource="status"))).allowed


MANAGERS = [
    ("taken away", "", "kueue.x-k8s.io/multikueue", False),
    ("given to us", "kueue.x-k8s.io/multikueue", "", False),
    ("from one to another", "a.example/b", "c.example/d", False),
    ("named where it was meant", "", "kubeflow.org/training-operator", True),
    ("left alone", "a.example/b", "a.example/b", True),
]


@pytest.mark.parametrize(("why", "was", "is_", "allowed"), MANAGERS, ids=[r[0] for r in MANAGERS])
async def test_a_job_does_not_change_hands(why: str, was: str, is_: str, allowed: bool) -> None:
    old, new = (tf_job(run={"managedBy": name} if name else {}) for name in (was, is_))
    said = await answer(asking(new, old=old))
    assert said.allowed is allowed
    if not allowed:
        assert fields(said) == ["spec.runPolicy.managedBy"]
        assert "field is immutable" in said.message


QUEUES = [
    ("open", (queue("q"),), True),
    ("without a state yet", (queue("q", ""),), True),
    ("closed", (queue("q", "Closed"),), False),
    ("closing", (queue("q", "Closing"),), False),
    ("missing", (), False),
]


@pytest.mark.parametrize(("why", "known", "allowed"), QUEUES, ids=[row[0] for row in QUEUES])
async def test_a_job_for_a_queue_that_takes_nothing_in_is_refused(
    why: str, known: Any, allowed: bool
) -> None:
    said = await answer(asking(mpi_job(run=in_queue("q"))), Known(*known))
    assert said.allowed is allowed
    if not allowed:
        assert fields(said) == [_QUEUE_FIELD]


async def test_the_default_queue_is_there_even_when_no_object_says_so() -> None:
    assert (await answer(asking(mpi_job(run=in_queue("default"))), Known())).allowed


async def test_a_queue_that_cannot_be_read_is_a_warning() -> None:
    said = await answer(asking(mpi_job(run=in_queue("q"))), Known(broken=(QUEUE,)))
    assert said.allowed
    assert said.warnings == ("queue 'q' could not be looked at",)


async def test_a_queue_that_closed_later_does_not_hold_up_changes() -> None:
    old = mpi_job(run=in_queue("q"))
    reader = Known(queue("q", "Closed"))
    assert (await answer(asking(_changed(old, slotsPerWorker=2), old=old), reader)).allowed
    assert reader.asked == []


async def test_a_queue_in_an_annotation_counts_too() -> None:
    said = await answer(asking(tf_job(annotations={QUEUE_NAME: "gone"})))
    assert fields(said) == [f"metadata.annotations[{QUEUE_NAME}]"]


@pytest.mark.parametrize(("sent", "written"), [("v1", ""), ("v1", "v1beta1"), ("v1beta2", "")])
async def test_the_version_in_which_a_job_was_written_is_noted(sent: str, written: str) -> None:
    said = await answer(asking(tf_job(version=sent), written=written), stage=Stage.MUTATING)
    assert patched(said) == {_NOTE: {WRITTEN_AS: f"kubeflow.org/{written or sent}"}}


async def test_a_kind_with_one_version_needs_no_note() -> None:
    assert not (await answer(asking(mpi_job()), stage=Stage.MUTATING)).patch


async def test_a_note_that_is_there_stays() -> None:
    job = tf_job(annotations={WRITTEN_AS: "kubeflow.org/v1beta1"})
    assert not (await answer(asking(job, written="v1"), stage=Stage.MUTATING)).patch


async def test_a_note_survives_a_change_that_forgets_it() -> None:
    old = tf_job(annotations={WRITTEN_AS: "kubeflow.org/v1beta1", "other": "1"})
    new = tf_job(annotations={"other": "2"})
    said = await answer(asking(new, old=old), stage=Stage.MUTATING)
    at = f"{_NOTE}/{WRITTEN_AS.replace('/', '~1')}"
    assert said.patch == ({"op": "add", "path": at, "value": "kubeflow.org/v1beta1"},)


async def test_a_change_gets_no_note_that_was_not_there() -> None:
    said = await answer(asking(tf_job(3), old=tf_job(2)), stage=Stage.MUTATING)
    assert not said.patch


async def test_a_job_without_a_queue_gets_its_namespaces() -> None:
    reader = Known(namespace("ns", "team"), queue("team"))
    said = await answer(asking(mpi_job()), reader)
    assert said.allowed
    assert patched(said) == {_NOTE: {QUEUE_NAME: "team"}}


async def test_what_the_namespace_says_is_judged_like_what_the_user_says() -> None:
    reader = Known(namespace("ns", "team"), queue("team", "Closed"))
    assert not (await answer(asking(mpi_job()), reader)).allowed


@pytest.mark.parametrize("job", [mpi_job(run=in_queue("own")), tf_job(labels={QUEUE_NAME: "own"})])
async def test_a_queue_that_the_user_named_stays(job: Object) -> None:
    said = await answer(asking(job), Known(namespace("ns", "team")), stage=Stage.MUTATING)
    assert QUEUE_NAME not in str(patched(said))


async def test_a_namespace_that_cannot_be_read_costs_nothing_else() -> None:
    said = await answer(asking(tf_job()), Known(broken=(NAMESPACE,)), stage=Stage.MUTATING)
    assert said.allowed
    assert patched(said) == {_NOTE: {WRITTEN_AS: "kubeflow.org/v1"}}


async def test_a_broken_job_is_left_for_the_judgement() -> None:
    said = await answer(asking(mpi_job(slotsPerWorker="two")), stage=Stage.MUTATING)
    assert said.allowed
    assert not said.patch


@pytest.mark.parametrize(("prefix", "allowed"), [("train-", True), ("x" * 60 + "-", False)])
async def test_a_generated_name_is_judged_by_its_length(prefix: str, allowed: bool) -> None:
    job = mpi_job()
    job["metadata"] = {"generateName": prefix, "namespace": "ns"}
    assert (await answer(asking(job))).allowed is allowed
