"""What the server reads out of a request's body, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from posse.local.apiserver.bodies import MAX_DEPTH, BadBody, decode_body

JSON = "application/json"
YAML = "application/yaml"
PATCH = "application/json-patch+json"


def refusal(content_type: str, body: bytes) -> BadBody:
    with pytest.raises(BadBody) as caught:
        decode_body(content_type, body)
    return caught.value


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b'{"a":"\xff"}', "UTF-8"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":Infinity}', "Infinity"),
        (b'{"a":-Infinity}', "Infinity"),
        (b'{"a":1e999}', "out of range"),
        (b'{"a":9223372036854775808}', "64 bits"),
        (b'{"a":-9223372036854775809}', "64 bits"),
        (b'{"a":' + b"9" * 5000 + b"}", "64 bits"),
        (b'{"a":1} x', "json parse error"),
        (b'{"a":1}{"b":2}', "json parse error"),
        (b"{'a':1}", "json parse error"),
        (b'{"a":"\x01"}', "json parse error"),
        (b"[]", "must be an object"),
        (b'"text"', "must be an object"),
        (b"null", "must be an object"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "nested deeper"),
        (b"[" * 100_000, "nested deeper"),
    ],
)
def test_bad_json_is_a_bad_request(body: bytes, said: str) -> None:
    error = refusal(JSON, body)
    assert (error.code, error.reason) == (400, "BadRequest")
    assert said in error.message


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"a": 1, "b": 1.0, "c": True, "d": None, "e": [], "f": "ü€😀"},
        {"max": 2**63 - 1, "min": -(2**63), "small": 1e-9},
    ],
)
def test_json_comes_out_as_it_went_in(value: dict[str, Any]) -> None:
    read = decode_body(JSON, json.dumps(value).encode())
    assert read.value == value
    assert [type(item) for item in read.value.values()] == [type(item) for item in value.values()]
    assert read.duplicates == []


def test_the_deepest_body_allowed_is_read() -> None:
    deep = b'{"a":' * MAX_DEPTH + b"1" + b"}" * MAX_DEPTH
    assert "a" in decode_body(JSON, deep).value


def test_the_last_of_repeated_keys_wins_and_each_is_reported_once() -> None:
    body = b'{"spec":{"replicas":1,"replicas":2,"replicas":3,"c":[{},{"x":1,"x":2}]},"spec2":{}}'
    read = decode_body(JSON, body)
    assert read.value["spec"]["replicas"] == 3
    assert sorted(read.duplicates) == ["spec.c[1].x", "spec.replicas"]


def test_half_a_surrogate_pair_can_be_written_back() -> None:
    read = decode_body(JSON, rb'{"a\ud800":"\udc00 \ud83d\ude00"}')
    assert read.value == {"a\ufffd": "\ufffd 😀"}
    json.dumps(read.value, ensure_ascii=False).encode()


def test_a_json_patch_is_a_list() -> None:
    assert decode_body(f"{PATCH}; charset=utf-8", b"[]").value == []
    assert refusal(PATCH, b"{}").code == 400


@pytest.mark.parametrize("content_type", ["application/cbor", "text/plain"])
def test_other_formats_are_not_read(content_type: str) -> None:
    error = refusal(content_type, b"{}")
    assert (error.code, error.reason) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True), ("on", True), ("y", True), ("Off", False), ("NO", False), ("true", True),
        ("null", None), ("~", None), ("", None),
        ("'yes'", "yes"), ('"1"', "1"), ("!!str 1", "1"),
        ("1", 1), ("-7", -7), ("+7", 7), ("0x1F", 31), ("0b101", 5), ("0o17", 15), ("017", 15),
        ("1_000", 1000), ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("6.", 6.0),
        ("1:30", "1:30"), ("2024-01-02", "2024-01-02"),
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("1Gi", "1Gi"), ("500m", "500m"), ("1.2.3", "1.2.3"), ("a: b".replace(": ", ":"), "a:b"),
        ("tRuE", "tRuE"), ("-", [None]), ("!!float 3", 3.0),
    ],
)  # fmt: skip
def test_plain_scalars_mean_what_kubernetes_takes_them_for(text: str, value: Any) -> None:
    body = f"key: {text}" if text != "-" else "key:\n- "
    read = decode_body(YAML, body.encode())
    assert read.value == {"key": value}
    assert type(read.value["key"]) is type(value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "empty"),
        ("a: 1\n---\nb: 2\n", "more than one document"),
        ("a: .inf", "JSON"),
        ("a: .nan", "JSON"),
        ("a: 1e999", "out of range"),
        ("a: 99999999999999999999", "64 bits"),
        ("[a]", "must be an object"),
        ("a: [", "error converting YAML to JSON"),
        ("a: !!python/object/apply:os.system [ls]", "cannot decode"),
        ("a: !!int x", "cannot decode"),
        ("a: *missing", "anchor"),
        ("a: &x [*x]", "anchor"),
        ("? {a: b}\n: 1", "key"),
        ("null: 1", "key"),
        ("a: " + "[" * 300 + "]" * 300, "depth"),
        ("a: 1\n<<: 3", "merge"),
    ],
)
def test_bad_yaml_is_a_bad_request(body: str, said: str) -> None:
    error = refusal(YAML, body.encode())
    assert (error.code, error.reason) == (400, "BadRequest")
    assert said in error.message


def test_aliases_cannot_make_a_short_text_large() -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    for level in range(1, 10):
        inner = ",".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{inner}]")
    assert "aliasing" in refusal(YAML, "\n".join(lines).encode()).message


def test_aliases_and_merges_are_expanded_into_parts_of_their_own() -> None:
    body = b"base: &b {x: 1, z: 2}\none: {<<: *b, z: 3}\ntwo: *b\nthree: *b\n"
    value = decode_body(YAML, body).value
    assert value["one"] == {"z": 3, "x": 1}
    value["two"]["x"] = 9
    assert value["three"]["x"] == 1


def test_keys_of_other_types_become_text() -> None:
    assert decode_body(YAML, b"8080: a\ntrue: b\n").value == {"8080": "a", "true": "b"}


def test_repeated_yaml_keys_are_reported_with_their_path() -> None:
    read = decode_body(YAML, b"spec:\n  list:\n  - a: 1\n    a: 2\n")
    assert read.value == {"spec": {"list": [{"a": 2}]}}
    assert read.duplicates == ["spec.list[0].a"]
