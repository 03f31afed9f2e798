"""Conversations with an API server, and its answers in a form in which two servers can be compared.

A conversation is a list of requests; one may quote an earlier answer: `{pod.metadata.uid}` in a
path or body stands for that field of the answer to the request labelled `pod`. Identities,
versions and times differ from run to run: they are numbered in the order of their appearance, so
that a version that stays, or a uid that changes, still shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from posse.kube.transport import Response

JSON = "application/json"


class Request(msgspec.Struct, frozen=True):
    label: str
    method: str
    path: str
    body: Any = None
    query: dict[str, str] = {}
    content_type: str = JSON
    accept: str = JSON


class Conversation(msgspec.Struct, frozen=True):
    """Held in a namespace of its own, of the same name; `{ns}` in a path is that namespace."""

    name: str
    requests: tuple[Request, ...]


class Answer(msgspec.Struct, frozen=True):
    status: int
    body: Any
    warnings: list[str] = []


Ask = Callable[[Request], Awaitable[Response]]


async def hold(conversation: Conversation, ask: Ask) -> dict[str, Answer]:
    """Asks everything in order; the answers by label, made comparable."""
    said: dict[str, Any] = {}
    answers: dict[str, Answer] = {}
    numbers = Numbers()
    for request in conversation.requests:
        response = await ask(_quoting(request, conversation.name, said))
        said[request.label] = _decoded(response, request)
        answers[request.label] = Answer(
            response.status,
            comparable(said[request.label], numbers),
            [numbers.masked(text) for text in _warnings(response)],
        )
    return answers


def _decoded(response: Response, request: Request) -> Any:
    try:
        if request.query.get("watch") and response.status == 200:
            return [json.loads(line) for line in response.body.splitlines()]
        return json.loads(response.body)
    except ValueError:
        return response.body.decode("utf-8", "replace")


def _warnings(response: Response) -> list[str]:
    return re.findall(r'299 \S+ "((?:[^"\\]|\\.)*)"', response.headers.get("warning", ""))


def _quoting(request: Request, namespace: str, said: dict[str, Any]) -> Request:
    def quote(match: re.Match[str]) -> str:
        label, *fields = match[1].split(".")
        if label == "ns":
            return namespace
        value = said[label]
        for field in fields:
            value = value[int(field) if field.isdecimal() else field]
        return str(value)

    def filled(value: Any) -> Any:
        match value:
            case str():
                return re.sub(r"\{([a-z][a-z0-9-]*(?:\.[A-Za-z0-9]+)*)\}", quote, value)
            case dict():
                return {key: filled(item) for key, item in value.items()}
            case list():
                return [filled(item) for item in value]
            case _:
                return value

    body = filled(request.body) if not isinstance(request.body, str) else request.body
    return msgspec.structs.replace(
        request, path=filled(request.path), body=body, query=filled(request.query)
    )


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_VERSION = re.compile(r"(?<=resource version: )\d+|(?<=meta: )\d+|(?<=in precondition: )\d+")
# Where a real cluster says more than the embedded one has: accounts are not modelled there, and
# who manages a field is compared by the conflicts it makes.
_LEFT_OUT: tuple[str, ...] = (
    "managedFields",
    "serviceAccount",
    "serviceAccountName",
    "storageVersionHash",
)
# Descriptions are prose; who is asked, and for how long there has been something, is chance.
_LEFT_OUT += ("description", "serverAddressByClientCIDRs")
# Whoever cannot read a request says so in words of his own.
_UNREADABLE = (400, 406, 415)
_WORDY = re.compile(r'StorageError: .*AdditionalErrorMsg: |(?<=Invalid value: )"\{.*\}": ')
_AGE = re.compile(r"\d+[smh]")
_GENERATED = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}$")


class Numbers:
    """Things without meaning, told apart by when they first appeared."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], str] = {}

    def of(self, kind: str, value: str) -> str:
        count = sum(1 for known, _ in self._seen if known == kind)
        return self._seen.setdefault((kind, value), f"<{kind} {count + 1}>")

    def masked(self, text: str) -> str:
        text = _WORDY.sub("", text.partition("\n")[0])
        text = _UUID.sub(lambda match: self.of("uid", match[0]), text)
        text = _VERSION.sub(lambda match: self.of("version", match[0]), text)
        return _TIME.sub("<time>", text)


def comparable(value: Any, numbers: Numbers) -> Any:
    match value:
        case {"kind": "Status", "code": code, "message": _} if code in _UNREADABLE:
            return comparable({k: v for k, v in value.items() if k != "message"}, numbers)
        case {"kind": str(kind), "metadata": {"resourceVersion": _} as metadata} if (
            kind == "Table" or kind.endswith("List")
        ):
            # The whole store has moved on by what others write.
            rest = {k: v for k, v in metadata.items() if k != "resourceVersion"}
            return comparable(value | {"metadata": rest}, numbers)
        case dict():
            return {
                key: _field(key, item, numbers)
                for key, item in value.items()
                if key not in _LEFT_OUT and (key, item) != ("continue", "")
            }
        case list():
            return [comparable(item, numbers) for item in value]
        case str():
            return numbers.masked(value)
        case _:
            return value


def _field(key: str, value: Any, numbers: Numbers) -> Any:
    match key, value:
        case ("resourceVersion", str()) if value:
            return numbers.of("version", value)
        case ("continue", str()) if value:
            return "<token>"
        case (("name" | "generateName"), str()):
            return _GENERATED.sub("<generated>", numbers.masked(value))
        case ("verbs", list()):
            return sorted(value)
        case ("cells", list()):
            return ["<age>" if _AGE.fullmatch(str(cell)) else cell for cell in value]
        case ("clusterIP", str()) if value not in ("", "None"):
            return "<address>"
        case ("clusterIPs", list()):
            return ["None" if item == "None" else "<address>" for item in value]
        case (("nodePort" | "healthCheckNodePort"), int()) if value:
            return "<port>"
        case _:
            return comparable(value, numbers)
