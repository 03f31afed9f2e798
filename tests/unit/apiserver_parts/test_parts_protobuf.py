"""Kubernetes' protobuf gives the objects that its JSON gives.

Messages are written here as tuples: `(number, content)`, where content is an integer (a varint), a
text, bytes, or a list of such tuples (a message in it).
"""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posse.objects.schemas.core import STRUCTS
from posse.objects.schemas.protobuf import MAGIC, ProtobufError, decode

CREATE_CONFIG_MAP = base64.b64decode(
    "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEiEKFwoHYW5zd2VycxIAGgAiACoAMgA4AEIAEgYKAWESAWIaACIA"
)
"""What `kubectl create configmap answers --from-literal=a=b` sends, version 1.36."""


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*parts: tuple[int, Any]) -> bytes:
    out = b""
    for number, content in parts:
        if isinstance(content, float):
            out += varint(number << 3 | 1) + struct.pack("<d", content)
        elif isinstance(content, int):
            out += varint(number << 3) + varint(content)
        else:
            raw = content.encode() if isinstance(content, str) else content
            raw = message(*raw) if isinstance(raw, list) else raw
            out += varint(number << 3 | 2) + varint(len(raw)) + raw
    return out


def sent(kind: str, *parts: tuple[int, Any], api_version: str = "v1") -> bytes:
    return MAGIC + message((1, [(1, api_version), (2, kind)]), (2, list(parts)))


def read(kind: str, *parts: tuple[int, Any], api_version: str = "v1") -> dict[str, Any]:
    found = decode(sent(kind, *parts, api_version=api_version))
    assert (found.pop("kind"), found.pop("apiVersion")) == (kind, api_version)
    return found


def container(*parts: tuple[int, Any]) -> tuple[int, Any]:
    """`spec.containers[0]` of a pod."""
    return (2, [(2, list(parts))])


def test_what_kubectl_sends_is_read() -> None:
    assert decode(CREATE_CONFIG_MAP) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "answers", "creationTimestamp": None},
        "data": {"a": "b"},
    }


@pytest.mark.parametrize(
    ("parts", "spec"),
    [
        ([container((1, "c"), (3, "a"), (3, "b"))], {"name": "c", "command": ["a", "b"]}),
        ([container((1, "c"), (17, 0))], {"name": "c"}),
        (
            [container((1, "c"), (15, [(2, 1), (6, 0), (4, -5)]))],
            {
                "name": "c",
                "securityContext": {
                    "privileged": True,
                    "readOnlyRootFilesystem": False,
                    "runAsUser": -5,
                },
            },
        ),
        (
            [container((1, "c"), (8, [(1, [(1, "cpu"), (2, [(1, "500m")])])]))],
            {"name": "c", "resources": {"limits": {"cpu": "500m"}}},
        ),
        (
            [container((1, "c"), (10, [(1, [(2, [(1, "/up"), (2, [(1, 1), (3, "web")])])])]))],
            {"name": "c", "livenessProbe": {"httpGet": {"path": "/up", "port": "web"}}},
        ),
        (
            [container((1, "c"), (10, [(1, [(3, [(1, [(1, 0), (2, 80)])])])]))],
            {"name": "c", "livenessProbe": {"tcpSocket": {"port": 80}}},
        ),
        (
            [container((1, "c"), (7, [(1, "A"), (3, [(3, [(1, [(1, "cm")]), (2, "k")])])]))],
            {
                "name": "c",
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}}}
                ],
            },
        ),
    ],
    ids=["lists", "zero", "pointers", "quantities", "named-port", "port", "inlined"],
)
def test_a_container_is_read(parts: list[tuple[int, Any]], spec: dict[str, Any]) -> None:
    assert read("Pod", *parts)["spec"]["containers"] == [spec]


def test_a_volume_and_its_source_are_one_in_json() -> None:
    volume = [(1, "v"), (2, [(2, [(1, "Memory")])])]
    assert read("Pod", (2, [(1, volume)]))["spec"] == {
        "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]
    }


def test_secrets_are_bytes() -> None:
    assert read("Secret", (2, [(1, "k"), (2, b"\x00\xff")]), (3, "Opaque")) == {
        "data": {"k": "AP8="},
        "type": "Opaque",
    }


def test_times_are_text_and_no_time_is_null() -> None:
    meta = [(8, [(1, 1_600_000_000)]), (9, [])]
    assert read("Pod", (1, meta))["metadata"] == {
        "creationTimestamp": "2020-09-13T12:26:40Z",
        "deletionTimestamp": None,
    }


