"""The notation in which the built-in kinds' fields are written down.

One struct a line (indented lines continue it): `Name: field field ...`. A field is

    name            a string
    name:type       int (32 bits), long, float, bool, quantity, intstr, time, microtime, bytes, any,
                    or the name of another struct
    name:[type]     a list;  name:{type}  a map with string keys
    name#N          N is its number in protobuf;  name#M.N  N in the message M that JSON leaves out
    name!           one that every object should carry
    name?           a scalar that can be absent and can be zero, which are two things
    name=           one that is written even when it says nothing: null, {} or the scalar's zero

and may end in how strategic merge patches treat it: `@key` merges a list of structs by that key,
`@` alone merges a list of scalars as a set, `~` marks a struct (or a list's elements) whose unnamed
keys a patch may drop with $retainKeys, `^` a struct that a patch replaces whole. A list without `@`
is replaced whole.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

_FIELD = re.compile(
    r"(?P<name>[$\w-]+)(?:#(?P<number>\d+(?:\.\d+)?))?(?P<required>!)?"
    r"(?::(?P<type>[\w\[\]{}]+))?(?P<optional>\?)?(?P<written>=)?"
    r"(?P<merge>@(?P<key>\w*))?(?P<retain>~)?(?P<whole>\^)?"
)


class Named(msgspec.Struct, frozen=True):
    """A scalar or another struct."""

    name: str


class ListOf(msgspec.Struct, frozen=True):
    item: Type


class MapOf(msgspec.Struct, frozen=True):
    item: Type


Type: TypeAlias = Named | ListOf | MapOf


class Field(msgspec.Struct, frozen=True):
    name: str
    type: Type
    number: tuple[int, ...] = ()  # in protobuf, from the outermost message; () has none
    required: bool = False
    optional: bool = False
    written: bool = False
    merge_key: str | None = None  # "" merges a list of scalars as a set
    retains_keys: bool = False
    replaced: bool = False


class Struct(msgspec.Struct, frozen=True):
    name: str
    fields: dict[str, Field]


def read(*texts: str) -> dict[str, Struct]:
    """Every struct of the texts by name; ValueError for a line that is not in the notation."""
    structs: dict[str, Struct] = {}
    for text in texts:
        for line in re.sub(r"\n\s+", " ", text).splitlines():
            if not line:
                continue
            name, _, fields = line.partition(":")
            if name in structs:
                raise ValueError(f"struct {name} is written twice")
            read_fields = [_field(name, token) for token in fields.split()]
            structs[name] = Struct(name, {field.name: field for field in read_fields})
    return structs


def _field(struct: str, token: str) -> Field:
    match = _FIELD.fullmatch(token)
    if match is None:
        raise ValueError(f"{struct}: {token!r} is not a field")
    return Field(
        name=match["name"],
        type=_type(match["type"] or "string"),
        number=tuple(int(part) for part in (match["number"] or "").split(".") if part),
        required=match["required"] is not None,
        optional=match["optional"] is not None,
        written=match["written"] is not None,
        merge_key=match["key"] if match["merge"] else None,
        retains_keys=match["retain"] is not None,
        replaced=match["whole"] is not None,
    )


def _type(text: str) -> Type:
    if text.startswith("[") and text.endswith("]"):
        return ListOf(_type(text[1:-1]))
    if text.startswith("{") and text.endswith("}"):
        return MapOf(_type(text[1:-1]))
    return Named(text)
