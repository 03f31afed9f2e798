"""In what the objects of one kind of job differ from those of another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from posse.objects.errors import FieldError
from posse.objects.kinds import Kind
from posse.objects.ownership import Manifest

if TYPE_CHECKING:
    from posse.objects.jobs.replicas.spec import Job


class Port(msgspec.Struct, frozen=True):
    name: str
    number: int


class Role(msgspec.Struct, frozen=True):
    """`leads`: where there is such a replica, its end is the job's. At most one role may."""

    type: str
    leads: bool = False


@dataclass(frozen=True, slots=True)
class JobForm:
    """`works`: the role that speaks for a job in which nobody leads.

    `manager`: what `managedBy` says of a job that our controllers run. `version_of` and
    `clean_pod_policy`: the version in which an object was written, and the policy of a job of that
    version that names none. `problems`: what can be wrong with this kind alone.
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
    problems: Callable[[Job], Iterable[FieldError]]
    restart_policy: str = "Never"

    def role(self, written: str) -> Role | None:
        """The role of a key of the replica specs, in upper or lower case."""
        return next((role for role in self.roles if role.type.lower() == written.lower()), None)
