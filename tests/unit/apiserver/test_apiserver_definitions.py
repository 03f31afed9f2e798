"""Definitions and their objects: served at once, by their schema, and gone together."""

from __future__ import annotations

from typing import Any

import pytest

from posse.local.apiserver.journal import MemoryJournal
from tests.unit.apiserver.asking import DEFINITIONS, WIDGETS, Server, definition, widget

pytestmark = pytest.mark.looptime


@pytest.fixture
async def widgets(server: Server) -> Server:
    assert (await server.post(DEFINITIONS, definition())).status == 201
    return server


def conditions(body: dict[str, Any]) -> dict[str, str]:
    return {one["type"]: one["status"] for one in body["status"]["conditions"]}


async def test_a_definition_is_established_at_once(server: Server) -> None:
    said = await server.post(DEFINITIONS, definition())
    assert conditions(said.body) == {"NamesAccepted": "True", "Established": "True"}
    assert said.body["status"]["acceptedNames"]["listKind"] == "WidgetList"
    assert said.body["status"]["storedVersions"] == ["v1"]


async def test_its_objects_are_served_and_discovered_at_once(widgets: Server) -> None:
    assert (await widgets.post(WIDGETS, widget())).status == 201
    said = await widgets.get(WIDGETS)
    assert (said.body["kind"], said.names) == ("WidgetList", ["w"])
    found = (await widgets.get("/apis/example.com/v1")).body["resources"]
    assert [one["name"] for one in found] == ["widgets", "widgets/status"]
    groups = (await widgets.get("/apis")).body["groups"]
    assert "example.com" in [group["name"] for group in groups]


async def test_before_it_there_is_no_such_path(server: Server) -> None:
    said = await server.get(WIDGETS)
    assert (said.status, said.reason) == (404, "NotFound")
    assert said.message == "the server could not find the requested resource"


async def test_objects_are_pruned_with_a_warning(widgets: Server) -> None:
    said = await widgets.post(WIDGETS, widget(size=1, colour="red"))
    assert said.body["spec"] == {"size": 1}
    assert 'unknown field \\"spec.colour\\"' in said.headers["warning"]


async def test_objects_are_validated(widgets: Server) -> None:
    said = await widgets.post(WIDGETS, widget(size=-1))
    assert (said.status, said.reason) == (422, "Invalid")
    assert said.message.startswith('Widget.example.com "w" is invalid: spec.size: Invalid value')
    assert said.body["details"]["causes"][0]["field"] == "spec.size"
    assert (await widgets.post(WIDGETS, widget(size="big"))).status == 422


async def test_objects_are_defaulted(server: Server) -> None:
    size = {"type": "integer", "default": 3}
    spec = {"type": "object", "default": {}, "properties": {"size": size}}
    await server.post(
        DEFINITIONS, definition(schema={"type": "object", "properties": {"spec": spec}})
    )
    made = widget()
    del made["spec"]
    assert (await server.post(WIDGETS, made)).body["spec"] == {"size": 3}


async def test_status_and_spec_are_written_apart(widgets: Server) -> None:
    said = await widgets.post(WIDGETS, widget(size=1) | {"status": {"ready": True}})
    assert "status" not in said.body
    path = f"{WIDGETS}/w/status"
    said = await widgets.patch(
        path, {"spec": {"size": 9}, "status": {"ready": True}, "metadata": {"labels": {"a": "b"}}}
    )
    assert said.body["spec"] == {"size": 1}
    assert said.body["status"] == {"ready": True}
    assert "labels" not in said.body["metadata"]
    assert said.body["metadata"]["generation"] == 1
    said = await widgets.patch(f"{WIDGETS}/w", {"spec": {"size": 2}, "status": {"ready": False}})
    assert said.body["status"] == {"ready": True}
    assert said.body["metadata"]["generation"] == 2


async def test_without_the_subresource_status_is_a_field(server: Server) -> None:
    await server.post(DEFINITIONS, definition(status=False))
    said = await server.post(WIDGETS, widget() | {"status": {"ready": True}})
    assert said.body["status"] == {"ready": True}
    assert (await server.get(f"{WIDGETS}/w/status")).status == 404


