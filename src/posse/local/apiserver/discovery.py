"""What the server says it serves: groups, versions, resources and verbs.

Clients plan by these documents alone, so each is derived from the same list of served kinds; a
resource cannot appear in one and be missing in another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from posse.objects.kinds import Kind

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {"alpha": 1, "beta": 2, None: 3}

# In kube-apiserver's order.
_FIRST = (
    "", "apps", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "policy",
    "rbac.authorization.k8s.io", "storage.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
    "coordination.k8s.io", "discovery.k8s.io",
)  # fmt: skip

KUBERNETES_MAJOR = "1"
KUBERNETES_MINOR = "36"


class Subresource(msgspec.Struct, frozen=True):
    """A part of an object with a path of its own; `kind` is what is read and written there."""

    name: str
    kind: Kind
    verbs: tuple[str, ...]


class Served(msgspec.Struct, frozen=True):
    """One kind the server answers for, in one version."""

    kind: Kind
    verbs: tuple[str, ...]
    subresources: tuple[Subresource, ...] = ()


def version_precedence(version: str) -> tuple[int, int, int, str]:
    """Sorts Kubernetes versions best first: v2, v1, v2beta1, v1alpha1, then the rest by name."""
    if (match := _VERSION.fullmatch(version)) is None:
        return (0, 0, 0, version)
    return (-_STABILITY[match[2]], -int(match[1]), -int(match[3] or 0), "")


def version_info() -> dict[str, str]:
    version = f"v{KUBERNETES_MAJOR}.{KUBERNETES_MINOR}.0"
    return {
        "major": KUBERNETES_MAJOR,
        "minor": KUBERNETES_MINOR,
        "gitVersion": f"{version}+posse",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def api_versions() -> dict[str, Any]:
    """What GET /api answers: the versions of the core group."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }


def api_group_list(served: Iterable[Served]) -> dict[str, Any]:
    """What GET /apis answers: every named group."""
    groups = _versions_by_group(served)
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in groups.items() if name],
    }


def api_group(served: Iterable[Served], group: str) -> dict[str, Any] | None:
    """What GET /apis/<group> answers; None where the group is not served."""
    versions = _versions_by_group(served).get(group) if group else None
    if versions is None:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}


def api_resource_list(served: Iterable[Served], group: str, version: str) -> dict[str, Any] | None:
    """What GET /api/v1 and GET /apis/<group>/<version> answer; None where it is not served."""
    of_version = [s for s in served if (s.kind.group, s.kind.version) == (group, version)]
    if not of_version:
        return None
    resources = [entry for one in sorted(of_version, key=_plural) for entry in _resources(one)]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": of_version[0].kind.api_version,
        "resources": resources,
    }


def aggregated(served: Iterable[Served], core: bool) -> dict[str, Any]:
    """apidiscovery.k8s.io/v2: /api (`core`) or /apis in one document."""
    of_root = [s for s in served if (not s.kind.group) == core]
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [_aggregated_version(of_root, group, version) for version in versions],
        }
        for group, versions in _versions_by_group(of_root).items()
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _plural(one: Served) -> str:
    return one.kind.plural


def _versions_by_group(served: Iterable[Served]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for one in served:
        versions = groups.setdefault(one.kind.group, [])
        if one.kind.version not in versions:
            versions.append(one.kind.version)
    ordered = {name: sorted(groups[name], key=version_precedence) for name in groups}
    return {name: ordered[name] for name in sorted(ordered, key=lambda n: _place(n, ordered[n]))}


def _place(group: str, versions: Sequence[str]) -> tuple[int, tuple[int, int, int, str], str]:
    """Where a group stands in the list: a name that several groups have means the first of them.

    The built-in ones come first, then those with the most stable version.
    """
    if group in _FIRST:
        return (_FIRST.index(group), version_precedence("v1"), group)
    return (len(_FIRST), version_precedence(versions[0]), group)


def _group(name: str, versions: Sequence[str]) -> dict[str, Any]:
    described = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": described, "preferredVersion": described[0]}


def _resources(one: Served) -> list[dict[str, Any]]:
    kind = one.kind
    whole: dict[str, Any] = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(one.verbs),
    }
    if kind.short_names:
        whole["shortNames"] = list(kind.short_names)
    if kind.categories:
        whole["categories"] = list(kind.categories)
    parts = []
    for part in sorted(one.subresources, key=lambda part: part.name):
        entry: dict[str, Any] = {
            "name": f"{kind.plural}/{part.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": part.kind.kind,
            "verbs": list(part.verbs),
        }
        if (part.kind.group, part.kind.version) != (kind.group, kind.version):
            entry |= {"group": part.kind.group, "version": part.kind.version}
        parts.append(entry)
    return [whole, *parts]


def _aggregated_version(served: Sequence[Served], group: str, version: str) -> dict[str, Any]:
    of_version = [s for s in served if (s.kind.group, s.kind.version) == (group, version)]
    return {
        "version": version,
        "freshness": "Current",
        "resources": [_aggregated_resource(one) for one in sorted(of_version, key=_plural)],
    }


def _aggregated_resource(one: Served) -> dict[str, Any]:
    kind = one.kind
    resource: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": _group_version_kind(kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(one.verbs),
    }
    if kind.short_names:
        resource["shortNames"] = list(kind.short_names)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    if one.subresources:
        resource["subresources"] = [
            {
                "subresource": part.name,
                "responseKind": _group_version_kind(part.kind),
                "verbs": list(part.verbs),
            }
            for part in sorted(one.subresources, key=lambda part: part.name)
        ]
    return resource


def _group_version_kind(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}
