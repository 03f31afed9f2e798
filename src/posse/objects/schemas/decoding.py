"""Compiles the built-in kinds' structs into checks that read an object as Go's decoder would.

kube-apiserver decodes core kinds into Go structs: a field the struct lacks is dropped (and reported
where the client asked), null is the same as absent, as is a zero where the struct cannot tell the
two apart, and a value of the wrong type fails the whole request. `decoder` gives those as a Schema;
what values are sensible is decided elsewhere.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from posse.objects import errors
from posse.objects.errors import FieldError
from posse.objects.schemas.notation import Field, ListOf, MapOf, Named, Struct, Type
from posse.objects.schemas.paths import Path, fields_only, render
from posse.objects.schemas.structural import Schema

Prune: TypeAlias = Callable[[Any, Path, list[str]], None]
Check: TypeAlias = Callable[[Any, Path, str, list[FieldError]], None]

_INT32, _INT64 = 2**31, 2**63
_QUANTITY = re.compile(
    r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?", re.ASCII
)
_LOOSE_QUANTITY = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_TIME = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
    r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
_MICROSECONDS = re.compile(r"\.\d{6}(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_GO_TIME = "2006-01-02T15:04:05Z07:00"
_GO_MICRO = "2006-01-02T15:04:05.000000Z07:00"
_GO_TYPES = {
    "int": "int32", "long": "int64", "float": "float64", "quantity": "resource.Quantity",
    "intstr": "intstr.IntOrString", "time": "v1.Time", "microtime": "v1.MicroTime",
    "bytes": "[]uint8", "string": "string", "bool": "bool", "any": "interface {}",
}  # fmt: skip
_ZEROS: dict[str, Any] = {
    "int": 0, "long": 0, "float": 0, "quantity": "0", "intstr": 0, "bool": False, "string": "",
    "bytes": "",
}  # fmt: skip
_IDLE_SCALARS: dict[str, type] = {"string": str, "bool": bool, "int": int, "long": int}


def decoder(structs: dict[str, Struct], root: str) -> Schema:
    """The Schema of the struct `root`; structs may refer to themselves."""
    compiled = _Compiled(structs)
    prune, check = compiled.pruner(Named(root)), compiled.checker(Named(root))

    def prune_object(obj: dict[str, Any]) -> list[str]:
        unknown: list[str] = []
        if prune is not None:
            prune(obj, None, unknown)
        return unknown

    def check_object(obj: dict[str, Any]) -> list[FieldError]:
        found: list[FieldError] = []
        if check is not None:
            check(obj, None, root, found)
        return found

    return Schema(prune_object, _nothing_to_default, check_object)


def _nothing_to_default(obj: dict[str, Any]) -> None:
    """Built-in kinds get their defaults from `posse.objects.defaulting`."""


class _Compiled:
    """Closures of structs, made once each; a struct being made stands in for itself by name."""

    def __init__(self, structs: dict[str, Struct]) -> None:
        self._structs = structs
        self._pruners: dict[str, Prune] = {}
        self._checkers: dict[str, Check] = {}

    def pruner(self, of: Type) -> Prune | None:
        match of:
            case ListOf(item):
                return _prune_list(self.pruner(item), _zero(item))
            case MapOf(item):
                return _prune_map(self.pruner(item), _zero(item))
            case Named(name) if name in self._structs:
                return self._prune_struct(name)
            case Named("JSONSchemaPropsOrBool"):
                return self.pruner(Named("JSONSchemaProps"))
            case _:
                return None

    def _prune_struct(self, name: str) -> Prune:
        if name in self._pruners:
            return self._pruners[name]
        fields: dict[str, Prune | None] = {}
        idle: dict[str, type] = {}
        written: list[tuple[str, Any]] = []

        def prune(value: Any, path: Path, unknown: list[str]) -> None:
            if type(value) is not dict:
                return
            surplus: list[str] = []
            for key, item in value.items():
                if item and key in fields:
                    child = fields[key]
                    if child is not None:
                        child(item, (path, key), unknown)
                elif key not in fields:
                    unknown.append(render((path, key)))
                    surplus.append(key)
                elif item is None or type(item) is idle.get(key):
                    surplus.append(key)
                elif (child := fields[key]) is not None:
                    child(item, (path, key), unknown)
            for key in surplus:
                del value[key]
            for key, zero in written:
                if key not in value:
                    value[key] = {} if zero == {} else zero

        self._pruners[name] = prune
        for field in self._structs[name].fields.values():
            fields[field.name] = self.pruner(field.type)
            if (kind := _idle_when_zero(field)) is not None:
                idle[field.name] = kind
            if field.written:
                written.append((field.name, self._written(field.type)))
        return prune

    def _written(self, of: Type) -> Any:
        """How a field that says nothing is written where it cannot be left out."""
        if isinstance(of, Named) and of.name in self._structs:
            return {}
        return _zero(of)

    def checker(self, of: Type) -> Check | None:
        match of:
            case ListOf(item):
                return _check_list(self.checker(item), self._go_type(of))
            case MapOf(item):
                return _check_map(self.checker(item), self._go_type(of))
            case Named(name) if name in self._structs:
                return self._check_struct(name)
            case Named("JSONSchemaPropsOrBool"):
                return _check_schema_or_bool(self._check_struct("JSONSchemaProps"))
            case Named(name):
                return _SCALAR_CHECKS[name]

    def _check_struct(self, name: str) -> Check:
        if name in self._checkers:
            return self._checkers[name]
        checks: dict[str, Check] = {}

        def check(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
            if type(value) is not dict:
                if value is not None:
                    found.append(_mismatch(value, path, owner, f"v1.{name}"))
                return
            for key, item in value.items():
                child = checks.get(key)
                if child is not None:
                    child(item, (path, key), name, found)

        self._checkers[name] = check
        for field in self._structs[name].fields.values():
            if (child := self.checker(field.type)) is not None:
                checks[field.name] = child
        return check

    def _go_type(self, of: Type) -> str:
        match of:
            case ListOf(item):
                return "[]" + self._go_type(item)
            case MapOf(item):
                return "map[string]" + self._go_type(item)
            case Named(name):
                return _GO_TYPES.get(name, f"v1.{name}")


def _idle_when_zero(field: Field) -> type | None:
    """The type of which a zero value says as much as no value; None where it says more."""
    if field.required or field.optional:
        return None
    match field.type:
        case ListOf(_):
            return list
        case MapOf(_):
            return dict
        case Named(name):
            return _IDLE_SCALARS.get(name)


def _zero(of: Type) -> Any:
    """What Go makes of a null inside a list or a map; None leaves it to the element's own zero."""
    match of:
        case Named(name):
            return _ZEROS.get(name)
        case _:
            return None


