"""Pods without namespaces: the same processes, on the same names, paths and network as everybody.

What namespaces would give is imitated by rewriting. Mount paths become paths below the container's
own root; the cluster's names become 127.0.0.1 and the port that stands for the declared one. Both
are rewritten in commands and variables, names also in mounted ConfigMaps.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from posse.local.node.manifests import ADDRESS
from posse.local.node.naming import NameBook, Reach, declared_ports
from posse.local.node.processes.confinement import Escape, link_within, make_within
from posse.local.node.processes.isolation.modes import NONE, refused_everywhere
from posse.local.node.processes.launching import MARK, Arranged, Draft, Mount
from posse.local.node.processes.layout import AttemptPlace, PodPlace
from posse.local.node.runtime import NotYet
from posse.objects import raw
from posse.world import World

Manifest = dict[str, Any]

# Below the ports that systems hand out by themselves, so that nobody takes one by chance.
FIRST_PORT, LAST_PORT = 20_000, 32_000
_LARGEST_REWRITTEN = 1 << 20
# Variables that hold this machine's own paths.
_OURS = ("PATH", "HOME", "TMPDIR", MARK)


class Shared:
    name = NONE

    def __init__(self, world: World) -> None:
        self._world = world
        self._taken: dict[int, None] = {}

    def reach(self, pod: Manifest, known: Reach | None) -> Reach:
        ports = {} if known is None else dict(known.ports)
        for port, wanted in declared_ports(pod).items():
            if port not in ports:
                # On the host's own network a port is what it says.
                host = raw.mapping(pod, "spec").get("hostNetwork")
                ports[port] = wanted or (port if host else self._draw())
        for port in ports.values():
            self._taken[port] = None
        return Reach(ADDRESS, ports)

    def release(self, reach: Reach) -> None:
        for port in reach.ports.values():
            self._taken.pop(port, None)

    def hindrance(self, pod: Manifest, container: Manifest) -> str | None:
        own = raw.mapping(container, "securityContext")
        whole = raw.mapping(pod, "spec", "securityContext")
        user = own["runAsUser"] if "runAsUser" in own else whole.get("runAsUser")
        if isinstance(user, int) and user != os.geteuid():
            return (
                f"runAsUser {user}: without namespaces every pod runs as this user, {os.geteuid()}"
            )
        non_root = own["runAsNonRoot"] if "runAsNonRoot" in own else whole.get("runAsNonRoot")
        if non_root is True and os.geteuid() == 0:
            return "runAsNonRoot: without namespaces every pod runs as this user, who is root"
        if pod["spec"].get("hostAliases"):
            return "hostAliases: without namespaces a pod has no hosts file of its own"
        return refused_everywhere(pod, container)

    def variables(self, place: PodPlace, at: AttemptPlace, reach: Reach) -> dict[str, str]:
        ports = {f"POSSE_PORT_{port}": str(mapped) for port, mapped in sorted(reach.ports.items())}
        return {"HOME": str(at.root / "root"), "TMPDIR": str(place.tmp), **ports}

    def arrange(self, draft: Draft, names: NameBook, reach: Reach) -> Arranged:
        root = draft.attempt.root
        (root / "root").mkdir(mode=0o755, exist_ok=True)
        namespace = str(draft.pod["metadata"]["namespace"])

        def resolve(text: str) -> str:
            return names.resolve(text, namespace)

        targets: dict[str, Path] = {}
        try:
            for mount in draft.mounts:
                targets[mount.target] = self._mount(draft, mount, root, targets, resolve)
        except (Escape, OSError) as error:
            raise NotYet("CreateContainerConfigError", f"a volume mount: {error}", 30.0) from error
        targets[draft.termination_path] = draft.attempt.last_words
        rewrite = _rewriter(targets)

        def both(text: str) -> str:
            return rewrite(resolve(text))

        environment = {
            name: text if name in _OURS else both(text) for name, text in draft.environment.items()
        }
        return Arranged(
            argv=tuple(both(word) for word in draft.argv),
            environment=environment,
            cwd=self._working_dir(draft, root, rewrite),
            commands={
                name: tuple(both(word) for word in argv) for name, argv in draft.commands.items()
            },
        )

    def _mount(
        self,
        draft: Draft,
        mount: Mount,
        root: Path,
        targets: dict[str, Path],
        resolve: Callable[[str], str],
    ) -> Path:
        """A link in the container's root; inside another mount, a link in that volume."""
        source = mount.volume.base
        if mount.volume.rewritable:
            source = _resolved_copy(source, draft.attempt.path / "resolved", mount, resolve)
        if mount.sub:
            source = make_within(source, mount.sub)
        outer = max((t for t in targets if mount.target.startswith(f"{t}/")), key=len, default="")
        if outer:
            link_within(targets[outer], mount.target[len(outer) + 1 :], source)
            return targets[outer] / mount.target[len(outer) + 1 :]
        link_within(root, mount.target.lstrip("/"), source)
        return root / mount.target.lstrip("/")

    def _working_dir(self, draft: Draft, root: Path, rewrite: Callable[[str], str]) -> str:
        """This machine's directory of that name, unless the container has one of its own: its home,
        or one in which something is mounted that the command may name from there."""
        wanted = draft.working_dir
        if not wanted or wanted == "/":
            return str(root)
        rewritten = rewrite(wanted)
        if rewritten != wanted:
            Path(rewritten).mkdir(parents=True, exist_ok=True)
            return rewritten
        below = f"{wanted.rstrip('/')}/"
        own = below.startswith("/root/") or any(m.target.startswith(below) for m in draft.mounts)
        if not own and Path(wanted).is_dir():
            return wanted
        return str(make_within(root, wanted.lstrip("/")))

    def _draw(self) -> int:
        """A free port; drawn, since several clusters may share one machine."""
        for _ in range(LAST_PORT - FIRST_PORT):
            high, low = self._world.entropy(2)
            port = FIRST_PORT + (high * 256 + low) % (LAST_PORT - FIRST_PORT)
            if port not in self._taken and _is_free(port):
                return port
        raise OSError("no port is free")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
    return True


def _rewriter(targets: dict[str, Path]) -> Callable[[str], str]:
    """Mount paths, where they stand as a whole path or as its beginning, become real ones."""
    if not targets:
        return lambda text: text
    longest_first = sorted(targets, key=lambda target: (-len(target), target))
    choice = "|".join(re.escape(target) for target in longest_first)
    pattern = re.compile(rf"(?<![A-Za-z0-9_.\-/~])(?:{choice})(?![A-Za-z0-9_.\-])")
    return lambda text: pattern.sub(lambda match: str(targets[match[0]]), text)


def _resolved_copy(source: Path, copies: Path, mount: Mount, resolve: Callable[[str], str]) -> Path:
    """The ConfigMap's files with the cluster's names replaced, for this attempt alone."""
    copy = copies / mount.volume.name
    for directory, _, files in sorted(os.walk(source)):
        there = copy / Path(directory).relative_to(source)
        there.mkdir(parents=True, exist_ok=True)
        for name in sorted(files):
            content = (Path(directory) / name).read_bytes()
            if len(content) <= _LARGEST_REWRITTEN:
                try:
                    content = resolve(content.decode()).encode()
                except UnicodeDecodeError:
                    content = bytes(content)
            (there / name).write_bytes(content)
            (there / name).chmod((Path(directory) / name).stat().st_mode & 0o777)
    return copy
