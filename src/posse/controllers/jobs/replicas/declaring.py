"""What makes the controller of one kind of job different from another's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from posse.objects.jobs.replicas.declaring import JobForm

if TYPE_CHECKING:
    from posse.controllers.jobs.replicas.observing import Situation
    from posse.objects.jobs.replicas.spec import Job, Replicas

Told = Callable[["Replicas", int], Mapping[str, str]]
"""The environment of one replica."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """`form`: how its objects are read.

    `environment`: what the main container of each replica is told, given the cluster's domain.
    `tolerates`: whether the job goes on without failed replicas of a role, as long as others of it
    are left.
    """

    form: JobForm
    environment: Callable[[Job, str], Told]
    succeeded: Callable[[Situation], bool]
    tolerates: Callable[[Job, Replicas], bool]
