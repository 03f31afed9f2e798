"""Whatever comes, there is an answer; and the protocol around it."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posse.admission.patching import differences
from posse.admission.review import Stage
from posse.admission.wire import AdmissionRequest, MalformedReview, Review, read, written
from posse.local.apiserver.patching.operations import apply_operations
from posse.objects.errors import FieldError
from tests.unit.admission.questions import (
    Known,
    Object,
    Rights,
    answer,
    asking,
    mpi_job,
    pod_group,
    tf_job,
)

QUESTION = {
    "apiVersion": "admission.k8s.io/v1",
    "kind": "AdmissionReview",
    "request": {
        "uid": "question-1",
        "kind": {"group": "kubeflow.org", "version": "v1", "kind": "TFJob"},
        "resource": {"group": "kubeflow.org", "version": "v1", "resource": "tfjobs"},
        "requestKind": {"group": "kubeflow.org", "version": "v1beta1", "kind": "TFJob"},
        "name": "train",
        "namespace": "ns",
        "operation": "CREATE",
        "userInfo": {"username": "ann", "groups": None, "extra": {"scopes": ["a"]}},
        "object": {"spec": {"x": None}},
        "oldObject": None,
        "dryRun": False,
        "options": None,
    },
}


def test_a_question_is_read() -> None:
    request = read(json.dumps(QUESTION).encode())
    assert request.written_kind.api_version == "kubeflow.org/v1beta1"
    assert request.user_info.groups == []
    assert request.object == {"spec": {"x": None}}
    assert request.old_object is None


def _without(*path: str) -> bytes:
    question: Any = copy.deepcopy(QUESTION)
    inner = question
    for name in path[:-1]:
        inner = inner[name]
    del inner[path[-1]]
    return json.dumps(question).encode()


MALFORMED = [
    ("nothing", b""),
    ("no JSON", b"{"),
    ("no UTF-8", b'{"apiVersion": "\xff"}'),
    ("a list", b"[]"),
    ("another version", json.dumps(QUESTION | {"apiVersion": "admission.k8s.io/v1beta1"}).encode()),
    ("another kind", json.dumps(QUESTION | {"kind": "ConversionReview"}).encode()),
    ("no request", _without("request")),
    ("no uid", _without("request", "uid")),
    ("no kind", _without("request", "kind")),
    ("no operation", _without("request", "operation")),
    ("an object that is a list",
     json.dumps(QUESTION | {"request": QUESTION["request"] | {"object": []}}).encode()),  # type: ignore[operator]
    ("endless depth", b'{"request": ' + b"[" * 100_000),
]  # fmt: skip


@pytest.mark.parametrize(("why", "body"), MALFORMED, ids=[row[0] for row in MALFORMED])
def test_what_is_no_question_is_said_to_be_none(why: str, body: bytes) -> None:
    with pytest.raises(MalformedReview):
        read(body)


def test_an_answer_is_written() -> None:
    patch = ({"op": "add", "path": "/a", "value": 1},)
    answer = json.loads(written("question-1", Review(warnings=("w", "x" * 300), patch=patch)))
    assert answer["apiVersion"] == "admission.k8s.io/v1"
    assert answer["kind"] == "AdmissionReview"
    response = answer["response"]
    assert (response["uid"], response["allowed"]) == ("question-1", True)
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == list(patch)
    assert [len(text) for text in response["warnings"]] == [1, 256]


def test_a_denial_is_a_status() -> None:
    cause = FieldError("spec.x", "FieldValueInvalid", "Invalid value: 1: why")
    review = Review(False, 422, "Invalid", "told", (cause,))
    response = json.loads(written("question-1", review))["response"]
    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    assert response["status"]["details"]["causes"][0]["field"] == "spec.x"
    assert "patch" not in response


@pytest.mark.parametrize(
    "thing",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        {"apiVersion": "example.com/v1", "kind": "TFJob", "metadata": {"name": "c"}},
        mpi_job(0) | {"apiVersion": "kubeflow.org/v1"},
    ],
)
async def test_what_is_not_ours_passes_untouched(thing: Object) -> None:
    assert await answer(asking(thing)) == Review()


async def test_an_operation_that_nobody_knows_passes() -> None:
    assert await answer(asking(mpi_job(0), operation="CONNECT")) == Review()


async def test_the_first_stage_never_refuses_and_the_second_never_changes() -> None:
    request = asking(tf_job(-1))
    first = await answer(request, stage=Stage.MUTATING)
    second = await answer(request, stage=Stage.VALIDATING)
    assert first.allowed
    assert first.patch
    assert not second.allowed
    assert not second.patch


async def test_a_review_leaves_the_request_as_it_was() -> None:
    request = asking(tf_job(annotations={"a": "b"}))
    before = msgspec.json.encode(request)
    await answer(request)
    assert msgspec.json.encode(request) == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "1", "x", "Worker"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["a", "a/b", "c~d", "name", "annotations", "containers", "spec", "replicas", "template",
         "resources", "requests", "cpu", "Worker", "Launcher"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
OBJECTS = st.dictionaries(st.sampled_from(["a", "a/b", "c~d", "x"]), JSON, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_patch_makes_the_one_of_the_other(old: Object, new: Object) -> None:
    assert apply_operations(copy.deepcopy(old), [dict(one) for one in differences(old, new)]) == new


PLACES = [
    ("metadata",), ("metadata", "annotations"), ("metadata", "labels"), ("metadata", "name"),
    ("metadata", "ownerReferences"), ("spec",), ("spec", "runPolicy"), ("spec", "queue"),
    ("spec", "runPolicy", "schedulingPolicy"), ("spec", "runPolicy", "managedBy"),
    ("spec", "mpiReplicaSpecs"), ("spec", "tfReplicaSpecs"), ("spec", "mpiReplicaSpecs", "Worker"),
    ("spec", "tfReplicaSpecs", "Worker", "template"), ("spec", "capability"), ("spec", "guarantee"),
    ("spec", "minTaskMember"), ("spec", "minResources"), ("spec", "parent"), ("spec", "minMember"),
    ("spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers"),
]  # fmt: skip
QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
         "metadata": {"name": "q"}, "spec": {"guarantee": {}}}  # fmt: skip


def _replaced(obj: Object, place: tuple[str, ...], value: Any) -> Object:
    made = copy.deepcopy(obj)
    inner: Any = made
    for name in place[:-1]:
        inner = inner.setdefault(name, {})
        if not isinstance(inner, dict):
            return made
    inner[place[-1]] = value
    return made


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([mpi_job(), tf_job(), pod_group(), QUEUE]),
    st.lists(st.tuples(st.sampled_from(PLACES), JSON), min_size=1, max_size=3),
    st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
)
async def test_no_object_is_too_odd_for_an_answer(
    sound: Object, changes: list[tuple[tuple[str, ...], Any]], operation: str
) -> None:
    odd = sound
    for place, value in changes:
        odd = _replaced(odd, place, value)
    for new, old in ((odd, sound), (sound, odd), (odd, odd)):
        request = AdmissionRequest(
            uid="1",
            kind=asking(sound).kind,
            operation=operation,
            name="train",
            namespace="ns",
            object=None if operation == "DELETE" else new,
            old_object=None if operation == "CREATE" else old,
        )
        said = await answer(request, Known(), Rights("ann"))
        written("1", said)
