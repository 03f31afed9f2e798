"""Label and field selectors: what a list or a watch asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from posse.objects import kinds
from posse.objects.kinds import Kind
from posse.objects.selectors import LabelSelector, SelectorError

Object: TypeAlias = dict[str, Any]
Test: TypeAlias = Callable[[Object], bool]


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
    return Selector(tuple(_of_labels(test) for test in LabelSelector(text).tests))


def field_selector(text: str, kind: Kind) -> Selector:
    """`spec.nodeName=n1,status.phase!=Running`, for the fields that `kind` can be selected by."""
    terms = (term for term in sorted(_split_terms(text)) if term)
    return Selector(tuple(_field_test(text, term, kind) for term in terms))


def _of_labels(test: Callable[[Mapping[str, str]], bool]) -> Test:
    return lambda obj: test(_labels(obj))


def _labels(obj: Object) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}


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
