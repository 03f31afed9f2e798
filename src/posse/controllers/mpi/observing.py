"""What there is of one MPIJob, and whose it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from posse.controllers.jobs.claiming import Claim
from posse.controllers.jobs.pods import is_running
from posse.controllers.jobs.settings import Settings
from posse.controllers.runtime import Manifest
from posse.objects.jobs.mpi.spec import Job
from posse.objects.kinds import MPI_JOB


class Observed(msgspec.Struct, frozen=True):
    """What the caches show about one job.

    `pods`: those that it owns, and those that bear the name of one of its workers, whoever owns
    them. `launcher`, `pod_group`: what bears the name, whoever owns it.
    """

    job: Manifest
    now: float
    pods: Mapping[str, Manifest] = {}
    launcher: Manifest | None = None
    launcher_pods: Sequence[Manifest] = ()
    pod_group: Manifest | None = None


class Situation(msgspec.Struct, frozen=True):
    """One sound job amid what was observed."""

    seen: Observed
    job: Job
    settings: Settings

    @property
    def claim(self) -> Claim:
        return Claim(MPI_JOB, self.seen.job)

    def owns(self, obj: Manifest | None) -> bool:
        return self.claim.owns(obj)

    @property
    def own_pods(self) -> list[Manifest]:
        """Every worker pod of this job, also beyond the number now asked for."""
        return [pod for _, pod in sorted(self.seen.pods.items()) if self.owns(pod)]

    @property
    def workers(self) -> list[Manifest]:
        """The worker pods that are asked for and there, by index."""
        names = (self.job.worker_name(index) for index in range(self.job.workers))
        found = (self.seen.pods.get(name) for name in names)
        return [pod for pod in found if pod is not None and self.owns(pod)]

    @property
    def running_workers(self) -> list[str]:
        return [str(pod["metadata"]["name"]) for pod in self.workers if is_running(pod)]

    @property
    def launcher(self) -> Manifest | None:
        return self.seen.launcher if self.owns(self.seen.launcher) else None
