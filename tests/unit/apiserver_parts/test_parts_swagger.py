"""OpenAPI v2: what can be said of the schemas is said, and nothing that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from posse.local.apiserver import swagger
from posse.local.apiserver.discovery import Served
from posse.local.apiserver.openapi import Described
from posse.objects.crds import definitions
from posse.objects.kinds import BUILT_IN, Kind

VERBS = ("get", "list", "patch")


def everything() -> list[Described]:
    custom = []
    for definition in definitions():
        spec = definition["spec"]
        for version in spec["versions"]:
            names = spec["names"]
            kind = Kind(spec["group"], version["name"], names["kind"], names["plural"])
            schema = version["schema"]["openAPIV3Schema"]
            custom.append(Described(Served(kind, VERBS), schema))
    return [*(Described(Served(kind, VERBS)) for kind in BUILT_IN), *custom]


DOCUMENT = swagger.document(everything())


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for field in schema.get("properties", {}).values():
        yield from schemas(field)
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from schemas(schema[name])


ALL = [one for schema in DOCUMENT["definitions"].values() for one in schemas(schema)]


def test_every_reference_leads_somewhere() -> None:
    references = {one["$ref"] for one in ALL if "$ref" in one}
    assert references
    for reference in references:
        assert reference.removeprefix("#/definitions/") in DOCUMENT["definitions"]


def test_a_reference_says_no_type_and_a_list_says_of_what() -> None:
    for schema in ALL:
        assert "$ref" not in schema or not {"type", "properties"} & set(schema)
        assert schema.get("type") != "array" or "items" in schema


@pytest.mark.parametrize("word", ["oneOf", "anyOf", "allOf", "not", "nullable"])
def test_words_that_v2_does_not_have_are_not_used(word: str) -> None:
    assert not [schema for schema in ALL if word in schema]


def test_every_kind_is_marked_in_its_schema_and_in_its_patch() -> None:
    mark = "x-kubernetes-group-version-kind"
    wanted = {one.served.kind for one in everything()}
    named = {(kind.group, kind.version, kind.kind) for kind in wanted}
    marked = [one for schema in DOCUMENT["definitions"].values() for one in schema.get(mark, [])]
    assert {(one["group"], one["version"], one["kind"]) for one in marked} == named
    patches = [path["patch"] for path in DOCUMENT["paths"].values()]
    assert {tuple(patch[mark].values()) for patch in patches} == named
    for patch in patches:
        assert "dryRun" in [parameter["name"] for parameter in patch["parameters"]]


def test_what_keeps_unknown_fields_is_left_open() -> None:
    schema = {
        "type": "object",
        "properties": {
            "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "port": {"x-kubernetes-int-or-string": True},
            "maybe": {"type": "string", "nullable": True},
        },
    }
    kind = Kind("example.com", "v1", "Widget", "widgets")
    made = swagger.document([Described(Served(kind, VERBS), schema)])
    fields = made["definitions"]["com.example.v1.Widget"]["properties"]
    assert all("type" not in fields[name] for name in ("template", "port", "maybe"))


def test_the_protobuf_holds_every_definition() -> None:
    raw = swagger.protobuf(DOCUMENT)
    assert all(name.encode() in raw for name in DOCUMENT["definitions"])
