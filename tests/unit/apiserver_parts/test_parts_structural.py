"""Custom resources against their schema: what is dropped, filled in, and complained about."""

from __future__ import annotations

from typing import Any

import pytest

from posse.objects.schemas.structural import Schema, SchemaError

STRING = {"type": "string"}
INTEGER = {"type": "integer"}


def obj(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def array(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def with_spec(schema: dict[str, Any]) -> Schema:
    """A kind with one field `spec.x` of that schema."""
    return Schema.compile(obj(spec=obj(x=schema)))


def complaints(schema: dict[str, Any], value: Any) -> list[str]:
    return [str(error) for error in with_spec(schema).validate({"spec": {"x": value}})]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (STRING, "a"),
        (INTEGER, 3),
        (INTEGER, 3.0),
        ({"type": "integer", "format": "int32"}, 2**31 - 1),
        ({"type": "number"}, 3),
        ({"type": "number"}, 3.5),
        ({"type": "boolean"}, False),
        ({"type": "string", "nullable": True}, None),
        ({"x-kubernetes-int-or-string": True}, 3),
        ({"x-kubernetes-int-or-string": True}, "50%"),
        ({"type": "string", "enum": ["A", "B"]}, "B"),
        ({"type": "number", "enum": [1, 2]}, 1.0),
        ({"type": "string", "minLength": 1, "maxLength": 2}, "😀😀"),
        ({"type": "string", "pattern": "^[a-z]+$"}, "abc"),
        ({"type": "string", "pattern": "b"}, "abc"),
        ({"type": "integer", "minimum": 1, "maximum": 3}, 3),
        ({"type": "number", "multipleOf": 0.1}, 0.3),
        (array(STRING, minItems=1, maxItems=2), ["a"]),
        (array(STRING, **{"x-kubernetes-list-type": "set"}), ["a", "b"]),
        ({"type": "object", "additionalProperties": STRING}, {"a": "b"}),
        ({"type": "string", "format": "date-time"}, "2024-01-02T03:04:05Z"),
        ({"type": "string", "format": "ipv4"}, "10.0.0.1"),
        ({"type": "string", "format": "unheard-of"}, "anything"),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"any": ["thing"]}),
    ],
)
def test_right_values(schema: dict[str, Any], value: Any) -> None:
    assert complaints(schema, value) == []


AT = "spec.x: Invalid value: "
BODY = "spec.x in body"


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        (INTEGER, "a", f'{AT}"string": {BODY} must be of type integer: "string"'),
        (STRING, 1, f'{AT}"integer": {BODY} must be of type string: "integer"'),
        (STRING, {}, f'{AT}"object": {BODY} must be of type string: "object"'),
        (STRING, None, f'{AT}"null": {BODY} must be of type string: "null"'),
        ({"type": "integer", "format": "int32"}, True, f'{AT}"": {BODY} must be of type int32: ""'),
        ({"type": "boolean"}, "true", f'{AT}"string": {BODY} must be of type boolean: "string"'),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            f'{AT}"boolean": {BODY} must be of type integer,string: "boolean"',
        ),
        (
            {"type": "string", "enum": ["A", "B"]},
            "C",
            'spec.x: Unsupported value: "C": supported values: "A", "B"',
        ),
        (
            {"type": "integer", "enum": [1, 2]},
            3,
            'spec.x: Unsupported value: 3: supported values: "1", "2"',
        ),
        (
            {"type": "integer", "minimum": 1},
            0,
            f"{AT}0: {BODY} should be greater than or equal to 1",
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
            1,
            f"{AT}1: {BODY} should be greater than 1",
        ),
        ({"type": "integer", "maximum": 1}, 2, f"{AT}2: {BODY} should be less than or equal to 1"),
        (
            {"type": "number", "maximum": 1.5, "exclusiveMaximum": True},
            1.5,
            f"{AT}1.5: {BODY} should be less than 1.5",
        ),
        ({"type": "integer", "multipleOf": 2}, 3, f"{AT}3: {BODY} should be a multiple of 2"),
        (
            {"type": "string", "minLength": 2},
            "a",
            f'{AT}"a": {BODY} should be at least 2 chars long',
        ),
        (
            {"type": "string", "maxLength": 1},
            "ab",
            "spec.x: Too long: may not be more than 1 byte",
        ),
        (
            {"type": "string", "pattern": "^a$"},
            "a\n",
            f"{AT}\"a\\n\": {BODY} should match '^a$'",
        ),
        (array(STRING, minItems=1), [], f"{AT}0: {BODY} should have at least 1 items"),
        (array(STRING, maxItems=1), ["a", "b"], "spec.x: Too many: 2: must have at most 1 item"),
        (
            {"type": "object", "additionalProperties": STRING, "minProperties": 1},
            {},
            f"{AT}0: {BODY} should have at least 1 properties",
        ),
        (
            {"type": "object", "additionalProperties": STRING, "maxProperties": 1},
            {"a": "", "b": ""},
            "spec.x: Too many: 2: must have at most 1 item",
        ),
        ({**obj(a=STRING), "required": ["a"]}, {}, "spec.x.a: Required value"),
        (
            array(obj(a=STRING)),
            [{}, {"a": 1}],
            'spec.x[1].a: Invalid value: "integer": spec.x[1].a in body must be of type string: '
            '"integer"',
        ),
        (
            {"type": "object", "additionalProperties": INTEGER},
            {"k": "v"},
            'spec.x.k: Invalid value: "string": spec.x.k in body must be of type integer: "string"',
        ),
        (
            {"type": "string", "format": "date-time"},
            "soon",
            f'{AT}"soon": {BODY} must be of type date-time: "soon"',
        ),
        (
            array(STRING, **{"x-kubernetes-list-type": "set"}),
            ["a", "b", "a", "a"],
            'spec.x[2]: Duplicate value: "a"',
        ),
        (
            array(
                obj(name=STRING),
                **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            ),
            [{"name": "a"}, {"name": "a"}],
            'spec.x[1]: Duplicate value: {"name":"a"}',
        ),
        (
            {"type": "string", "not": {"enum": ["a"]}},
            "a",
            '<nil>: Invalid value: "": "spec.x" must not validate the schema (not)',
        ),
        (
            {"type": "integer", "format": "int32"},
            2**31,
            '<nil>: Invalid value: "": Checked value must be of type integer with format int32 in '
            "spec.x",
        ),
    ],
)
def test_wrong_values_are_named_in_kubernetes_words(
    schema: dict[str, Any], value: Any, said: str
) -> None:
    assert complaints(schema, value) == [said]


