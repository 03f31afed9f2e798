"""Looking before anything is taken: who owns which kind and which scheduler name today.

Whether a lease is being renewed is watched, not computed: its times were written by another clock.
One that changes is held by somebody alive; one that does not for as long as it lasts is not.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec

from posse.client.installing.doors import Door, doors
from posse.client.installing.inventory import OPTIONAL
from posse.client.installing.marking import (
    MANAGED_BY,
    VERSION_LABEL,
    is_marked,
    labels_of,
)
from posse.client.installing.options import Options
from posse.client.installing.owners import (
    KNOWN,
    Owner,
    containers_of,
    flags_of,
    lease_names,
    owned_kinds,
    owned_names,
    recognise,
)
from posse.controllers.program import LEASE_NAME as CONTROLLERS
from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.objects.kinds import CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, LEASE
from posse.scheduler.config import LEASE_NAME as SCHEDULER

_OWN_LEASES = (SCHEDULER, CONTROLLERS)
_EVERY = 1.0
_LASTS = 15.0
_LONGEST = 60.0


class Definition(msgspec.Struct, frozen=True):
    """A CRD that is there."""

    ours: bool
    served: tuple[str, ...]


class Installation(msgspec.Struct, frozen=True):
    """What is installed today in the namespace that was asked about."""

    version: str
    image: str
    replicas: int
    kinds: tuple[str, ...]
    claims: tuple[str, ...]
    by_helm: bool


class Survey(msgspec.Struct, frozen=True):
    owners: tuple[Owner, ...] = ()
    installed: Installation | None = None
    definitions: dict[str, Definition] = {}
    unserved: tuple[str, ...] = ()
    """The optional kinds that this cluster does not have, by their qualified names."""
    doors: tuple[Door, ...] = ()


async def look(connection: Connection, namespace: str) -> Survey:
    """Reads, and changes nothing. `namespace`: where Posse is or will be."""
    deployments = (await connection.list(DEPLOYMENT)).items
    leases = (await connection.list(LEASE)).items
    definitions = (await connection.list(CUSTOM_RESOURCE_DEFINITION)).items
    ours = [d for d in deployments if is_marked(d) and _place(d)[0] == namespace]
    candidates = _with_leases(_candidates(deployments, namespace), leases, namespace)
    renewed = await _renewed(connection, [lease for _, held in candidates for lease in held])
    return Survey(
        owners=tuple(
            owner for one, held in candidates if (owner := _judged(one, held, renewed)) is not None
        ),
        installed=_installation(ours),
        definitions={d["metadata"]["name"]: _definition(d) for d in definitions},
        unserved=await _unserved(connection),
        doors=await doors(connection),
    )


class _Candidate(NamedTuple):
    """A program that may own something, and what shows whether it lives."""

    owner: Owner
    replicas: int
    ready: int
    leases: tuple[str, ...]


class _Lease(NamedTuple):
    namespace: str
    name: str
    lasts: float
    record: str


def _candidates(deployments: list[dict[str, Any]], namespace: str) -> list[_Candidate]:
    found = []
    for deployment in sorted(deployments, key=_place):
        place = _place(deployment)
        recognised = recognise(deployment)
        if recognised is None or (is_marked(deployment) and place[0] == namespace):
            continue
        known, flags = recognised
        wanted = (deployment.get("spec") or {}).get("replicas")
        status = deployment.get("status") or {}
        found.append(
            _Candidate(
                Owner(
                    known.program,
                    *place,
                    kinds=owned_kinds(known, flags),
                    names=owned_names(known, flags),
                ),
                replicas=max(1 if wanted is None else wanted, status.get("replicas") or 0),
                ready=status.get("readyReplicas") or 0,
                leases=lease_names(known, flags),
            )
        )
    return found


def _with_leases(
    candidates: list[_Candidate], leases: list[dict[str, Any]], namespace: str
) -> list[tuple[_Candidate, list[_Lease]]]:
    """Each program with the leases that may be its own; a lease that no Deployment explains is
    held by a program that runs in another way."""
    paired: list[tuple[_Candidate, list[_Lease]]] = [(one, []) for one in candidates]
    for lease in sorted(leases, key=_place):
        place, name = _place(lease)
        held = _held(lease)
        if held is None or (place == namespace and name in _OWN_LEASES):
            continue
        explaining = [
            pair for pair in paired if pair[0].owner.deployment and name in pair[0].leases
        ]
        near = [pair for pair in explaining if pair[0].owner.namespace == place]
        for _, leases_of in near or explaining:
            leases_of.append(held)
        known = next((known for known in KNOWN if name in known.leases), None)
        if not explaining and known is not None:
            owner = Owner(known.program, place, lease=name, kinds=known.kinds, names=known.names)
            paired.append((_Candidate(owner, 0, 0, known.leases), [held]))
    return paired


def _judged(one: _Candidate, held: list[_Lease], renewed: set[_Lease]) -> Owner | None:
    """The owner, and how it shows that it lives; None for a lease that nobody holds any more.

    A lease has the word, where there is one: a Deployment may ask for replicas that never come.
    """
    live = [lease for lease in held if lease in renewed]
    if live:
        alive = f"its lease {live[0].namespace}/{live[0].name} is being renewed"
    elif one.ready or (one.replicas and not held):
        count = one.ready or one.replicas
        alive = f"its Deployment has {count} replica{'s' if count > 1 else ''}"
    else:
        alive = ""
    if not one.owner.deployment and not alive:
        return None
    return msgspec.structs.replace(one.owner, alive=alive)


async def _renewed(connection: Connection, leases: list[_Lease]) -> set[_Lease]:
    """Those that somebody renews; takes as long as the longest-lasting one that nobody does."""
    world = connection.world
    began = world.monotonic()
    undecided = dict.fromkeys(leases)
    found: set[_Lease] = set()
    while undecided:
        await asyncio.sleep(_EVERY)
        for lease in list(undecided):
            now = await _read(connection, lease)
            if now is None:
                del undecided[lease]
            elif now.record != lease.record:
                found.add(lease)
                del undecided[lease]
            elif world.monotonic() - began > min(lease.lasts, _LONGEST):
                del undecided[lease]
    return found


async def _read(connection: Connection, lease: _Lease) -> _Lease | None:
    try:
        return _held(await connection.get(LEASE, lease.name, lease.namespace))
    except NotFound:
        return None


def _held(lease: dict[str, Any]) -> _Lease | None:
    """None for a lease that was released."""
    spec = lease.get("spec") or {}
    holder, renewed = spec.get("holderIdentity"), spec.get("renewTime")
    if not holder:
        return None
    lasts = spec.get("leaseDurationSeconds")
    return _Lease(
        *_place(lease),
        float(lasts) if isinstance(lasts, int) and lasts > 0 else _LASTS,
        f"{holder} {renewed}",
    )


def _installation(deployments: list[dict[str, Any]]) -> Installation | None:
    by_name = {_place(deployment)[1]: deployment for deployment in deployments}
    scheduler = by_name.get(SCHEDULER)
    if scheduler is None:
        return None
    controllers = by_name.get(CONTROLLERS)
    container = _container(scheduler)
    kinds = flags_of(_container(controllers)).get("kinds", []) if controllers else []
    replicas = (scheduler.get("spec") or {}).get("replicas")
    return Installation(
        version=labels_of(scheduler).get(VERSION_LABEL, ""),
        image=str(container.get("image") or ""),
        replicas=Options().replicas if replicas is None else replicas,
        kinds=tuple(kinds),
        claims=tuple(flags_of(container).get("claim", [])),
        by_helm=labels_of(scheduler).get(MANAGED_BY) == "Helm",
    )


def _container(deployment: dict[str, Any]) -> dict[str, Any]:
    return next(iter(containers_of(deployment)), {})


def _definition(definition: dict[str, Any]) -> Definition:
    versions = (definition.get("spec") or {}).get("versions") or []
    return Definition(
        ours=is_marked(definition),
        served=tuple(str(v.get("name")) for v in versions if v.get("served")),
    )


async def _unserved(connection: Connection) -> tuple[str, ...]:
    absent = []
    for kind in OPTIONAL:
        try:
            served = await connection.resources(kind.group, kind.version)
        except NotFound:
            served = []
        if not any(resource.get("name") == kind.plural for resource in served):
            absent.append(kind.qualified)
    return tuple(absent)


def _place(obj: dict[str, Any]) -> tuple[str, str]:
    metadata = obj.get("metadata") or {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
