"""Discovery and OpenAPI documents: all derived from the same list of served kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from posse.local.apiserver import discovery, openapi
from posse.local.apiserver.discovery import Served, Subresource
from posse.local.apiserver.openapi import Described
from posse.objects import kinds
from posse.objects.kinds import BUILT_IN, MPI_JOB, POD, Kind

VERBS = ("get", "list", "watch", "create")
SCALE = Kind("autoscaling", "v1", "Scale", "scales")
SERVED = [
    Served(POD, VERBS, (Subresource("status", POD, ("get",)), Subresource("log", POD, ("get",)))),
    Served(kinds.NAMESPACE, VERBS),
    Served(kinds.DEPLOYMENT, VERBS, (Subresource("scale", SCALE, ("get", "update")),)),
    *(
        Served(Kind("kubeflow.org", version, "MPIJob", "mpijobs", True, ("mj",)), VERBS)
        for version in ("v1", "v2beta1", "v1alpha2", "v1beta10", "v1beta2", "odd")
    ),
]


def test_versions_are_offered_best_first() -> None:
    group = discovery.api_group(SERVED, "kubeflow.org")
    assert group is not None
    order = [version["version"] for version in group["versions"]]
    assert order == ["v1", "v2beta1", "v1beta10", "v1beta2", "v1alpha2", "odd"]
    assert group["preferredVersion"] == {"groupVersion": "kubeflow.org/v1", "version": "v1"}


def test_the_core_group_is_not_among_the_named_ones() -> None:
    groups = discovery.api_group_list(SERVED)["groups"]
    assert [group["name"] for group in groups] == ["apps", "kubeflow.org"]
    assert discovery.api_versions()["versions"] == ["v1"]


def test_resources_of_a_version() -> None:
    listed = discovery.api_resource_list(SERVED, "", "v1")
    assert listed is not None
    assert [resource["name"] for resource in listed["resources"]] == [
        "namespaces", "pods", "pods/log", "pods/status",
    ]  # fmt: skip
    pods = listed["resources"][1]
    assert pods == {
        "name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod",
        "verbs": list(VERBS), "shortNames": ["po"], "categories": ["all"],
    }  # fmt: skip
    assert listed["groupVersion"] == "v1"


def test_a_subresource_of_another_group_says_so() -> None:
    listed = discovery.api_resource_list(SERVED, "apps", "v1")
    assert listed is not None
    [scale] = [one for one in listed["resources"] if one["name"] == "deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


@pytest.mark.parametrize(("group", "version"), [("", "v2"), ("absent.io", "v1")])
def test_what_is_not_served_has_no_document(group: str, version: str) -> None:
    assert discovery.api_resource_list(SERVED, group, version) is None
    assert openapi.document(map(Described, SERVED), group, version) is None
    assert discovery.api_group(SERVED, "absent.io") is None


def test_aggregated_discovery_holds_the_same_resources() -> None:
    for core in (True, False):
        made = discovery.aggregated(SERVED, core)
        assert made["apiVersion"] == "apidiscovery.k8s.io/v2"
        for group in made["items"]:
            for version in group["versions"]:
                listed = discovery.api_resource_list(
                    SERVED, group["metadata"].get("name", ""), version["version"]
                )
                assert listed is not None
                flat = []
                for one in version["resources"]:
                    flat.append(one["resource"])
                    parts = one.get("subresources", [])
                    flat += [f"{one['resource']}/{part['subresource']}" for part in parts]
                assert flat == [resource["name"] for resource in listed["resources"]]


def test_the_version_is_one_that_clients_can_parse() -> None:
    version = discovery.version_info()
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.")


SCHEMA = {
    "type": "object",
    "properties": {"spec": {"type": "object", "properties": {"slots": {"type": "integer"}}}},
}
EVERYTHING = [*(Described(Served(kind, VERBS)) for kind in BUILT_IN),
              Described(Served(MPI_JOB, VERBS), SCHEMA)]  # fmt: skip


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for item in value.values() for ref in references(item)]
    return [ref for item in value for ref in references(item)] if isinstance(value, list) else []


def made(group: str, version: str) -> dict[str, Any]:
    document = openapi.document(EVERYTHING, group, version)
    assert document is not None
    return document


def test_the_index_names_a_document_per_version() -> None:
    paths = openapi.index(EVERYTHING)["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/kubeflow.org/v2beta1"} <= paths.keys()
    url = paths["apis/apps/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/apis/apps/v1?hash=")


def test_hashes_change_with_the_document_alone() -> None:
    first, again = openapi.index(EVERYTHING)["paths"], openapi.index(EVERYTHING)["paths"]
    assert first == again
    wider = {"type": "object", "properties": {}}
    changed = openapi.index([*EVERYTHING[:-1], Described(Served(MPI_JOB, VERBS), wider)])["paths"]
    assert [key for key in first if first[key] != changed[key]] == ["apis/kubeflow.org/v2beta1"]


@pytest.mark.parametrize("kind", [*BUILT_IN, MPI_JOB], ids=lambda kind: kind.kind)
def test_documents_are_self_contained_and_mark_their_kinds(kind: Kind) -> None:
    document = made(kind.group, kind.version)
    schemas = document["components"]["schemas"]
    for reference in references(document):
        assert reference.removeprefix("#/components/schemas/") in schemas
    marked = [
        one["kind"]
        for schema in schemas.values()
        for one in schema.get("x-kubernetes-group-version-kind", ())
    ]
    assert kind.kind in marked
    json.dumps(document)


@pytest.mark.parametrize(("kind", "strategic"), [(POD, True), (MPI_JOB, False)])
def test_patch_operations_say_what_they_take(kind: Kind, strategic: bool) -> None:
    root = "/api/v1" if not kind.group else f"/apis/{kind.group}/{kind.version}"
    path = f"{root}/namespaces/{{namespace}}/{kind.plural}/{{name}}"
    patch = made(kind.group, kind.version)["paths"][path]["patch"]
    assert patch["x-kubernetes-group-version-kind"]["kind"] == kind.kind
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    content = patch["requestBody"]["content"]
    assert ("application/strategic-merge-patch+json" in content) is strategic


def test_merge_keys_are_published() -> None:
    schemas = made("", "v1")["components"]["schemas"]
    containers = schemas["io.k8s.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"
    assert schemas["io.k8s.PodSpec"]["properties"]["volumes"]["x-kubernetes-patch-strategy"] == (
        "merge,retainKeys"
    )


def test_a_custom_kind_gets_the_head_every_object_has() -> None:
    schemas = made("kubeflow.org", "v2beta1")["components"]["schemas"]
    fields = schemas["org.kubeflow.v2beta1.MPIJob"]["properties"]
    assert fields.keys() == {"spec", "apiVersion", "kind", "metadata"}
    assert "properties" not in SCHEMA["properties"].get("metadata", {})  # type: ignore[attr-defined]
    assert SCHEMA.keys() == {"type", "properties"}


def test_a_name_that_several_groups_have_is_the_most_stable_ones() -> None:
    def widget(group: str, version: str) -> Served:
        return Served(Kind(group, version, "Widget", "widgets"), VERBS)

    served = [widget("a.com", "v1alpha1"), widget("b.com", "v1beta1"), widget("c.com", "v1")]
    served += [Served(kind, VERBS) for kind in BUILT_IN]
    groups = [group["name"] for group in discovery.api_group_list(served)["groups"]]
    assert groups[0] == "apps"
    assert groups[-3:] == ["c.com", "b.com", "a.com"]
    items = [item["metadata"]["name"] for item in discovery.aggregated(served, False)["items"]]
    assert items == groups
