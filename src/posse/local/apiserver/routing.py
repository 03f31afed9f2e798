"""From a path to what it names."""

from __future__ import annotations

from posse.local.apiserver import statuses
from posse.local.apiserver.registry import Registry, Resource
from posse.objects.kinds import BINDING, NAMESPACE, REVIEWS, Kind


class Target:
    """A collection, an object in it (`name`), or a part of that object (`part`).

    `namespace` is None for the whole cluster, and for kinds without namespaces.
    """

    __slots__ = ("kind", "name", "namespace", "part", "resource")

    def __init__(
        self,
        resource: Resource,
        kind: Kind,
        namespace: str | None,
        name: str | None,
        part: str | None,
    ) -> None:
        self.resource = resource
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.part = part

    @property
    def key(self) -> tuple[str, str]:
        assert self.name is not None
        return (self.namespace or "", self.name)


class AnsweredTarget:
    """A collection that holds nothing and only takes POSTs: bindings, reviews."""

    __slots__ = ("kind", "namespace")

    def __init__(self, kind: Kind, namespace: str) -> None:
        self.kind = kind
        self.namespace = namespace


_ANSWERED = {(kind.group, kind.version, kind.plural): kind for kind in (BINDING, *REVIEWS)}


def resolve(registry: Registry, segments: list[str]) -> Target | AnsweredTarget:
    """What `/api/v1/...` or `/apis/<group>/<version>/...` means; 404 if nothing."""
    group, version, rest = _split(segments)
    namespace: str | None = None
    if len(rest) >= 3 and rest[0] == NAMESPACE.plural and not _is_part_of_namespace(rest):
        namespace, rest = rest[1], rest[2:]
    plural, name, part = (*rest, None, None)[:3] if len(rest) <= 3 else ("", None, None)
    answered = _ANSWERED.get((group, version, plural or ""))
    if answered is not None:
        if name is None and (namespace is not None) == answered.namespaced:
            return AnsweredTarget(answered, namespace or "")
        raise statuses.no_such_path()
    found = registry.find(group, version, plural) if plural else None
    if found is None:
        raise statuses.no_such_path()
    resource, kind = found
    if namespace is not None and not kind.namespaced:
        raise statuses.no_such_path()
    if namespace is None and kind.namespaced and name is not None:
        raise statuses.no_such_path()
    if part is not None and all(one.name != part for one in resource.parts(kind)):
        raise statuses.no_such_path()
    if name in (".", ".."):
        raise statuses.bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    return Target(resource, kind, namespace, name, part)


def _split(segments: list[str]) -> tuple[str, str, list[str]]:
    if len(segments) >= 3 and segments[0] == "api":
        return "", segments[1], segments[2:]
    if len(segments) >= 4 and segments[0] == "apis":
        return segments[1], segments[2], segments[3:]
    raise statuses.no_such_path()


def _is_part_of_namespace(rest: list[str]) -> bool:
    """`namespaces/x/status` is a part of the namespace, not a collection in it."""
    return len(rest) == 3 and rest[2] in ("status", "finalize")
