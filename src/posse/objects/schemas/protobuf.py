"""Kubernetes' protobuf, read into the same objects that its JSON gives.

Go clients since 1.32 write built-in kinds this way. The wire knows numbers where JSON has names,
and carries the zeros of plain fields, which JSON leaves out: they are dropped, except where zero
and absent are two things (`?` and `!` in the notation).
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

import msgspec

from posse.objects.schemas.core import STRUCTS, sent_struct
from posse.objects.schemas.notation import Field, ListOf, MapOf, Named, Type
from posse.objects.times import rfc3339, rfc3339_micro

MAGIC = b"k8s\x00"
_MAX_DEPTH = 100  # of messages; JSON's limit counts lists and maps as well
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NUMBERS = ("int", "long", "bool", "float")
_PLAIN = ("string", "bytes", *_NUMBERS)

Table: TypeAlias = "dict[int, Field | Table]"


class ProtobufError(ValueError):
    """The bytes are not what they should be."""


def decode(data: bytes) -> dict[str, Any]:
    """The object in the envelope, with its kind and apiVersion."""
    if not data.startswith(MAGIC):
        raise ProtobufError("the body of the request has no protobuf magic")
    meta, raw = b"", b""
    for number, _, value in _parts(data[len(MAGIC) :]):
        if number == 1:
            meta = _bytes(value)
        elif number == 2:
            raw = _bytes(value)
    named = {number: _text(_bytes(value)) for number, _, value in _parts(meta)}
    api_version, kind = named.get(1, ""), named.get(2, "")
    try:
        name = sent_struct(api_version, kind).name
    except KeyError:
        why = f'no kind "{kind}" is registered for version "{api_version}"'
        raise ProtobufError(why) from None
    return {"kind": kind, "apiVersion": api_version, **_message(name, raw, 0)}


@cache
def _table(name: str) -> Table:
    table: Table = {}
    for field in STRUCTS[name].fields.values():
        *outer, number = field.number or (0,)
        level = table
        for step in outer:
            inner = level.setdefault(step, {})
            assert isinstance(inner, dict)
            level = inner
        if number:
            level[number] = field
    return table


def _message(name: str, data: bytes, depth: int) -> dict[str, Any]:
    if depth > _MAX_DEPTH:
        raise ProtobufError(f"the body of the request is nested deeper than {_MAX_DEPTH} messages")
    made: dict[str, Any] = {}
    _fill(made, _table(name), name, data, depth)
    return made


def _fill(made: dict[str, Any], table: Table, name: str, data: bytes, depth: int) -> None:
    for number, wire, value in _parts(data):
        field = table.get(number)
        if isinstance(field, dict):  # a message that JSON leaves out: its fields are this one's
            _fill(made, field, name, _bytes(value), depth)
        elif field is not None:
            _take(made, field, name, wire, value, depth)


def _take(
    made: dict[str, Any], field: Field, owner: str, wire: int, value: int | bytes, depth: int
) -> None:
    match field.type:
        case ListOf(Named(scalar)) if scalar in _NUMBERS and wire == _BYTES:
            packed = _packed(_bytes(value))
            made.setdefault(field.name, []).extend(_number(scalar, one) for one in packed)
        case ListOf(item):
            made.setdefault(field.name, []).append(_value(item, value, depth))
        case MapOf(item):
            key, content = "", None
            for number, _, part in _parts(_bytes(value)):
                if number == 1:
                    key = _text(_bytes(part))
                else:
                    content = _mapped(item, part, depth)
            made.setdefault(field.name, {})[key] = content if content is not None else _empty(item)
        case Named("JSONSchemaProps") if owner == "JSONSchemaProps" and field.name == "items":
            made[field.name] = _first_of(value, depth)
        case Named(name) if name in _PLAIN and not (field.required or field.optional):
            if found := _value(field.type, value, depth):
                made[field.name] = found
        case kind:
            made[field.name] = _value(kind, value, depth)


def _value(of: Type, value: int | bytes, depth: int) -> Any:
    match of:
        case Named("string"):
            return _text(_bytes(value))
        case Named("bytes"):
            return base64.b64encode(_bytes(value)).decode()
        case Named(name) if name in _NUMBERS:
            return _number(name, value)
        case Named("quantity"):
            return _inner(value).get(1, b"0").decode("utf-8", "replace")
        case Named("intstr"):
            return _int_or_string(value)
        case Named("time" | "microtime" as name):
            return _time(name, value)
        case Named("any"):
            return _json(_inner(value).get(1, b"null"))
        case Named("JSONSchemaPropsOrBool"):
            return _schema_or_bool(value, depth)
        case Named(name):
            return _message(name, _bytes(value), depth + 1)
        case _:
            raise ProtobufError("a list stands where none can be")


def _mapped(item: Type, value: int | bytes, depth: int) -> Any:
    """A map's value; a list as such is a message of its own."""
    if isinstance(item, ListOf):
        return [_value(item.item, part, depth) for _, _, part in _parts(_bytes(value))]
    return _value(item, value, depth)


