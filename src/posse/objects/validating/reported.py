"""What may be written to the status of an object: counts that can be, and that agree."""

from __future__ import annotations

from posse.objects import names
from posse.objects.raw import Raw, mapping, mappings, number, text
from posse.objects.validating.cluster import check_node_resources
from posse.objects.validating.report import IMMUTABLE, Report

_REPLICAS = (
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
    "unavailableReplicas", "terminatingReplicas", "fullyLabeledReplicas",
)  # fmt: skip
_FINISHED = (("Complete", "SuccessCriteriaMet", "true"), ("Failed", "FailureTarget", "true"))


def check_pod_status(report: Report, new: Raw, old: Raw) -> None:
    after, before = mapping(new, "status"), mapping(old, "status")
    quality = text(after, "qosClass")
    if quality and text(before, "qosClass") not in ("", quality):
        report.invalid("status.qosClass", quality, IMMUTABLE)
    if node := text(after, "nominatedNodeName"):
        report.invalid("status.nominatedNodeName", node, *names.dns_subdomain_problems(node))


def check_job_status(report: Report, new: Raw, old: Raw) -> None:
    status = mapping(new, "status")
    for field in ("active", "succeeded", "failed", "ready", "terminating"):
        report.not_negative(f"status.{field}", number(status, field))
    true = [text(one, "type") for one in mappings(status, "conditions") if _holds(one)]
    for end, needed, value in _FINISHED:
        if end in true and needed not in true:
            detail = f"cannot set {end}=True condition without the {needed}={value} condition"
            report.refused("status.conditions", detail)
    active = number(status, "active") or 0
    if active > 0 and ("Complete" in true or "Failed" in true):
        report.invalid("status.active", active, "active>0 is invalid for finished job")


def check_replicas(report: Report, new: Raw, old: Raw) -> None:
    """Of a Deployment or ReplicaSet: no more can be ready than exist, or available than ready."""
    status = mapping(new, "status")
    for field in _REPLICAS:
        report.not_negative(f"status.{field}", number(status, field))
    total, ready = number(status, "replicas") or 0, number(status, "readyReplicas") or 0
    for field in ("updatedReplicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"):
        count = number(status, field) or 0
        if count > total:
            report.invalid(f"status.{field}", count, "cannot be greater than status.replicas")
    available = number(status, "availableReplicas") or 0
    if available > ready:
        report.invalid(
            "status.availableReplicas", available, "cannot be greater than readyReplicas"
        )


def check_node_status(report: Report, new: Raw, old: Raw) -> None:
    check_node_resources(report, new)


def _holds(condition: Raw) -> bool:
    return condition.get("status") == "True"