def test_a_fraction_is_no_integer_twice_over() -> None:
    assert complaints(INTEGER, 1.5) == [
        f'{AT}"number": {BODY} must be of type integer: "number"',
        '<nil>: Invalid value: "": Checked value must be of type integer (default format) in '
        "spec.x",
    ]


def test_objects_where_none_belongs_lose_their_fields() -> None:
    value = {"spec": {"x": {"a": 1}}}
    assert with_spec(STRING).prune(value) == ["spec.x.a"]
    assert value == {"spec": {"x": {}}}


def test_one_of_counts_the_alternatives() -> None:
    schema = {**obj(a=STRING, b=STRING), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
    assert complaints(schema, {"a": ""}) == []
    assert "Found none valid" in complaints(schema, {})[0]
    assert "Found 2 valid alternatives" in complaints(schema, {"a": "", "b": ""})[0]


def test_any_of_needs_one_and_all_of_every_one() -> None:
    limits = [{"minimum": 5}, {"maximum": 3}]
    assert complaints({"type": "integer", "anyOf": limits}, 6) == []
    assert "at least one schema (anyOf)" in complaints({"type": "integer", "anyOf": limits}, 4)[0]
    broken = complaints({"type": "integer", "allOf": limits}, 6)
    assert broken[-1].endswith("must validate all the schemas (allOf)")


def test_reasons_tell_the_kinds_of_error_apart() -> None:
    schema = with_spec({**obj(a=STRING, b={"type": "string", "enum": ["x"]}), "required": ["c"]})
    found = schema.validate({"spec": {"x": {"a": 1, "b": "y"}}})
    assert [error.reason for error in found] == [
        "FieldValueTypeInvalid",
        "FieldValueNotSupported",
        "FieldValueRequired",
    ]


def test_unknown_fields_are_removed_and_named() -> None:
    schema = Schema.compile(obj(spec=obj(list=array(obj(a=STRING)), map={
        "type": "object", "additionalProperties": obj(b=STRING)})))  # fmt: skip
    value = {
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "odd": 1}, "top": 1,
        "spec": {"list": [{"a": "", "c": 1}], "map": {"k": {"b": "", "d": 1}}, "e": {}},
    }  # fmt: skip
    assert schema.prune(value) == ["spec.e", "spec.list[0].c", "spec.map.k.d", "top"]
    assert value == {
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "odd": 1},
        "spec": {"list": [{"a": ""}], "map": {"k": {"b": ""}}},
    }  # fmt: skip


def test_preserved_fields_stay_and_described_ones_below_are_still_pruned() -> None:
    preserving = {**obj(known=obj(a=STRING)), "x-kubernetes-preserve-unknown-fields": True}
    schema = Schema.compile(obj(spec=preserving))
    value = {"spec": {"any": {"thing": 1}, "known": {"a": "", "b": ""}}}
    assert schema.prune(value) == ["spec.known.b"]
    assert value == {"spec": {"any": {"thing": 1}, "known": {"a": ""}}}


