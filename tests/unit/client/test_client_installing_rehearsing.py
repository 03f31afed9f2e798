"""What an API server would refuse is found before anything is done."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.client.errors import NotAllowed, PosseError
from posse.client.installing import Options, objects
from posse.client.installing.rehearsing import rehearse, rehearse_removal
from posse.client.installing.removing import Leaving
from posse.kube.connection import Connection
from posse.kube.transport import Headers, Query, Response
from posse.objects.keys import INSTALLED_LABEL
from posse.objects.kinds import CLUSTER_ROLE, QUEUE
from posse.world import World

BARRED = {"code": 403, "reason": "Forbidden", "message": "ed may not do that"}
ENDING = {
    "code": 403,
    "reason": "Forbidden",
    "message": "it is being terminated",
    "details": {"causes": [{"reason": "NamespaceTerminating"}]},
}
INVALID = {"code": 422, "reason": "Invalid", "message": "value is immutable"}
NOT_THERE = {"code": 404, "reason": "NotFound", "message": "no"}


class Server:
    """Has what it is told (by the end of its path), and answers writes to it as it is told."""

    def __init__(self, **answers: dict[str, Any]) -> None:
        self.there: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, dict[str, Any]] = answers
        self.written: list[str] = []

    async def request(
        self, method: str, path: str, *, query: Query | None = None, **_: Any
    ) -> Response:
        name = path.rpartition("/")[2]
        if method == "GET":
            return _answer(self.there.get(name, NOT_THERE))
        assert dict(query or {}).get("dryRun") == "All", f"{method} {path} was meant"
        self.written.append(name)
        for end, answer in self.answers.items():
            if end.replace("_", "-") in path:
                return _answer(answer)
        return _answer({"metadata": {"name": name}})

    def stream(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is watched")

    async def close(self) -> None:
        pass


def _answer(document: dict[str, Any]) -> Response:
    code = document.get("code", 200)
    kind = {"kind": "Status"} if code >= 300 else {}
    headers: Headers = {"content-type": "application/json"}
    return Response(code, headers, msgspec.json.encode(kind | document))


async def obstacle(server: Server) -> PosseError | None:
    return await rehearse(Connection(server, World.real()), objects(Options()))


async def test_nothing_stands_against_an_installation_on_an_empty_cluster() -> None:
    server = Server()
    assert await obstacle(server) is None
    assert len(server.written) == len(objects(Options()))


async def test_rights_that_are_missing_are_named_by_what_they_are_for() -> None:
    met = await obstacle(Server(clusterroles=BARRED, flowschemas=BARRED))
    assert isinstance(met, NotAllowed)
    assert str(met) == "ed may not do that; the same goes for clusterroles"


@pytest.mark.parametrize("answer", [NOT_THERE, ENDING], ids=["not there", "going"])
async def test_what_is_yet_to_come_is_no_obstacle(answer: dict[str, Any]) -> None:
    assert await obstacle(Server(posse_system=answer, queues=NOT_THERE)) is None


async def test_what_is_somebody_elses_is_named_with_what_to_do() -> None:
    server = Server()
    server.there["posse-view"] = {"metadata": {"name": "posse-view"}}
    met = await obstacle(server)
    assert type(met) is PosseError
    assert str(met) == (
        "there is a clusterrole posse-view which is not Posse's; remove it, or give it to Posse: "
        f"kubectl label clusterrole posse-view {INSTALLED_LABEL}=true"
    )


@pytest.mark.parametrize("name", ["posse-high", "queues.scheduling.volcano.sh", "posse-system"])
async def test_what_does_as_well_when_it_is_somebody_elses_stays(name: str) -> None:
    server = Server()
    server.there[name] = {"metadata": {"name": name}}
    assert await obstacle(server) is None
    assert name not in server.written


async def test_what_cannot_be_changed_is_said_beforehand() -> None:
    server = Server(posse_high=INVALID)
    server.there["posse-high"] = {"metadata": {"labels": {INSTALLED_LABEL: "true"}}}
    assert str(await obstacle(server)) == (
        "priorityclass posse-high is there and cannot be changed: value is immutable"
    )


async def test_what_cannot_be_made_is_said_beforehand() -> None:
    assert str(await obstacle(Server(flowschemas=INVALID))) == (
        "flowschema posse-leases cannot be made: value is immutable"
    )


async def test_rights_are_missed_before_anything_is_removed() -> None:
    found = [
        Leaving(CLUSTER_ROLE, {"metadata": {"name": "posse-view", "uid": "1"}}),
        Leaving(QUEUE, {"metadata": {"name": "default", "uid": "2"}}),
    ]
    connection = Connection(Server(clusterroles=BARRED, queues=BARRED), World.real())
    met = await rehearse_removal(connection, found)
    assert isinstance(met, NotAllowed)
    assert str(met) == "ed may not do that"