def _empty(item: Type) -> Any:
    match item:
        case Named("string" | "bytes"):
            return ""
        case Named("quantity"):
            return "0"
        case ListOf():
            return []
        case _:
            return {}


def _number(name: str, value: int | bytes) -> Any:
    if name == "float":
        return struct.unpack("<d", _int(value).to_bytes(8, "little"))[0]
    whole = _int(value)
    if name == "bool":
        return whole != 0
    return whole - (1 << 64) if whole >= 1 << 63 else whole


def _int_or_string(value: int | bytes) -> int | str:
    parts = {number: part for number, _, part in _parts(_bytes(value))}
    if _int(parts.get(1, 0)):
        return _text(_bytes(parts.get(3, b"")))
    whole: int = _number("long", parts.get(2, 0))
    return whole


def _time(name: str, value: int | bytes) -> str | None:
    """An empty message is no time at all."""
    parts = {number: part for number, _, part in _parts(_bytes(value))}
    if not parts:
        return None
    seconds, nanos = (_number("long", parts.get(number, 0)) for number in (1, 2))
    try:
        return rfc3339(seconds) if name == "time" else rfc3339_micro(seconds + nanos / 1e9)
    except (OverflowError, OSError, ValueError) as error:
        raise ProtobufError(f"a time is out of range: {seconds}") from error


def _schema_or_bool(value: int | bytes, depth: int) -> Any:
    parts = {number: part for number, _, part in _parts(_bytes(value))}
    if 2 in parts:
        return _message("JSONSchemaProps", _bytes(parts[2]), depth + 1)
    return _int(parts.get(1, 0)) != 0


def _first_of(value: int | bytes, depth: int) -> Any:
    """`items`: one schema, or a list of them."""
    schemas = [(number, part) for number, _, part in _parts(_bytes(value))]
    made = [_message("JSONSchemaProps", _bytes(part), depth + 1) for _, part in schemas]
    return made[0] if [number for number, _ in schemas] == [1] else made


def _inner(value: int | bytes) -> dict[int, bytes]:
    return {number: _bytes(part) for number, _, part in _parts(_bytes(value))}


def _json(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError as error:
        raise ProtobufError(f"json parse error: {error}") from error


def _parts(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and content of each field; content of fixed width comes as an integer."""
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise ProtobufError(f"wire type {wire} is not in use")
        if size > end - at:
            raise ProtobufError("unexpected EOF")
        content, at = data[at : at + size], at + size
        yield number, wire, content if wire == _BYTES else int.from_bytes(content, "little")


def _packed(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for place in range(at, min(at + 10, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, place + 1
        shift += 7
    raise ProtobufError("unexpected EOF" if len(data) - at < 10 else "integer overflow")


def _int(value: int | bytes) -> int:
    if isinstance(value, int):
        return value
    raise ProtobufError("a number was expected")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ProtobufError("a message or text was expected")


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ProtobufError(f"text is not valid UTF-8: {error}") from error
