"""A record of what the engine was told and what it decided, for `posse replay`.

One file per term, which begins with an empty view, so that a file is whole by itself: a line for
every fact in the order in which it was told, and one for every cycle with its decisions. The engine
is pure, so the same lines give the same decisions anywhere.

A record is never a reason to stop scheduling: when it cannot be written, or has grown too large, it
ends, and the log says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import IO, Any, get_type_hints

import msgspec

from posse.engine.decisions import Decision
from posse.engine.policy import Policy
from posse.engine.view import View
from posse.objects.times import rfc3339
from posse.version import __version__
from posse.world import World

_log = logging.getLogger(__name__)

FORMAT = 1
SUFFIX = ".posse-capture"
LARGEST = 1 << 30
_PLAIN = (str, bool, msgspec.Struct)


class Header(msgspec.Struct, frozen=True):
    """The first line of a record."""

    format: int
    version: str
    began: str
    policy: Policy


class Cycle(msgspec.Struct, frozen=True):
    """What was decided at a time. A cycle that was cut short lacks its last decisions."""

    now: float
    decisions: list[tuple[str, dict[str, Any]]]
    whole: bool = True


def told() -> dict[str, dict[str, type]]:
    """The methods of a view that take facts, each with the names and types of what it takes."""
    methods: dict[str, dict[str, type]] = {}
    for name in dir(View):
        if name.startswith(("set_", "remove_", "refute")):
            hints = get_type_hints(getattr(View, name))
            hints.pop("return", None)
            if all(isinstance(one, type) and issubclass(one, _PLAIN) for one in hints.values()):
                methods[name] = hints
    return methods


def spelled(decision: Decision) -> tuple[str, dict[str, Any]]:
    """A decision as it stands in a record."""
    return type(decision).__name__, msgspec.to_builtins(decision)


class Capture:
    def __init__(self, directory: Path, world: World, policy: Policy) -> None:
        """OSError when nothing can be written there."""
        began = rfc3339(world.now())
        name = f"{began.replace(':', '')}-{world.suffix(5)}{SUFFIX}"
        directory.mkdir(parents=True, exist_ok=True)
        self.file = directory / name
        self._written = 0
        self._stream: IO[bytes] | None = self.file.open("xb")
        self._write(Header(FORMAT, __version__, began, policy))
        _log.info("what is decided, and on what, is recorded in %s", self.file)

    def view(self) -> View:
        """A view that records what it is told."""
        return _recorded(self._fact)

    def watch(self, now: float, decisions: Iterator[Decision]) -> Iterator[Decision]:
        """Hands the decisions on, and records them when the cycle is over."""
        made: list[tuple[str, dict[str, Any]]] = []
        whole = False
        try:
            for decision in decisions:
                made.append(spelled(decision))
                yield decision
            whole = True
        finally:
            self._write(Cycle(now, made, whole))
            self._flush()

    def close(self) -> None:
        if self._stream is not None:
            self._flush()
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _fact(self, method: str, told: dict[str, Any]) -> None:
        self._write([method, told])

    def _write(self, line: Any) -> None:
        if self._stream is None:
            return
        data = msgspec.json.encode(line) + b"\n"
        self._written += len(data)
        if self._written > LARGEST:
            self._end(f"it has {LARGEST >> 20} MiB")
            return
        try:
            self._stream.write(data)
        except OSError as error:
            self._end(str(error))

    def _flush(self) -> None:
        try:
            if self._stream is not None:
                self._stream.flush()
        except OSError as error:
            self._end(str(error))

    def _end(self, why: str) -> None:
        _log.warning("nothing more is recorded in %s: %s", self.file, why)
        stream, self._stream = self._stream, None
        try:
            if stream is not None:
                stream.close()
        except OSError as error:
            _log.warning("%s: %s", self.file, error)


def _recorded(record: Callable[[str, dict[str, Any]], None]) -> View:
    """A view whose methods that take facts tell of each call before they do it."""

    def method(name: str) -> Callable[..., None]:
        plain = getattr(View, name)
        takes = signature(plain)

        def call(view: View, *facts: Any, **named: Any) -> None:
            told = dict(takes.bind(view, *facts, **named).arguments)
            del told["self"]
            record(name, told)
            plain(view, *facts, **named)

        return call

    recorded = type("RecordedView", (View,), {name: method(name) for name in told()})()
    assert isinstance(recorded, View)
    return recorded
