"""How kube-apiserver words what is wrong with a field."""

from __future__ import annotations

import json
from typing import Any

from posse.objects import errors
from posse.objects.errors import FieldError

_JSON_TYPES: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
}


def json_type(kind: type) -> str:
    return _JSON_TYPES[kind]


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def shown(value: Any) -> str:
    """A value inside a message: numbers and booleans plainly, all else as JSON."""
    if isinstance(value, float):
        return number(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def number(value: float) -> str:
    """As Go's %v: no `.0` on whole numbers."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e21 else repr(value)


def invalid(field: str, value: Any, detail: str, *, reason: str = errors.INVALID) -> FieldError:
    return FieldError(field, reason, f"Invalid value: {shown(value)}: {detail}")


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, errors.REQUIRED, _with("Required value", detail))


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(field, errors.FORBIDDEN, _with("Forbidden", detail))


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, errors.DUPLICATE, f"Duplicate value: {shown(value)}")


def not_supported(field: str, value: Any, supported: list[Any]) -> FieldError:
    names = (one if isinstance(one, str) else shown(one) for one in supported)
    choices = ", ".join(quoted(name) for name in names)
    message = f"Unsupported value: {shown(value)}: supported values: {choices}"
    return FieldError(field, errors.NOT_SUPPORTED, message)


def too_long(field: str, limit: int) -> FieldError:
    unit = "byte" if limit == 1 else "bytes"
    message = f"Too long: may not be more than {limit} {unit}"
    return FieldError(field, errors.TOO_LONG, message)


def too_many(field: str, actual: int, limit: int) -> FieldError:
    unit = "item" if limit == 1 else "items"
    message = f"Too many: {actual}: must have at most {limit} {unit}"
    return FieldError(field, errors.TOO_MANY, message)


def _with(kind: str, detail: str) -> str:
    return f"{kind}: {detail}" if detail else kind
