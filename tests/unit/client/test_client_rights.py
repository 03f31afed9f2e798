"""Who may see some kinds of jobs: those are found, and the others are not in the way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.client.errors import JobNotFound
from posse.client.training import Training
from posse.kube.connection import Connection
from posse.kube.errors import Forbidden
from posse.kube.transport import Response
from posse.world import World

JOB = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata": {"name": "j", "namespace": "team", "uid": "1"},
    "spec": {},
}


class Server:
    """Has one MPIJob and no pods; of the plurals that it is told, nothing is shown."""

    def __init__(self, *hidden: str) -> None:
        self._hidden = hidden

    async def request(self, method: str, path: str, **_: Any) -> Response:
        assert method == "GET"
        if any(plural in path for plural in self._hidden):
            return self._status(403, "Forbidden")
        if path.endswith("/mpijobs/j"):
            return self._answer(200, JOB)
        if path.endswith(("/mpijobs", "/tfjobs", "/pods")):
            items = [JOB] if path.endswith("/mpijobs") else []
            return self._answer(200, {"metadata": {"resourceVersion": "1"}, "items": items})
        return self._status(404, "NotFound")

    def _status(self, code: int, reason: str) -> Response:
        return self._answer(code, {"kind": "Status", "code": code, "reason": reason})

    def _answer(self, code: int, document: dict[str, Any]) -> Response:
        return Response(code, {"content-type": "application/json"}, msgspec.json.encode(document))

    def stream(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is watched")

    async def close(self) -> None:
        pass


def seen_by(*hidden: str) -> Training:
    return Training(Connection(Server(*hidden), World.real()), "team")


async def test_a_kind_that_is_hidden_is_not_in_the_way_of_another() -> None:
    training = seen_by("tfjobs")
    assert (await training.get("j")).trainer == "mpijob"
    assert [job.name for job in await training.jobs()] == ["j"]


async def test_what_may_be_of_a_hidden_kind_is_not_said_to_be_missing() -> None:
    with pytest.raises(Forbidden):
        await seen_by("tfjobs").get("other")
    with pytest.raises(JobNotFound):
        await seen_by().get("other")


async def test_who_may_see_no_kind_of_job_is_told_so() -> None:
    training = seen_by("tfjobs", "mpijobs")
    with pytest.raises(Forbidden):
        await training.jobs()
    with pytest.raises(Forbidden):
        await training.get("j")
