"""Checking values against a schema, in the words kube-apiserver uses for custom resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from posse.objects import errors
from posse.objects.errors import FieldError
from posse.objects.schemas import wording
from posse.objects.schemas.constraints import (
    Check,
    array_checks,
    enum_check,
    number_checks,
    object_checks,
    string_checks,
)
from posse.objects.schemas.formats import effective_format
from posse.objects.schemas.paths import NOWHERE, Path, field_name, render

Make: TypeAlias = Callable[[dict[str, Any]], Check | None]

_JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}


def checker(schema: dict[str, Any]) -> Check | None:
    """None where every value is right.

    A value of the wrong type is reported and still held to the limits of the type it has, as
    kube-apiserver does; so limits are looked up by what the value is, not by what it should be.
    """
    types = _types(schema)
    allowed = frozenset(kind for name in types for kind in _JSON_TYPES.get(name, ()))
    integral_floats = "integer" in types
    nullable = schema.get("nullable") is True or not types
    enum = enum_check(schema)
    combined = _combined_checks(schema)

    def by_type(limits: list[Check]) -> tuple[Check, ...]:
        return (*combined, *limits, *((enum,) if enum else ()))

    checks: dict[type, tuple[Check, ...]] = {
        str: by_type(string_checks(schema, types)),
        bool: by_type([]),
        int: by_type(number_checks(schema, types)),
        list: by_type(array_checks(schema, checker)),
        dict: (*by_type([]), *object_checks(schema, checker)),
    }
    checks[float] = checks[int]
    if not types and not any(checks.values()):
        return None

    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        kind = type(value)
        if value is None:
            if not nullable:
                found.append(_wrong_type(path, ",".join(types), "null"))
            if enum is not None:
                enum(value, path, found)
            return
        if (
            allowed
            and kind not in allowed
            and not (integral_floats and kind is float and value.is_integer())
        ):
            found.append(_mismatch(schema, types, kind, path))
        for limit in checks[kind]:
            limit(value, path, found)

    return check


def _types(schema: dict[str, Any]) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string") is True:
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _mismatch(schema: dict[str, Any], types: tuple[str, ...], kind: type, path: Path) -> FieldError:
    """Where the schema has a format and the value is no string or list, the format is named."""
    format_name = effective_format(schema, types)
    if format_name and kind not in (str, list):
        actual = {int: "int64", float: "float64"}.get(kind, "")
        return _wrong_type(path, format_name, actual)
    return _wrong_type(path, ",".join(types), wording.json_type(kind))


def _wrong_type(path: Path, expected: str, actual: str) -> FieldError:
    detail = f"{render(path)} in body must be of type {expected}: {wording.quoted(actual)}"
    return wording.invalid(field_name(path), actual, detail, reason=errors.TYPE_INVALID)


def _combined_checks(schema: dict[str, Any]) -> list[Check]:
    made: list[Check] = []
    if alternatives := schema.get("anyOf"):
        made.append(_any_of([checker(one) for one in alternatives]))
    if alternatives := schema.get("oneOf"):
        made.append(_one_of([checker(one) for one in alternatives]))
    if parts := schema.get("allOf"):
        made.append(_all_of([checker(one) for one in parts]))
    if "not" in schema:
        made.append(_not(checker(schema["not"])))
    return made


def _failures(check: Check | None, value: Any, path: Path) -> list[FieldError]:
    found: list[FieldError] = []
    if check is not None:
        check(value, path, found)
    return found


def _any_of(alternatives: list[Check | None]) -> Check:
    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        best: list[FieldError] | None = None
        for one in alternatives:
            failures = _failures(one, value, path)
            if not failures:
                return
            if best is None or len(failures) < len(best):
                best = failures
        found.append(_combination(path, "must validate at least one schema (anyOf)"))
        found.extend(best or ())

    return check


def _one_of(alternatives: list[Check | None]) -> Check:
    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        best: list[FieldError] | None = None
        valid = 0
        for one in alternatives:
            failures = _failures(one, value, path)
            if not failures:
                valid += 1
            elif best is None or len(failures) < len(best):
                best = failures
        if valid == 1:
            return
        how = f"Found {valid} valid alternatives" if valid else "Found none valid"
        found.append(_combination(path, f"must validate one and only one schema (oneOf). {how}"))
        if not valid:
            found.extend(best or ())

    return check


def _all_of(parts: list[Check | None]) -> Check:
    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        failures = [_failures(one, value, path) for one in parts]
        for failure in failures:
            found.extend(failure)
        if all(failures):
            how = "must validate all the schemas (allOf). None validated"
            found.append(_combination(path, how))
        elif any(failures):
            found.append(_combination(path, "must validate all the schemas (allOf)"))

    return check


def _not(part: Check | None) -> Check:
    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        if not _failures(part, value, path):
            found.append(_combination(path, "must not validate the schema (not)"))

    return check


def _combination(path: Path, how: str) -> FieldError:
    return wording.invalid(NOWHERE, "", f"{wording.quoted(render(path))} {how}")
