"""YAML as Kubernetes reads it: one document, turned into what JSON can say.

Kubernetes' reader resolves plain scalars in its own way: `yes` and `on` are booleans, `0o17` and
`1e3` are numbers, `1:30` and dates are strings. Documents are built from libyaml's events without
recursion, and what aliases may repeat is bounded, so no short text grows large.
"""

from __future__ import annotations

import base64
import math
import re
from typing import Any

import msgspec
import yaml

_MAX_REPEATED = 100_000
_INT64 = 2**63
_PREFIX = "tag:yaml.org,2002:"
_BOOLEANS = {
    **dict.fromkeys(("y", "yes", "true", "on"), True),
    **dict.fromkeys(("n", "no", "false", "off"), False),
}
_CONSTANTS: dict[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
for _word, _value in _BOOLEANS.items():
    _CONSTANTS |= {_word: _value, _word.capitalize(): _value, _word.upper(): _value}
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)", re.ASCII)


class YamlError(ValueError):
    """The text is not one YAML document that JSON could express."""


class Document(msgspec.Struct):
    value: Any
    duplicates: list[str]


class _Open:
    """A collection whose end has not been read yet."""

    __slots__ = ("anchor", "at", "key", "merged", "seen", "value", "weight")

    def __init__(self, value: Any, at: str, anchor: str | None) -> None:
        self.value = value
        self.at = at
        self.anchor = anchor
        self.key: str | None = None
        self.seen: set[str] = set()
        self.merged: list[dict[str, Any]] = []
        self.weight = 1


class _Merge(str):
    """The key `<<`, which takes in the members of another mapping."""


def load(text: str, max_depth: int) -> Document:
    """The only document of `text`; YamlError says what is wrong with it."""
    documents = load_all(text, max_depth, most=1)
    if not documents:
        raise YamlError("the document is empty")
    return documents[0]


def load_all(text: str, max_depth: int, *, most: int = 100_000) -> list[Document]:
    """Every document of `text`."""
    builders: list[_Builder] = []
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentStartEvent):
                if len(builders) == most:
                    raise YamlError("more than one document" if most == 1 else "too many documents")
                builders.append(_Builder(max_depth))
            elif builders:
                builders[-1].take(event)
    except yaml.YAMLError as error:
        raise YamlError(" ".join(str(error).split())) from error
    return [Document(builder.root, builder.duplicates) for builder in builders]


class _Builder:
    def __init__(self, max_depth: int) -> None:
        self.root: Any = None
        self.duplicates: list[str] = []
        self._max_depth = max_depth
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._repeated = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                value = _scalar(event)
                if event.anchor:
                    self._anchors[event.anchor] = (value, 1)
                self._add(value, 1)
            case yaml.AliasEvent():
                self._add(*self._aliased(event.anchor or ""))
            case yaml.MappingStartEvent():
                self._open({}, event)
            case yaml.SequenceStartEvent():
                self._open([], event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._close()

    def _aliased(self, anchor: str) -> tuple[Any, int]:
        if anchor not in self._anchors:
            raise YamlError(f"unknown anchor '{anchor}' referenced")
        value, weight = self._anchors[anchor]
        self._repeated += weight
        if self._repeated > _MAX_REPEATED:
            raise YamlError("document contains excessive aliasing")
        return _copied(value), weight

    def _open(self, value: Any, event: Any) -> None:
        if len(self._stack) >= self._max_depth:
            raise YamlError(f"exceeded max depth of {self._max_depth}")
        if event.tag and event.tag not in (f"{_PREFIX}map", f"{_PREFIX}seq", "!"):
            raise YamlError(f"cannot decode {_short(event.tag)}")
        if self._stack and type(self._stack[-1].value) is dict and self._stack[-1].key is None:
            raise YamlError("a mapping's key must be a scalar")
        self._anchors.pop(event.anchor, None)  # an alias inside its own anchor finds nothing
        self._stack.append(_Open(value, self._place(), event.anchor))

    def _place(self) -> str:
        """The path of the value about to be read."""
        if not self._stack:
            return ""
        parent = self._stack[-1]
        if type(parent.value) is list:
            return f"{parent.at}[{len(parent.value)}]"
        return f"{parent.at}.{parent.key}" if parent.at else str(parent.key)

    def _close(self) -> None:
        done = self._stack.pop()
        for other in done.merged:
            for key, item in other.items():
                done.value.setdefault(key, item)
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.weight)
        self._add(done.value, done.weight)

    def _add(self, value: Any, weight: int) -> None:
        if not self._stack:
            self.root = value
            return
        parent = self._stack[-1]
        parent.weight += weight
        if type(parent.value) is list:
            parent.value.append(value)
        elif parent.key is None:
            self._set_key(parent, value)
        elif type(parent.key) is _Merge:
            parent.merged.extend(_mappings(value))
            parent.key = None
        else:
            parent.value[parent.key] = value
            parent.key = None

    def _set_key(self, parent: _Open, key: Any) -> None:
        parent.key = key if type(key) is _Merge else _key(key)
        if type(parent.key) is _Merge:
            return
        if parent.key in parent.seen:
            place = self._place()
            if place not in self.duplicates:
                self.duplicates.append(place)
        parent.seen.add(parent.key)


