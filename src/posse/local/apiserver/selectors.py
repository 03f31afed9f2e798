"""Label and field selectors: what a list or a watch asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from posse.objects import kinds
from posse.objects.kinds import Kind
from posse.objects.names import label_value_problems, qualified_name_problems

Object: TypeAlias = dict[str, Any]
Test: TypeAlias = Callable[[Object], bool]


class SelectorError(ValueError):
    """The selector cannot be read: 400 Bad Request."""


class Selector:
    """All of its tests must hold; the empty selector matches everything."""

    __slots__ = ("_tests",)

    def __init__(self, tests: tuple[Test, ...] = ()) -> None:
        self._tests = tests

    @property
    def empty(self) -> bool:
        return not self._tests

    def matches(self, obj: Object) -> bool:
        return all(test(obj) for test in self._tests)


def label_selector(text: str) -> Selector:
    """`app=web,tier in (a,b),!legacy`; SelectorError in the words of Kubernetes."""
    return Selector(tuple(_Requirements(text)))


def field_selector(text: str, kind: Kind) -> Selector:
    """`spec.nodeName=n1,status.phase!=Running`, for the fields that `kind` can be selected by."""
    terms = (term for term in sorted(_split_terms(text)) if term)
    return Selector(tuple(_field_test(text, term, kind) for term in terms))


# Labels

_WORD = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SYMBOLS = frozenset(("=", "==", "!=", "!", "(", ")", ",", "<", ">", ""))
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


class _Requirements:
    """A recursive-descent reader; an empty word is the end of the text."""

    def __init__(self, text: str) -> None:
        self._words = [match[1] for match in _WORD.finditer(text)] + [""]
        self._next = 0

    def __iter__(self) -> Iterator[Test]:
        while self._peek():
            if self._peek() in _SYMBOLS and self._peek() != "!":
                raise SelectorError(
                    f"found '{self._peek()}', expected: !, identifier, or 'end of string'"
                )
            try:
                yield self._requirement()
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            word = self._take()
            if word == "":
                return
            if word != ",":
                raise SelectorError(f"found '{word}', expected: ',' or 'end of string'")
            if self._peek() in _SYMBOLS and self._peek() != "!":
                raise SelectorError(f"found '{self._peek()}', expected: identifier after ','")

    def _peek(self) -> str:
        return self._words[self._next]

    def _take(self) -> str:
        word = self._words[self._next]
        if word:
            self._next += 1
        return word

    def _requirement(self) -> Test:
        absent = self._peek() == "!"
        if absent:
            self._take()
        key = self._take()
        if key in _SYMBOLS:
            raise SelectorError(f"found '{key}', expected: identifier")
        _check_key(key)
        if absent:
            return _absence(key)
        return _presence(key) if self._peek() in ("", ",") else self._comparison(key)

    def _comparison(self, key: str) -> Test:
        operator = self._take()
        match operator:
            case "=" | "==":
                return _inclusion(key, frozenset((self._value(key),)))
            case "!=":
                return _exclusion(key, frozenset((self._value(key),)))
            case "in":
                return _inclusion(key, self._values(key))
            case "notin":
                return _exclusion(key, self._values(key))
            case ">" | "<":
                return _order(key, operator, self._value(key))
            case _:
                raise SelectorError(f"found '{operator}', expected: {_OPERATORS}")

    def _value(self, key: str) -> str:
        if self._peek() in ("", ","):
            return ""
        value = self._take()
        if value in _SYMBOLS:
            raise SelectorError(f"found '{value}', expected: identifier")
        return _checked_value(key, value)

    def _values(self, key: str) -> frozenset[str]:
        if (word := self._take()) != "(":
            raise SelectorError(f"found '{word}' expected: '('")
        values, expecting = [], True  # an empty place between commas is the empty value
        while (word := self._take()) != ")":
            if word == ",":
                if expecting:
                    values.append("")
                expecting = True
            elif word in _SYMBOLS or not expecting:
                wanted = "',', or identifier" if expecting else "',' or ')'"
                raise SelectorError(f"found '{word}', expected: {wanted}")
            else:
                values.append(_checked_value(key, word))
                expecting = False
        if expecting:
            values.append("")
        return frozenset(values)


def _labels(obj: Object) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


def _presence(key: str) -> Test:
    return lambda obj: key in _labels(obj)


def _absence(key: str) -> Test:
    return lambda obj: key not in _labels(obj)


def _inclusion(key: str, values: frozenset[str]) -> Test:
    return lambda obj: _labels(obj).get(key) in values


def _exclusion(key: str, values: frozenset[str]) -> Test:
    return lambda obj: _labels(obj).get(key) not in values


def _order(key: str, operator: str, bound: str) -> Test:
    limit = _whole_number(bound)
    if limit is None:
        raise SelectorError(
            f'values[0]: Invalid value: "{bound}": '
            "for 'Gt', 'Lt' operators, the value must be an integer"
        )

    def test(obj: Object) -> bool:
        value = _whole_number(_labels(obj).get(key, ""))
        return value is not None and (value > limit if operator == ">" else value < limit)

    return test


def _whole_number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,19}", text) else None


def _check_key(key: str) -> None:
    if problems := qualified_name_problems(key):
        raise SelectorError(f'<nil>: Invalid value: "{key}": {"; ".join(problems)}')


def _checked_value(key: str, value: str) -> str:
    if problems := label_value_problems(value):
        raise SelectorError(f'values[0][{key}]: Invalid value: "{value}": {"; ".join(problems)}')
    return value


# Fields

_OPERATOR = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_EVERY_KIND = ("metadata.name", "metadata.namespace")
_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = tuple(f"involvedObject.{part}" for part in _INVOLVED)
_SELECTABLE: dict[tuple[str, str], tuple[str, ...]] = {
    (kind.group, kind.kind): fields
    for kind, fields in {
        kinds.POD: (
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ),
        kinds.NODE: ("spec.unschedulable",),
        kinds.NAMESPACE: ("status.phase",),
        kinds.SECRET: ("type",),
        kinds.SERVICE: ("spec.clusterIP", "spec.type"),
        kinds.JOB: ("status.successful",),
        kinds.EVENT: (*_EVENT_FIELDS, "reason", "reportingComponent", "source", "type"),
    }.items()
}
# Fields whose absence means false or zero rather than the empty string.
_ZEROS = {
    "spec.hostNetwork": "false",
    "spec.unschedulable": "false",
    "status.successful": "0",
}


def _split_terms(text: str) -> list[str]:
    """At commas that no backslash precedes."""
    terms, start, escaped = [], 0, False
    for index, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            terms.append(text[start:index])
            start = index + 1
    return [*terms, text[start:]]


def _field_test(text: str, term: str, kind: Kind) -> Test:
    match = _OPERATOR.fullmatch(term)
    if match is None:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
    field, operator, wanted = match[1], match[2], _unescaped(match[3])
    if (kind.group, kind.kind) == ("", "Pod") and field == "spec.host":
        field = "spec.nodeName"
    if field not in _EVERY_KIND and field not in _SELECTABLE.get((kind.group, kind.kind), ()):
        raise SelectorError(_unselectable(field, kind))
    read = _reader(field)
    if operator == "!=":
        return lambda obj: read(obj) != wanted
    return lambda obj: read(obj) == wanted


def _unselectable(field: str, kind: Kind) -> str:
    if kind.kind == "Job" and kind.group == "batch":
        return f'field label "{field}" not supported for Job'
    if (kind.group, kind.kind) in _SELECTABLE or not _built_in(kind):
        return f"field label not supported: {field}"
    known = ", ".join(f'"{one}"' for one in _EVERY_KIND)
    return f'"{field}" is not a known field selector: only {known}'


def _built_in(kind: Kind) -> bool:
    return any((one.group, one.kind) == (kind.group, kind.kind) for one in kinds.BUILT_IN)


def _unescaped(value: str) -> str:
    out, escaped = [], False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{char}")
            out.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise SelectorError(
                f"invalid field selector: unescaped character in value: {ord(char)}"
            )
        else:
            out.append(char)
    if escaped:
        raise SelectorError("invalid field selector: invalid escape sequence: \\")
    return "".join(out)


def _reader(field: str) -> Callable[[Object], str]:
    if field == "source":
        return _event_source
    if field in ("status.podIP", "status.podIPs"):
        return _pod_ip
    path = ("status", "succeeded") if field == "status.successful" else tuple(field.split("."))
    zero = _ZEROS.get(field, "")

    def read(obj: Object) -> str:
        value: Any = obj
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        return zero if value is None else _text(value)

    return read


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _event_source(obj: Object) -> str:
    component = (obj.get("source") or {}).get("component")
    return component or obj.get("reportingComponent") or ""


def _pod_ip(obj: Object) -> str:
    status = obj.get("status") or {}
    several = status.get("podIPs") or [{}]
    return several[0].get("ip") or status.get("podIP") or ""
