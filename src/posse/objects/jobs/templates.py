"""The shape of a pod template, as far as controllers add to it or read it.

Templates are stored as they were written: nothing says that a label is text or that `env` is a list
until the API server sees the pod. Checking it here turns a crash later on into a reason now.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from posse.objects.errors import INVALID, FieldError
from posse.objects.jobs.wrongs import required
from posse.objects.meta import KubeStruct, from_raw
from posse.objects.ownership import Manifest
from posse.objects.pods import PodSpec
from posse.objects.quantity import QuantityError
from posse.objects.requests import pod_requests


class _Metadata(KubeStruct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Container(KubeStruct):
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[dict[str, Any]] | None = None
    volume_mounts: list[dict[str, Any]] | None = None


class _Resolver(KubeStruct):
    searches: list[str] | None = None


class _Spec(KubeStruct):
    containers: list[_Container]
    volumes: list[dict[str, Any]] | None = None
    dns_config: _Resolver | None = None
    host_network: bool | None = None
    scheduler_name: str | None = None
    priority_class_name: str | None = None


class _Template(KubeStruct):
    spec: _Spec
    metadata: _Metadata | None = None


def template_problems(template: Manifest, path: str) -> Iterable[FieldError]:
    """Whether a pod can be made of it, as far as controllers add to it or read it."""
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not containers:
        yield required(f"{path}.spec.containers", "must define at least one container")
        return
    try:
        _check(template)
        requests_of(template)
    except QuantityError as error:
        yield FieldError(f"{path}.{error.field}", INVALID, f"Invalid value: {error}")
    except msgspec.ValidationError as error:
        yield FieldError(path, INVALID, f"Invalid value: {error}")


def requests_of(template: Manifest) -> dict[str, int]:
    """What one pod of the template asks for, in base units.

    msgspec.ValidationError or QuantityError when the template says nonsense.
    """
    return pod_requests(from_raw(template.get("spec") or {}, PodSpec))


def _check(template: Manifest) -> None:
    """msgspec.ValidationError says which part is not what it should be."""
    from_raw(template, _Template)
    from_raw(template["spec"], PodSpec)
