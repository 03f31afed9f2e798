"""How often replicas had to come back, and when the next may.

A pod that is replaced takes its own count of restarts with it, so the job itself remembers: in an
annotation, under the name of each replica, with the uid of the pod that was counted last. A pod is
counted before it is deleted, and never twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from posse.controllers.jobs.pods import restarts_of
from posse.controllers.runtime import Manifest, key_of, metadata_of, uid_of
from posse.objects.keys import RESTARTS
from posse.objects.times import parse_time

# As a kubelet does it in place: at once, then after ten seconds, twenty, ...
_FIRST_PAUSE = 10.0
_LONGEST_PAUSE = 300.0


class Tally(msgspec.Struct, frozen=True, array_like=True):
    count: int
    last: str


Tallies = Mapping[str, Tally]


def read_tallies(job: Manifest) -> dict[str, Tally]:
    """What is remembered; what somebody made unreadable is forgotten."""
    annotations = metadata_of(job).get("annotations")
    text = annotations.get(RESTARTS) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Tally])
    except ValueError:
        return {}


def is_counted(tallies: Tallies, pod: Manifest) -> bool:
    tally = tallies.get(key_of(pod)[1])
    return tally is not None and tally.last == uid_of(pod)


def counting(tallies: Tallies, pods: Iterable[Manifest]) -> dict[str, str]:
    """The annotation with these pods counted: themselves, and their restarts in place."""
    counted = dict(tallies)
    for pod in pods:
        name = key_of(pod)[1]
        before = counted[name].count if name in counted else 0
        counted[name] = Tally(before + 1 + restarts_of(pod), uid_of(pod))
    text = msgspec.json.encode(dict(sorted(counted.items()))).decode()
    return {RESTARTS: text}


def total(tallies: Tallies, pods: Iterable[Manifest]) -> int:
    """All restarts of the job, those in place of the pods that are not counted yet included."""
    remembered = sum(tally.count for tally in tallies.values())
    return remembered + sum(restarts_of(pod) for pod in pods if not is_counted(tallies, pod))


def pause_left(tallies: Tallies, pod: Manifest, now: float) -> float:
    """Seconds until the replacement of a counted pod may come; a replica that ran long enough
    does not wait."""
    count = tallies[key_of(pod)[1]].count
    created = metadata_of(pod).get("creationTimestamp")
    if count < 2 or not created:
        return 0.0
    pause = min(_FIRST_PAUSE * 2.0 ** min(count - 2, 30), _LONGEST_PAUSE)
    return parse_time(created) + pause - now
