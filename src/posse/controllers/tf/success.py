"""When a TFJob has succeeded, and which failures it outlives."""

from __future__ import annotations

from posse.controllers.jobs.pods import exit_code_of, is_ending, phase_of
from posse.controllers.jobs.replicas.observing import Situation
from posse.controllers.runtime import Manifest
from posse.controllers.tf.cluster import is_dynamic
from posse.objects.jobs.replicas.spec import Job, Replicas
from posse.objects.jobs.tf.form import ALL_WORKERS, WORKER, success_policy


def succeeded(situation: Situation) -> bool:
    """The chief's or master's success is the job's; else the first worker's, or all workers'."""
    job = situation.job
    workers = job.of_type(WORKER)
    if job.leader is None and workers is not None and workers.count:
        first = situation.pod_at(workers, 0)
        if success_policy(job) != ALL_WORKERS and first is not None and _is_done(job, first):
            return True
    return all(_have_succeeded(situation, speakers) for speakers in job.speakers) and job.total > 0


def tolerates(job: Job, replicas: Replicas) -> bool:
    """Workers that may come and go may also fail."""
    return replicas.type == WORKER and is_dynamic(job)


def _have_succeeded(situation: Situation, replicas: Replicas) -> bool:
    pods = situation.pods_of(replicas)
    done = sum(phase_of(pod) == "Succeeded" and not is_ending(pod) for pod in pods)
    return done >= replicas.count


def _is_done(job: Job, pod: Manifest) -> bool:
    """A pod of several containers has succeeded with all of them; ours is the one that counts."""
    code = exit_code_of(pod, job.declared.container)
    return phase_of(pod) == "Succeeded" and not is_ending(pod) and code in (0, None)
