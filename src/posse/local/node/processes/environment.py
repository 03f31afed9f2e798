"""A container's variables: a clean slate, then what the pod says, in the order in which it says it.

Nothing of the agent's own environment is passed on but its PATH.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from posse.local.node.processes.expansion import expand
from posse.local.node.processes.fields import Facts, field_value, resource_value
from posse.local.node.processes.sources import Entries, Sources
from posse.local.node.runtime import NotYet
from posse.objects import raw

Manifest = dict[str, Any]

CONFIG_ERROR = "CreateContainerConfigError"
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


async def variables(
    pod: Manifest, container: Manifest, base: Mapping[str, str], sources: Sources, facts: Facts
) -> dict[str, str]:
    """Raises NotYet where something that the pod names is not there."""
    result = dict(base)
    reader = _Reader(pod["metadata"]["namespace"], sources)
    for entry in raw.mappings(container, "envFrom"):
        prefix = raw.text(entry, "prefix")
        for key, content in sorted((await reader.everything(entry)).items()):
            if _NAME.fullmatch(prefix + key):
                result[prefix + key] = _text(content)
    for entry in raw.mappings(container, "env"):
        name = raw.text(entry, "name")
        if not name or "=" in name or "\0" in name:
            continue
        origin = raw.mapping(entry, "valueFrom")
        if not origin:
            result[name] = expand(raw.text(entry, "value"), result)
            continue
        value = await _from(pod, container, origin, reader, facts)
        if value is not None:
            result[name] = value
    return {name: value for name, value in result.items() if "\0" not in value}


async def _from(
    pod: Manifest, container: Manifest, origin: Manifest, reader: _Reader, facts: Facts
) -> str | None:
    try:
        if reference := raw.mapping(origin, "fieldRef"):
            return field_value(pod, raw.text(reference, "fieldPath"), facts)
        if reference := raw.mapping(origin, "resourceFieldRef"):
            return resource_value(pod, reference, raw.text(container, "name"), facts)
    except ValueError as error:
        raise NotYet(CONFIG_ERROR, str(error), again_in=60.0) from error
    for field, kind in (("configMapKeyRef", "configmap"), ("secretKeyRef", "secret")):
        if reference := raw.mapping(origin, field):
            return await reader.one(kind, reference)
    return None


class _Reader:
    def __init__(self, namespace: str, sources: Sources) -> None:
        self._namespace = namespace
        self._sources = sources
        self._known: dict[tuple[str, str], Entries | None] = {}

    async def everything(self, entry: Manifest) -> Entries:
        for field, kind in (("configMapRef", "configmap"), ("secretRef", "secret")):
            if reference := raw.mapping(entry, field):
                found = await self._entries(kind, raw.text(reference, "name"))
                if found is None and reference.get("optional") is not True:
                    raise _missing(kind, raw.text(reference, "name"))
                return found or {}
        return {}

    async def one(self, kind: str, reference: Manifest) -> str | None:
        name, key = raw.text(reference, "name"), raw.text(reference, "key")
        optional = reference.get("optional") is True
        found = await self._entries(kind, name)
        if found is None:
            if optional:
                return None
            raise _missing(kind, name)
        if key not in found:
            if optional:
                return None
            whole = {"configmap": "ConfigMap", "secret": "Secret"}[kind]
            said = f"couldn't find key {key} in {whole} {self._namespace}/{name}"
            raise NotYet(CONFIG_ERROR, said)
        return _text(found[key])

    async def _entries(self, kind: str, name: str) -> Entries | None:
        if (kind, name) not in self._known:
            read = self._sources.config_map if kind == "configmap" else self._sources.secret
            self._known[kind, name] = await read(self._namespace, name) if name else None
        return self._known[kind, name]


def _missing(kind: str, name: str) -> NotYet:
    return NotYet(CONFIG_ERROR, f'{kind} "{name}" not found')


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")