def test_a_time_may_have_microseconds() -> None:
    spec = [(1, "me"), (4, [(1, 1_600_000_000), (2, 250_000_000)])]
    found = read("Lease", (2, spec), api_version="coordination.k8s.io/v1")
    assert found["spec"]["renewTime"] == "2020-09-13T12:26:40.250000Z"


def test_zero_replicas_are_not_no_replicas() -> None:
    assert read("ReplicaSet", (2, [(1, 0), (4, 0)]), api_version="apps/v1")["spec"] == {
        "replicas": 0
    }


def test_numbers_can_come_packed() -> None:
    policy = [(1, [(1, "FailJob"), (2, [(2, "In"), (3, varint(1) + varint(300))])])]
    found = read("Job", (2, [(11, policy)]), api_version="batch/v1")
    assert found["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]["values"] == [1, 300]


def test_lists_in_maps_are_messages() -> None:
    spec = [(3, "u"), (5, [(1, "scopes"), (2, [(1, "a"), (1, "b")])])]
    found = read("SubjectAccessReview", (2, spec), api_version="authorization.k8s.io/v1")
    assert found["spec"]["extra"] == {"scopes": ["a", "b"]}


def test_schemas_of_definitions_are_read() -> None:
    schema = [
        (5, "object"),
        (29, [(1, "n"), (2, [(9, 4.5), (24, [(1, [(5, "string")])])])]),
        (30, [(1, 1)]),
        (8, [(1, b'{"a":[1]}')]),
    ]
    version = [(1, "v1"), (4, [(1, schema)])]
    group = "apiextensions.k8s.io/v1"
    found = read("CustomResourceDefinition", (2, [(7, version)]), api_version=group)
    assert found["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {"n": {"maximum": 4.5, "items": {"type": "string"}}},
        "additionalProperties": True,
        "default": {"a": [1]},
    }


def test_options_of_a_deletion_belong_to_every_group() -> None:
    parts = [(1, 0), (2, [(1, "u")]), (4, "Foreground")]
    for api_version in ("v1", "apps/v1", "meta.k8s.io/v1"):
        assert read("DeleteOptions", *parts, api_version=api_version) == {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"},
            "propagationPolicy": "Foreground",
        }


def test_fields_of_the_future_are_passed_over() -> None:
    assert read("ConfigMap", (900, "new"), (901, 5), (902, 1.5)) == {}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{}", "no protobuf magic"),
        (MAGIC + message((1, [(1, "v1"), (2, "Widget")])), 'no kind "Widget"'),
        (sent("Pod")[:-1] + b"\x05", "unexpected EOF"),
        (sent("Pod", (1, 5)), "a message or text was expected"),
        (sent("Pod", (1, [(1, b"\xff\xfe")])), "not valid UTF-8"),
        (sent("Pod", (1, [(8, [(1, 1 << 62)])])), "a time is out of range"),
        (MAGIC + b"\xff" * 11, "integer overflow"),
        (MAGIC + b"\x0b", "wire type 3"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(data: bytes, words: str) -> None:
    with pytest.raises(ProtobufError, match=words):
        decode(data)


def test_messages_cannot_be_nested_without_end() -> None:
    schema: list[tuple[int, Any]] = [(5, "object")]
    for _ in range(150):
        schema = [(28, schema)]
    spec = [(7, [(1, "v1"), (4, [(1, schema)])])]
    with pytest.raises(ProtobufError, match="nested deeper"):
        decode(sent("CustomResourceDefinition", (2, spec), api_version="apiextensions.k8s.io/v1"))


@given(st.binary(max_size=80))
def test_no_bytes_do_more_than_be_refused(noise: bytes) -> None:
    for kind in ("Pod", "Secret", "Event"):
        try:
            decode(MAGIC + message((1, [(1, "v1"), (2, kind)]), (2, noise)))
        except ProtobufError:
            continue


def test_numbers_are_unique_in_each_message() -> None:
    for struct_ in STRUCTS.values():
        numbers = [field.number for field in struct_.fields.values() if field.number]
        assert len(set(numbers)) == len(numbers), struct_.name
        firsts = {number[0] for number in numbers if len(number) > 1}
        assert not firsts & {number[0] for number in numbers if len(number) == 1}, struct_.name
