"""Kubeconfig documents: reading several as one, and editing one without harm to the rest of it.

The file belongs to the user and to other programs. It is locked as kubectl locks it, replaced in
one step, keeps its mode, and everything in it that is not ours stays as it was.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import yaml

from posse.kube.errors import ConfigError, NothingSelected

SECTIONS = {"clusters": "cluster", "users": "user", "contexts": "context"}

_LOCK_POLL = 0.05
_LOCK_POLLS = 200


class Entry(msgspec.Struct, frozen=True):
    """A cluster, user or context with the file it came from, to which its paths are relative."""

    name: str
    fields: dict[str, Any]
    file: Path

    def text(self, field: str) -> str:
        value = self.fields.get(field)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise ConfigError(f"{self.file}: {field} of {self.name!r} must be text")
        return value

    def flag(self, field: str) -> bool:
        value = self.fields.get(field, False)
        if not isinstance(value, bool):
            raise ConfigError(f"{self.file}: {field} of {self.name!r} must be true or false")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        value = self.fields.get(field) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ConfigError(f"{self.file}: {field} of {self.name!r} must be a list of texts")
        return tuple(value)

    def part(self, field: str) -> Entry | None:
        """The mapping below a field, as an entry of its own."""
        value = self.fields.get(field)
        if value is None:
            return None
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise ConfigError(f"{self.file}: {field} of {self.name!r} must be a mapping")
        return Entry(self.name, value, self.file)

    def path(self, field: str) -> Path | None:
        text = self.text(field)
        return self.file.absolute().parent / text if text else None

    def data(self, field: str) -> bytes | None:
        text = self.text(field)
        if not text:
            return None
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            message = f"{self.file}: {field} of {self.name!r} is not base64"
            raise ConfigError(message) from None


class Kubeconfig(msgspec.Struct, frozen=True):
    """What the files say together."""

    current_context: str
    clusters: dict[str, Entry]
    users: dict[str, Entry]
    contexts: dict[str, Entry]


def read_merged(files: Sequence[Path]) -> Kubeconfig:
    """The files as one: for each name, and for the selected context, the first file that has it.

    Files that do not exist are passed over, as they are by kubectl, but not all of them.
    """
    documents = [(file, _read(file)) for file in files if file.exists()]
    if not documents:
        named = ", ".join(map(str, files))
        raise NothingSelected(f"no kubeconfig: {named} does not exist; name one with --kubeconfig")
    merged: dict[str, dict[str, Entry]] = {section: {} for section in SECTIONS}
    current = ""
    for file, document in documents:
        selected = document.get("current-context")
        if isinstance(selected, str):
            current = current or selected
        for section, singular in SECTIONS.items():
            for item in _items(file, document, section):
                fields = item.get(singular) or {}
                if not isinstance(fields, dict):
                    raise ConfigError(f"{file}: {singular} {item['name']!r} should be a mapping")
                merged[section].setdefault(item["name"], Entry(item["name"], fields, file))
    return Kubeconfig(current, merged["clusters"], merged["users"], merged["contexts"])


class Named(msgspec.Struct, frozen=True):
    """What a file says under one name: its item in each section, and the selected context."""

    items: dict[str, dict[str, Any]]
    selected: str

    @property
    def cluster(self) -> Any:
        return self.items.get("clusters", {}).get("cluster")


class KubeconfigFile:
    """One file, edited under its lock."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)

    def look(self, name: str) -> Named:
        """What stands under `name`. ConfigError where the file could not be edited either."""
        try:
            with _locked(self.path):
                document = _read(self.path) if self.path.exists() else {}
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}") from error
        found = {
            section: item
            for section in SECTIONS
            for item in _items(self.path, document, section)
            if item["name"] == name
        }
        selected = document.get("current-context")
        return Named(found, selected if isinstance(selected, str) else "")

    def add(
        self,
        name: str,
        *,
        cluster: dict[str, Any],
        user: dict[str, Any],
        namespace: str = "default",
        select: bool = True,
    ) -> str:
        """Writes cluster, user and context `name`, selects it, and returns the one before.

        Returns "" when none was selected before, or `name` already was.
        """
        with self._editing() as document:
            before = document.get("current-context")
            _upsert(document, "clusters", name, {"cluster": cluster})
            _upsert(document, "users", name, {"user": user})
            context = {"cluster": name, "user": name, "namespace": namespace}
            _upsert(document, "contexts", name, {"context": context})
            if select:
                document["current-context"] = name
        return before if isinstance(before, str) and before != name else ""

    def remove(
        self,
        name: str,
        *,
        restore: str = "",
        instead: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        """Takes `name` out, and puts the items of `instead` where it was.

        If it is still selected, `restore` is, or nothing if that is gone.
        """
        if not self.path.exists():
            return
        with self._editing() as document:
            for section in SECTIONS:
                kept = [i for i in _items(self.path, document, section) if i["name"] != name]
                if instead is not None and section in instead:
                    kept.append(instead[section])
                document[section] = kept
            if document.get("current-context") == name:
                names = [item["name"] for item in document["contexts"]]
                document["current-context"] = restore if restore in names else ""

    @contextmanager
    def _editing(self) -> Iterator[dict[str, Any]]:
        """The document, to be changed in place; written back when the block ends well."""
        try:
            with _locked(self.path):
                target = self.path.resolve()
                document = _read(target) if target.exists() else {}
                document.setdefault("apiVersion", "v1")
                document.setdefault("kind", "Config")
                for section in SECTIONS:
                    document[section] = _items(self.path, document, section)
                yield document
                text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=4096)
                _replace(target, text.encode())
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be written: {error.strerror}") from error


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds `<path>.lock`, the file whose existence tells kubectl and us that someone writes."""
    lock = path.with_name(path.name + ".lock")
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(_LOCK_POLLS):
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            break
        except FileExistsError:
            time.sleep(_LOCK_POLL)
    else:
        raise ConfigError(
            f"{path} is being edited by another program; if none is, remove {lock} and try again"
        )
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _replace(target: Path, content: bytes) -> None:
    """Writes the whole file in one step: a reader, or a crash, finds the old or the new one."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            if target.exists():
                was = target.stat()
                os.fchmod(file.fileno(), stat.S_IMODE(was.st_mode))
                if (was.st_uid, was.st_gid) != (os.geteuid(), os.getegid()):
                    with suppress(PermissionError):
                        os.fchown(file.fileno(), was.st_uid, was.st_gid)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _read(file: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{file}{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError):
        raise ConfigError(f"{file}: not valid YAML") from None
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{file}: not a kubeconfig: it should be a mapping")
    return document


def _items(file: Path, document: dict[str, Any], section: str) -> list[dict[str, Any]]:
    """The named items of a section, which may be absent or null."""
    items = document.get(section) or []
    if not isinstance(items, list) or not all(
        isinstance(item, dict) and isinstance(item.get("name"), str) for item in items
    ):
        raise ConfigError(f"{file}: {section} should be a list of named items")
    return items


def _upsert(document: dict[str, Any], section: str, name: str, item: dict[str, Any]) -> None:
    items = document[section]
    for index, present in enumerate(items):
        if present["name"] == name:
            items[index] = {"name": name, **item}
            return
    items.append({"name": name, **item})
