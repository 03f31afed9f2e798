"""Pods in Linux namespaces of their own: mounts, names, processes. The network is the machine's.

Each pod has an address of its own in 127.0.0.0/8, all of which is loopback on Linux.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from posse.local.node.manifests import ADDRESS
from posse.local.node.naming import NameBook, Reach, declared_ports, hostname
from posse.local.node.processes.isolation.modes import NAMESPACES, refused_everywhere
from posse.local.node.processes.launching import Arranged, Draft
from posse.local.node.processes.layout import AttemptPlace, PodPlace
from posse.objects import raw
from posse.world import World

Manifest = dict[str, Any]

# What holds credentials in a user's home, beside what Posse itself keeps there.
CREDENTIALS = (
    ".kube", ".posse", ".arena", ".ssh", ".aws", ".azure", ".config/gcloud", ".docker", ".gnupg",
    ".git-credentials", ".netrc", ".pypirc", ".npmrc", ".cargo/credentials.toml",
)  # fmt: skip
_ORDINARY_USER = 1000  # who a container is that must not be root and names nobody


class Namespaces:
    name = NAMESPACES

    def __init__(self, world: World, home: Path, private: Sequence[Path] = ()) -> None:
        self._world = world
        self._taken: dict[str, None] = {}
        user = Path.home()
        hidden = [home, *(user / name for name in CREDENTIALS), *private]
        self._hidden = sorted({os.path.realpath(path) for path in hidden})
        self._revealed = tool_directories()

    def reach(self, pod: Manifest, known: Reach | None) -> Reach:
        if known is None:
            address = ADDRESS if raw.mapping(pod, "spec").get("hostNetwork") else self._draw()
            known = Reach(address, {port: port for port in declared_ports(pod)})
        self._taken[known.address] = None
        return known

    def release(self, reach: Reach) -> None:
        self._taken.pop(reach.address, None)

    def hindrance(self, pod: Manifest, container: Manifest) -> str | None:
        if pod["spec"].get("shareProcessNamespace"):
            return "shareProcessNamespace: each container has processes of its own here"
        return refused_everywhere(pod, container)

    def variables(self, place: PodPlace, at: AttemptPlace, reach: Reach) -> dict[str, str]:
        ports = {f"POSSE_PORT_{port}": str(port) for port in sorted(reach.ports)}
        return {"HOME": "/root", **ports}

    def arrange(self, draft: Draft, names: NameBook, reach: Reach) -> Arranged:
        binds = [
            _bind(draft.place.etc / name, os.path.realpath(f"/etc/{name}"), read_only=False)
            for name in ("hosts", "hostname", "resolv.conf")
        ]
        binds.append(_bind(draft.place.tmp, "/var/tmp", read_only=False))
        binds += [
            _bind(mount.volume.base, mount.target, sub=mount.sub, read_only=mount.read_only)
            for mount in draft.mounts
        ]
        binds.append(_bind(draft.attempt.last_words, draft.termination_path, read_only=False))
        cwd = draft.working_dir or "/"
        if cwd != "/":
            work = draft.attempt.path / "work"
            work.mkdir(mode=0o755, exist_ok=True)
            binds.append({**_bind(work, cwd, read_only=False), "unless_there": True})
        uid, gid = _identity(draft)
        context = raw.mapping(draft.container, "securityContext")
        sandbox = {
            "uid": uid,
            "gid": gid,
            "hostname": hostname(draft.pod),
            "root": str(draft.attempt.root),
            "tmp": str(draft.place.tmp),
            "devices": gpu_devices() if draft.environment.get("CUDA_VISIBLE_DEVICES") else [],
            "hidden": self._hidden,
            "revealed": self._revealed,
            "binds": binds,
            "read_only_root": context.get("readOnlyRootFilesystem") is True,
        }
        return Arranged(
            argv=draft.argv,
            environment=draft.environment,
            cwd=cwd,
            commands=draft.commands,
            sandbox=sandbox,
        )

    def _draw(self) -> str:
        """Drawn, not counted: several clusters may share one machine."""
        while True:
            first, second, third = self._world.entropy(3)
            address = f"127.{64 + first % 64}.{second}.{1 + third % 254}"
            if address not in self._taken:
                return address


def tool_directories() -> list[str]:
    """Where programs lie that a private /tmp or home would hide: Python's, and those on PATH."""
    found: dict[str, None] = {}
    package = Path(__file__).resolve().parents[6]
    for path in (sys.prefix, sys.base_prefix, package, Path(sys.executable).resolve().parents[1]):
        found[os.path.realpath(path)] = None
        found[str(path)] = None
    for entry in (os.environ.get("PATH") or "").split(":"):
        directory = Path(entry)
        # os.path answers no, where pathlib raises, for what this user may not look into.
        if not directory.is_absolute() or not os.path.isdir(directory):  # noqa: PTH112
            continue
        above = directory.parent
        environment = os.path.exists(above / "pyvenv.cfg") or os.path.isdir(above / "conda-meta")  # noqa: PTH110, PTH112
        found[str(above if environment else directory)] = None
    return [path for path in found if os.path.isdir(path) and path != "/"]  # noqa: PTH112


def gpu_devices() -> list[str]:
    try:
        names = sorted(os.listdir("/dev"))  # noqa: PTH208
    except OSError:
        return []
    return [name for name in names if name.startswith("nvidia")]


def _bind(base: Path, target: str, *, sub: str = "", read_only: bool) -> Manifest:
    return {"base": os.path.realpath(base), "sub": sub, "target": target, "read_only": read_only}


def _identity(draft: Draft) -> tuple[int, int]:
    """Who the container is in its own namespace; outside it is always this user."""
    own = raw.mapping(draft.container, "securityContext")
    whole = raw.mapping(draft.pod, "spec", "securityContext")

    def said(field: str) -> Any:
        return own[field] if field in own else whole.get(field)

    uid = said("runAsUser")
    if not isinstance(uid, int):
        uid = _ORDINARY_USER if said("runAsNonRoot") is True else 0
    gid = said("runAsGroup")
    return uid, gid if isinstance(gid, int) else uid
