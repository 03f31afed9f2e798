"""What a pod's volumes hold, made once, before the first of its containers starts.

Each volume is a directory of the pod, filled beside its place and then moved there, so that what
is there is whole. Later changes of a ConfigMap or Secret are not followed.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from posse.local.node.processes.confinement import Escape, write_new
from posse.local.node.processes.fields import Facts, field_value, resource_value
from posse.local.node.processes.layout import PodPlace
from posse.local.node.processes.sources import Entries, Sources
from posse.local.node.runtime import NotYet
from posse.objects import raw

Manifest = dict[str, Any]

CREATING = "ContainerCreating"
UNSUPPORTED = "VolumeNotSupported"
DEFAULT_MODE = 0o644
_RARELY = 30.0  # a pod's spec does not change: whoever waits for that need not look often


class Volume(msgspec.Struct, frozen=True):
    name: str
    base: Path
    read_only: bool = False
    rewritable: bool = False  # its files are texts of the cluster's own, such as a hostfile


class _File(msgspec.Struct, frozen=True):
    path: str
    content: bytes
    mode: int


class Volumes:
    """`allowed` are the directories of the host that pods may mount; of `home`, only the one that
    is there for pods to share is."""

    def __init__(self, sources: Sources, allowed: Sequence[Path], home: Path) -> None:
        self._sources = sources
        self._allowed = tuple(path.resolve() for path in allowed)
        self._home = home.resolve()
        self._shared = shared_directory(self._home)

    async def prepare(self, pod: Manifest, place: PodPlace, facts: Facts) -> dict[str, Volume]:
        """Every volume of the pod by name. Raises NotYet where one cannot be had now."""
        made = {}
        for spec in raw.mappings(pod, "spec", "volumes"):
            name = raw.text(spec, "name")
            try:
                made[name] = await self._one(pod, spec, name, place, facts)
            except Escape as error:
                raise NotYet(CREATING, f'volume "{name}": {error}', _RARELY) from error
            except ValueError as error:
                raise NotYet(CREATING, f'volume "{name}": {error}', _RARELY) from error
        return made

    async def _one(
        self, pod: Manifest, spec: Manifest, name: str, place: PodPlace, facts: Facts
    ) -> Volume:
        if "hostPath" in spec:
            return Volume(name, self._host_path(name, raw.mapping(spec, "hostPath")))
        path = place.volume(name)
        if "emptyDir" in spec or set(spec) <= {"name"}:
            if not path.exists():
                path.mkdir(mode=0o700)
                path.chmod(0o777)
            return Volume(name, path)
        reading = _Reading(pod, self._sources, facts)
        kind = next(
            (k for k in ("configMap", "secret", "projected", "downwardAPI") if k in spec), ""
        )
        if not kind:
            other = next(iter(sorted(set(spec) - {"name"})))
            raise NotYet(
                UNSUPPORTED,
                f'volume "{name}" is of type {other}, which this node cannot provide; '
                "use emptyDir, configMap, secret, projected, downwardAPI or an allowed hostPath",
                _RARELY,
            )
        if not path.exists():
            _fill(path, await reading.files(name, kind, raw.mapping(spec, kind)))
        return Volume(name, path, read_only=True, rewritable=kind == "configMap")

    def _host_path(self, name: str, spec: Manifest) -> Path:
        asked, kind = Path(raw.text(spec, "path")), raw.text(spec, "type")
        if not asked.is_absolute():
            raise ValueError(f'hostPath "{asked}" is not absolute')
        real = asked.resolve()
        home = real == self._home or self._home in real.parents or real in self._home.parents
        granted = not home and any(real == top or top in real.parents for top in self._allowed)
        if not granted and self._shared not in real.parents:
            raise NotYet(
                "HostPathNotAllowed",
                f'volume "{name}": {asked} is not below a directory that pods may mount; '
                "allow one with `posse up --allow-host-path DIR`",
                _RARELY,
            )
        if kind == "DirectoryOrCreate":
            real.mkdir(mode=0o755, parents=True, exist_ok=True)
        elif kind == "FileOrCreate" and real.parent.is_dir():
            real.touch(mode=0o644)
        wanted = {"Directory": real.is_dir, "DirectoryOrCreate": real.is_dir}
        if kind in ("File", "FileOrCreate"):
            wanted[kind] = real.is_file
        if not wanted.get(kind, real.exists)():
            said = f"hostPath type check failed: {asked} is not a {kind or 'path that exists'}"
            raise NotYet(CREATING, f'volume "{name}": {said}')
        return real


def shared_directory(home: Path) -> Path:
    """Below it, the pods of a job can have directories in common."""
    return home / "shared"


class _Reading:
    """The files that the objects named by a volume make."""

    def __init__(self, pod: Manifest, sources: Sources, facts: Facts) -> None:
        self._pod = pod
        self._sources = sources
        self._facts = facts

    async def files(self, name: str, kind: str, spec: Manifest) -> list[_File]:
        mode = raw.number(spec, "defaultMode")
        default = DEFAULT_MODE if mode is None else mode
        if kind != "projected":
            return await self._source(name, kind, spec, default)
        found: list[_File] = []
        for entry in raw.mappings(spec, "sources"):
            for inner in ("configMap", "secret", "downwardAPI"):
                if inner in entry:
                    source = raw.mapping(entry, inner)
                    found += await self._source(name, inner, source, default)
            for other in ("serviceAccountToken", "clusterTrustBundle", "podCertificate"):
                if other in entry:
                    said = f'volume "{name}": this node issues no {other}; leave that source out'
                    raise NotYet(UNSUPPORTED, said, _RARELY)
        return found

    async def _source(self, name: str, kind: str, spec: Manifest, default: int) -> list[_File]:
        if kind == "downwardAPI":
            return [self._told(item, default) for item in raw.mappings(spec, "items")]
        whose = raw.text(spec, "secretName") or raw.text(spec, "name")
        namespace = self._pod["metadata"]["namespace"]
        read = self._sources.secret if kind == "secret" else self._sources.config_map
        entries = await read(namespace, whose) if whose else None
        optional = spec.get("optional") is True
        if entries is None:
            if optional:
                return []
            what = f'{kind.lower()} "{whose}" not found'
            raise NotYet(CREATING, f'MountVolume.SetUp failed for volume "{name}" : {what}')
        return _chosen(name, whose, entries, raw.mappings(spec, "items"), default, optional)

    def _told(self, item: Manifest, default: int) -> _File:
        if reference := raw.mapping(item, "fieldRef"):
            value = field_value(self._pod, raw.text(reference, "fieldPath"), self._facts)
        else:
            reference = raw.mapping(item, "resourceFieldRef")
            value = resource_value(self._pod, reference, "", self._facts)
        return _File(raw.text(item, "path"), value.encode(), _mode(item, default))


def _chosen(
    volume: str, whose: str, entries: Entries, items: list[Manifest], default: int, optional: bool
) -> list[_File]:
    if not items:
        return [_File(key, entries[key], default) for key in sorted(entries)]
    chosen = []
    for item in items:
        key = raw.text(item, "key")
        if key in entries:
            chosen.append(_File(raw.text(item, "path"), entries[key], _mode(item, default)))
        elif not optional:
            what = f"references non-existent config key: {key}"
            said = f'MountVolume.SetUp failed for volume "{volume}" : "{whose}" {what}'
            raise NotYet(CREATING, said)
    return chosen


def _mode(item: Manifest, default: int) -> int:
    mode = raw.number(item, "mode")
    return default if mode is None else mode


def _fill(path: Path, contents: Sequence[_File]) -> None:
    new = path.with_name(f".{path.name}.new")
    if new.exists():
        shutil.rmtree(new)
    new.mkdir(mode=0o700)
    for file in contents:
        write_new(new, file.path, file.content, file.mode)
    new.chmod(0o755)
    new.replace(path)
