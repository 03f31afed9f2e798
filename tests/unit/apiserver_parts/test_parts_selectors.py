"""Label and field selectors."""

from __future__ import annotations

from typing import Any

import pytest

from posse.local.apiserver.selectors import field_selector, label_selector
from posse.objects import kinds
from posse.objects.kinds import Kind
from posse.objects.selectors import SelectorError


def labelled(**labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": labels}}


@pytest.mark.parametrize(
    ("selector", "labels", "matches"),
    [
        ("", {}, True),
        ("a=1", {"a": "1"}, True), ("a==1", {"a": "1"}, True), ("a=1", {"a": "2"}, False),
        ("a=1", {}, False), ("a=", {"a": ""}, True), ("a=", {}, False),
        ("a!=1", {"a": "2"}, True), ("a!=1", {}, True), ("a!=1", {"a": "1"}, False),
        ("a in (1,2)", {"a": "2"}, True), ("a in (1,2)", {"a": "3"}, False),
        ("a in ()", {"a": ""}, True), ("a in (1,)", {"a": ""}, True),
        ("a in (,1)", {"a": ""}, True),
        ("a notin (1,2)", {"a": "3"}, True), ("a notin (1,2)", {}, True),
        ("a notin (1,2)", {"a": "1"}, False),
        ("a", {"a": "x"}, True), ("a", {}, False), ("!a", {}, True), ("!a", {"a": "x"}, False),
        ("a=1,b in (2), !c ,d", {"a": "1", "b": "2", "d": ""}, True),
        ("a=1,b", {"a": "1"}, False),
        (" a = 1 ", {"a": "1"}, True), ("a>5", {"a": "6"}, True), ("a<5", {"a": "6"}, False),
        ("a>5", {"a": "x"}, False), ("in in (in)", {"in": "in"}, True),
        ("kubeflow.org/job-role=master", {"kubeflow.org/job-role": "master"}, True),
    ],
)  # fmt: skip
def test_labels(selector: str, labels: dict[str, str], matches: bool) -> None:
    chosen = label_selector(selector)
    assert chosen.matches(labelled(**labels)) is matches
    assert chosen.empty is (selector == "")


@pytest.mark.parametrize("metadata", [{}, {"labels": None}])
def test_objects_without_labels_are_read_as_having_none(metadata: dict[str, Any]) -> None:
    assert label_selector("!a").matches({"metadata": metadata})
    assert not label_selector("a").matches({"metadata": metadata})


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("a,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a b", "expected: in, notin, =, ==, !=, gt, lt"),
        ("a in 1", "found '1' expected: '('"),
        ("a in (1", "expected: ',' or ')'"),
        ("a in (1 2)", "expected: ',' or ')'"),
        ("a=(", "found '(', expected: identifier"),
        ("=1", "expected: !, identifier"),
        ("!a=1", "expected"),
        ("a=1=2", "expected: ',' or 'end of string'"),
        ("a=b c", "expected: ',' or 'end of string'"),
        ("-a=1", "name part must consist of alphanumeric characters"),
        ("a=-", "a valid label must be an empty string or consist of"),
        ("a=" + "x" * 64, "must be no more than 63"),
        ("x" * 64, "must be no more than 63"),
        ("UPPER.example/a", "prefix part"),
        ("a/b/c", "a valid label key must consist of"),
        ("a>x", "must be an integer"),
    ],
)
def test_label_selectors_that_cannot_be_read(selector: str, said: str) -> None:
    with pytest.raises(SelectorError) as caught:
        label_selector(selector)
    assert said in str(caught.value)


POD = {
    "metadata": {"name": "p", "namespace": "n"},
    "spec": {"nodeName": "node-1", "restartPolicy": "Never", "schedulerName": "posse"},
    "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
}
EVENT = {
    "metadata": {"name": "e", "namespace": "n"},
    "involvedObject": {"kind": "Pod", "name": "p", "uid": "u"},
    "reason": "Scheduled",
    "type": "Normal",
    "reportingComponent": "posse",
}


@pytest.mark.parametrize(
    ("kind", "obj", "selector", "matches"),
    [
        (kinds.POD, POD, "", True),
        (kinds.POD, POD, "spec.nodeName=node-1", True),
        (kinds.POD, POD, "spec.host=node-1", True),
        (kinds.POD, POD, "spec.nodeName==node-2", False),
        (kinds.POD, POD, "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed", True),
        (kinds.POD, {"metadata": {}}, "spec.nodeName=", True),
        (kinds.POD, POD, "status.podIP=10.0.0.1", True),
        (kinds.POD, POD, "spec.hostNetwork=false", True),
        (kinds.POD, {"spec": {"hostNetwork": True}}, "spec.hostNetwork=true", True),
        (kinds.POD, POD, "metadata.name=p,metadata.namespace=n", True),
        (kinds.POD, POD, "metadata.name=p,metadata.namespace=other", False),
        (kinds.EVENT, EVENT, "involvedObject.kind=Pod,involvedObject.name=p", True),
        (kinds.EVENT, EVENT, "involvedObject.uid=other", False),
        (kinds.EVENT, EVENT, "source=posse,type=Normal,reason!=Killed", True),
        (kinds.NODE, {"metadata": {}, "spec": {}}, "spec.unschedulable=false", True),
        (kinds.JOB, {"status": {"succeeded": 2}}, "status.successful=2", True),
        (kinds.JOB, {}, "status.successful=0", True),
        (kinds.SECRET, {"type": "Opaque"}, "type=Opaque", True),
        (kinds.NAMESPACE, {"status": {"phase": "Active"}}, "status.phase=Active", True),
        (kinds.MPI_JOB, {"metadata": {"name": "j"}}, "metadata.name=j", True),
        (kinds.MPI_JOB, {"metadata": {"name": "a,b"}}, "metadata.name=a\\,b", True),
    ],
)
def test_fields(kind: Kind, obj: dict[str, Any], selector: str, matches: bool) -> None:
    assert field_selector(selector, kind).matches(obj) is matches


@pytest.mark.parametrize(
    ("kind", "selector", "said"),
    [
        (kinds.POD, "spec.containers=x", "field label not supported: spec.containers"),
        (kinds.MPI_JOB, "status.phase=x", "field label not supported: status.phase"),
        (kinds.POD, "spec.nodeName", "can't understand 'spec.nodeName'"),
        (kinds.POD, "metadata.name=a\\b", "invalid escape sequence: \\b"),
        (kinds.POD, "metadata.name=a\\", "invalid escape sequence"),
        (kinds.POD, "metadata.name=a=b", "unescaped character in value"),
    ],
)
def test_field_selectors_that_cannot_be_read(kind: Kind, selector: str, said: str) -> None:
    with pytest.raises(SelectorError) as caught:
        field_selector(selector, kind)
    assert said in str(caught.value)
