"""From a pod's words to what a shim is told: the command, its variables, its mounts.

Pure but for the objects that the pod names. What the isolation mode makes of it comes after.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from posse.local.node.naming import hostname
from posse.local.node.processes.confinement import Escape, make_within, parts_of
from posse.local.node.processes.expansion import expand
from posse.local.node.processes.layout import AttemptPlace, PodPlace
from posse.local.node.processes.volumes import CREATING, Volume
from posse.local.node.runtime import NotYet
from posse.objects import quantity, raw

Manifest = dict[str, Any]

MARK = "POSSE_CONTAINER"
"""The variable by which a process tells to which attempt of which container it belongs."""

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_HOOKS = ("postStart", "preStop")
_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_NEVER_BY_ITSELF = 300.0


class Mount(msgspec.Struct, frozen=True):
    volume: Volume
    sub: str
    target: str
    read_only: bool


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A container as its pod means it, before any isolation."""

    pod: Manifest
    container: Manifest
    place: PodPlace
    attempt: AttemptPlace
    argv: tuple[str, ...]
    environment: dict[str, str]
    working_dir: str
    mounts: tuple[Mount, ...]
    commands: dict[str, tuple[str, ...]]  # of hooks and probes, by the field that holds them

    @property
    def termination_path(self) -> str:
        return raw.text(self.container, "terminationMessagePath") or "/dev/termination-log"


class Arranged(msgspec.Struct, frozen=True, kw_only=True):
    """The same container in its isolation: what is executed, where, and in which sandbox."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    cwd: str
    commands: dict[str, tuple[str, ...]]
    sandbox: Manifest | None = None


def spec_of(pod: Manifest, name: str) -> Manifest:
    for field in ("initContainers", "containers"):
        for container in raw.mappings(pod, "spec", field):
            if raw.text(container, "name") == name:
                return container
    raise LookupError(f"container {name} not found")


def clean_environment(pod: Manifest, api_server: tuple[str, int] | None) -> dict[str, str]:
    """What every container has before its pod says anything."""
    own = str(Path(sys.executable).parent)
    inherited = os.environ.get("PATH") or DEFAULT_PATH
    entries = [own, *(e for e in inherited.split(":") if e and e != own)]
    environment = {"PATH": ":".join(entries), "HOSTNAME": hostname(pod), "LANG": "C.UTF-8"}
    if api_server is not None:
        host, port = api_server
        environment |= {
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": str(port),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
        }
    return environment


def mark_of(uid: str, container: str, attempt: int) -> str:
    return f"{uid}/{container}/{attempt}"


def command_of(container: Manifest, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Raises NotYet where only the image knows what to run."""
    command = raw.texts(container, "command")
    if not command:
        image = raw.text(container, "image")
        raise NotYet(
            "ImageEntrypointUnknown",
            f'the entrypoint of image "{image}" is unknown here, because no image is pulled: '
            "write `command`",
            _NEVER_BY_ITSELF,
        )
    return tuple(expand(word, variables) for word in [*command, *raw.texts(container, "args")])


def mounts_of(
    container: Manifest, volumes: Mapping[str, Volume], variables: Mapping[str, str]
) -> tuple[Mount, ...]:
    """Shallow paths first, so that one mount can lie inside another."""
    mounts = []
    for entry in raw.mappings(container, "volumeMounts"):
        name, target = raw.text(entry, "name"), raw.text(entry, "mountPath")
        if name not in volumes:
            raise NotYet(CREATING, f'volume mount "{name}" names no volume of the pod')
        volume = volumes[name]
        sub = raw.text(entry, "subPath") or expand(raw.text(entry, "subPathExpr"), variables)
        try:
            parts_of(target.lstrip("/"))
            if sub:
                make_within(volume.base, sub)
        except (Escape, OSError) as error:
            raise NotYet(
                "CreateContainerConfigError", f'volume mount "{name}": {error}', _NEVER_BY_ITSELF
            ) from error
        read_only = volume.read_only or entry.get("readOnly") is True
        mounts.append(Mount(volume, sub, "/" + "/".join(parts_of(target.lstrip("/"))), read_only))
    return tuple(sorted(mounts, key=lambda mount: mount.target.count("/")))


def commands_of(container: Manifest) -> dict[str, tuple[str, ...]]:
    """The commands of hooks and probes; a hook that is no command cannot be run here."""
    commands = {}
    for name in _HOOKS:
        hook = raw.mapping(container, "lifecycle", name)
        if "httpGet" in hook or "tcpSocket" in hook:
            raise NotYet(
                "HookNotSupported",
                f"this node runs {name} hooks that are commands",
                _NEVER_BY_ITSELF,
            )
        if argv := raw.texts(raw.mapping(hook, "exec"), "command"):
            commands[name] = tuple(argv)
    for name in _PROBES:
        if argv := raw.texts(raw.mapping(container, name, "exec"), "command"):
            commands[name] = tuple(argv)
    return commands


def memory_limit(container: Manifest) -> int:
    """In bytes; 0 where there is none."""
    amount = raw.mapping(container, "resources", "limits").get("memory")
    return 0 if amount is None else quantity.base_units("memory", str(amount), "limits.memory")


def gpu_count(container: Manifest) -> int:
    resources = raw.mapping(container, "resources")
    for field in ("limits", "requests"):
        amount = raw.mapping(resources, field).get("nvidia.com/gpu")
        if amount is not None:
            return quantity.base_units("nvidia.com/gpu", str(amount), "nvidia.com/gpu")
    return 0


def pre_stop(container: Manifest, commands: Mapping[str, tuple[str, ...]]) -> Manifest | None:
    if argv := commands.get("preStop"):
        return {"argv": list(argv)}
    sleep = raw.mapping(container, "lifecycle", "preStop", "sleep")
    seconds = raw.number(sleep, "seconds")
    return None if seconds is None else {"sleep": seconds}
