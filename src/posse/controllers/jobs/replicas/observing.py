"""What there is of one job, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from posse.controllers.jobs.claiming import Claim
from posse.controllers.jobs.replicas.declaring import JobKind
from posse.controllers.jobs.settings import Settings
from posse.controllers.runtime import Manifest
from posse.objects.jobs.replicas.spec import Job, Replicas


class Observed(msgspec.Struct, frozen=True):
    """What the caches show about one job.

    `pods`, `services`: those that it owns, and those that bear the name of one of its replicas,
    whoever owns them. `pod_group`: what bears the job's name, whoever owns it.
    """

    job: Manifest
    now: float
    pods: Mapping[str, Manifest] = {}
    services: Mapping[str, Manifest] = {}
    pod_group: Manifest | None = None


class Situation(msgspec.Struct, frozen=True):
    """One sound job amid what was observed."""

    seen: Observed
    job: Job
    settings: Settings
    declared: JobKind

    @property
    def claim(self) -> Claim:
        return Claim(self.job.declared.kind, self.seen.job)

    def owns(self, obj: Manifest | None) -> bool:
        return self.claim.owns(obj)

    @property
    def own_pods(self) -> dict[str, Manifest]:
        """Every pod of this job, also beyond the number now asked for."""
        return {name: pod for name, pod in sorted(self.seen.pods.items()) if self.owns(pod)}

    @property
    def own_services(self) -> dict[str, Manifest]:
        return {name: one for name, one in sorted(self.seen.services.items()) if self.owns(one)}

    def pods_of(self, replicas: Replicas) -> Iterator[Manifest]:
        """The pods of a role that are asked for and there, by index."""
        for index in range(replicas.count):
            pod = self.seen.pods.get(self.job.member_name(replicas, index))
            if pod is not None and self.owns(pod):
                yield pod

    def pod_at(self, replicas: Replicas, index: int) -> Manifest | None:
        pod = self.seen.pods.get(self.job.member_name(replicas, index))
        return pod if self.owns(pod) else None

    @property
    def members(self) -> Iterator[tuple[Replicas, Manifest]]:
        """Every pod that is asked for and there, with its role."""
        for replicas in self.job.replicas:
            for pod in self.pods_of(replicas):
                yield replicas, pod
