"""Decides again what was recorded, and says where it would decide otherwise.

With the code and the policy of the record nothing differs; with another policy, or another version,
the first difference shows where the two part. After that the recorded facts go on telling what
really happened, so later differences are hints and no prediction.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from posse.engine.cycle import cycle
from posse.engine.policy import Policy
from posse.engine.view import View
from posse.scheduler.capturing import FORMAT, Cycle, Header, spelled, told

_LONGEST_HEADER = 1 << 20

T = TypeVar("T")
Spelled = tuple[str, dict[str, Any]]


class ReplayError(ValueError):
    """One line: what is wrong with the record, and in which line of it."""


class Difference(msgspec.Struct, frozen=True):
    """Of one cycle: decisions that the record has and those in their place."""

    cycle: int
    now: float
    recorded: tuple[Spelled, ...]
    decided: tuple[Spelled, ...]


class Replay(msgspec.Struct):
    """How far the record went, and what differed."""

    header: Header
    cycles: int = 0
    decisions: int = 0
    differing: int = 0
    first: list[Difference] = []
    # The record ends in the middle of a line: whoever wrote it was stopped there.
    cut: bool = False


def replay(file: Path, policy: Policy | None = None, *, most: int = 10) -> Replay:
    """`most`: how many differences are kept; all are counted."""
    lines = _lines(file)
    result = Replay(header=_header(next(lines, (1, b""))[1]))
    rules = policy or result.header.policy
    view, methods = View(), told()
    for number, line in lines:
        try:
            entry = _decoded(line, Any)
        except msgspec.DecodeError as error:
            if not line.endswith(b"\n"):
                result.cut = True
                break
            raise ReplayError(f"line {number}: {error}") from error
        try:
            if isinstance(entry, list):
                name, facts = entry
                types = methods[name]
                tell = getattr(view, name)
                tell(**{key: msgspec.convert(fact, types[key]) for key, fact in facts.items()})
                continue
            recorded = msgspec.convert(entry, Cycle)
        except (
            msgspec.ValidationError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
        ) as error:
            raise ReplayError(f"line {number}: {error}") from error
        _decide(view, rules, recorded, result, most)
    return result


def _decide(view: View, policy: Policy, recorded: Cycle, result: Replay, most: int) -> None:
    result.cycles += 1
    result.decisions += len(recorded.decisions)
    decided: list[Spelled] = []
    for decision in cycle(view, policy, recorded.now):
        decided.append(spelled(decision))
        if not recorded.whole and len(decided) == len(recorded.decisions):
            break
    # Both sides as JSON has them: a tuple in one is a list in the other.
    now = msgspec.json.decode(msgspec.json.encode(decided), type=list[Spelled])
    if now == recorded.decisions:
        return
    result.differing += 1
    if len(result.first) < most:
        ours = tuple(one for one in now if one not in recorded.decisions)
        theirs = tuple(one for one in recorded.decisions if one not in now)
        if not ours and not theirs:  # the same, in another order
            ours, theirs = tuple(now), tuple(recorded.decisions)
        result.first.append(Difference(result.cycles, recorded.now, theirs, ours))


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    with file.open("rb") as stream:
        # What is no record may have no end of a line, nor an end.
        yield 1, stream.readline(_LONGEST_HEADER)
        yield from enumerate(stream, start=2)


def _decoded(line: bytes, model: type[T]) -> T:
    """DecodeError for what is damaged, too: of text that is none the decoder says so in another."""
    try:
        return msgspec.json.decode(line, type=model)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError("it is damaged: not UTF-8") from error


def _header(line: bytes) -> Header:
    try:
        header = _decoded(line, Header)
    except msgspec.DecodeError as error:
        raise ReplayError(f"line 1: not a record of a scheduler: {error}") from error
    if header.format != FORMAT:
        raise ReplayError(
            f"line 1: a record of format {header.format}; this version reads {FORMAT}"
        )
    return header
