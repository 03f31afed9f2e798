"""What a kind says to a request, before it is put into the words of the protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from posse.admission.lookups import Authorizer, Reader
from posse.admission.wire import AdmissionRequest, Object
from posse.objects.errors import FieldError
from posse.objects.raw import mapping, text


class Verdict(msgspec.Struct, frozen=True):
    """`wrongs`: the object can never be right. `forbidden`: it is right, and yet not to be done.

    Neither: it may pass, with warnings for whoever looks.
    """

    wrongs: tuple[FieldError, ...] = ()
    forbidden: str = ""
    warnings: tuple[str, ...] = ()


PASSED = Verdict()

Change = Callable[[AdmissionRequest, Reader], Awaitable[Object]]
Judge = Callable[[AdmissionRequest, Reader, Authorizer], Awaitable[Verdict]]


async def unchanged(request: AdmissionRequest, reader: Reader) -> Object:
    return object_of(request)


@dataclass(frozen=True, slots=True)
class Door:
    """How one kind is looked at. `change` gives the object as it should be, in a copy."""

    versions: tuple[str, ...]
    judge: Judge
    change: Change = unchanged


def object_of(request: AdmissionRequest) -> Object:
    return request.object or {}


def annotated(obj: Object, additions: Mapping[str, str]) -> Object:
    """A copy with these annotations where it has none of their names; as it is where it is odd."""
    metadata = obj.get("metadata")
    present = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(present, dict | None):
        return obj
    return obj | {"metadata": metadata | {"annotations": {**additions, **(present or {})}}}


def annotation(obj: Object | None, key: str) -> str:
    return text(mapping(obj, "metadata", "annotations"), key)


def brought(found: Iterable[FieldError], before: Sequence[FieldError]) -> tuple[FieldError, ...]:
    """What a change itself gets wrong. What was wrong already is no reason to refuse it."""
    return tuple(wrong for wrong in found if wrong not in before)
