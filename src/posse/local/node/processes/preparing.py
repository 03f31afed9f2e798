"""Everything that a shim reads, written down before it is started; its launch file comes last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from posse.kube.connection import Connection
from posse.local.node import naming
from posse.local.node.manifests import ADDRESS
from posse.local.node.naming import NameBook, Reach
from posse.local.node.processes import launching
from posse.local.node.processes.environment import variables
from posse.local.node.processes.fields import Facts
from posse.local.node.processes.gpus import Allotment
from posse.local.node.processes.isolation.modes import Isolation
from posse.local.node.processes.layout import AttemptPlace, PodPlace
from posse.local.node.processes.names import write_names
from posse.local.node.processes.removing import Trash
from posse.local.node.processes.shim import files
from posse.local.node.processes.sources import LiveSources
from posse.local.node.processes.volumes import Volumes
from posse.local.node.runtime import NotYet
from posse.objects import raw
from posse.objects.quantity import QuantityError
from posse.world import World

Manifest = dict[str, Any]

LOG_BYTES = 10 << 20
LOG_FILES = 5
ORPHAN_AFTER = 20.0
KEPT_ATTEMPTS = 2
UNKNOWN_NAME_PATIENCE = 30.0
_RARELY = 300.0


class RuntimeConfig(msgspec.Struct, frozen=True, kw_only=True):
    home: Path
    lifeline: Path  # the pipe that everybody who watches over the node holds open
    allocatable: dict[str, str]
    gpus: tuple[int, ...] = ()
    allowed_host_paths: tuple[Path, ...] = ()
    api_server: tuple[str, int] | None = None

    @property
    def pods(self) -> Path:
        return self.home / "pods"


class Preparer:
    def __init__(
        self,
        config: RuntimeConfig,
        connection: Connection,
        world: World,
        isolation: Isolation,
        gpus: Allotment,
        trash: Trash,
        warn: Callable[[Manifest, str, str], None],
    ) -> None:
        self._config = config
        self._world = world
        self._isolation = isolation
        self._gpus = gpus
        self._trash = trash
        self._warn = warn
        self._sources = LiveSources(connection)
        self._volumes = Volumes(self._sources, config.allowed_host_paths, config.home)
        self._unknown_since: dict[str, float] = {}  # by uid: a name has led nowhere since then

    def forget(self, uid: str) -> None:
        self._unknown_since.pop(uid, None)

    async def prepare(
        self,
        pod: Manifest,
        place: PodPlace,
        at: AttemptPlace,
        reach: Reach,
        book: Callable[[], NameBook],
    ) -> None:
        """Raises NotYet where the container cannot be started now."""
        name, uid = at.container, place.uid
        container = launching.spec_of(pod, name)
        if lack := self._isolation.hindrance(pod, container):
            raise NotYet("NotSupportedHere", lack, _RARELY)
        facts = Facts(reach.address, ADDRESS, self._config.allocatable)
        volumes = await self._volumes.prepare(pod, place, facts)
        base = launching.clean_environment(pod, self._config.api_server)
        base |= self._isolation.variables(place, at, reach)
        environment = await variables(pod, container, base, self._sources, facts)
        environment[launching.MARK] = launching.mark_of(uid, name, at.number)
        argv = launching.command_of(container, environment)
        gpus = self._take_gpus(uid, container)
        environment |= self._gpus.variables(gpus)
        self._clear(place, at)
        draft = launching.Draft(
            pod=pod,
            container=container,
            place=place,
            attempt=at,
            argv=argv,
            environment=environment,
            working_dir=raw.text(container, "workingDir"),
            mounts=launching.mounts_of(container, volumes, environment),
            commands=launching.commands_of(container),
        )
        names = book()
        write_names(pod, place, reach, names)
        arranged = self._arrange(draft, names, reach)
        _write(self._config, draft, arranged, gpus)

    def _take_gpus(self, uid: str, container: Manifest) -> Sequence[int]:
        try:
            count = launching.gpu_count(container)
        except QuantityError as error:
            raise NotYet("CreateContainerConfigError", str(error), _RARELY) from error
        gpus = self._gpus.take(uid, raw.text(container, "name"), count) if count else ()
        if gpus is None:
            raise NotYet(
                "GpusInUse", f"{count} GPUs are asked and fewer are free yet", warning=False
            )
        return gpus

    def _clear(self, place: PodPlace, at: AttemptPlace) -> None:
        """A directory to start in; of earlier attempts only the last one's output is kept."""
        earlier = place.attempts(at.container)
        for old in earlier[: -(KEPT_ATTEMPTS - 1)]:
            self._trash.throw(old.path)
        for old in earlier[-(KEPT_ATTEMPTS - 1) :]:
            self._trash.throw(old.root)
        at.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        at.root.mkdir(mode=0o755, exist_ok=True)
        at.last_words.touch()
        at.last_words.chmod(0o666)

    def _arrange(self, draft: launching.Draft, book: NameBook, reach: Reach) -> launching.Arranged:
        uid = draft.place.uid
        try:
            arranged = self._isolation.arrange(draft, book, reach)
        except naming.Unknown as unknown:
            now = self._world.monotonic()
            since = self._unknown_since.setdefault(uid, now)
            if not unknown.declared and now - since > UNKNOWN_NAME_PATIENCE:
                said = f"{unknown.name} is no name of this cluster and is left as it is"
                self._warn(draft.pod, "UnknownName", said)
                return self._isolation.arrange(draft, book.lenient(), reach)
            raise NotYet(
                "WaitingForNames",
                f"{unknown.name} leads to no pod yet; its address is put in when it does",
                0.5,
                warning=False,
            ) from None
        self._unknown_since.pop(uid, None)
        return arranged


def _write(
    config: RuntimeConfig,
    draft: launching.Draft,
    arranged: launching.Arranged,
    gpus: Sequence[int],
) -> None:
    container, commands, at = draft.container, arranged.commands, draft.attempt
    grace = draft.pod["spec"].get("terminationGracePeriodSeconds")
    launch = {
        "argv": list(arranged.argv),
        "env": arranged.environment,
        "cwd": arranged.cwd,
        "grace": 30.0 if grace is None else float(grace),
        "lifeline": str(config.lifeline),
        "orphan_after": ORPHAN_AFTER,
        "log_bytes": LOG_BYTES,
        "log_files": LOG_FILES,
        "sandbox": arranged.sandbox,
        "post_start": list(commands.get("postStart", ())),
        "pre_stop": launching.pre_stop(container, commands),
        # What the agent reads here again after a restart.
        "commands": {name: list(argv) for name, argv in commands.items()},
        "gpus": list(gpus),
        "memory_limit": launching.memory_limit(container),
        "termination_policy": raw.text(container, "terminationMessagePolicy"),
    }
    for fifo in (files.CONTROL, files.BELL):
        files.make_fifo(str(at.path / fifo))
    files.write_json(str(at.launch), launch)
