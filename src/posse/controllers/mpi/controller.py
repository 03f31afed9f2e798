"""The MPIJob controller: observe from the caches, decide, perform."""

from __future__ import annotations

from posse.controllers.jobs.labels import operator_selector
from posse.controllers.jobs.performing import perform
from posse.controllers.jobs.settings import Settings
from posse.controllers.mpi.deciding import decide
from posse.controllers.mpi.observing import Observed
from posse.controllers.runtime import (
    Context,
    Controller,
    Key,
    Manifest,
    Selection,
    Watch,
    key_of,
    metadata_of,
    uid_of,
)
from posse.objects.jobs.mpi.spec import OPERATOR, worker_names
from posse.objects.keys import JOB_NAME_LABEL
from posse.objects.kinds import CONFIG_MAP, JOB, MPI_JOB, POD, POD_GROUP, SERVICE


def mpi_controller(settings: Settings) -> Controller:
    """Pods wake their job by its label: the launcher's belong to a batch Job, not to the MPIJob.

    A PodGroup wakes the job of its name, also when it is the user's own.
    """
    selector = operator_selector(OPERATOR)

    async def reconcile(context: Context, key: Key) -> float | None:
        job = context.get(MPI_JOB, key)
        if job is None:
            return None
        decision = decide(observe(context, job, settings), settings)
        await perform(context, MPI_JOB, job, decision)
        return decision.after

    groups = (Watch(POD_GROUP, lambda group: (key_of(group),)),) if settings.gang.enabled else ()
    return Controller(
        name="mpijob",
        kind=MPI_JOB,
        reconcile=reconcile,
        owns=(JOB, SERVICE, Selection(CONFIG_MAP, selector)),
        watches=(Watch(Selection(POD, selector), _named_by_label), *groups),
    )


def observe(context: Context, job: Manifest, settings: Settings) -> Observed:
    namespace, name = key_of(job)
    uid = uid_of(job)
    launcher = context.get(JOB, (namespace, f"{name}-launcher"))
    pods = {key_of(pod)[1]: pod for pod in context.owned(POD, uid)}
    for worker in worker_names(job):
        if worker not in pods and (pod := context.get(POD, (namespace, worker))) is not None:
            pods[worker] = pod
    return Observed(
        job=job,
        now=context.world.now(),
        pods=pods,
        launcher=launcher,
        launcher_pods=[] if launcher is None else context.owned(POD, uid_of(launcher)),
        pod_group=context.get(POD_GROUP, (namespace, name)) if settings.gang.enabled else None,
    )


def _named_by_label(pod: Manifest) -> tuple[Key, ...]:
    labels = metadata_of(pod).get("labels") or {}
    job = labels.get(JOB_NAME_LABEL)
    return ((key_of(pod)[0], job),) if job else ()
