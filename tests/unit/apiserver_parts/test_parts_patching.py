"""JSON and merge patches, and which patches a kind takes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from posse.local.apiserver.patching import PatchError, apply_patch
from posse.objects.kinds import MPI_JOB, POD, Kind

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def refused(content_type: str, current: Any, patch: Any, kind: Kind = POD) -> PatchError:
    with pytest.raises(PatchError) as caught:
        apply_patch(content_type, current, patch, kind)
    return caught.value


def op(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("current", "operations", "expected"),
    [
        ({"a": 1}, [op("add", "/b", value=2)], {"a": 1, "b": 2}),
        ({"a": 1}, [op("add", "/a", value=2)], {"a": 2}),
        ({"l": [1, 3]}, [op("add", "/l/1", value=2)], {"l": [1, 2, 3]}),
        ({"l": [1]}, [op("add", "/l/-", value=2)], {"l": [1, 2]}),
        ({"l": [1]}, [op("add", "/l/1", value=2)], {"l": [1, 2]}),
        ({"a/b": 1, "m~n": 2}, [op("remove", "/a~1b"), op("remove", "/m~0n")], {}),
        ({"~1": 1}, [op("remove", "/~01")], {}),
        ({"l": [1, 2]}, [op("remove", "/l/0")], {"l": [2]}),
        ({"l": [1, 2]}, [op("replace", "/l/-1", value=9)], {"l": [1, 9]}),
        ({"a": {"b": 1}}, [op("replace", "/a/b", value=None)], {"a": {"b": None}}),
        ({"a": {}}, [op("replace", "/a/missing", value=1)], {"a": {"missing": 1}}),
        ({"a": {"b": 1}}, [op("move", "/c", **{"from": "/a/b"})], {"a": {}, "c": 1}),
        ({"a": [1]}, [op("copy", "/b", **{"from": "/a"})], {"a": [1], "b": [1]}),
        ({"a": 1}, [op("test", "/a", value=1)], {"a": 1}),
        ({"a": 1}, [op("test", "/absent", value=None)], {"a": 1}),
        ({"a": 1}, [op("replace", "", value={"b": 2})], {"b": 2}),
    ],
)  # fmt: skip
def test_operations_apply(current: Any, operations: Any, expected: Any) -> None:
    before = copy.deepcopy(current)
    assert apply_patch(JSON, current, operations, POD) == expected
    assert current == before


@pytest.mark.parametrize(
    ("operations", "said"),
    [
        ([op("test", "/a", value=2)], "testing value /a failed"),
        ([op("test", "/a", value=True)], "testing value /a failed"),
        ([op("test", "/absent", value=0)], "testing value /absent failed"),
        ([op("test", "/absent/deep", value=None)], "is missing path: /absent/deep"),
        ([op("add", "/x/y", value=1)], "doc is missing path: /x/y"),
        ([op("remove", "/x")], "Unable to remove nonexistent key: x"),
        ([op("remove", "/l/5")], "invalid index: 5"),
        ([op("add", "/l/9", value=1)], "invalid index: 9"),
        ([op("add", "/l/01", value=1)], "proper array index"),
        ([op("replace", "/l/9", value=1)], "doc is missing key: /l/9"),
        ([op("copy", "/b", **{"from": "/none"})], "error in copy"),
        ([op("move", "/o/in/x", **{"from": "/o"})], "lies inside"),
        ([op("frobnicate", "/a")], "Unexpected kind: frobnicate"),
        ([op("add", "/a")], "missing value field"),
        ([{"op": "add", "value": 1}], "missing path field"),
        ([op("replace", "", value=1)], "must be an object"),
    ],
)
def test_an_operation_that_does_not_apply_is_unprocessable(operations: Any, said: str) -> None:
    error = refused(JSON, {"a": 1, "l": [1], "o": {"in": {}}}, operations)
    assert (error.code, error.reason) == (422, "Invalid")
    assert said in error.message


def test_no_patch_grows_an_object_without_bound() -> None:
    doubling = [op("copy", "/l/-", **{"from": "/l"}) for _ in range(60)]
    assert refused(JSON, {"l": ["x" * 100]}, doubling).code == 422
    assert refused(JSON, {}, [op("test", "/a", value=None)] * 10_001).code == 413


def test_a_failing_operation_changes_nothing() -> None:
    current = {"a": {"b": 1}}
    refused(JSON, current, [op("add", "/a/c", value=1), op("test", "/a/b", value=2)])
    assert current == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("current", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "foo"}, {"a": {"b": 1, "c": None}}, {"a": {"b": 1}}),
    ],
)
def test_merge_patches_follow_the_rfc(current: Any, patch: Any, expected: Any) -> None:
    before, sent = copy.deepcopy(current), copy.deepcopy(patch)
    assert apply_patch(MERGE, current, patch, MPI_JOB) == expected
    assert (current, patch) == (before, sent)


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC])
def test_a_merge_patch_is_an_object(content_type: str) -> None:
    assert refused(content_type, {}, [1]).code == 400
    assert refused(JSON, {}, {"a": 1}).code == 400


@pytest.mark.parametrize(
    ("content_type", "kind"),
    [
        (STRATEGIC, MPI_JOB),
        ("application/apply-patch+yaml", POD),
        ("application/json", POD),
        ("", POD),
        (STRATEGIC, Kind("batch.volcano.sh", "v1alpha1", "Job", "jobs")),
    ],
)
def test_patches_a_kind_does_not_take_are_unsupported(content_type: str, kind: Kind) -> None:
    error = refused(content_type, {}, {}, kind)
    assert (error.code, error.reason) == (415, "UnsupportedMediaType")
    assert "application/merge-patch+json" in error.message
    assert ("strategic" in error.message) == (kind == POD)
