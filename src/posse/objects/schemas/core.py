"""Schemas of the built-in kinds."""

from __future__ import annotations

from functools import cache

from posse.objects.kinds import BINDING, BUILT_IN, EVICTION, REVIEWS, SCALE, Kind
from posse.objects.schemas import notation
from posse.objects.schemas.decoding import decoder
from posse.objects.schemas.fields import (
    access,
    budgets,
    claims,
    cluster,
    definitions,
    endpoints,
    meta,
    parts,
    pods,
    reviews,
    storage,
    volumes,
    workloads,
)
from posse.objects.schemas.notation import Struct
from posse.objects.schemas.structural import Schema

STRUCTS: dict[str, Struct] = notation.read(
    meta.STRUCTS,
    pods.STRUCTS,
    volumes.STRUCTS,
    workloads.STRUCTS,
    budgets.STRUCTS,
    cluster.STRUCTS,
    access.STRUCTS,
    definitions.STRUCTS,
    claims.STRUCTS,
    storage.STRUCTS,
    endpoints.STRUCTS,
    reviews.STRUCTS,
    parts.STRUCTS,
)

_KINDS = (*BUILT_IN, *REVIEWS, BINDING, EVICTION, SCALE)
_BUILT_IN = {(kind.group, kind.kind): kind.kind for kind in _KINDS}


@cache
def core_schema(kind: Kind) -> Schema:
    """The fields of a built-in kind; KeyError for any other."""
    return decoder(STRUCTS, core_struct(kind).name)


@cache
def metadata_schema() -> Schema:
    """ObjectMeta alone, for the `metadata` of any object, custom ones included."""
    return decoder(STRUCTS, "ObjectMeta")


def core_struct(kind: Kind) -> Struct:
    """The struct of a built-in kind; KeyError for any other, also for one of the same name."""
    return STRUCTS[_BUILT_IN[kind.group, kind.kind]]


def sent_struct(api_version: str, kind: str) -> Struct:
    """The struct of what a client sends; every group has DeleteOptions of its own."""
    if kind == "DeleteOptions":
        return STRUCTS[kind]
    return STRUCTS[_BUILT_IN[api_version.rpartition("/")[0], kind]]
