"""The shape of a pod template, as far as controllers add to it or read it.

Templates are stored as they were written: nothing says that a label is text or that `env` is a list
until the API server sees the pod. Checking it here turns a crash later on into a reason now.
"""

from __future__ import annotations

from typing import Any

from posse.controllers.runtime import Manifest
from posse.objects.meta import KubeStruct, from_raw
from posse.objects.pods import PodSpec


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


def check_template(template: Manifest) -> None:
    """msgspec.ValidationError says which part is not what it should be."""
    from_raw(template, _Template)
    from_raw(template["spec"], PodSpec)
