"""A bundle: what somebody who helps from afar needs to see of a cluster, in one file.

It is made of allow-lists (`redacting`), and no Secret is ever asked for. What could not be had is
named in it: a cluster that is in trouble is the one that needs a bundle.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from posse.client import redacting
from posse.client.installing.marking import is_marked
from posse.client.locating import Located, locate
from posse.kube.connection import Connection
from posse.kube.errors import Forbidden, KubeError, NotFound
from posse.objects.kinds import EVENT, LEASE, NODE, POD, POD_GROUPS, QUEUE, Kind
from posse.objects.raw import Raw, mappings, text

_LOG_LINES = 5_000
_LARGEST_LOG = 4 << 20


class Bundle:
    """Files by name, none of them with a secret in it."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets`: values that are known to be secret, whatever they look like."""
        self.files: dict[str, bytes] = {}
        self.missing: dict[str, str] = {}
        self._known = tuple(secrets)
        self._secrets: dict[str, None] = dict.fromkeys(self._known)

    def keep_secret(self, values: Iterable[str]) -> None:
        """From here on these are found in no file either."""
        self._secrets.update(dict.fromkeys(values))

    def document(self, name: str, value: Any) -> None:
        cleaned = redacting.scrubbed(msgspec.to_builtins(value), tuple(self._secrets))
        self.files[name] = msgspec.json.format(msgspec.json.encode(cleaned), indent=2) + b"\n"

    def objects(self, name: str, items: Iterable[Raw]) -> None:
        """Objects that are made of an allow-list already: their names stay as they are. What
        somebody has written in them as prose is cleaned like any other."""
        worded = redacting.reworded(list(items), self.cleaned)
        cleaned = redacting.scrubbed({"items": worded}, self._known)
        self.files[name] = msgspec.json.format(msgspec.json.encode(cleaned), indent=2) + b"\n"

    def prose(self, name: str, said: bytes) -> None:
        kept = said[-_LARGEST_LOG:].decode("utf-8", "replace")
        self.files[name] = self.cleaned(kept).encode()

    def cleaned(self, prose: str) -> str:
        return redacting.scrub(prose, self._secrets)

    def write(self, path: Path, now: float) -> None:
        """Whole or not at all, readable by its owner alone; the same files give the same bytes."""
        if self.missing:
            self.document("missing.json", self.missing)
        directory = path.absolute().parent
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=directory)
        try:
            with os.fdopen(descriptor, "wb") as raw:
                raw.write(self._packed(now))
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def _packed(self, now: float) -> bytes:
        packed = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=packed, mode="wb", mtime=int(now)) as squeezed,
            tarfile.open(fileobj=squeezed, mode="w") as archive,
        ):
            for name, body in sorted(self.files.items()):
                entry = tarfile.TarInfo(f"posse-bundle/{name}")
                entry.size, entry.mtime, entry.mode = len(body), int(now), 0o600
                archive.addfile(entry, io.BytesIO(body))
        return packed.getvalue()


async def gather(bundle: Bundle, connection: Connection, namespace: str) -> None:
    """What the cluster has. Pods come first: what they keep in their environment stays there."""
    gathering = _Gathering(bundle, connection, namespace)
    pods = await gathering.listed("pods.json", POD)
    for pod in pods:
        bundle.keep_secret(redacting.environment_values(pod))
    bundle.objects("pods.json", map(redacting.pod, pods))
    await gathering.all("nodes.json", NODE, redacting.node)
    for kind in POD_GROUPS:
        await gathering.all(f"{kind.qualified}.json", kind, redacting.plain, optional=True)
    await gathering.all("queues.json", QUEUE, redacting.plain, optional=True)
    try:
        located = await locate(connection)
    except KubeError as error:
        located = Located()
        bundle.missing["deployments.json"] = str(error)
    else:
        bundle.missing.update(dict.fromkeys(located.hidden, "not allowed"))
        bundle.objects("deployments.json", map(redacting.deployment, located.deployments))
    for place in located.namespaces:
        await gathering.all(f"leases-{place}.json", LEASE, redacting.plain, place)
    events = await gathering.listed("events.json", EVENT)
    bundle.objects("events.json", map(redacting.event, events))
    await gathering.logs([pod for pod in pods if is_marked(pod)])


class _Gathering:
    def __init__(self, bundle: Bundle, connection: Connection, namespace: str) -> None:
        self._bundle = bundle
        self._connection = connection
        self._namespace = namespace

    async def all(
        self,
        name: str,
        kind: Kind,
        redact: Callable[[Raw], Raw],
        namespace: str = "",
        *,
        optional: bool = False,
    ) -> None:
        """An `optional` kind is not missed where it is not served."""
        try:
            found = await self._listed(name, kind, namespace)
        except KubeError as error:
            if not (optional and isinstance(error, NotFound)):
                self._bundle.missing[name] = str(error)
        else:
            self._bundle.objects(name, map(redact, found))

    async def listed(self, name: str, kind: Kind) -> list[Raw]:
        try:
            return await self._listed(name, kind)
        except KubeError as error:
            self._bundle.missing[name] = str(error)
            return []

    async def _listed(self, name: str, kind: Kind, namespace: str = "") -> list[Raw]:
        """Of every namespace, or of the user's own where more is forbidden."""
        try:
            return (await self._connection.list(kind, namespace)).items
        except Forbidden:
            if namespace or not kind.namespaced:
                raise
        self._bundle.missing[f"{name} of other namespaces"] = "not allowed"
        return (await self._connection.list(kind, self._namespace)).items

    async def logs(self, pods: list[Raw]) -> None:
        """Of Posse's own programs, and of no other pod."""
        for pod in pods:
            name, place = text(pod["metadata"], "name"), text(pod["metadata"], "namespace")
            for container in mappings(pod, "spec", "containers"):
                file = f"logs/{name}-{text(container, 'name')}.log"
                try:
                    self._bundle.prose(file, await self._log(name, place, text(container, "name")))
                except KubeError as error:
                    self._bundle.missing[file] = str(error)

    async def _log(self, name: str, namespace: str, container: str) -> bytes:
        said = bytearray()
        chunks = self._connection.logs(
            name, namespace, container=container, tail_lines=_LOG_LINES, timestamps=True
        )
        async for chunk in chunks:
            said += chunk
        return bytes(said)


def log_files(bundle: Bundle, logs: Mapping[str, Path]) -> None:
    """The logs that services of this machine keep, each with its predecessor."""
    for name, path in logs.items():
        said = b""
        for part in (path.with_name(f"{path.name}.1"), path):
            try:
                said += part.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                bundle.missing[f"logs/{name}.log"] = error.strerror or str(error)
        if said:
            bundle.prose(f"logs/{name}.log", said)
