"""JSON patches (RFC 6902), as kube-apiserver applies them.

Two of its habits go beyond the RFC: a negative index counts from the end, and `replace` of a member
that an existing object lacks adds it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from posse.local.apiserver.patching.copying import copied, same
from posse.local.apiserver.patching.refusal import PatchError, malformed, unprocessable

Operation: TypeAlias = dict[str, Any]

_MAX_OPERATIONS = 10_000
_MAX_COPIED = 3 * 1024 * 1024
_INDEX = re.compile(r"-?(?:0|[1-9][0-9]{0,9})")


def apply_operations(document: dict[str, Any], patch: Any) -> Any:
    """`document` is changed in place; the answer is the whole document afterwards."""
    if not isinstance(patch, list):
        raise malformed("error decoding patch: a JSON patch is a list of operations")
    if len(patch) > _MAX_OPERATIONS:
        raise PatchError(
            413,
            "RequestEntityTooLarge",
            f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, "
            f"got {len(patch)}",
        )
    patched = _Patched(document)
    for operation in patch:
        patched.apply(operation)
    return patched.root[_ROOT]


_ROOT = "document"


class _Missing(Exception):
    """There is nothing at that place."""


class _Patched:
    """A document under change. It hangs below a holder, so that even its root can be replaced."""

    def __init__(self, document: Any) -> None:
        self.root: dict[str, Any] = {_ROOT: document}
        self._copied = 0
        self._handlers: dict[str, Callable[[Operation, str], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def apply(self, operation: Any) -> None:
        if not isinstance(operation, dict):
            raise malformed("error decoding patch: an operation of a JSON patch is an object")
        handler = self._handlers.get(str(operation.get("op")))
        if handler is None:
            raise unprocessable(f"Unexpected kind: {operation.get('op', 'unknown')}")
        handler(operation, _text(operation, "path"))

    def _add(self, operation: Operation, path: str) -> None:
        self._insert(path, _value(operation), "add")

    def _remove(self, operation: Operation, path: str) -> None:
        holder, key = self._place(path, "remove")
        self._take(holder, key, f"error in remove for path: '{path}'")

    def _replace(self, operation: Operation, path: str) -> None:
        holder, key = self._place(path, "replace")
        if isinstance(holder, list):
            index = _index(holder, key)
            if index is None:
                raise unprocessable(
                    f"replace operation does not apply: doc is missing key: {path}: missing value"
                )
            holder[index] = _value(operation)
        else:
            holder[key] = _value(operation)

    def _move(self, operation: Operation, path: str) -> None:
        source = _text(operation, "from")
        if path.startswith(f"{source}/"):
            raise unprocessable(f"error in move for path: '{path}': it lies inside '{source}'")
        holder, key = self._place(source, "move", "doc is missing from path")
        value = self._take(holder, key, f"error in move for path: '{key}'")
        self._insert(path, value, "move", "doc is missing destination path")

    def _copy(self, operation: Operation, path: str) -> None:
        source = _text(operation, "from")
        holder, key = self._place(source, "copy", "doc is missing from path")
        try:
            value = _get(holder, key)
        except _Missing:
            raise unprocessable(f"error in copy for from: '{source}': missing value") from None
        self._copied += len(json.dumps(value))
        if self._copied > _MAX_COPIED:
            raise unprocessable(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self._copied}, exceeding the limit {_MAX_COPIED}"
            )
        self._insert(path, copied(value), "copy", "doc is missing destination path")

    def _test(self, operation: Operation, path: str) -> None:
        expected = operation.get("value")
        holder, key = self._place(path, "test", "is missing path")
        try:
            actual = _get(holder, key)
        except _Missing:
            actual = None
        if not same(actual, expected):
            raise unprocessable(f"testing value {path} failed: test failed")

    def _place(self, path: str, name: str, what: str = "doc is missing path") -> tuple[Any, str]:
        """The container a pointer's last step is in, and that step."""
        if path and not path.startswith("/"):
            raise unprocessable(f'{name} operation does not apply: "{path}" is not a pointer')
        steps = [_ROOT, *(_unescaped(step) for step in path.split("/")[1:])]
        holder: Any = self.root
        for step in steps[:-1]:
            try:
                holder = _get(holder, step)
            except _Missing:
                holder = None
        if not isinstance(holder, dict | list):
            raise unprocessable(f"{name} operation does not apply: {what}: {path}: missing value")
        return holder, steps[-1]

    def _insert(self, path: str, value: Any, name: str, what: str = "doc is missing path") -> None:
        holder, key = self._place(path, name, what)
        if isinstance(holder, dict):
            holder[key] = value
            return
        index = len(holder) if key == "-" else _index(holder, key, beyond=1)
        if index is None:
            raise unprocessable(f"error in {name} for path: '{path}': {_why_not(key)}")
        holder.insert(index, value)

    def _take(self, holder: Any, key: str, context: str) -> Any:
        if isinstance(holder, dict):
            if key not in holder:
                raise unprocessable(
                    f"{context}: Unable to remove nonexistent key: {key}: missing value"
                )
            return holder.pop(key)
        index = _index(holder, key)
        if index is None:
            raise unprocessable(f"{context}: {_why_not(key)}")
        return holder.pop(index)


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _get(holder: Any, key: str) -> Any:
    if isinstance(holder, dict) and key in holder:
        return holder[key]
    if isinstance(holder, list) and (index := _index(holder, key)) is not None:
        return holder[index]
    raise _Missing


def _index(holder: list[Any], key: str, *, beyond: int = 0) -> int | None:
    if not _INDEX.fullmatch(key):
        return None
    size = len(holder) + beyond
    index = int(key)
    if not -size <= index < size:
        return None
    return index + size if index < 0 else index


def _why_not(key: str) -> str:
    if _INDEX.fullmatch(key):
        return f"Unable to access invalid index: {key}: invalid index referenced"
    return f"value was not a proper array index: '{key}'"


def _text(operation: Operation, name: str) -> str:
    value = operation.get(name)
    if not isinstance(value, str):
        raise unprocessable(f"operation missing {name} field: missing value")
    return value


def _value(operation: Operation) -> Any:
    if "value" not in operation:
        raise unprocessable("operation, missing value field: missing value")
    return operation["value"]