def test_embedded_resources_keep_their_head() -> None:
    embedded = {**obj(spec=obj(a=STRING)), "x-kubernetes-embedded-resource": True}
    schema = Schema.compile(obj(template=embedded))
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {}}}
    value = {"template": {**head, "spec": {"a": ""}, "odd": 1}}
    assert schema.prune(value) == ["template.odd"]
    assert schema.validate(value) == []
    assert [str(e) for e in schema.validate({"template": {"kind": ""}})] == [
        "template.apiVersion: Required value",
        'template.kind: Invalid value: "": must not be empty',
    ]


def test_defaults_fill_what_is_absent() -> None:
    inner = {**obj(a={"type": "string", "default": "x"}), "default": {}}
    schema = Schema.compile(
        obj(spec=obj(inner=inner, list=array(obj(n={"type": "integer", "default": 1}))))
    )
    value: dict[str, Any] = {"spec": {"list": [{}, {"n": 2}]}}
    schema.default(value)
    assert value == {"spec": {"inner": {"a": "x"}, "list": [{"n": 1}, {"n": 2}]}}
    other: dict[str, Any] = {"spec": {}}
    schema.default(other)
    other["spec"]["inner"]["a"] = "changed"
    again: dict[str, Any] = {"spec": {}}
    schema.default(again)
    assert again == {"spec": {"inner": {"a": "x"}}}


def test_a_null_counts_as_absent_unless_it_may_be_one() -> None:
    schema = Schema.compile(
        obj(
            plain=STRING,
            filled={"type": "string", "default": "x"},
            free={"type": "string", "nullable": True, "default": "y"},
        )
    )
    value: dict[str, Any] = {"plain": None, "filled": None, "free": None}
    schema.default(value)
    assert value == {"filled": "x", "free": None}


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({}, "type: Required value: must not be empty at the root"),
        ({"type": "string"}, 'type: Invalid value: "string": must be object at the root'),
        (obj(a={}), "properties[a].type: Required value: must not be empty for specified object"),
        (obj(a={"type": "array"}), "properties[a].items: Required value: must be specified"),
        (
            obj(a=array({})),
            "properties[a].items.type: Required value: must not be empty for specified array items",
        ),
        (
            {"type": "object", "additionalProperties": STRING},
            "additionalProperties: Forbidden: must not be used at the root",
        ),
        (
            obj(a={"type": "string", "anyOf": [{"type": "string"}]}),
            "properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            {**obj(a=obj()), "anyOf": [{"properties": {"a": {"properties": {"b": {}}}}}]},
            "properties[a].properties[b]: Required value: because it is defined in "
            "anyOf[0].properties[a].properties[b]",
        ),
        (
            obj(a={"type": "string", "pattern": "("}),
            'properties[a].pattern: Invalid value: "(": must be a valid regular expression',
        ),
        (
            obj(metadata=obj(labels={"type": "object", "additionalProperties": STRING})),
            "properties[metadata]: Forbidden: must not specify anything other than name and",
        ),
        (
            obj(a={"type": "string", "x-kubernetes-embedded-resource": True}),
            'properties[a].type: Invalid value: "string": must be object if',
        ),
        (obj(a={"type": "frob"}), 'properties[a].type: Unsupported value: "frob"'),
    ],
)
def test_schemas_that_are_not_structural(schema: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        Schema.compile(schema)
    assert any(str(problem).startswith(said) for problem in caught.value.problems), caught.value


@pytest.mark.parametrize(
    "logic", [{"anyOf": [INTEGER, STRING]}, {"allOf": [{"anyOf": [INTEGER, STRING]}]}]
)
def test_the_ways_generators_write_int_or_string_are_structural(logic: dict[str, Any]) -> None:
    schema = {**logic, "x-kubernetes-int-or-string": True}
    assert complaints(schema, 1) == complaints(schema, "1") == []


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"^\d+$", "12", "١٢"),
        (r"^[[:alpha:]]+$", "abc", "a1"),
        (r"^a\z", "a", "a\n"),
        (r"^(?:a|b)$", "b", "c"),
        (r"^x(?i)y$", "xY", "XY"),
        (r"^(?P<n>a)$", "a", "b"),
        (r"^[^]a]$", "b", "]"),
        (r"^[\w.-]+$", "a.b-c", "a b"),
    ],
)
def test_patterns_mean_what_they_mean_in_go(pattern: str, matching: str, other: str) -> None:
    schema = {"type": "string", "pattern": pattern}
    assert complaints(schema, matching) == []
    assert complaints(schema, other) != []
