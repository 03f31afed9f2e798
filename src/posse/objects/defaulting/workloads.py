"""Jobs, Deployments and ReplicaSets."""

from __future__ import annotations

from posse.objects.defaulting.filling import fill, part
from posse.objects.defaulting.pods import default_template
from posse.objects.raw import Raw, mapping, mappings

_LARGEST_COUNT = 2**31 - 1


def default_job(job: Raw) -> None:
    spec = part(job, "spec")
    template = part(spec, "template")
    default_template(template)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    fill(spec, "parallelism", 1)
    by_index = spec.get("backoffLimitPerIndex") is not None
    fill(spec, "backoffLimit", _LARGEST_COUNT if by_index else 6)
    fill(spec, "completionMode", "NonIndexed")
    fill(spec, "suspend", False)
    fill(spec, "manualSelector", False)
    only_failed = spec.get("podFailurePolicy") is not None
    fill(spec, "podReplacementPolicy", "Failed" if only_failed else "TerminatingOrFailed")
    for rule in mappings(spec, "podFailurePolicy", "rules"):
        for pattern in mappings(rule, "onPodConditions"):
            fill(pattern, "status", "True")
    labels = mapping(template, "metadata", "labels")
    if labels and not mapping(job, "metadata", "labels"):
        part(job, "metadata")["labels"] = dict(labels)
    part(job, "status")


def job_selector(job: Raw, uid: str) -> None:
    """Give a new Job the selector and the template labels that are its own alone.

    A Job that says `manualSelector: true` brings its own. Where the Job took its labels from its
    template, the server goes on treating them as one, and so they are here.
    """
    spec = part(job, "spec")
    if spec.get("manualSelector") is True:
        return
    name = str(mapping(job, "metadata").get("name", ""))
    labels = part(part(part(spec, "template"), "metadata"), "labels")
    of_job = mapping(job, "metadata", "labels")
    shared = bool(of_job) and of_job == labels
    own = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    for key, value in own.items():
        labels.setdefault(key, value)
    if shared:
        of_job.update(labels)
    match = part(part(spec, "selector"), "matchLabels")
    match.setdefault("batch.kubernetes.io/controller-uid", uid)


def default_deployment(deployment: Raw) -> None:
    spec = part(deployment, "spec")
    default_template(part(spec, "template"))
    fill(spec, "replicas", 1)
    strategy = part(spec, "strategy")
    fill(strategy, "type", "RollingUpdate")
    if strategy.get("type") == "RollingUpdate":
        rolling = part(strategy, "rollingUpdate")
        fill(rolling, "maxUnavailable", "25%")
        fill(rolling, "maxSurge", "25%")
    fill(spec, "revisionHistoryLimit", 10)
    fill(spec, "progressDeadlineSeconds", 600)
    part(deployment, "status")


def default_replica_set(replica_set: Raw) -> None:
    spec = part(replica_set, "spec")
    default_template(part(spec, "template"))
    fill(spec, "replicas", 1)
    fill(part(replica_set, "status"), "replicas", 0)
