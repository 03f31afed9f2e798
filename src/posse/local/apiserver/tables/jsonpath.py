"""The JSONPath of printer columns: fields, indices, slices, and filters by a field's value."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[Any], list[Any]]

_FIELD = re.compile(r"\.((?:\\.|[^.\[\]\\])+)")
_QUOTED = re.compile(r"\[(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\")\]")
_INDEX = re.compile(r"\[(-?\d+)\]")
_SLICE = re.compile(r"\[(-?\d+)?:(-?\d+)?(?::(-?\d+))?\]")
_WILDCARD = re.compile(r"(?:\.\*|\[\*\])")
_FILTER = re.compile(r"\[\?\(\s*@((?:\.|\[['\"])[^=!<>]*?)\s*(?:(==|!=|<=|>=|<|>)\s*(.+?))?\s*\)\]")


class JsonPathError(ValueError):
    """The path is not in the supported subset."""


class JsonPath:
    def __init__(self, text: str) -> None:
        self._steps = tuple(_steps(text))

    def find(self, value: Any) -> list[Any]:
        """Every value at the path, in order; missing fields simply yield none."""
        found = [value]
        for step in self._steps:
            found = [result for one in found for result in step(one)]
        return found


def _steps(text: str) -> Iterable[Step]:
    path = text.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    position = 0
    while position < len(path):
        for pattern, make in _GRAMMAR:
            if match := pattern.match(path, position):
                yield make(match)
                position = match.end()
                break
        else:
            if path[position:] != ".":
                raise JsonPathError(f"{text!r}: cannot read {path[position:]!r}")
            return


def _field(match: re.Match[str]) -> Step:
    return _member(re.sub(r"\\(.)", r"\1", match[1]))


def _quoted(match: re.Match[str]) -> Step:
    return _member(re.sub(r"\\(.)", r"\1", match[1] if match[1] is not None else match[2]))


def _member(name: str) -> Step:
    def step(value: Any) -> list[Any]:
        return [value[name]] if isinstance(value, dict) and name in value else []

    return step


def _index(match: re.Match[str]) -> Step:
    index = int(match[1])

    def step(value: Any) -> list[Any]:
        if not isinstance(value, list) or not -len(value) <= index < len(value):
            return []
        return [value[index]]

    return step


def _slice(match: re.Match[str]) -> Step:
    start, stop, stride = (int(part) if part else None for part in match.groups())
    if stride is not None and stride <= 0:
        raise JsonPathError("a slice's step must be positive")

    def step(value: Any) -> list[Any]:
        return value[start:stop:stride] if isinstance(value, list) else []

    return step


def _wildcard(match: re.Match[str]) -> Step:
    def step(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [value[key] for key in sorted(value)]
        return list(value) if isinstance(value, list) else []

    return step


def _filter(match: re.Match[str]) -> Step:
    path = JsonPath(match[1])
    operator = match[2]
    wanted = _literal(match[3]) if operator else None

    def step(value: Any) -> list[Any]:
        items = value if isinstance(value, list) else []
        return [item for item in items if _holds(path.find(item), operator, wanted)]

    return step


def _literal(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError as error:
        raise JsonPathError(f"{text!r} is not a value") from error


def _holds(found: list[Any], operator: str | None, wanted: Any) -> bool:
    if not found:
        return False
    actual = found[0]
    if operator is None:
        return True
    if operator in ("==", "!="):
        return (type(actual) is type(wanted) and actual == wanted) == (operator == "==")
    ordered = (str, str), (int, int), (float, float), (int, float), (float, int)
    if (type(actual), type(wanted)) not in ordered:
        return False
    return bool(
        {"<": actual < wanted, ">": actual > wanted}.get(operator[0])
        or (operator.endswith("=") and actual == wanted)
    )


_GRAMMAR: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Step]], ...] = (
    (_WILDCARD, _wildcard),
    (_FIELD, _field),
    (_QUOTED, _quoted),
    (_INDEX, _index),
    (_SLICE, _slice),
    (_FILTER, _filter),
)