def _prune_list(item: Prune | None, zero: Any) -> Prune:
    def prune(value: Any, path: Path, unknown: list[str]) -> None:
        if type(value) is not list:
            return
        for index, element in enumerate(value):
            if element is None:
                value[index] = {} if item is not None else zero
            elif item is not None:
                item(element, (path, index), unknown)

    return prune


def _prune_map(item: Prune | None, zero: Any) -> Prune:
    def prune(value: Any, path: Path, unknown: list[str]) -> None:
        if type(value) is not dict:
            return
        for key, element in value.items():
            if element is None:
                value[key] = {} if item is not None else zero
            elif item is not None:
                item(element, (path, (key,)), unknown)

    return prune


def _check_list(item: Check | None, go_type: str) -> Check:
    def check(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
        if type(value) is list:
            if item is not None:
                for index, element in enumerate(value):
                    item(element, (path, index), owner, found)
        elif value is not None:
            found.append(_mismatch(value, path, owner, go_type))

    return check


def _check_map(item: Check | None, go_type: str) -> Check:
    def check(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
        if type(value) is dict:
            if item is not None:
                for key, element in value.items():
                    item(element, (path, (key,)), owner, found)
        elif value is not None:
            found.append(_mismatch(value, path, owner, go_type))

    return check


def _check_schema_or_bool(schema: Check) -> Check:
    def check(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
        if value is not True and value is not False:
            schema(value, path, owner, found)

    return check


def _check_string(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
    if type(value) is not str and value is not None:
        found.append(_mismatch(value, path, owner, "string"))


def _check_bool(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
    if type(value) is not bool and value is not None:
        found.append(_mismatch(value, path, owner, "bool"))


def _check_float(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
    if type(value) is not float and type(value) is not int and value is not None:
        found.append(_mismatch(value, path, owner, "float64"))


def _check_int(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
    if value is not None and (type(value) is not int or not -_INT32 <= value < _INT32):
        found.append(_mismatch(value, path, owner, "int32"))


def _check_long(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
    if value is not None and (type(value) is not int or not -_INT64 <= value < _INT64):
        found.append(_mismatch(value, path, owner, "int64"))


def _check_intstr(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
    if value is None or type(value) is str:
        return
    if type(value) is not int or not -_INT32 <= value < _INT32:
        found.append(_bare_mismatch(value, path, "int32"))


def _check_quantity(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
    if type(value) is int or value is None:
        return
    text = value if type(value) is str else repr(value) if type(value) is float else ""
    if _QUANTITY.fullmatch(text):
        return
    if _LOOSE_QUANTITY.fullmatch(text):
        why = "unable to parse quantity's suffix"
    else:
        why = f"quantities must match the regular expression '^{_LOOSE_QUANTITY.pattern}$'"
    found.append(FieldError(render(path), errors.TYPE_INVALID, why))


def _check_time(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
    if value is None:
        return
    if type(value) is not str:
        found.append(_mismatch(value, path, owner, "string"))
    elif not _TIME.fullmatch(value):
        why = f'parsing time "{value}" as "{_GO_TIME}": cannot parse "{value}" as "2006"'
        found.append(FieldError(render(path), errors.TYPE_INVALID, why))


def _check_micro_time(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
    """The same with six digits after the second, no fewer and no more."""
    known = len(found)
    _check_time(value, path, owner, found)
    if value is None or len(found) > known:
        return
    if not _MICROSECONDS.fullmatch(value, 19):
        why = f'parsing time "{value}" as "{_GO_MICRO}": cannot parse "{value[19:]}" as ".000000"'
        found.append(FieldError(render(path), errors.TYPE_INVALID, why))


def _check_bytes(value: Any, path: Path, owner: str, found: list[FieldError]) -> None:
    if value is None:
        return
    if type(value) is not str:
        found.append(_mismatch(value, path, owner, "[]uint8"))
        return
    text = value.replace("\n", "").replace("\r", "")
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        valid = re.match(r"[A-Za-z0-9+/]*", text)
        at = valid.end() if valid else 0
        why = f"illegal base64 data at input byte {at}"
        found.append(FieldError(render(path), errors.TYPE_INVALID, why))


_SCALAR_CHECKS: dict[str, Check | None] = {
    "string": _check_string,
    "bool": _check_bool,
    "int": _check_int,
    "long": _check_long,
    "float": _check_float,
    "intstr": _check_intstr,
    "quantity": _check_quantity,
    "time": _check_time,
    "microtime": _check_micro_time,
    "bytes": _check_bytes,
    "any": None,
}


def _mismatch(value: Any, path: Path, owner: str, go_type: str) -> FieldError:
    """In the words of Go's decoder, which names the struct that owns the field and no index."""
    why = (
        f"json: cannot unmarshal {_described(value, go_type)} into Go struct field "
        f"{owner}.{fields_only(path)} of type {go_type}"
    )
    return FieldError(render(path), errors.TYPE_INVALID, why)


def _bare_mismatch(value: Any, path: Path, go_type: str) -> FieldError:
    """The same for types that decode themselves and so do not know which field they are."""
    why = f"json: cannot unmarshal {_described(value, go_type)} into Go value of type {go_type}"
    return FieldError(render(path), errors.TYPE_INVALID, why)


def _described(value: Any, go_type: str) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value!r}" if go_type.startswith("int") else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
