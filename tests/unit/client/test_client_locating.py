"""Posse is found in whatever namespace it is, by who may look there."""

from __future__ import annotations

from typing import Any

import pytest

from posse.client.locating import Located, locate
from posse.client.overview import look
from posse.kube.connection import Connection
from posse.kube.errors import Forbidden
from posse.objects import kinds
from posse.objects.times import rfc3339_micro
from tests.unit.client.test_client_installing_surveying import deployment, hold, server

pytestmark = pytest.mark.looptime


async def install(connection: Connection, namespace: str, name: str = "posse-scheduler") -> None:
    made = deployment(name, "posse:1", marked=True)
    await connection.create(kinds.DEPLOYMENT, made, namespace)


def places(found: Located) -> dict[str, list[str]]:
    return {
        service: [lease["metadata"]["namespace"] for lease in leases]
        for service, leases in found.leases.items()
    }


class Nearsighted(Connection):
    """Of one who may look into these namespaces, and never into all at once."""

    def __init__(self, whose: Connection, *sees: str) -> None:
        self.__dict__.update(whose.__dict__)
        self.sees = sees

    async def list(self, kind: Any, namespace: str = "", **options: Any) -> Any:
        self._check(namespace)
        return await super().list(kind, namespace, **options)

    async def get(self, kind: Any, name: str, namespace: str = "", **options: Any) -> Any:
        self._check(namespace)
        return await super().get(kind, name, namespace, **options)

    def _check(self, namespace: str) -> None:
        if namespace not in self.sees:
            raise Forbidden(403, "Forbidden", f"not in {namespace or 'all namespaces'}")


async def test_it_is_found_anywhere() -> None:
    async with server("ml-infra", "posse-system") as connection:
        await install(connection, "ml-infra")
        await hold(connection, "ml-infra", "posse-scheduler")
        await hold(connection, "ml-infra", "somebody-elses")
        await connection.create(kinds.DEPLOYMENT, deployment("web", "nginx"), "posse-system")
        found = await locate(connection)
        assert [each["metadata"]["namespace"] for each in found.deployments] == ["ml-infra"]
        assert places(found) == {"scheduler": ["ml-infra"], "controllers": []}
        assert found.namespaces == ("ml-infra",)


async def test_where_nothing_is_the_usual_places_are_named() -> None:
    async with server() as connection:
        found = await locate(connection)
        assert (found.deployments, found.hidden) == ((), ())
        assert found.namespaces == ("posse-system", "kube-system")


async def test_the_lease_beside_a_deployment_comes_before_one_left_behind() -> None:
    async with server("a-old", "ml-infra") as connection:
        await hold(connection, "a-old", "posse-scheduler")
        await hold(connection, "ml-infra", "posse-scheduler")
        assert places(await locate(connection))["scheduler"] == ["a-old", "ml-infra"]
        await install(connection, "ml-infra")
        assert places(await locate(connection))["scheduler"] == ["ml-infra", "a-old"]


async def test_one_namespace_alone_can_be_asked_about() -> None:
    async with server("a", "b") as connection:
        for namespace in ("a", "b"):
            await install(connection, namespace)
            await hold(connection, namespace, "posse-scheduler")
        found = await locate(connection, "b")
        assert [each["metadata"]["namespace"] for each in found.deployments] == ["b"]
        assert places(found)["scheduler"] == ["b"]


async def test_who_may_not_look_everywhere_sees_the_usual_places() -> None:
    async with server("posse-system", "ml-infra") as connection:
        await install(connection, "posse-system")
        await hold(connection, "posse-system", "posse-scheduler")
        await install(connection, "ml-infra")
        eyes = Nearsighted(connection, "posse-system")
        found = await locate(eyes)
        assert [each["metadata"]["namespace"] for each in found.deployments] == ["posse-system"]
        assert places(found)["scheduler"] == ["posse-system"]
        assert found.hidden == ()


async def test_who_may_see_nothing_is_told_so() -> None:
    async with server("posse-system") as connection:
        await install(connection, "posse-system")
        found = await locate(Nearsighted(connection))
        assert found.hidden == ("deployments in posse-system", "leases")
        assert found.leases == {}


async def test_a_status_where_posse_is_not_says_so() -> None:
    async with server("ml-infra") as connection:
        missing = "Posse is not installed here; `posse install` installs it"
        assert (await look(connection, "default")).problems == (missing,)
        await install(connection, "ml-infra")
        seen = await look(connection, "default")
        assert [(one.namespace, one.name) for one in seen.deployments] == [
            ("ml-infra", "posse-scheduler")
        ]
        assert "no scheduler has ever led: there is no lease posse-scheduler in any namespace" in (
            seen.problems
        )
        assert await look(connection, "default", "elsewhere") == seen


async def test_who_leads_is_shown_and_not_what_an_earlier_installation_left() -> None:
    async with server("a-old", "ml-infra") as connection:
        await hold(connection, "a-old", "posse-scheduler")
        lease = await hold(connection, "ml-infra", "posse-scheduler")
        fresh = {"spec": {"renewTime": rfc3339_micro(connection.world.now())}}
        await connection.patch(kinds.LEASE, lease["metadata"]["name"], fresh, "ml-infra")
        seen = await look(connection, "default")
        assert [one.lease for one in seen.leaders] == ["ml-infra/posse-scheduler"]
        assert seen.leaders[0].alive
