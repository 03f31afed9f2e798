"""Strategic merge patches: lists merged by their keys, and the directives."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from posse.local.apiserver.patching import PatchError, apply_patch
from posse.objects.kinds import DEPLOYMENT, NODE, POD, SERVICE, Kind

STRATEGIC = "application/strategic-merge-patch+json"


def patched(current: Any, patch: Any, kind: Kind = POD) -> Any:
    before = copy.deepcopy((current, patch))
    result = apply_patch(STRATEGIC, current, patch, kind)
    assert (current, patch) == before
    return result


def containers(*items: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(items)}}


def test_containers_are_merged_by_name() -> None:
    current = containers({"name": "a", "image": "1"}, {"name": "b", "image": "1", "tty": True})
    patch = containers({"name": "b", "image": "2"})
    assert patched(current, patch) == containers(
        {"name": "a", "image": "1"}, {"name": "b", "image": "2", "tty": True}
    )


def test_an_element_only_the_patch_has_comes_first() -> None:
    current = containers({"name": "a"}, {"name": "b"})
    names = [c["name"] for c in patched(current, containers({"name": "c"}))["spec"]["containers"]]
    assert names == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("kind", "path", "key"),
    [
        (POD, ("spec", "initContainers"), "name"),
        (POD, ("spec", "volumes"), "name"),
        (POD, ("spec", "imagePullSecrets"), "name"),
        (POD, ("spec", "hostAliases"), "ip"),
        (POD, ("spec", "topologySpreadConstraints"), "topologyKey"),
        (POD, ("status", "conditions"), "type"),
        (POD, ("metadata", "ownerReferences"), "uid"),
        (SERVICE, ("spec", "ports"), "port"),
        (NODE, ("status", "conditions"), "type"),
        (NODE, ("status", "addresses"), "type"),
        (DEPLOYMENT, ("status", "conditions"), "type"),
    ],
)
def test_keyed_lists_are_merged_by_their_key(kind: Kind, path: Any, key: str) -> None:
    outer, inner = path
    current = {outer: {inner: [{key: "k", "old": 1}]}}
    result = patched(current, {outer: {inner: [{key: "k", "new": 2}]}}, kind)
    assert result == {outer: {inner: [{key: "k", "old": 1, "new": 2}]}}


@pytest.mark.parametrize(
    ("kind", "path"),
    [(POD, ("spec", "tolerations")), (NODE, ("spec", "taints")), (POD, ("spec", "unheardOf"))],
)
def test_other_lists_are_replaced_whole(kind: Kind, path: Any) -> None:
    outer, inner = path
    result = patched({outer: {inner: [{"key": "a"}]}}, {outer: {inner: [{"key": "b"}]}}, kind)
    assert result == {outer: {inner: [{"key": "b"}]}}


def test_lists_inside_merged_elements_are_merged_too() -> None:
    current = containers({"name": "a", "env": [{"name": "X", "value": "1"}], "args": ["x"]})
    patch = containers({"name": "a", "env": [{"name": "Y", "value": "2"}], "args": ["y"]})
    [container] = patched(current, patch)["spec"]["containers"]
    assert container["env"] == [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]
    assert container["args"] == ["y"]


def test_templates_of_workloads_know_their_lists() -> None:
    def workload(*items: Any) -> dict[str, Any]:
        return {"spec": {"template": {"spec": {"containers": list(items)}}}}

    result = patched(
        workload({"name": "a", "image": "1"}), workload({"name": "a", "tty": True}), DEPLOYMENT
    )
    assert result == workload({"name": "a", "image": "1", "tty": True})


def test_finalizers_are_a_set() -> None:
    current = {"metadata": {"finalizers": ["a", "b"]}}
    result = patched(current, {"metadata": {"finalizers": ["b", "c"]}})
    assert sorted(result["metadata"]["finalizers"]) == ["a", "b", "c"]


def test_scalars_are_deleted_from_a_set() -> None:
    current = {"metadata": {"finalizers": ["a", "b", "c"]}}
    result = patched(current, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"]}})
    assert result == {"metadata": {"finalizers": ["a", "c"]}}


def test_null_removes_and_maps_merge() -> None:
    current = {"metadata": {"labels": {"a": "1", "b": "2"}, "annotations": {"x": "y"}}}
    result = patched(current, {"metadata": {"labels": {"a": None, "c": "3"}, "annotations": None}})
    assert result == {"metadata": {"labels": {"b": "2", "c": "3"}}}


def test_an_element_is_deleted_by_its_key() -> None:
    current = containers({"name": "a"}, {"name": "b"})
    assert patched(current, containers({"name": "a", "$patch": "delete"})) == containers(
        {"name": "b"}
    )


def test_a_list_is_replaced_on_demand() -> None:
    current = containers({"name": "a"}, {"name": "b"})
    patch = containers({"name": "c", "image": None}, {"$patch": "replace"})
    assert patched(current, patch) == containers({"name": "c"})


def test_a_map_is_replaced_or_emptied_on_demand() -> None:
    current = {"spec": {"nodeSelector": {"a": "1"}, "securityContext": {"runAsUser": 1}}}
    patch = {
        "spec": {
            "nodeSelector": {"$patch": "replace", "b": "2"},
            "securityContext": {"$patch": "delete"},
        }
    }
    assert patched(current, patch) == {"spec": {"nodeSelector": {"b": "2"}, "securityContext": {}}}


def test_the_order_of_a_list_can_be_set() -> None:
    current = containers({"name": "a"}, {"name": "b"}, {"name": "c"})
    patch = {
        "spec": {
            "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}, {"name": "new"}],
            "containers": [{"name": "new", "image": "x"}],
        }
    }
    names = [c["name"] for c in patched(current, patch)["spec"]["containers"]]
    assert names == ["b", "c", "a", "new"]


def test_retained_keys_drop_the_others() -> None:
    current = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert patched(current, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_no_directive_reaches_the_object() -> None:
    patch = {
        "spec": {
            "$setElementOrder/volumes": [{"name": "v"}],
            "volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}],
            "securityContext": {"$patch": "delete"},
            "nodeSelector": {"a": None},
        }
    }
    assert patched({"spec": {}}, patch) == {
        "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "nodeSelector": {}}
    }


@pytest.mark.parametrize(
    "patch",
    [
        containers({"image": "no name"}),
        containers({"$patch": "delete"}),
        containers({"name": "a", "$patch": "frobnicate"}),
        {"$patch": "frobnicate"},
        {"spec": {"$retainKeys": ["a"], "b": 1}},
        {"spec": {"$retainKeys": "a"}},
        {"spec": {"$setElementOrder/containers": "a"}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
        {"spec": {"containers": ["a"]}},
    ],
)
def test_malformed_patches_are_refused(patch: Any) -> None:
    current = {"metadata": {"finalizers": ["f"]}, **containers({"name": "a"})}
    with pytest.raises(PatchError) as caught:
        apply_patch(STRATEGIC, current, patch, POD)
    assert caught.value.code == 400
