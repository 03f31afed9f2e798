"""The user's own defaults: lines `key=value` in the first configuration file found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

Configuration = Mapping[str, str]


def read_configuration(environment: Mapping[str, str], home: Path) -> Configuration:
    for path in _candidates(environment, home):
        if path.is_file():
            return _parse(path)
    return {}


def _candidates(environment: Mapping[str, str], home: Path) -> list[Path]:
    named = [environment[v] for v in ("POSSE_CONFIG", "ARENA_CONFIG") if environment.get(v)]
    return [*(Path(name) for name in named), home / ".posse/config", home / ".arena/config"]


def _parse(path: Path) -> Configuration:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise OSError(f"{path} is not a text file: write lines `key=value` into it") from error
    pairs = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}