def _key(key: Any) -> str:
    """JSON's keys are strings; numbers and booleans become the text they stand for."""
    if type(key) is str:
        return key
    if type(key) is bool:
        return "true" if key else "false"
    if type(key) is int:
        return str(key)
    if type(key) is float:
        return str(int(key)) if key.is_integer() and abs(key) < 1e21 else repr(key)
    raise YamlError("a mapping's key must be a string, a number or a boolean")


def _mappings(value: Any) -> list[dict[str, Any]]:
    several = value if type(value) is list else [value]
    if not all(type(one) is dict for one in several):
        raise YamlError("map merge requires map or sequence of maps as the value")
    return several


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    tag: str | None = event.tag
    if tag in (f"{_PREFIX}str", "!") or (tag is None and not event.implicit[0]):
        return text
    if tag is None:
        return _Merge(text) if text == "<<" else _plain(text)
    kind = tag.removeprefix(_PREFIX)
    if kind == "binary":
        return _binary(text)
    value = _plain(text)
    if kind == "float" and type(value) is int:
        return float(value)
    fits = {"int": int, "float": float, "bool": bool, "null": type(None)}.get(kind)
    if kind == "timestamp" and type(value) is str:
        return value
    if fits is None or type(value) is not fits:
        raise YamlError(f"cannot decode `{text[:40]}` as a {_short(tag)}")
    return value


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except ValueError as error:
        raise YamlError("!!binary value contains invalid base64 data") from error


def _plain(text: str) -> Any:
    """What an unquoted scalar without a tag stands for."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if not text or text[0] not in "+-.0123456789":
        return text
    if _NOT_FINITE.fullmatch(text):
        raise YamlError(f"{text} is not a number that JSON can express")
    digits = text.replace("_", "") if text[0] != "." else text
    if _INTEGER.fullmatch(digits):
        return _integer(digits)
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        if not math.isfinite(value):
            raise YamlError(f"number {digits[:40]} is out of range")
        return value
    return text


def _integer(digits: str) -> int:
    if len(digits) > 80:
        raise YamlError(f"number {digits[:40]} does not fit in 64 bits")
    sign, bare = (-1, digits[1:]) if digits[0] == "-" else (1, digits.lstrip("+"))
    if bare[:2].lower() in ("0x", "0b", "0o"):
        value = sign * int(bare, 0)
    elif bare.startswith("0"):
        value = sign * int(bare, 8)
    else:
        value = sign * int(bare)
    if not -_INT64 <= value < _INT64:
        raise YamlError(f"number {digits[:40]} does not fit in 64 bits")
    return value


def _short(tag: str) -> str:
    return f"!!{tag.removeprefix(_PREFIX)}" if tag.startswith(_PREFIX) else tag


def _copied(value: Any) -> Any:
    """Aliases share nothing afterwards: changing one place never changes another."""
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if type(value) is list else value
