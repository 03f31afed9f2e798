"""Request bodies: strict JSON, the YAML that Kubernetes accepts, and its protobuf.

Whatever comes out can be written back as JSON: text without lone surrogates, finite numbers,
integers of 64 bits, at most MAX_DEPTH levels. A repeated key is not an error here: the last one
wins and its path is reported, for whoever asked for strict field validation.
"""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from posse.local.apiserver import goyaml
from posse.objects.schemas.protobuf import ProtobufError
from posse.objects.schemas.protobuf import decode as decode_protobuf

MAX_DEPTH = 200
_INT64 = 2**63
_JSON_PATCH = "application/json-patch+json"
_YAML_TYPES = ("application/yaml", "application/apply-patch+yaml")
_JSON_TYPES = (
    "",
    "application/json",
    _JSON_PATCH,
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
PROTOBUF = "application/vnd.kubernetes.protobuf"


class BadBody(Exception):
    """The body cannot be read; `code`, `reason` and `message` are those of the Status to answer."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message


class Body(msgspec.Struct):
    """What was sent, and the paths of fields that were given more than once."""

    value: Any
    duplicates: list[str]


def decode_body(content_type: str, body: bytes) -> Body:
    """An object (for a JSON patch: a list); BadBody says why there is none."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type in _YAML_TYPES:
        decoded = _read_yaml(body)
    elif media_type in _JSON_TYPES:
        decoded = _read_json(body)
    elif media_type == PROTOBUF:
        decoded = _read_protobuf(body)
    else:
        accepted = f"application/json, application/yaml, {PROTOBUF}"
        raise BadBody(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - "
            f"accepted media types include: {accepted}",
        )
    expected = list if media_type == _JSON_PATCH else dict
    if not isinstance(decoded.value, expected):
        name = "a list of operations" if expected is list else "an object"
        raise _bad(f"the body of the request must be {name}")
    return decoded


def _bad(message: str) -> BadBody:
    return BadBody(400, "BadRequest", message)


def _read_yaml(body: bytes) -> Body:
    try:
        document = goyaml.load(_text(body), MAX_DEPTH)
    except goyaml.YamlError as error:
        raise _bad(f"error converting YAML to JSON: {error}") from error
    return Body(document.value, document.duplicates)


def _read_protobuf(body: bytes) -> Body:
    try:
        return Body(decode_protobuf(body), [])
    except ProtobufError as error:
        raise _bad(str(error)) from error


def _read_json(body: bytes) -> Body:
    text = _text(body)
    if not text.strip(" \t\r\n"):
        raise _bad("the body of the request is empty")
    repeated = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        made = dict(pairs)
        if len(made) != len(pairs):
            repeated = True
        return made

    value = _parsed(text, members)
    # Only a body with this many brackets can be deeper than allowed.
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and _depth_exceeds(value, MAX_DEPTH):
        raise _bad(f"the body of the request is nested deeper than {MAX_DEPTH} levels")
    if b"\\u" in body:
        value = _without_surrogates(value)
    return Body(value, _duplicates(text) if repeated else [])


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _bad(f"the body of the request is not valid UTF-8: {error}") from error


def _parsed(text: str, members: Any) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=members,
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise _bad(f"couldn't get version/kind; json parse error: {error}") from error
    except RecursionError as error:
        raise _bad(f"the body of the request is nested deeper than {MAX_DEPTH} levels") from error


def _integer(digits: str) -> int:
    value = int(digits) if len(digits) < 25 else _INT64
    if not -_INT64 <= value < _INT64:
        raise _bad(f"json: cannot unmarshal number {digits[:40]}: it does not fit in 64 bits")
    return value


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _bad(f"json: cannot unmarshal number {text[:40]}: it is out of range")
    return value


def _constant(name: str) -> float:
    raise _bad(f"couldn't get version/kind; json parse error: {name} is not JSON")


def _depth_exceeds(value: Any, limit: int) -> bool:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > limit + 1:
            return True
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list)
        ]
    return False


def _without_surrogates(value: Any) -> Any:
    """Half a surrogate pair, written as an escape, becomes U+FFFD, as in Go's decoder."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list) else value


class _Members(list[tuple[str, Any]]):
    """An object's members as they were written, repeated ones included."""


def _duplicates(text: str) -> list[str]:
    """Read again, keeping every member, to name the repeated ones: rare, so it may be slow.

    They come in the order in which a reader meets them; what is inside comes before its owner.
    """
    found: dict[str, None] = {}
    stack: list[tuple[str, Any, bool]] = [("", _parsed(text, _Members), False)]
    while stack:
        at, value, repeated = stack.pop()
        if repeated and value is None:
            found[at] = None
        elif isinstance(value, _Members):
            seen: set[str] = set()
            inner: list[tuple[str, Any, bool]] = []
            for key, item in value:
                path = f"{at}.{key}" if at else key
                if key in seen:
                    inner.append((path, None, True))
                seen.add(key)
                inner.append((path, item, False))
            stack.extend(reversed(inner))
        elif isinstance(value, list):
            items = [(f"{at}[{index}]", item, False) for index, item in enumerate(value)]
            stack.extend(reversed(items))
    return list(found)
