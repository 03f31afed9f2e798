"""The webhook as a server: what it takes in, how long it takes, and what it survives."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from typing import Any

import pytest

from posse.admission import app as webhook_app
from posse.admission.app import LARGEST_BODY, Webhook
from posse.admission.observing import Observer
from posse.admission.wire import Object
from posse.kube.errors import Unreachable
from posse.kube.inprocess import AsgiTransport
from posse.kube.transport import Response
from posse.objects.keys import HELD, WRITTEN_AS
from posse.objects.kinds import Kind
from posse.world import World
from tests.unit.admission.questions import Known, Rights, in_queue, mpi_job, pod_group, tf_job

_JSON = {"content-type": "application/json"}


class Counted(Observer):
    def __init__(self) -> None:
        self.reviews: list[tuple[str, str, str]] = []

    def reviewed(self, kind: str, stage: str, outcome: str, seconds: float) -> None:
        self.reviews.append((kind, stage, outcome))


class Asleep(Known):
    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        await asyncio.sleep(3600)
        return None


def question(obj: Object, **fields: Any) -> bytes:
    group, _, version = obj["apiVersion"].rpartition("/")
    request = {
        "uid": "question-1",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "operation": "CREATE",
        "name": obj["metadata"]["name"],
        "namespace": "ns",
        "userInfo": {"username": "ann"},
        "object": obj,
    } | fields
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()


async def ask(
    body: bytes | None,
    path: str = "/validate",
    *,
    method: str = "POST",
    headers: dict[str, str] | None = None,
    reader: Known | None = None,
    rights: Rights | None = None,
    observer: Observer | None = None,
    query: dict[str, str] | None = None,
) -> Response:
    webhook = Webhook(reader or Known(), rights or Rights(), World.real(), observer)
    transport = AsgiTransport(webhook)
    try:
        return await transport.request(
            method, path, headers=_JSON if headers is None else headers, body=body, query=query
        )
    finally:
        await transport.close()


def response(answer: Response) -> Any:
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["response"]


async def test_a_question_is_answered() -> None:
    observer = Counted()
    assert response(await ask(question(mpi_job()), observer=observer)) == {
        "uid": "question-1",
        "allowed": True,
    }
    denied = response(await ask(question(mpi_job(0)), observer=observer))
    assert denied["allowed"] is False
    assert observer.reviews == [("MPIJob", "validate", "allowed"), ("MPIJob", "validate", "denied")]


async def test_a_change_is_answered_as_a_patch() -> None:
    answer = response(await ask(question(tf_job()), "/mutate"))
    patch = json.loads(base64.b64decode(answer["patch"]))
    assert patch[0]["value"] == {WRITTEN_AS: "kubeflow.org/v1"}


async def test_kinds_of_strangers_are_not_counted_by_name() -> None:
    observer = Counted()
    thing = {"apiVersion": "example.com/v1", "kind": "Anything", "metadata": {"name": "x"}}
    assert response(await ask(question(thing), observer=observer))["allowed"]
    assert observer.reviews == [("other", "validate", "allowed")]


DOORS = [
    ("GET", "/healthz", 200),
    ("HEAD", "/healthz", 200),
    ("POST", "/healthz", 405),
    ("GET", "/validate", 405),
    ("PUT", "/mutate", 405),
    ("POST", "/", 404),
    ("POST", "/validate/", 404),
    ("GET", "/metrics", 404),
]


@pytest.mark.parametrize(("method", "path", "status"), DOORS)
async def test_there_are_no_other_doors(method: str, path: str, status: int) -> None:
    assert (await ask(b"{}" if method == "PUT" else None, path, method=method)).status == status


BODIES = [
    ("no question", b"{}", _JSON, 400),
    ("no JSON", b"\xff", _JSON, 400),
    ("another type", question(mpi_job()), {"content-type": "text/plain"}, 415),
    ("no type", question(mpi_job()), {}, 415),
    ("a type with a charset", question(mpi_job()),
     {"content-type": "application/json; charset=utf-8"}, 200),
    ("too much", b" " * (LARGEST_BODY + 1), _JSON, 413),
    ("as much as may be", question(mpi_job()).ljust(LARGEST_BODY), _JSON, 200),
]  # fmt: skip


@pytest.mark.parametrize(
    ("why", "body", "headers", "status"), BODIES, ids=[row[0] for row in BODIES]
)
async def test_bodies_are_bounded_and_of_one_type(
    why: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    assert (await ask(body, headers=headers)).status == status


async def _spoken(webhook: Webhook, messages: list[dict[str, Any]], **more: Any) -> int:
    """The status of an answer to messages that come one by one, and then nothing more."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop(0)
        await asyncio.sleep(3600)
        raise AssertionError("nobody waits so long")

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/validate", "query_string": b"",
        "headers": [(b"content-type", b"application/json")],
    } | more  # fmt: skip
    await webhook(scope, receive, send)
    return int(sent[0]["status"])


async def test_a_body_without_an_announced_length_is_bounded_too() -> None:
    part = {"type": "http.request", "body": b" " * (1 << 20), "more_body": True}
    webhook = Webhook(Known(), Rights(), World.real())
    assert await _spoken(webhook, [dict(part) for _ in range(4)]) == 413


async def test_whoever_leaves_in_the_middle_is_let_go() -> None:
    webhook = Webhook(Known(), Rights(), World.real())
    assert await _spoken(webhook, [{"type": "http.disconnect"}]) == 400


@pytest.mark.looptime
async def test_a_body_that_never_ends_is_not_waited_for() -> None:
    webhook = Webhook(Known(), Rights(), World.real())
    part = {"type": "http.request", "body": b"{", "more_body": True}
    began = asyncio.get_running_loop().time()
    assert await _spoken(webhook, [part]) == 504
    assert asyncio.get_running_loop().time() - began == webhook_app.LONGEST


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("said", "waits"), [("2s", 2.0), ("1h", 10.0), ("soon", 10.0), ("-1s", 10)]
)
async def test_an_answer_comes_while_somebody_still_wants_it(said: str, waits: float) -> None:
    began = asyncio.get_running_loop().time()
    job = question(mpi_job(run=in_queue("q")))
    answer = await ask(job, reader=Asleep(), query={"timeout": said})
    assert answer.status == 504
    assert asyncio.get_running_loop().time() - began == pytest.approx(waits)


async def test_a_review_that_breaks_is_for_the_failure_policy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The program goes on, and its log says where, without a word of the object."""

    async def broken(request: Any, *others: Any) -> Any:
        raise RuntimeError(str(request.object))

    observer = Counted()
    with monkeypatch.context() as patched, caplog.at_level(logging.DEBUG):
        patched.setattr(webhook_app, "review", broken)
        answer = await ask(question(mpi_job()), observer=observer)
    assert answer.status == 500
    assert observer.reviews == [("MPIJob", "validate", "failed")]
    assert "RuntimeError" in caplog.text
    assert "in broken" in caplog.text
    assert "hunter2" not in caplog.text + answer.body.decode()
    assert response(await ask(question(mpi_job())))["allowed"]


async def test_a_right_that_cannot_be_checked_is_for_the_failure_policy() -> None:
    group = pod_group(metadata={"annotations": {HELD: "{}"}})
    rights = Rights(error=Unreachable("no answer"))
    assert (await ask(question(group), rights=rights)).status == 500
