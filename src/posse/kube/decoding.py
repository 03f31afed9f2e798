"""Bytes to objects: one document, a page of a list, the lines of a watch.

A list or a watch may hold an object that its model refuses, written by someone with another
schema or by mistake. Such an object is set aside as Malformed and the rest is delivered: one bad
object must never hide the good ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

import msgspec

from posse.kube.errors import Undecodable, from_status
from posse.kube.identity import (
    Identity,
    Malformed,
    Object,
    identify,
    identify_loosely,
    malformed,
)
from posse.objects.kinds import Kind

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Object)
else:
    from typing import TypeVar

    T = TypeVar("T")

BROKEN = (ValueError, RecursionError)  # what msgspec raises for anything it cannot read


class ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    more: str | None = msgspec.field(name="continue", default=None)


class Page(msgspec.Struct, Generic[T]):
    """One answer to a list."""

    metadata: ListMeta
    items: list[T] | None = None


class WatchEvent(msgspec.Struct, Generic[T], frozen=True):
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK.

    `object` is None for a BOOKMARK, which only says how far the watch has come, and for an object
    that its model refused, which is then in `malformed`.
    """

    type: str
    object: T | None
    identity: Identity
    malformed: Malformed | None = None

    @property
    def resource_version(self) -> str:
        return self.identity.resource_version


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_line = msgspec.json.Decoder(_Line)


class _Event(msgspec.Struct, Generic[T], gc=False):
    """A line whose object is good, read in one go."""

    type: str
    object: T


_NEWS = ("ADDED", "MODIFIED", "DELETED")

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder(model: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a model; making one costs more than using it."""
    found = _decoders.get(model)
    if found is None:
        found = _decoders[model] = msgspec.json.Decoder(Object if model is dict else model)
    return found


_lines: dict[Any, msgspec.json.Decoder[Any]] = {}


def _line_of(model: Any) -> msgspec.json.Decoder[Any]:
    found = _lines.get(model)
    if found is None:
        found = _lines[model] = decoder(_Event[model])
    return found


def decode(body: bytes | msgspec.Raw, model: type[T]) -> T:
    try:
        document: T = decoder(model).decode(body)
    except BROKEN as error:
        raise Undecodable(f"the server's answer is not a {model.__name__}: {error}") from error
    return document


def decode_page(
    body: bytes, kind: Kind, model: type[T]
) -> tuple[ListMeta, list[T], list[Malformed]]:
    """A page's items: all at once when they are good, one by one when any is not."""
    whole: Any = Page[Object] if model is dict else Page[model]  # type: ignore[valid-type]
    bad: list[Malformed] = []
    items: list[T]
    try:
        page = decoder(whole).decode(body)
        items = page.items or []
    except BROKEN:
        page = _raw_page(body, kind)
        items = []
        for raw in page.items or ():
            try:
                items.append(decoder(model).decode(raw))
            except BROKEN as error:
                bad.append(malformed(kind.kind, raw, error))
    if model is dict:
        for item in items:
            _name(kind, item)
    return page.metadata, items, bad


def decode_event(line: bytes, kind: Kind, model: type[T]) -> WatchEvent[T]:
    """One event; an ERROR event raises the error that its Status means."""
    if model is not dict:
        try:
            event = _line_of(model).decode(line)
            if event.type in _NEWS:
                return WatchEvent(event.type, event.object, identify(event.object))
        except BROKEN:
            return _decode_by_pieces(line, kind, model)
    return _decode_by_pieces(line, kind, model)


def _decode_by_pieces(line: bytes, kind: Kind, model: type[T]) -> WatchEvent[T]:
    try:
        envelope = _line.decode(line)
    except BROKEN as error:
        raise Undecodable(f"a watch event of {kind.qualified} is broken: {error}") from error
    if envelope.type == "ERROR":
        raise from_status(decode(envelope.object, dict))
    if envelope.type == "BOOKMARK":
        return WatchEvent("BOOKMARK", None, identify_loosely(decode(envelope.object, dict)))
    try:
        obj: T = decoder(model).decode(envelope.object)
        return WatchEvent(envelope.type, obj, identify(obj))
    except BROKEN as error:
        bad = malformed(kind.kind, envelope.object, error)
        return WatchEvent(envelope.type, None, bad.identity, bad)


class Lines:
    """Cuts a body into lines as its chunks arrive, wherever the chunks were cut."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        head, newline, tail = chunk.partition(b"\n")
        self._begun.append(head)
        if not newline:
            return []
        lines = [self.rest(), *tail.split(b"\n")]
        self._begun = [lines.pop()]
        return [line for line in lines if line.strip()]

    def rest(self) -> bytes:
        """What followed the last newline."""
        return b"".join(self._begun)


def _raw_page(body: bytes, kind: Kind) -> Page[msgspec.Raw]:
    try:
        page: Page[msgspec.Raw] = decoder(Page[msgspec.Raw]).decode(body)
    except BROKEN as error:
        raise Undecodable(f"the server's list of {kind.qualified} is broken: {error}") from error
    return page


def _name(kind: Kind, item: Any) -> None:
    """Gives a listed dict its apiVersion and kind, which servers leave out of list items."""
    item.setdefault("apiVersion", kind.api_version)
    item.setdefault("kind", kind.kind)
