"""The version in which a job was written: all versions are stored alike, and defaults differ."""

from __future__ import annotations

from typing import Any

from posse.objects.jobs.policies import CLEAN_NONE, CLEAN_RUNNING
from posse.objects.keys import WRITTEN_AS
from posse.objects.kinds import TF_JOB
from posse.objects.ownership import Manifest, metadata_of

V1 = "v1"
V1BETA2 = "v1beta2"
V1BETA1 = "v1beta1"
_VERSIONS = {f"{TF_JOB.group}/{version}": version for version in (V1, V1BETA2, V1BETA1)}

_FLAT_SINCE_V1BETA1 = ("cleanPodPolicy", "ttlSecondsAfterFinished")
_FLAT_SINCE_V1BETA2 = ("activeDeadlineSeconds", "backoffLimit", "schedulingPolicy")


def written_version(job: Manifest) -> str:
    """What is noted on the job, else what its fields say, else who wrote it first."""
    noted = _noted(job)
    if noted is not None:
        return noted
    spec = _mapping(job.get("spec"))
    if _says(_mapping(spec.get("runPolicy"))):
        return V1
    if any(spec.get(field) is not None for field in _FLAT_SINCE_V1BETA2):
        return V1BETA2
    if any(spec.get(field) is not None for field in _FLAT_SINCE_V1BETA1):
        return V1BETA1
    return _first_written(job) or V1


def clean_pod_policy(version: str) -> str:
    return CLEAN_NONE if version == V1 else CLEAN_RUNNING


def _says(run_policy: Manifest) -> bool:
    """Whether anybody wrote it: of an empty one, the schema makes one that is not suspended."""
    return any(
        value is not None and (field, value) != ("suspend", False)
        for field, value in run_policy.items()
    )


def _noted(job: Manifest) -> str | None:
    return _VERSIONS.get(str(_mapping(metadata_of(job).get("annotations")).get(WRITTEN_AS)))


def _first_written(job: Manifest) -> str | None:
    """The version of the oldest write of anything but the status."""
    entries = metadata_of(job).get("managedFields")
    found = [
        (str(entry.get("time") or ""), index, _VERSIONS[entry["apiVersion"]])
        for index, entry in enumerate(entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        and not entry.get("subresource")
        and entry.get("apiVersion") in _VERSIONS
    ]
    return min(found)[2] if found else None


def _mapping(value: Any) -> Manifest:
    return value if isinstance(value, dict) else {}
