"""Where in a cluster Posse's programs are: nobody has to have put them where they are by default.

Deployments are known by the mark of the installation, leases by their names. Who may not look into
every namespace is shown what is in the usual ones.
"""

from __future__ import annotations

from typing import Any

import msgspec

from posse.client.installing.marking import SELECTOR
from posse.client.installing.options import NAMESPACE
from posse.controllers.program import LEASE_NAME as CONTROLLERS
from posse.kube.connection import Connection
from posse.kube.errors import Forbidden, NotFound
from posse.objects.kinds import DEPLOYMENT, LEASE
from posse.objects.raw import text
from posse.scheduler.config import LEASE_NAME as SCHEDULER

LEASES = {"scheduler": SCHEDULER, "controllers": CONTROLLERS}
# Programs in the cluster, and beside it.
USUAL = (NAMESPACE, "kube-system")

Raw = dict[str, Any]


class Located(msgspec.Struct, frozen=True, kw_only=True):
    deployments: tuple[Raw, ...] = ()
    # By service, those first that belong to a Deployment, then the latest renewed.
    leases: dict[str, tuple[Raw, ...]] = {}
    hidden: tuple[str, ...] = ()  # what one may not see

    @property
    def found(self) -> bool:
        return bool(self.deployments) or any(self.leases.values())

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Where anything was found; where it usually is, if nothing was."""
        found = [place_of(each) for each in self.deployments]
        found += [place_of(lease) for leases in self.leases.values() for lease in leases]
        return tuple(dict.fromkeys(found)) or USUAL


async def locate(connection: Connection, within: str = "") -> Located:
    """`within`: only in this namespace."""
    hidden: list[str] = []
    try:
        deployments = await _deployments(connection, within)
    except Forbidden:
        deployments = []
        hidden.append(f"deployments in {within or NAMESPACE}")
    homes = [place_of(each) for each in deployments]
    places = [within] if within else list(dict.fromkeys([*homes, *USUAL]))
    leases: dict[str, tuple[Raw, ...]] = {}
    for service, name in LEASES.items():
        try:
            found = await _leases(connection, name, within, places)
        except Forbidden:
            hidden.append("leases")
            continue
        found.sort(key=place_of)
        found.sort(key=lambda lease: text(lease.get("spec"), "renewTime"), reverse=True)
        found.sort(key=lambda lease: place_of(lease) not in homes)
        leases[service] = tuple(found)
    return Located(
        deployments=tuple(deployments), leases=leases, hidden=tuple(dict.fromkeys(hidden))
    )


def place_of(obj: Raw) -> str:
    return text(obj.get("metadata"), "namespace")


async def _deployments(connection: Connection, within: str) -> list[Raw]:
    try:
        listed = await connection.list(DEPLOYMENT, within, labels=SELECTOR)
    except Forbidden:
        if within:
            raise
        listed = await connection.list(DEPLOYMENT, NAMESPACE, labels=SELECTOR)
    return sorted(
        listed.items, key=lambda each: (place_of(each), text(each.get("metadata"), "name"))
    )


async def _leases(connection: Connection, name: str, within: str, places: list[str]) -> list[Raw]:
    try:
        listed = await connection.list(LEASE, within, fields=f"metadata.name={name}")
    except Forbidden:
        return await _one_by_one(connection, name, places)
    return [lease for lease in listed.items if text(lease.get("metadata"), "name") == name]


async def _one_by_one(connection: Connection, name: str, places: list[str]) -> list[Raw]:
    """Forbidden only where nothing may be read anywhere."""
    found: list[Raw] = []
    refused: Forbidden | None = None
    seen = False
    for place in places:
        try:
            found.append(await connection.get(LEASE, name, place))
        except NotFound:
            seen = True
        except Forbidden as error:
            refused = error
    if refused is not None and not (found or seen):
        raise refused
    return found
