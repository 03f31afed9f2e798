"""The policy file: read whole or not at all, and followed while the scheduler runs.

A file that cannot be used leaves the last good policy in force, and says so; a scheduler that has
never had a good one does not start.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from posse.engine.policy import Policy
from posse.objects.times import parse_duration
from posse.scheduler.observing import Observer

_log = logging.getLogger(__name__)

_LARGEST = 1 << 20
_LOOK_EVERY = 2.0


class PolicyError(ValueError):
    """One line: which file, which key, and what it should be."""


class _Loader(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for index, key in enumerate(keys) if key in keys[:index]]
        if twice:
            raise PolicyError(f"{twice[0]} is there twice")
        return super().construct_mapping(node, deep)


def read_policy(text: str) -> Policy:
    """An empty document is the default policy. PolicyError names the key that is wrong."""
    try:
        document = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except PolicyError:
        raise
    except (yaml.YAMLError, RecursionError, TypeError, ValueError) as error:
        raise PolicyError(f"not YAML: {' '.join(str(error).split())}") from error
    if document is None:
        return Policy()
    if not isinstance(document, dict):
        raise PolicyError("must be a mapping of keys to values")
    for key in document:
        if key not in _READERS:
            close = difflib.get_close_matches(str(key), _READERS, 1, 0.6)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(_READERS)}"
            raise PolicyError(f"unknown key {key}; {hint}")
    return Policy(**{_FIELDS[key]: _READERS[key](key, value) for key, value in document.items()})


def load_policy(file: Path) -> Policy:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise PolicyError(f"larger than {_LARGEST >> 20} MiB")
        return read_policy(data.decode("utf-8"))
    except OSError as error:
        raise PolicyError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{file}: not UTF-8") from error
    except PolicyError as error:
        raise PolicyError(f"{file}: {error}") from error


def _switch(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(f"{key} must be true or false, not {value!r}")
    return value


def _seconds(key: str, value: Any) -> float:
    seconds = math.nan
    if isinstance(value, str):
        try:
            seconds = parse_duration(value)
        except ValueError:
            seconds = math.nan
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    if not (0 < seconds < math.inf):
        raise PolicyError(f"{key} must be seconds or a duration such as 30s, not {value!r}")
    return seconds


def _count(key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= 10**9:
        raise PolicyError(f"{key} must be a whole number from 1 to {10**9}, not {value!r}")
    return value


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "frozen": _switch,
    "releaseAfter": _seconds,
    "searchSteps": _count,
}
_FIELDS = {"frozen": "frozen", "releaseAfter": "release_after", "searchSteps": "search_steps"}


class Policies:
    """The policy in force."""

    def __init__(self, policy: Policy, file: Path | None, observer: Observer) -> None:
        """With a file the policy is the file's: PolicyError when it cannot be used."""
        self.current = load_policy(file) if file is not None else policy
        self.problem = ""
        """Why the file, as it is now, is not in force; "" when it is."""
        self._file = file
        self._observer = observer
        self._changed = asyncio.Event()
        self._tell()

    async def follow(self) -> None:
        """Looks at the file again and again: a mounted one is replaced, not written."""
        while self._file is not None:
            await asyncio.sleep(_LOOK_EVERY)
            self._look(self._file)

    async def other_than(self, policy: Policy) -> None:
        """Returns when the policy in force is another one."""
        while self.current == policy:
            self._changed.clear()
            await self._changed.wait()

    def _look(self, file: Path) -> None:
        try:
            policy = load_policy(file)
        except PolicyError as error:
            if str(error) != self.problem:
                self.problem = str(error)
                _log.error("policy: %s; the last good one stays in force", error)
                self._tell()
            return
        if self.problem:
            _log.info("policy: %s can be used again", file)
            self.problem = ""
        if policy != self.current:
            _log.warning("policy: %s", changes(self.current, policy))
            self.current = policy
            self._changed.set()
        self._tell()

    def _tell(self) -> None:
        self._observer.policy(frozen=self.current.frozen, bad=bool(self.problem))


def changes(old: Policy, new: Policy) -> str:
    before, after = msgspec.structs.asdict(old), msgspec.structs.asdict(new)
    names = {field: key for key, field in _FIELDS.items()}
    return ", ".join(
        f"{names[field]} is {after[field]}, was {before[field]}"
        for field in before
        if before[field] != after[field]
    )
