"""The pods of a job and their services: which are to be made, and which are to go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from posse.controllers.jobs.actions import Action, Blocked, Create, Delete, Merge, Say
from posse.controllers.jobs.performing import differences
from posse.controllers.jobs.pods import is_ending
from posse.controllers.jobs.replicas import templates
from posse.controllers.jobs.replicas.gang import mark_of, settings_of
from posse.controllers.jobs.replicas.observing import Situation
from posse.controllers.runtime import Manifest, key_of
from posse.objects.kinds import POD, SERVICE, Kind


def services(situation: Situation) -> Iterator[Action]:
    """One for each replica; those beyond the number asked for go."""
    job = situation.job
    wanted: dict[str, None] = {}
    for replicas in job.replicas:
        for index in range(replicas.count):
            desired = templates.service(job, replicas, index)
            name = key_of(desired)[1]
            wanted[name] = None
            present = situation.seen.services.get(name)
            if present is None:
                yield _create(SERVICE, desired)
            elif not situation.owns(present) or is_ending(present):
                yield Blocked(SERVICE, present)
            elif changes := differences(present, desired):
                yield Merge(SERVICE, present, changes)
    yield from _beyond(SERVICE, situation.own_services, wanted)


def pods(situation: Situation) -> Iterator[Action]:
    """The missing ones; a name that somebody else has is waited for."""
    job, mark, gang = situation.job, mark_of(situation), settings_of(situation)
    told = situation.declared.environment(job, situation.settings.cluster_domain)
    wanted: dict[str, None] = {}
    for replicas in job.replicas:
        for index in range(replicas.count):
            name = job.member_name(replicas, index)
            wanted[name] = None
            present = situation.seen.pods.get(name)
            if present is None:
                made = templates.pod(job, replicas, index, mark, gang, told)
                yield _create(POD, made)
            elif not situation.owns(present):
                yield Blocked(POD, present)
    yield from _beyond(POD, situation.own_pods, wanted)


def dismiss(kind: Kind, objects: Iterable[Manifest]) -> Iterator[Action]:
    for present in objects:
        if not is_ending(present):
            name = key_of(present)[1]
            said = Say(f"SuccessfulDelete{kind.kind}", f"Deleted {kind.singular}: {name}")
            yield Delete(kind, present, said=said)


def _beyond(kind: Kind, own: dict[str, Manifest], wanted: dict[str, None]) -> Iterator[Action]:
    return dismiss(kind, (present for name, present in own.items() if name not in wanted))


def _create(kind: Kind, manifest: Manifest) -> Create:
    name = key_of(manifest)[1]
    said = Say(f"SuccessfulCreate{kind.kind}", f"Created {kind.singular}: {name}")
    return Create(kind, manifest, said=said)
