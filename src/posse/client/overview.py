"""A cluster and what Posse does in it, as an operator sees it; as much as one is allowed to see."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import msgspec

from posse.client.installing.marking import VERSION_LABEL, labels_of
from posse.client.installing.owners import containers_of, flags_of
from posse.client.locating import LEASES, Located, locate, place_of
from posse.client.nodes import read_nodes
from posse.kube.connection import Connection
from posse.kube.errors import Forbidden, NotFound
from posse.objects.groups import PodGroup
from posse.objects.kinds import (
    LEASE,
    MPI_JOB,
    NODE,
    POD,
    POD_GROUP,
    POD_GROUPS,
    QUEUE,
    TF_JOB,
    Kind,
)
from posse.objects.meta import Condition, Key, ObjectMeta
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.objects.raw import mapping, mappings, number, text
from posse.objects.times import parse_time
from posse.scheduler.config import LEASE_NAME as SCHEDULER
from posse.scheduler.reading.claims import Claims, group_named_by
from posse.version import __version__

T = TypeVar("T")

KINDS: tuple[Kind, ...] = (POD_GROUP, QUEUE, MPI_JOB, TF_JOB)
NEEDED = (POD_GROUP, QUEUE)
"""What the scheduler cannot do without; job kinds may be somebody else's, or nobody's."""

_SKEW = 2.0
_RENEWED_WITHIN = 5.0
_SETTLED = ("Running", "Completed")


class Leader(msgspec.Struct, frozen=True, kw_only=True):
    service: str
    lease: str  # namespace/name
    holder: str
    renewed: str  # when, on the holder's clock
    alive: bool


class Deployed(msgspec.Struct, frozen=True, kw_only=True):
    """One Deployment of the installation."""

    namespace: str
    name: str
    ready: int
    wanted: int
    version: str
    image: str


class WaitingGang(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    reason: str
    sentence: str
    since: str  # when it began to wait for this kind of reason


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    context: str = ""
    server: str = ""
    kubernetes: str = ""
    program: str = __version__  # of this program, not of what is installed
    ready: bool = False
    problems: tuple[str, ...] = ()
    leaders: tuple[Leader, ...] = ()
    deployments: tuple[Deployed, ...] = ()
    nodes: int = 0
    nodes_ready: int = 0
    gpus: int = 0
    gpus_allocated: int = 0
    kinds: dict[str, bool] = {}  # which of Posse's kinds are served
    waiting: tuple[WaitingGang, ...] = ()
    hidden: tuple[str, ...] = ()  # what one may not see


async def look(connection: Connection, namespace: str, within: str = "") -> Overview:
    """KubeError only when there is no cluster to speak of; what is forbidden is named.

    Where one may not look into every namespace, gangs are those of `namespace`. Posse's programs
    are those `within` one namespace, or, if there are none, wherever they are.
    """
    version = await connection.version()
    return await _Looking(connection, namespace, within).overview(text(version, "gitVersion"))


class _Looking:
    def __init__(self, connection: Connection, namespace: str, within: str) -> None:
        self._connection = connection
        self._namespace = namespace
        self._within = within
        self._hidden: dict[str, None] = {}

    async def overview(self, kubernetes: str) -> Overview:
        kinds = {kind.qualified: await self._served(kind) for kind in KINDS}
        located = await locate(self._connection, self._within)
        if self._within and not located.found:
            located = await locate(self._connection)
        self._hidden.update(dict.fromkeys(located.hidden))
        leaders = await self._leaders(located)
        deployments = tuple(map(_deployed, located.deployments))
        nodes: list[Node] = await self._allowed("nodes", self._all_nodes(), [])
        pods = await self._everywhere(POD, Pod)
        used = read_nodes(nodes, pods)
        groups = await self._groups()
        waiting = [gang for group in groups if (gang := _waiting_group(group))]
        waiting += waiting_pods(pods, {group.key for group in groups}, _claims(located))
        waiting.sort(key=lambda gang: (gang.since, gang.namespace, gang.name))
        leases_seen = "leases" not in self._hidden
        problems = _problems(kinds, leaders, deployments, leases_seen=leases_seen)
        return Overview(
            kubernetes=kubernetes,
            ready=not problems,
            problems=problems,
            leaders=leaders,
            deployments=deployments,
            nodes=len(nodes),
            nodes_ready=sum(node.ready for node in nodes),
            gpus=sum(node.gpus for node in used),
            gpus_allocated=sum(node.allocated for node in used),
            kinds=kinds,
            waiting=tuple(waiting),
            hidden=tuple(self._hidden),
        )

    async def _allowed(self, what: str, asking: Awaitable[T], otherwise: T) -> T:
        try:
            return await asking
        except Forbidden:
            self._hidden[what] = None
            return otherwise

    async def _served(self, kind: Kind) -> bool:
        try:
            found = await self._connection.resources(kind.group, kind.version)
        except NotFound:
            return False
        return any(text(resource, "name") == kind.plural for resource in found)

    async def _leaders(self, located: Located) -> tuple[Leader, ...]:
        found: list[Leader] = []
        now = self._connection.world.now()
        for service, leases in located.leases.items():
            # What an earlier installation left behind is of no interest where somebody leads.
            alive = [lease for lease in leases if _holder(lease) and _fresh(lease, now)]
            chosen = alive or leases[:1]
            found += [await self._leader(service, place_of(lease), lease) for lease in chosen]
        return tuple(found)

    async def _lease(self, name: str, namespace: str) -> dict[str, Any] | None:
        try:
            return await self._connection.get(LEASE, name, namespace)
        except NotFound:
            return None

    async def _leader(self, service: str, namespace: str, lease: dict[str, Any]) -> Leader:
        name = text(lease.get("metadata"), "name")
        alive = _fresh(lease, self._connection.world.now())
        if not alive and _holder(lease):
            # The holder's clock is not ours: only a renewal that we see proves anything.
            await asyncio.sleep(_RENEWED_WITHIN)
            again = await self._lease(name, namespace)
            alive = again is not None and again.get("spec") != lease.get("spec")
            lease = again or lease
        return Leader(
            service=service,
            lease=f"{namespace}/{name}",
            holder=_holder(lease),
            renewed=text(lease.get("spec"), "renewTime"),
            alive=alive and bool(_holder(lease)),
        )

    async def _all_nodes(self) -> list[Node]:
        return (await self._connection.list(NODE, model=Node)).items

    async def _everywhere(self, kind: Kind, model: type[T]) -> list[T]:
        try:
            return (await self._connection.list(kind, model=model)).items
        except Forbidden:
            what = f"{kind.qualified} outside namespace {self._namespace}"
            self._hidden[what] = None
        within = self._connection.list(kind, self._namespace, model=model)
        listing = await self._allowed(kind.qualified, within, None)
        return listing.items if listing is not None else []

    async def _groups(self) -> list[PodGroup]:
        found: list[PodGroup] = []
        for kind in POD_GROUPS:
            # Who may not list a kind is told so before it is looked whether there is any.
            if not await self._served(kind):
                continue
            try:
                found += await self._everywhere(kind, PodGroup)
            except NotFound:
                continue
        return found


def _claims(located: Located) -> Claims:
    """Whose pods the installed scheduler is for; all of them where none says."""
    for deployment in located.deployments:
        if text(deployment.get("metadata"), "name") == SCHEDULER:
            for container in containers_of(deployment):
                if said := flags_of(container).get("claim"):
                    return Claims(tuple(said))
    return Claims(everything=True)


def _deployed(deployment: dict[str, Any]) -> Deployed:
    wanted = number(mapping(deployment, "spec"), "replicas")
    containers = mappings(deployment, "spec", "template", "spec", "containers")
    return Deployed(
        namespace=place_of(deployment),
        name=text(deployment.get("metadata"), "name"),
        ready=number(mapping(deployment, "status"), "readyReplicas") or 0,
        wanted=1 if wanted is None else wanted,
        version=labels_of(deployment).get(VERSION_LABEL, ""),
        image=text(containers[0], "image") if containers else "",
    )


def _waiting_group(group: PodGroup) -> WaitingGang | None:
    if group.status.phase in _SETTLED:
        return None
    return _gang(group.metadata, group.status.conditions, ("Unschedulable", "True"))


def waiting_pods(pods: list[Pod], groups: set[Key], claims: Claims) -> list[WaitingGang]:
    """Pods of ours for which no PodGroup speaks, and of which a scheduler has said why they wait:
    each for itself, or one for all those of a gang that only they name."""
    found: dict[Key, WaitingGang] = {}
    for pod in pods:
        if pod.spec.node_name or pod.terminal or pod.metadata.deleting or not claims.include(pod):
            continue
        group = group_named_by(pod)
        key = (pod.metadata.namespace, group or pod.metadata.name)
        gang = _gang(pod.metadata, pod.status.conditions, ("PodScheduled", "False"))
        if gang is not None and not (group and key in groups):
            found.setdefault(key, msgspec.structs.replace(gang, name=key[1]))
    return list(found.values())


def _gang(
    metadata: ObjectMeta, conditions: list[Condition], telling: tuple[str, str]
) -> WaitingGang | None:
    for condition in conditions:
        if (condition.type, condition.status) == telling:
            return WaitingGang(
                namespace=metadata.namespace,
                name=metadata.name,
                reason=condition.reason,
                sentence=condition.message,
                since=condition.last_transition_time or "",
            )
    return None


def _problems(
    kinds: dict[str, bool],
    leaders: tuple[Leader, ...],
    deployments: tuple[Deployed, ...],
    *,
    leases_seen: bool,
) -> tuple[str, ...]:
    needed = [kind.qualified for kind in NEEDED if not kinds[kind.qualified]]
    if needed and not leaders and not deployments:
        return ("Posse is not installed here; `posse install` installs it",)
    found = [f"{name} is not served; `posse install` brings it" for name in needed]
    if leases_seen and not leaders and not deployments:
        found.append(
            f"Posse does not run here: there is neither a Deployment of it nor a lease {SCHEDULER}"
            f" in any namespace; `posse install` installs it"
        )
        return tuple(found)
    led = {leader.service: leader for leader in leaders}
    deployed = {one.name for one in deployments}
    for service, lease in LEASES.items():
        leader = led.get(service)
        if leader is None:
            if leases_seen and (service == "scheduler" or lease in deployed):
                found.append(
                    f"no {service} has ever led: there is no lease {lease} in any namespace"
                )
        elif not leader.alive:
            holder = f"{leader.holder} has stopped renewing" if leader.holder else "nobody holds"
            found.append(f"no {service} leads: {holder} lease {leader.lease}")
    found += [
        f"{one.name}: {one.ready} of {one.wanted} replicas are ready"
        for one in deployments
        if one.ready < one.wanted
    ]
    return tuple(found)


def _holder(lease: dict[str, Any]) -> str:
    return text(lease.get("spec"), "holderIdentity")


def _fresh(lease: dict[str, Any], now: float) -> bool:
    """Whether it was renewed within its duration, if the clocks agree."""
    spec = mapping(lease, "spec")
    try:
        renewed = parse_time(text(spec, "renewTime"))
    except ValueError:
        return False
    lasts = number(spec, "leaseDurationSeconds") or 0
    return -_SKEW <= now - renewed <= lasts
