"""Collecting what is wrong with an object, worded as kube-apiserver words it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from posse.objects import errors
from posse.objects.errors import FieldError

NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


class Report:
    """The errors found so far, in the order in which the API lists them."""

    def __init__(self) -> None:
        self.errors: list[FieldError] = []

    def required(self, field: str, detail: str = "") -> None:
        self._add(field, errors.REQUIRED, "Required value", detail)

    def forbidden(self, field: str, detail: str) -> None:
        self._add(field, errors.FORBIDDEN, "Forbidden", detail)

    def invalid(self, field: str, value: Any, *details: str) -> None:
        """One error for each detail; none of them, no error."""
        for detail in details:
            self._add(field, errors.INVALID, f"Invalid value: {shown(value)}", detail)

    def refused(self, field: str, detail: str) -> None:
        """Invalid as a whole, so that no one value can be shown."""
        self._add(field, errors.INVALID, "Invalid value", detail)

    def duplicate(self, field: str, value: Any, detail: str = "") -> None:
        self._add(field, errors.DUPLICATE, f"Duplicate value: {shown(value)}", detail)

    def not_found(self, field: str, value: Any, detail: str = "") -> None:
        self._add(field, errors.NOT_FOUND, f"Not found: {shown(value)}", detail)

    def unsupported(self, field: str, value: Any, supported: Sequence[str]) -> None:
        detail = "supported values: " + ", ".join(shown(item) for item in supported)
        self._add(field, errors.NOT_SUPPORTED, f"Unsupported value: {shown(value)}", detail)

    def too_long(self, field: str, limit: int) -> None:
        self._add(field, errors.TOO_LONG, "Too long", f"may not be more than {limit} bytes")

    def too_many(self, field: str, count: int, limit: int) -> None:
        detail = f"must have at most {limit} {'item' if limit == 1 else 'items'}"
        self._add(field, errors.TOO_MANY, f"Too many: {count}", detail)

    def not_negative(self, field: str, value: int | None) -> None:
        if value is not None and value < 0:
            self.invalid(field, value, NEGATIVE)

    def one_of(self, field: str, value: str, supported: Sequence[str]) -> None:
        """A value that must be there, and one of those."""
        if not value:
            self.required(field)
        elif value not in supported:
            self.unsupported(field, value, supported)

    def unchanged(self, field: str, new: Any, old: Any) -> None:
        if not same(new, old):
            self.invalid(field, new, IMMUTABLE)

    def _add(self, field: str, reason: str, message: str, detail: str = "") -> None:
        text = f"{message}: {detail}" if detail else message
        self.errors.append(FieldError(field, reason, text))


def shown(value: Any) -> str:
    """A value as it appears in a message."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def same(new: Any, old: Any) -> bool:
    """Equal, where nothing, null, false and an empty text or collection are the same."""
    if isinstance(new, dict) or isinstance(old, dict):
        new, old = {} if new is None else new, {} if old is None else old
        if not isinstance(new, dict) or not isinstance(old, dict):
            return False
        return all(same(new.get(key), old.get(key)) for key in {**new, **old})
    if isinstance(new, list) or isinstance(old, list):
        new, old = [] if new is None else new, [] if old is None else old
        if not isinstance(new, list) or not isinstance(old, list):
            return False
        return len(new) == len(old) and all(map(same, new, old))
    if new is None or old is None:
        return all(value is None or value is False or value == "" for value in (new, old))
    return bool(new == old and isinstance(new, bool) == isinstance(old, bool))
