"""What makes one kind of job different from another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from posse.controllers.runtime import Manifest
from posse.objects.errors import FieldError
from posse.objects.kinds import Kind

if TYPE_CHECKING:
    from posse.controllers.jobs.replicas.observing import Situation
    from posse.controllers.jobs.replicas.spec import Job, Replicas

Told = Callable[["Replicas", int], Mapping[str, str]]
"""The environment of one replica."""


class Port(msgspec.Struct, frozen=True):
    name: str
    number: int


class Role(msgspec.Struct, frozen=True):
    """`leads`: where there is such a replica, its end is the job's. At most one role may."""

    type: str
    leads: bool = False


@dataclass(frozen=True, slots=True)
class JobKind:
    """`works`: the role that speaks for a job in which nobody leads.

    `version_of` and `clean_pod_policy`: the version in which an object was written, and the policy
    of a job of that version that names none. `environment`: what the main container of each replica
    is told, given the cluster's domain. `tolerates`: whether the job goes on without failed
    replicas of a role, as long as others of it are left.
    """

    kind: Kind
    operator: str
    manager: str
    specs: str
    container: str
    port: Port
    roles: tuple[Role, ...]
    works: str
    version_of: Callable[[Manifest], str]
    clean_pod_policy: Callable[[str], str]
    environment: Callable[[Job, str], Told]
    succeeded: Callable[[Situation], bool]
    tolerates: Callable[[Job, Replicas], bool]
    problems: Callable[[Job], Iterable[FieldError]]
    restart_policy: str = "Never"

    def role(self, written: str) -> Role | None:
        """The role of a key of the replica specs, in upper or lower case."""
        return next((role for role in self.roles if role.type.lower() == written.lower()), None)
