"""The controller of one declared kind: observe from the caches, decide, perform."""

from __future__ import annotations

from posse.controllers.jobs.labels import operator_selector
from posse.controllers.jobs.performing import perform
from posse.controllers.jobs.replicas.deciding import decide
from posse.controllers.jobs.replicas.declaring import JobKind
from posse.controllers.jobs.replicas.observing import Observed
from posse.controllers.jobs.settings import Settings
from posse.controllers.runtime import (
    Context,
    Controller,
    Key,
    Manifest,
    Selection,
    Watch,
    key_of,
    uid_of,
)
from posse.objects.jobs.replicas.spec import member_names
from posse.objects.kinds import POD, POD_GROUP, SERVICE, Kind


def controller_of(declared: JobKind, settings: Settings) -> Controller:
    """A PodGroup wakes the job of its name, also when it is the user's own."""

    async def reconcile(context: Context, key: Key) -> float | None:
        job = context.get(declared.form.kind, key)
        if job is None:
            return None
        decision = decide(declared, observe(context, declared, job, settings), settings)
        await perform(context, declared.form.kind, job, decision)
        return decision.after

    groups = (Watch(POD_GROUP, lambda group: (key_of(group),)),) if settings.gang.enabled else ()
    return Controller(
        name=declared.form.kind.singular,
        kind=declared.form.kind,
        reconcile=reconcile,
        owns=(Selection(POD, operator_selector(declared.form.operator)), SERVICE),
        watches=groups,
    )


def observe(context: Context, declared: JobKind, job: Manifest, settings: Settings) -> Observed:
    names = member_names(declared.form, job)
    group = context.get(POD_GROUP, key_of(job)) if settings.gang.enabled else None
    return Observed(
        job=job,
        now=context.world.now(),
        pods=_named_or_owned(context, POD, job, names),
        services=_named_or_owned(context, SERVICE, job, names),
        pod_group=group,
    )


def _named_or_owned(
    context: Context, kind: Kind, job: Manifest, names: list[str]
) -> dict[str, Manifest]:
    namespace = key_of(job)[0]
    found = {key_of(obj)[1]: obj for obj in context.owned(kind, uid_of(job))}
    for name in names:
        if name not in found and (obj := context.get(kind, (namespace, name))) is not None:
            found[name] = obj
    return found
