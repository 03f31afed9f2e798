"""What an agent knows of each pod it runs, and how it learns it again after a restart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from posse.local.node.runtime import Exit
from posse.objects.meta import from_raw
from posse.objects.pods import Container, ContainerStatus, Pod, PodSpec
from posse.objects.times import parse_time

Manifest = dict[str, Any]

FIRST_BACKOFF = 10.0
LONGEST_BACKOFF = 300.0
CALM_AFTER = 600.0  # a container that ran this long starts with a clean slate


class Running(msgspec.Struct, frozen=True):
    started_at: float  # wall seconds


class Ended(msgspec.Struct, frozen=True):
    started_at: float
    finished_at: float
    how: Exit


class Hindrance(msgspec.Struct, frozen=True):
    """Why a container that should run has not been started."""

    reason: str
    message: str
    until: float  # wall seconds of the next try


class Outcome(msgspec.Struct, frozen=True):
    """How the whole pod ended. Final: a pod that has one never runs again."""

    phase: str
    reason: str = ""
    message: str = ""


@dataclass(slots=True)
class ContainerLife:
    name: str
    image: str
    init: bool = False
    sidecar: bool = False  # an init container that stays up beside the others
    attempt: int = 0  # Kubernetes' restartCount
    state: Running | Ended | None = None
    previous: Ended | None = None
    crashes: int = 0
    ready: bool = True  # while it runs: nobody found it unready
    hindrance: Hindrance | None = None

    @property
    def next_attempt(self) -> int:
        return self.attempt + 1 if isinstance(self.state, Ended) else self.attempt

    def started(self, wall: float, *, ready: bool = True) -> None:
        self.attempt = self.next_attempt
        if isinstance(self.state, Ended):
            self.previous = self.state
        self.state = Running(wall)
        self.ready = ready
        self.hindrance = None

    def ended(self, wall: float, how: Exit) -> None:
        if not isinstance(self.state, Running):
            return
        began = self.state.started_at if how.started_at is None else how.started_at
        finished = wall if how.finished_at is None else how.finished_at
        calm = finished - began >= CALM_AFTER
        self.crashes = 1 if calm else self.crashes + 1
        self.state = Ended(began, finished, how)

    def pause_left(self, now: float) -> float:
        """Seconds until an ended container may be started again.

        One that ended in the future ended before the clock was set back, nobody knows how long
        ago: it has waited.
        """
        assert isinstance(self.state, Ended)
        pause = min(FIRST_BACKOFF * float(2 ** min(self.crashes - 1, 16)), LONGEST_BACKOFF)
        left = self.state.finished_at + pause - now
        return left if 0 < left <= pause else 0.0


@dataclass(slots=True)
class Life:
    """One pod, by uid."""

    pod: Manifest
    spec: PodSpec
    node: str
    containers: dict[str, ContainerLife] = field(default_factory=dict)
    started_at: float = 0.0  # wall seconds
    ip: str = ""
    scheme: str = "simulated"  # what the ids of its containers begin with
    outcome: Outcome | None = None
    resumed: bool = False  # taken over from an earlier agent, its containers not yet adopted
    doubted: bool = False  # its node, as far as cached, is none that it may be on
    posted: Manifest | None = None  # the status last written and not yet seen in the cache
    posted_version: str = ""
    removed: bool = False  # the API server was told that nothing of it is left

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def deleting(self) -> bool:
        return self.pod["metadata"].get("deletionTimestamp") is not None

    @property
    def restart_policy(self) -> str:
        return self.spec.restart_policy or "Always"

    def running(self) -> list[ContainerLife]:
        return [c for c in self.containers.values() if isinstance(c.state, Running)]


def begin(pod: Manifest, now: float) -> Life:
    """A pod as this agent first meets it: new, running since long, or over.

    Raises msgspec.ValidationError when the pod cannot be read.
    """
    typed = from_raw(pod, Pod)
    status = typed.status
    life = Life(pod, typed.spec, typed.spec.node_name)
    life.ip = status.pod_ip
    life.started_at = _wall(status.start_time, now)
    known = {c.name: c for c in (*status.init_container_statuses, *status.container_statuses)}
    for init, containers in ((True, typed.spec.init_containers), (False, typed.spec.containers)):
        for container in containers:
            life.containers[container.name] = _container(
                container, init, known.get(container.name), now
            )
    if typed.terminal:
        life.outcome = Outcome(status.phase, status.reason, status.message)
    # A pod that is still initializing has containers of an earlier agent as well.
    life.resumed = status.phase == "Running" or any(
        isinstance(c.state, Running) for c in life.containers.values()
    )
    return life


def _container(
    spec: Container, init: bool, known: ContainerStatus | None, now: float
) -> ContainerLife:
    life = ContainerLife(
        spec.name, spec.image, init=init, sidecar=init and spec.restart_policy == "Always"
    )
    if known is None:
        return life
    life.attempt = known.restart_count
    life.crashes = known.restart_count
    last = known.last_state.terminated
    if last is not None:
        life.previous = _ended(last, now)
    if known.state.running is not None:
        life.state = Running(_wall(known.state.running.started_at, now))
    elif known.state.terminated is not None:
        life.state = _ended(known.state.terminated, now)
        life.crashes += 1
    elif life.previous is not None:  # waiting for its next start
        life.state, life.previous = life.previous, None
        life.crashes += 1
    return life


def _ended(terminated: Any, now: float) -> Ended:
    return Ended(
        _wall(terminated.started_at, now),
        _wall(terminated.finished_at, now),
        Exit(terminated.exit_code, terminated.reason, terminated.message),
    )


def _wall(text: str | None, otherwise: float) -> float:
    try:
        return parse_time(text) if text else otherwise
    except ValueError:
        return otherwise
