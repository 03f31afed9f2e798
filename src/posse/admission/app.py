"""The webhook as an ASGI application: /validate, /mutate and /healthz.

Whoever reaches the port may ask, so nobody may make it hold much or wait long. It answers 200 only
with a review; whatever else it answers, the API server goes by the webhook's failurePolicy.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from urllib.parse import parse_qs

import msgspec

from posse.admission.lookups import Authorizer, Reader
from posse.admission.observing import Observer
from posse.admission.review import Stage, door_of, review
from posse.admission.wire import AdmissionRequest, MalformedReview, Review, read, written
from posse.kube.errors import KubeError
from posse.kube.inprocess import Message, Receive, Send
from posse.objects.times import parse_duration
from posse.world import World

_log = logging.getLogger(__name__)

LARGEST_BODY = 3 << 20
"""As much as an API server takes from its own users."""
LONGEST = 10.0
"""Seconds for one question, its body included; less where the API server says so."""

_STAGES = {"/mutate": Stage.MUTATING, "/validate": Stage.VALIDATING}
_JSON = b"application/json"


class _Refusal(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Webhook:
    def __init__(
        self,
        reader: Reader,
        authorizer: Authorizer,
        world: World,
        observer: Observer | None = None,
    ) -> None:
        self._reader = reader
        self._authorizer = authorizer
        self._observer = observer or Observer()
        self._world = world

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            status, body = 200, await self._answer(scope, receive)
        except _Refusal as refusal:
            status, body = refusal.code, msgspec.json.encode({"message": refusal.message})
        headers = [(b"content-type", _JSON), (b"content-length", str(len(body)).encode())]
        if status != 200:
            # The rest of a body may still be on its way, and nobody will read it.
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Message, receive: Receive) -> bytes:
        path, method = scope["path"], scope["method"]
        if path == "/healthz":
            if method not in ("GET", "HEAD"):
                raise _Refusal(405, "only GET and HEAD")
            return b"" if method == "HEAD" else b'{"status":"ok"}'
        stage = _STAGES.get(path)
        if stage is None:
            raise _Refusal(404, "there are /validate, /mutate and /healthz")
        if method != "POST":
            raise _Refusal(405, "only POST")
        return await self._review(scope, receive, stage)

    async def _review(self, scope: Message, receive: Receive, stage: Stage) -> bytes:
        try:
            async with asyncio.timeout(_patience(scope)):
                request = read(await _body(scope, receive))
                answer = await self._judged(request, stage)
        except TimeoutError:
            raise _Refusal(504, "not answered in time") from None
        except MalformedReview as error:
            raise _Refusal(400, str(error)) from None
        return written(request.uid, answer)

    async def _judged(self, request: AdmissionRequest, stage: Stage) -> Review:
        began = self._world.monotonic()
        outcome = "failed"
        try:
            answer = await review(request, self._reader, self._authorizer, stage)
            outcome = "allowed" if answer.allowed else "denied"
            return answer
        except KubeError as error:
            _log.warning("%s: not answered: %s", _named(request), error)
            raise _Refusal(500, "the API server could not be asked") from None
        except Exception as error:  # noqa: BLE001 - the next question may be a better one
            # Its message may quote the object, and objects may hold secrets.
            where = "".join(traceback.format_tb(error.__traceback__))
            _log.error("%s: not answered: %s\n%s", _named(request), type(error).__name__, where)
            raise _Refusal(500, "the review failed; the webhook's log says where") from None
        finally:
            seconds = self._world.monotonic() - began
            known = door_of(request.kind) is not None
            kind = request.kind.kind if known else "other"
            self._observer.reviewed(kind, stage.value, outcome, seconds)


async def _body(scope: Message, receive: Receive) -> bytes:
    headers = dict(scope["headers"])
    if headers.get(b"content-type", b"").split(b";")[0].strip().lower() != _JSON:
        raise _Refusal(415, "only application/json")
    announced = headers.get(b"content-length", b"0")
    if not announced.isdigit() or int(announced) > LARGEST_BODY:
        raise _Refusal(413, f"no more than {LARGEST_BODY} bytes")
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Refusal(400, "the request ended too early")
        part = message.get("body", b"")
        size += len(part)
        if size > LARGEST_BODY:
            raise _Refusal(413, f"no more than {LARGEST_BODY} bytes")
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _patience(scope: Message) -> float:
    """API servers say how long they will wait: `?timeout=5s`."""
    said = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("timeout", [""])[0]
    try:
        seconds = parse_duration(said)
    except ValueError:
        return LONGEST
    return min(LONGEST, seconds) if seconds > 0 else LONGEST


def _named(request: AdmissionRequest) -> str:
    place = f"{request.namespace}/{request.name}" if request.namespace else request.name
    return f"{request.operation} {request.kind.kind} {place}"
