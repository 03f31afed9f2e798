"""The limits a schema puts on values of each JSON type, one closure a limit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from posse.objects import errors
from posse.objects.errors import FieldError
from posse.objects.schemas import wording
from posse.objects.schemas.expressions import go_pattern
from posse.objects.schemas.formats import FORMATS, effective_format
from posse.objects.schemas.paths import NOWHERE, Path, field_name, render

Check: TypeAlias = Callable[[Any, Path, list[FieldError]], None]
Make: TypeAlias = Callable[[dict[str, Any]], Check | None]

_RANGES = {"int32": 2**31, "int64": 2**63}


def string_checks(schema: dict[str, Any], types: tuple[str, ...]) -> list[Check]:
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    pattern = go_pattern(schema["pattern"]) if schema.get("pattern") else None
    holds = FORMATS.get(effective_format(schema, types))
    made: list[Check] = []

    def length_and_pattern(value: Any, path: Path, found: list[FieldError]) -> None:
        if longest is not None and len(value) > longest:
            found.append(wording.too_long(field_name(path), longest))
        elif shortest is not None and len(value) < shortest:
            found.append(_invalid(path, value, f"should be at least {shortest} chars long"))
        elif pattern is not None and not pattern.search(value):
            found.append(_invalid(path, value, f"should match '{schema['pattern']}'"))

    def in_format(value: Any, path: Path, found: list[FieldError]) -> None:
        if holds is not None and not holds(value):
            why = f"must be of type {schema['format']}: {wording.quoted(value)}"
            found.append(_invalid(path, value, why, reason=errors.TYPE_INVALID))

    if longest is not None or shortest is not None or pattern is not None:
        made.append(length_and_pattern)
    if holds is not None:
        made.append(in_format)
    return made


def number_checks(schema: dict[str, Any], types: tuple[str, ...]) -> list[Check]:
    made: list[Check] = []
    if types == ("integer",):
        made.append(_range_check(effective_format(schema, types)))
    if (factor := schema.get("multipleOf")) is not None:
        made.append(_multiple_check(factor))
    if (least := schema.get("minimum")) is not None:
        made.append(_minimum_check(least, schema.get("exclusiveMinimum") is True))
    if (most := schema.get("maximum")) is not None:
        made.append(_maximum_check(most, schema.get("exclusiveMaximum") is True))
    return made


def _range_check(format_name: str) -> Check:
    limit = _RANGES.get(format_name, _RANGES["int64"])
    known = f"with format {format_name}" if format_name in _RANGES else "(default format)"

    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        if not -limit <= value < limit or value != int(value):
            why = f"Checked value must be of type integer {known} in {render(path)}"
            found.append(wording.invalid(NOWHERE, "", why))

    return check


def _multiple_check(factor: float) -> Check:
    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        exact = isinstance(value, int) and float(factor).is_integer()
        whole = (
            value % int(factor) == 0
            if exact
            else abs(value / factor - round(value / factor)) < 1e-9
        )
        if not whole:
            found.append(_invalid(path, value, f"should be a multiple of {wording.number(factor)}"))

    return check


def _minimum_check(least: float, exclusive: bool) -> Check:
    bound = wording.number(least)
    how = (
        f"should be greater than {bound}"
        if exclusive
        else (f"should be greater than or equal to {bound}")
    )

    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        if value < least or (exclusive and value == least):
            found.append(_invalid(path, value, how))

    return check


def _maximum_check(most: float, exclusive: bool) -> Check:
    bound = wording.number(most)
    how = (
        f"should be less than {bound}"
        if exclusive
        else (f"should be less than or equal to {bound}")
    )

    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        if value > most or (exclusive and value == most):
            found.append(_invalid(path, value, how))

    return check


def array_checks(schema: dict[str, Any], make: Make) -> list[Check]:
    least, most = schema.get("minItems"), schema.get("maxItems")
    items = make(schema["items"]) if isinstance(schema.get("items"), dict) else None
    unique = schema.get("uniqueItems") is True
    made: list[Check] = []

    def elements(value: Any, path: Path, found: list[FieldError]) -> None:
        if items is not None:
            for index, item in enumerate(value):
                items(item, (path, index), found)

    def size(value: Any, path: Path, found: list[FieldError]) -> None:
        if least is not None and len(value) < least:
            found.append(_invalid(path, len(value), f"should have at least {least} items"))
        if most is not None and len(value) > most:
            found.append(wording.too_many(field_name(path), len(value), most))
        if unique and _repeated([_identity(item) for item in value]):
            found.append(_invalid(path, "", "shouldn't contain duplicates"))

    if items is not None:
        made.append(elements)
    if least is not None or most is not None or unique:
        made.append(size)
    if schema.get("x-kubernetes-list-type") == "set":
        made.append(_distinct_elements)
    elif schema.get("x-kubernetes-list-type") == "map":
        made.append(_distinct_keys(schema.get("x-kubernetes-list-map-keys", [])))
    return made


def _distinct_elements(value: Any, path: Path, found: list[FieldError]) -> None:
    repeated = _repeated([_identity(item) for item in value])
    found.extend(wording.duplicate(render((path, index)), value[index]) for index in repeated)


def _distinct_keys(names: list[str]) -> Check:
    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        keys: list[dict[str, Any]] = []
        for index, item in enumerate(value):
            if item is not None and type(item) is not dict:
                why = "must be an object for an array of list-type map"
                found.append(wording.invalid(render((path, index)), item, why))
                return
            keys.append({name: item[name] for name in names if name in item} if item else {})
        repeated = _repeated([_identity(key) for key in keys])
        found.extend(wording.duplicate(render((path, index)), keys[index]) for index in repeated)

    return check


def _repeated(identities: list[str]) -> list[int]:
    """Where each value appears the second time; later appearances are not repeated news."""
    times: dict[str, int] = {}
    second: list[int] = []
    for index, identity in enumerate(identities):
        times[identity] = times.get(identity, 0) + 1
        if times[identity] == 2:
            second.append(index)
    return second


def _identity(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def object_checks(schema: dict[str, Any], make: Make) -> list[Check]:
    fields = {
        name: check
        for name, field in schema.get("properties", {}).items()
        if (check := make(field)) is not None
    }
    known = frozenset(schema.get("properties", ()))
    needed = tuple(schema.get("required") or ())
    below = schema.get("additionalProperties")
    values = make(below) if isinstance(below, dict) else None
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    made: list[Check] = []

    def size(value: Any, path: Path, found: list[FieldError]) -> None:
        if least is not None and len(value) < least:
            how = f"should have at least {least} properties"
            found.append(_invalid(path, len(value), how))
        if most is not None and len(value) > most:
            found.append(wording.too_many(field_name(path), len(value), most))

    def forbidden(value: Any, path: Path, found: list[FieldError]) -> None:
        for key in value:
            if key not in known:
                why = f"{render(path)}.{key} in body is a forbidden property"
                found.append(wording.invalid(field_name(path), key, why))

    def members(value: Any, path: Path, found: list[FieldError]) -> None:
        for key, item in value.items():
            check = fields.get(key)
            if check is not None:
                check(item, (path, key), found)
            elif values is not None and key not in known:
                values(item, (path, key), found)
        found.extend(wording.required(render((path, name))) for name in needed if name not in value)

    if least is not None or most is not None:
        made.append(size)
    if below is False:
        made.append(forbidden)
    if fields or values is not None or needed:
        made.append(members)
    if schema.get("x-kubernetes-embedded-resource") is True:
        made.append(_embedded_resource)
    return made


def _embedded_resource(value: Any, path: Path, found: list[FieldError]) -> None:
    for name in ("apiVersion", "kind"):
        field = (path, name)
        if name not in value:
            found.append(wording.required(render(field)))
        elif type(value[name]) is not str:
            found.append(wording.invalid(render(field), value[name], "must be a string"))
        elif not value[name]:
            found.append(wording.invalid(render(field), "", "must not be empty"))


def enum_check(schema: dict[str, Any]) -> Check | None:
    supported = schema.get("enum")
    if not supported:
        return None
    identities = frozenset(map(_enum_identity, supported))

    def check(value: Any, path: Path, found: list[FieldError]) -> None:
        if _enum_identity(value) not in identities:
            found.append(wording.not_supported(field_name(path), value, supported))

    return check


def _enum_identity(value: Any) -> tuple[str, Any]:
    """1 and 1.0 are one value; 1 and true are two."""
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, int | float):
        return ("number", value)
    return ("string", value) if isinstance(value, str) else ("json", _identity(value))


def _invalid(path: Path, value: Any, how: str, *, reason: str = errors.INVALID) -> FieldError:
    detail = f"{render(path)} in body {how}"
    return wording.invalid(field_name(path), value, detail, reason=reason)
