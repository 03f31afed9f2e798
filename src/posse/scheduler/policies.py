"""The policy file: read whole or not at all, and followed while the scheduler runs.

A file that cannot be used leaves the last good policy in force, and says so; a scheduler that has
never had a good one does not start.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from pathlib import Path
from typing import Any

import yaml

from posse.engine.policy import Policy
from posse.scheduler.choices import BY_KEY, PolicyError, changes
from posse.scheduler.observing import Observer

_log = logging.getLogger(__name__)

_LARGEST = 1 << 20
_LOOK_EVERY = 2.0


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
        if key not in BY_KEY:
            close = difflib.get_close_matches(str(key), BY_KEY, 1, 0.6)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(BY_KEY)}"
            raise PolicyError(f"unknown key {key}; {hint}")
    return Policy(**{BY_KEY[key].field: BY_KEY[key].read(key, document[key]) for key in document})


def load_policy(file: Path, *, may_be_empty: bool = True) -> Policy:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise PolicyError(f"larger than {_LARGEST >> 20} MiB")
        if not may_be_empty and not data.strip():
            raise PolicyError("empty; `{}` stands for the defaults")
        return read_policy(data.decode("utf-8"))
    except OSError as error:
        raise PolicyError(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise PolicyError(f"{file}: not UTF-8") from error
    except PolicyError as error:
        raise PolicyError(f"{file}: {error}") from error


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
        """A file that became empty is a write that failed: it lifts no brake. One that says what is
        in force anyway, as one that was always empty does, is good."""
        try:
            policy = load_policy(file, may_be_empty=self.current == Policy())
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
