"""Roles and bindings: a name without a group is one of this API's own."""

from __future__ import annotations

from posse.objects.defaulting.filling import fill
from posse.objects.raw import Raw, mappings

_GROUP = "rbac.authorization.k8s.io"


def default_binding(binding: Raw) -> None:
    if isinstance(binding.get("roleRef"), dict):
        fill(binding["roleRef"], "apiGroup", _GROUP)
    for subject in mappings(binding, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            fill(subject, "apiGroup", _GROUP)