async def test_a_put_must_name_its_version(widgets: Server) -> None:
    await widgets.post(WIDGETS, widget())
    said = await widgets.put(f"{WIDGETS}/w", widget(size=1))
    assert said.status == 422
    assert (
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        in said.message
    )


async def test_true_and_one_are_not_the_same(server: Server) -> None:
    """Python holds 1 == True; JSON does not."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await server.post(DEFINITIONS, definition(schema=schema))
    first = await server.post(WIDGETS, widget(x=1))
    said = await server.patch(f"{WIDGETS}/w", {"spec": {"x": True}})
    assert said.body["spec"]["x"] is True
    assert said.version != first.version


async def test_an_object_must_say_what_it_is(widgets: Server) -> None:
    made = widget()
    del made["kind"]
    assert (await widgets.post(WIDGETS, made)).status == 400


async def test_a_strategic_patch_is_not_for_custom_objects(widgets: Server) -> None:
    await widgets.post(WIDGETS, widget())
    said = await widgets.patch(f"{WIDGETS}/w", {}, "strategic-merge")
    assert said.status == 415


def two_versions() -> dict[str, Any]:
    made = definition()
    (first,) = made["spec"]["versions"]
    made["spec"]["versions"] = [first, {**first, "name": "v1beta1", "storage": False}]
    return made


async def test_versions_share_their_objects(server: Server) -> None:
    await server.post(DEFINITIONS, two_versions())
    beta = WIDGETS.replace("v1/", "v1beta1/", 1)
    said = await server.post(beta, widget(size=1) | {"apiVersion": "example.com/v1beta1"})
    assert said.body["apiVersion"] == "example.com/v1beta1"
    assert (await server.get(f"{WIDGETS}/w")).body["apiVersion"] == "example.com/v1"
    listed = (await server.get(beta)).body
    assert listed["apiVersion"] == "example.com/v1beta1"
    assert listed["items"][0]["apiVersion"] == "example.com/v1beta1"
    async with server.watch(beta) as events:
        assert (await events.event())["object"]["apiVersion"] == "example.com/v1beta1"
    patched = await server.patch(f"{beta}/w", {"spec": {"size": 2}})
    assert patched.body["apiVersion"] == "example.com/v1beta1"
    groups = (await server.get("/apis/example.com")).body
    assert [one["version"] for one in groups["versions"]] == ["v1", "v1beta1"]


async def test_a_version_that_is_no_longer_served_is_not_found(server: Server) -> None:
    made = (await server.post(DEFINITIONS, two_versions())).body
    made["spec"]["versions"][1]["served"] = False
    assert (await server.put(f"{DEFINITIONS}/widgets.example.com", made)).status == 200
    assert (await server.get(WIDGETS.replace("v1/", "v1beta1/", 1))).status == 404
    assert (await server.get(WIDGETS)).status == 200


async def test_a_changed_schema_counts_at_once(widgets: Server) -> None:
    made = (await widgets.get(f"{DEFINITIONS}/widgets.example.com")).body
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["colour"] = {"type": "string"}
    said = await widgets.put(f"{DEFINITIONS}/widgets.example.com", made)
    assert said.body["metadata"]["generation"] == 2
    assert (await widgets.post(WIDGETS, widget(colour="red"))).body["spec"] == {"colour": "red"}


async def test_deleting_a_definition_deletes_its_objects(widgets: Server) -> None:
    await widgets.post(WIDGETS, widget("a"))
    await widgets.post(WIDGETS, widget("b"))
    async with widgets.watch(WIDGETS, resourceVersion=widgets.store.revision) as events:
        assert (await widgets.delete(f"{DEFINITIONS}/widgets.example.com")).status == 200
        assert await events.told(2) == [("DELETED", "a"), ("DELETED", "b")]
    assert (await widgets.get(f"{DEFINITIONS}/widgets.example.com")).status == 404
    assert (await widgets.get(WIDGETS)).status == 404
    assert (await widgets.get("/apis/example.com")).status == 404


async def test_an_ending_definition_waits_for_finalizers_and_takes_nothing_new(
    widgets: Server,
) -> None:
    held = widget()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await widgets.post(WIDGETS, held)
    await widgets.delete(f"{DEFINITIONS}/widgets.example.com")
    assert (await widgets.get(f"{WIDGETS}/w")).body["metadata"]["deletionTimestamp"]
    said = await widgets.post(WIDGETS, widget("late"))
    assert (said.status, said.reason) == (405, "MethodNotAllowed")
    await widgets.patch(f"{WIDGETS}/w", {"metadata": {"finalizers": None}})
    assert (await widgets.get(f"{DEFINITIONS}/widgets.example.com")).status == 404


async def test_definitions_are_served_after_a_restart(widgets: Server) -> None:
    await widgets.post(WIDGETS, widget(size=1))
    assert isinstance(widgets.journal, MemoryJournal)
    again = Server(MemoryJournal(widgets.journal.records))
    assert (await again.get(f"{WIDGETS}/w")).body["spec"] == {"size": 1}


def broken(change: str) -> dict[str, Any]:
    made = definition()
    spec = made["spec"]
    (version,) = spec["versions"]
    match change:
        case "its name is not plural.group":
            made["metadata"]["name"] = "gadgets.example.com"
        case "no version is stored":
            version["storage"] = False
        case "no schema":
            del version["schema"]
        case "a field without a type":
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {"x": {}}
        case "no versions":
            spec["versions"] = []
        case "an unknown scope":
            spec["scope"] = "Galaxy"
        case "a version twice":
            spec["versions"] = [version, {**version, "storage": False}]
        case "a protected group":
            spec["group"] = "things.k8s.io"
            made["metadata"]["name"] = "widgets.things.k8s.io"
        case "no plural":
            del spec["names"]["plural"]
        case _:
            del made["spec"]
    return made


BROKEN = [
    ("its name is not plural.group", "metadata.name"),
    ("no version is stored", "spec.versions"),
    ("no schema", "spec.versions[0].schema.openAPIV3Schema"),
    (
        "a field without a type",
        "spec.validation.openAPIV3Schema.properties[spec].properties[x].type",
    ),
    ("no versions", "spec.versions"),
    ("an unknown scope", "spec.scope"),
    ("a version twice", "spec.versions[1].name"),
    ("a protected group", "metadata.annotations[api-approved.kubernetes.io]"),
    ("no plural", "spec.names.plural"),
    ("no spec at all", "spec.group"),
]


@pytest.mark.parametrize(("change", "field"), BROKEN)
async def test_a_broken_definition_is_refused_with_its_causes(
    server: Server, change: str, field: str
) -> None:
    said = await server.post(DEFINITIONS, broken(change))
    assert (said.status, said.reason) == (422, "Invalid"), said.body
    fields = [cause["field"] for cause in said.body["details"]["causes"]]
    assert field in fields, said.message


async def test_a_name_that_is_taken_is_not_accepted(widgets: Server) -> None:
    other = definition()
    other["metadata"]["name"] = "wares.example.com"
    other["spec"]["names"] = {"plural": "wares", "kind": "Widget"}
    said = await widgets.post(DEFINITIONS, other)
    assert conditions(said.body) == {"NamesAccepted": "False", "Established": "False"}
    assert (await widgets.get("/apis/example.com/v1/wares")).status == 404


async def test_tables_have_the_columns_of_the_definition(server: Server) -> None:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    await server.post(DEFINITIONS, definition(additionalPrinterColumns=columns))
    await server.post(WIDGETS, widget(size=4))
    accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    table = (await server.get(WIDGETS, headers=accept)).body
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["w", 4]


async def test_the_openapi_document_follows(widgets: Server) -> None:
    paths = (await widgets.get("/openapi/v3")).body["paths"]
    assert "apis/example.com/v1" in paths
    assert (await widgets.get("/openapi/v3/apis/example.com/v1")).status == 200
