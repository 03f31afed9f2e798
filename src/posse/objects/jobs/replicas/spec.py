"""A job as it is read: every default chosen, every name derived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from posse.objects.jobs.parts import Part
from posse.objects.jobs.replicas.declaring import JobForm
from posse.objects.keys import ROLE_SEQUENCE
from posse.objects.meta import KubeStruct, from_raw
from posse.objects.ownership import Manifest, metadata_of, owner_reference
from posse.objects.trainingjobs import ReplicaSpec, RunPolicy, SchedulingPolicy

# Beyond any cluster that could run them; it keeps a slip of the pen from filling the memory.
MOST_REPLICAS = 100_000


class Replicas(msgspec.Struct, frozen=True):
    """The replicas of one role."""

    type: str
    count: int
    restart_policy: str
    template: Manifest

    @property
    def role(self) -> str:
        return self.type.lower()


class Job(msgspec.Struct, frozen=True):
    """One job with its defaults; `raw` is the object itself, for ownership and status.

    `strays`: keys of the replica specs that name no role, or one that another key names, too.
    """

    declared: JobForm
    raw: Manifest
    version: str
    run: RunPolicy
    clean_pod_policy: str
    replicas: tuple[Replicas, ...]
    strays: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(metadata_of(self.raw)["name"])

    @property
    def namespace(self) -> str:
        return str(metadata_of(self.raw)["namespace"])

    @property
    def annotations(self) -> Manifest:
        found = metadata_of(self.raw).get("annotations")
        return found if isinstance(found, dict) else {}

    @property
    def spec(self) -> Manifest:
        return dict(self.raw.get("spec") or {})

    @property
    def suspended(self) -> bool:
        return self.run.suspend is True

    @property
    def scheduling(self) -> SchedulingPolicy:
        return self.run.scheduling_policy or SchedulingPolicy()

    @property
    def total(self) -> int:
        return sum(replicas.count for replicas in self.replicas)

    def of_type(self, type_: str) -> Replicas | None:
        return next((one for one in self.replicas if one.type == type_), None)

    @property
    def leader(self) -> Replicas | None:
        leading = [role.type for role in self.declared.roles if role.leads]
        return next((one for one in self.replicas if one.count and one.type in leading), None)

    @property
    def speakers(self) -> tuple[Replicas, ...]:
        """Those whose running is the job's: the leader, else the workers, else everyone."""
        if self.leader is not None:
            return (self.leader,)
        workers = self.of_type(self.declared.works)
        return (workers,) if workers is not None and workers.count else self.replicas

    def is_chief(self, replicas: Replicas, index: int) -> bool:
        """Whether this replica speaks for the job, to people and tools."""
        if self.leader is not None:
            return replicas.type == self.leader.type
        return replicas.type == self.declared.works and index == 0

    def member_name(self, replicas: Replicas, index: int) -> str:
        return f"{self.name}-{replicas.role}-{index}"

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(one.role, one.count, one.template) for one in self.replicas)

    def owned_metadata(self, name: str, labels: dict[str, str]) -> Manifest:
        """The metadata of an object that lives and dies with this job."""
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(self.declared.kind, self.raw)],
        }


class _Policies(KubeStruct):
    """Older versions had the fields of the run policy beside the replicas."""

    run_policy: RunPolicy | None = None
    clean_pod_policy: str | None = None
    ttl_seconds_after_finished: int | None = None
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    scheduling_policy: SchedulingPolicy | None = None


def read(declared: JobForm, raw: Manifest) -> Job:
    """The job with defaults; msgspec.ValidationError when a field is of the wrong type."""
    spec = raw.get("spec") or {}
    policies = from_raw(spec, _Policies)
    run = _run_policy(policies)
    version = declared.version_of(raw)
    written = from_raw(spec.get(declared.specs) or {}, dict[str, ReplicaSpec])
    found: dict[str, Replicas] = {}
    strays: list[str] = []
    for key, replica_spec in written.items():
        role = declared.role(key)
        if role is None or role.type in found:
            strays.append(key)
        else:
            found[role.type] = _replicas(declared, role.type, replica_spec)
    return Job(
        declared=declared,
        raw=raw,
        version=version,
        run=run,
        clean_pod_policy=run.clean_pod_policy or declared.clean_pod_policy(version),
        replicas=tuple(found[type_] for type_ in _sequence(declared, raw) if type_ in found),
        strays=tuple(strays),
    )


def member_names(declared: JobForm, raw: Manifest) -> list[str]:
    """The names of the pods asked for; none where the spec cannot be read."""
    try:
        job = read(declared, raw)
    except msgspec.ValidationError:
        return []
    return [
        job.member_name(replicas, index)
        for replicas in job.replicas
        for index in range(min(replicas.count, MOST_REPLICAS))
    ]


def managed_elsewhere(declared: JobForm, raw: Manifest) -> bool:
    """Whether `managedBy` hands the job to another controller."""
    spec: Any = raw.get("spec")
    policy: Any = spec.get("runPolicy") if isinstance(spec, dict) else None
    manager = policy.get("managedBy") if isinstance(policy, dict) else None
    return bool(manager) and manager != declared.manager


def _run_policy(policies: _Policies) -> RunPolicy:
    run = policies.run_policy or RunPolicy()
    return RunPolicy(
        clean_pod_policy=_first(run.clean_pod_policy, policies.clean_pod_policy),
        ttl_seconds_after_finished=_first(
            run.ttl_seconds_after_finished, policies.ttl_seconds_after_finished
        ),
        active_deadline_seconds=_first(
            run.active_deadline_seconds, policies.active_deadline_seconds
        ),
        backoff_limit=_first(run.backoff_limit, policies.backoff_limit),
        suspend=run.suspend,
        managed_by=run.managed_by,
        scheduling_policy=_first(run.scheduling_policy, policies.scheduling_policy),
    )


def _first(one: Any, other: Any) -> Any:
    return other if one is None else one


def _replicas(declared: JobForm, type_: str, spec: ReplicaSpec) -> Replicas:
    """A restart policy in the template is the user's word where the replicas have none."""
    pod_spec = spec.template.get("spec")
    pods_own = pod_spec.get("restartPolicy") if isinstance(pod_spec, dict) else None
    return Replicas(
        type=type_,
        count=1 if spec.replicas is None else spec.replicas,
        restart_policy=spec.restart_policy or str(pods_own or declared.restart_policy),
        template=spec.template,
    )


def _sequence(declared: JobForm, raw: Manifest) -> Sequence[str]:
    """The roles in the order in which their pods are made: as declared, or as the job says."""
    annotations = metadata_of(raw).get("annotations")
    wish = annotations.get(ROLE_SEQUENCE) if isinstance(annotations, dict) else None
    named = [declared.role(word.strip()) for word in str(wish or "").split(",")]
    first = [role.type for role in named if role is not None]
    return list(dict.fromkeys([*first, *(role.type for role in declared.roles)]))
