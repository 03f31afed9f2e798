"""Whether a schema is structural: every field it mentions has its type said outside all logic."""

from __future__ import annotations

from typing import Any

from posse.objects.errors import FieldError
from posse.objects.schemas import wording
from posse.objects.schemas.expressions import go_pattern
from posse.objects.schemas.values import checker

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_MAP_KEYS = "x-kubernetes-list-map-keys"
_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
# What a schema inside allOf, anyOf, oneOf or not may not say.
_FORBIDDEN_IN_LOGIC = {
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "title": "must be empty to be structural",
    "type": "must be empty to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def problems(schema: dict[str, Any]) -> list[FieldError]:
    """Sorted by their text; fields are relative to the schema."""
    found: list[FieldError] = []
    _structure(schema, "root", "", found)
    _completeness(schema, schema, "", "", found)
    if not found:
        _defaults(schema, "", found)
    return sorted(found, key=str)


def _defaults(schema: dict[str, Any], at: str, found: list[FieldError]) -> None:
    """What is filled in must itself be right."""
    if schema.get("default") is not None and (check := checker(schema)) is not None:
        wrong: list[FieldError] = []
        check(schema["default"], None, wrong)
        for problem in wrong:
            below = problem.field if problem.field not in ("", "<nil>") else ""
            where = _child(at, "default") + (f".{below}" if below else "")
            found.append(FieldError(where, problem.reason, problem.message))
    for name, field in schema.get("properties", {}).items():
        _defaults(field, _key(at, name), found)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            _defaults(schema[name], _child(at, name), found)


def _structure(schema: Any, level: str, at: str, found: list[FieldError]) -> None:
    if not isinstance(schema, dict):
        found.append(wording.invalid(at or "<root>", schema, "must be a schema"))
        return
    kind = schema.get("type", "")
    if kind and kind not in _TYPES:
        found.append(wording.not_supported(_child(at, "type"), kind, list(_TYPES)))
    if kind == "array" and "items" not in schema:
        found.append(wording.required(_child(at, "items"), "must be specified"))
    if schema.get("uniqueItems") is True:
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        found.append(wording.forbidden(_child(at, "uniqueItems"), why))
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get(_MAP_KEYS):
        why = "must not be empty if x-kubernetes-list-type is map"
        found.append(wording.required(_child(at, _MAP_KEYS), why))
    if "items" in schema:
        _structure(schema["items"], "item", _child(at, "items"), found)
    for name, field in schema.get("properties", {}).items():
        _structure(field, "field", _key(at, name), found)
    _map_values(schema, level, at, found)
    _extensions(schema, level, at, found)
    if level == "root" and kind and kind != "object":
        found.append(wording.invalid(_child(at, "type"), kind, "must be object at the root"))
    _resource_fields(schema, level, at, found)
    _logic(schema, at, found)


def _map_values(schema: dict[str, Any], level: str, at: str, found: list[FieldError]) -> None:
    if "additionalProperties" not in schema:
        return
    field = _child(at, "additionalProperties")
    below = schema["additionalProperties"]
    if level == "root" and below is not False:
        found.append(wording.forbidden(field, "must not be used at the root"))
    if schema.get("properties") and below is not False:
        found.append(
            wording.forbidden(field, "additionalProperties and properties are mutual exclusive")
        )
    if isinstance(below, dict):
        _structure(below, "field", field, found)


def _extensions(schema: dict[str, Any], level: str, at: str, found: list[FieldError]) -> None:
    kind = schema.get("type", "")
    preserves = schema.get("x-kubernetes-preserve-unknown-fields") is True
    int_or_string = schema.get("x-kubernetes-int-or-string") is True
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    for name, set_too in (
        ("x-kubernetes-preserve-unknown-fields", preserves),
        ("x-kubernetes-embedded-resource", embedded),
    ):
        if int_or_string and set_too:
            why = "must be false if x-kubernetes-int-or-string is true"
            found.append(wording.invalid(_child(at, name), True, why))
    type_field = _child(at, "type")
    if embedded and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        found.append(
            wording.invalid(type_field, kind, why) if kind else wording.required(type_field, why)
        )
    elif not kind and not int_or_string and not preserves:
        found.append(wording.required(type_field, _EMPTY_TYPE[level]))
    if embedded and not preserves and not schema.get("properties"):
        why = (
            "must not be empty if x-kubernetes-embedded-resource is true "
            "without x-kubernetes-preserve-unknown-fields"
        )
        found.append(wording.required(_child(at, "properties"), why))


def _resource_fields(schema: dict[str, Any], level: str, at: str, found: list[FieldError]) -> None:
    if level != "root" and schema.get("x-kubernetes-embedded-resource") is not True:
        return
    fields = schema.get("properties", {})
    for name in ("kind", "apiVersion"):
        kind = fields.get(name, {"type": "string"}).get("type", "")
        if kind != "string":
            found.append(wording.invalid(_child(_key(at, name), "type"), kind, "must be string"))
    metadata = fields.get("metadata")
    if metadata is None:
        return
    if metadata.get("type") != "object":
        field = _child(_key(at, "metadata"), "type")
        found.append(wording.invalid(field, metadata.get("type", ""), "must be object"))
    said = [key for key in metadata if key not in ("type", "properties", "description")]
    others = [key for key in metadata.get("properties", {}) if key not in ("name", "generateName")]
    if level == "root" and (said or others):
        why = (
            "must not specify anything other than name and generateName, "
            "but metadata is implicitly specified"
        )
        found.append(wording.forbidden(_key(at, "metadata"), why))


def _logic(schema: dict[str, Any], at: str, found: list[FieldError]) -> None:
    if pattern := schema.get("pattern"):
        try:
            go_pattern(pattern)
        except ValueError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            found.append(wording.invalid(_child(at, "pattern"), pattern, why))
    for where, part in _parts(schema, at):
        typed_choice = _is_int_or_string_choice(schema, where, at)
        if not typed_choice:
            _nested(part, where, found)


def _nested(schema: dict[str, Any], at: str, found: list[FieldError]) -> None:
    for name, why in _FORBIDDEN_IN_LOGIC.items():
        if schema.get(name):
            found.append(wording.forbidden(_child(at, name), why))
    if isinstance(schema.get("items"), dict):
        _nested(schema["items"], _child(at, "items"), found)
    for name, field in schema.get("properties", {}).items():
        _nested(field, _key(at, name), found)
    if "metadata" in schema.get("properties", {}):
        why = "must not be specified in a nested context"
        found.append(wording.forbidden(_key(at, "metadata"), why))
    _logic(schema, at, found)


def _parts(schema: dict[str, Any], at: str) -> list[tuple[str, dict[str, Any]]]:
    """Every schema under this one's logic, with where it stands."""
    parts = [
        (f"{_child(at, name)}[{index}]", part)
        for name in ("allOf", "anyOf", "oneOf")
        for index, part in enumerate(schema.get(name) or ())
    ]
    if isinstance(schema.get("not"), dict):
        parts.append((_child(at, "not"), schema["not"]))
    return parts


def _is_int_or_string_choice(schema: dict[str, Any], where: str, at: str) -> bool:
    """Logic may name types in one place: `anyOf: [integer, string]`, as generators write it."""
    return schema.get("anyOf") == _INT_OR_STRING and where.startswith(_child(at, "anyOf"))


def _completeness(
    logic: dict[str, Any],
    schema: dict[str, Any] | None,
    at: str,
    where: str,
    found: list[FieldError],
) -> None:
    """Every field that logic constrains must be described outside of it."""
    for part_at, part in _parts(logic, where):
        _described(part, schema, at, part_at, found)


def _described(
    part: dict[str, Any], schema: Any, at: str, where: str, found: list[FieldError]
) -> None:
    if not isinstance(schema, dict):
        found.append(wording.required(at, f"because it is defined in {where}"))
        return
    _completeness(part, schema, at, where, found)
    if isinstance(part.get("items"), dict):
        here, there = _child(at, "items"), _child(where, "items")
        _described(part["items"], schema.get("items"), here, there, found)
    for name, field in part.get("properties", {}).items():
        known = schema.get("properties", {}).get(name)
        _described(field, known, _key(at, name), _key(where, name), found)


def _child(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _key(at: str, name: str) -> str:
    return f"{_child(at, 'properties')}[{name}]"
