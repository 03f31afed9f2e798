from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posse.kube.decoding import Lines, decode_event, decode_page
from posse.kube.errors import Gone, ServerError, Undecodable
from posse.kube.identity import Identity
from posse.objects.kinds import CONFIG_MAP
from tests.unit.kube.modelserver import GONE, TOO_LARGE


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class Thing(msgspec.Struct):
    metadata: Meta
    size: int = 0


def event(kind: str, obj: object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj})


@given(
    lines=st.lists(st.binary(min_size=1).map(lambda b: b.replace(b"\n", b"_") + b"."), max_size=8),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_lines_are_the_same_wherever_the_chunks_were_cut(
    lines: list[bytes], cuts: list[int]
) -> None:
    body = b"".join(line + b"\n" for line in lines) + b"unfinished"
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    framing = Lines()
    found = []
    for start, end in pairwise(edges):
        found += framing.feed(body[start:end])
    assert found == lines
    assert framing.rest() == b"unfinished"


def test_empty_lines_between_events_are_passed_over() -> None:
    assert Lines().feed(b"\n{}\n\r\n{}\n") == [b"{}", b"{}"]


def test_a_page_with_a_malformed_item_keeps_the_others() -> None:
    body = (
        b'{"metadata":{"resourceVersion":"7"},"items":['
        b'{"metadata":{"name":"a"},"size":1},'
        b'{"metadata":{"name":"b","namespace":"n","uid":"u","resourceVersion":"3"},"size":"big"},'
        b'{"metadata":{"name":"c"}},null]}'
    )
    meta, items, bad = decode_page(body, CONFIG_MAP, Thing)
    assert meta.resource_version == "7"
    assert [item.metadata.name for item in items] == ["a", "c"]
    assert [record.identity for record in bad] == [
        Identity("n", "b", "u", "3"),
        Identity("", "", "", ""),
    ]
    assert "size" in bad[0].why


@pytest.mark.parametrize("items", ["null", "[]"])
def test_an_empty_list_may_be_null(items: str) -> None:
    body = f'{{"metadata":{{"resourceVersion":"7"}},"items":{items}}}'.encode()
    assert decode_page(body, CONFIG_MAP, Thing)[1] == []


def test_listed_dicts_carry_the_kind_that_servers_leave_out() -> None:
    body = b'{"metadata":{},"items":[{"metadata":{"name":"a"}}]}'
    _, items, _ = decode_page(body, CONFIG_MAP, dict)
    assert items == [{"metadata": {"name": "a"}, "apiVersion": "v1", "kind": "ConfigMap"}]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"items":[]}', b"\xff", b"[" * 100_000])
def test_a_broken_list_is_an_error_not_an_empty_list(body: bytes) -> None:
    with pytest.raises(Undecodable):
        decode_page(body, CONFIG_MAP, Thing)


def test_error_events_raise_what_their_status_means() -> None:
    with pytest.raises(Gone):
        decode_event(event("ERROR", GONE), CONFIG_MAP, Thing)
    with pytest.raises(ServerError) as caught:
        decode_event(event("ERROR", TOO_LARGE), CONFIG_MAP, Thing)
    assert caught.value.too_large_version


def test_a_bookmark_is_a_version_and_no_object() -> None:
    document = {"kind": "ConfigMap", "metadata": {"resourceVersion": "12", "labels": None}}
    found = decode_event(event("BOOKMARK", document), CONFIG_MAP, Thing)
    assert (found.type, found.object, found.resource_version) == ("BOOKMARK", None, "12")


@pytest.mark.parametrize(
    "obj",
    [
        {"metadata": {"name": "b", "uid": "u", "resourceVersion": "3"}, "size": []},
        {"metadata": {"name": "b", "uid": "u", "resourceVersion": "3", "namespace": 7}},
    ],
)
def test_an_event_whose_object_is_malformed_still_says_whose_it_is(obj: object) -> None:
    found = decode_event(event("MODIFIED", obj), CONFIG_MAP, Thing)
    assert found.object is None
    assert found.malformed is not None
    assert found.identity == Identity("", "b", "u", "3")


@pytest.mark.parametrize("obj", [None, 5, [], {}, {"metadata": None}, {"metadata": {"name": ""}}])
@pytest.mark.parametrize("model", [Thing, dict])
def test_an_event_without_a_named_object_is_malformed(obj: object, model: type[object]) -> None:
    found = decode_event(event("ADDED", obj), CONFIG_MAP, model)
    assert found.object is None
    assert found.malformed is not None


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"type":5,"object":{}}', b'{"type":"ADDED"}'])
def test_a_line_that_is_no_event_is_an_error(line: bytes) -> None:
    with pytest.raises(Undecodable):
        decode_event(line, CONFIG_MAP, Thing)
