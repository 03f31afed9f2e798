"""What the engine is told of a gang, put together from its group and its members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from posse.engine.facts import Expected, GroupFacts
from posse.objects.groups import PriorityClass
from posse.objects.meta import Key
from posse.scheduler.reading.confines import confined
from posse.scheduler.reading.estimates import Times, read_times
from posse.scheduler.reading.groups import GroupTerms
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.parts import nearer, part_of, squads
from posse.scheduler.reading.pods import Place, created_at
from posse.scheduler.reading.priorities import NEVER, preempts, priority_of


def facts_of(muster: Muster, classes: Mapping[Key, PriorityClass]) -> GroupFacts | None:
    """None while the gang must not be decided on."""
    if muster.aside:
        return None
    terms, group = muster.terms, muster.group
    if muster.alone:
        return _facts_of_one(muster)
    if terms is None or muster.problem or muster.withheld or muster.finished:
        return None
    if group is not None and group.metadata.deleting:
        return None
    tally = muster.tally
    return GroupFacts(
        key=muster.key,
        uid=terms.uid,
        queue=terms.queue,
        priority=terms.priority
        if terms.priority is not None
        else priority_of(terms.priority_class, classes, tally.priorities),
        created=terms.created,
        min_member=max(0, terms.min_member - tally.ended_well),
        started=muster.ran,
        expects=_expects(muster, terms),
        holds=terms.holds,
        recreated=muster.recreated or (muster.ran and muster.returns),
        returns=muster.ran and muster.returns,
        severable=terms.severable,
        indivisible=terms.indivisible,
        grows=terms.grows,
        loose=terms.loose,
        role_minimums=_role_minimums(muster, terms),
        min_resources=terms.min_resources,
        keeps=terms.keeps,
        ran_with=muster.ran_with if muster.ran else 0,
        preempts=terms.preemption_policy != NEVER
        if terms.preemption_policy
        else preempts(terms.priority_class, classes, tally.policies),
        preemptable=terms.preemptable,
        evictions=terms.evictions,
        overtaken=terms.overtaken,
        began=muster.first_bound if muster.ran or muster.whole else None,
        start_timeout=terms.times.start_timeout,
        runs_for=_runs_for(muster, terms.times),
        min_runtime=_min_runtime(muster, terms.times),
        checkpoint_interval=terms.times.checkpoint_interval,
        topology=terms.topology,
        nearer=nearer(terms.partitions),
        squads=squads(terms.partitions),
        ended=_ended_of_parts(muster, terms) if tally.ended_well else (),
    )


def _facts_of_one(muster: Muster) -> GroupFacts | None:
    member = muster.first
    if member is None or not (member.place is Place.WAITING or member.place.seated):
        return None
    if muster.stands_back:
        return None
    meta = member.pod.metadata
    times = read_times(meta.annotations)
    return GroupFacts(
        key=muster.key,
        uid=meta.uid,
        queue=muster.queue,
        priority=member.pod.spec.priority or 0,
        created=created_at(meta),
        min_member=1,
        started=member.place.seated,
        recreated=muster.recreated,
        preempts=member.pod.spec.preemption_policy != NEVER,
        began=muster.first_bound,
        runs_for=_runs_for(muster, Times()),
        min_runtime=_min_runtime(muster, times),
        checkpoint_interval=times.checkpoint_interval,
        start_timeout=times.start_timeout,
    )


def _expects(muster: Muster, terms: GroupTerms) -> tuple[Expected, ...]:
    if muster.confines is None:
        return terms.expects
    return tuple(
        msgspec.structs.replace(each, shape=confined(each.shape, muster.confines))
        for each in terms.expects
    )


def _role_minimums(muster: Muster, terms: GroupTerms) -> tuple[tuple[str, int], ...]:
    """What each role is still to have: who ended well is not missing."""
    tally = muster.tally
    if not tally.ended_well:
        return terms.role_minimums
    left = ((role, least - tally.ended_as(role)) for role, least in terms.role_minimums)
    return tuple((role, least) for role, least in left if least > 0)


def _ended_of_parts(muster: Muster, terms: GroupTerms) -> tuple[tuple[str, int], ...]:
    """How many of each part ended well, where parts start together."""
    if not squads(terms.partitions):
        return ()
    parts = Counter(
        part_of(member.pod.metadata.labels, terms.partitions)
        for member in muster.members.values()
        if member.place is Place.SUCCEEDED
    )
    return tuple(sorted((part, number) for part, number in parts.items() if part))


def _min_runtime(muster: Muster, times: Times) -> float | None:
    """As its group says, else the longest that a member does."""
    return muster.tally.cooldown if times.min_runtime is None else times.min_runtime


def _runs_for(muster: Muster, times: Times) -> float | None:
    """As its group says, else as all its members do."""
    return muster.tally.estimates.longest if times.runs_for is None else times.runs_for
