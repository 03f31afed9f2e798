"""Label selectors as text: `app=web,tier in (a,b),!legacy`, read and refused as Kubernetes does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from posse.objects.names import label_value_problems, qualified_name_problems

Test: TypeAlias = Callable[[Mapping[str, str]], bool]


class SelectorError(ValueError):
    """The selector cannot be read."""


class LabelSelector:
    """All of its tests must hold; the empty selector matches everything."""

    __slots__ = ("tests",)

    def __init__(self, text: str) -> None:
        """SelectorError in the words of Kubernetes."""
        self.tests: tuple[Test, ...] = tuple(_Requirements(text))

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(test(labels) for test in self.tests)


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


def _presence(key: str) -> Test:
    return lambda labels: key in labels


def _absence(key: str) -> Test:
    return lambda labels: key not in labels


def _inclusion(key: str, values: frozenset[str]) -> Test:
    return lambda labels: labels.get(key) in values


def _exclusion(key: str, values: frozenset[str]) -> Test:
    return lambda labels: labels.get(key) not in values


def _order(key: str, operator: str, bound: str) -> Test:
    limit = _whole_number(bound)
    if limit is None:
        raise SelectorError(
            f'values[0]: Invalid value: "{bound}": '
            "for 'Gt', 'Lt' operators, the value must be an integer"
        )

    def test(labels: Mapping[str, str]) -> bool:
        value = _whole_number(labels.get(key, ""))
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
