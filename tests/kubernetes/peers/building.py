"""Other people's programs to meet on a real control plane, each from a go.mod that pins it.

Nothing is built before somebody asks for it; what is built stays in the user's cache.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.building import Unavailable, compiled

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Source:
    """Where a program comes from; `stamp` is the variable of its that names its version."""

    directory: str
    module: str
    package: str
    stamp: str

    @property
    def place(self) -> Path:
        return HERE / self.directory

    def version(self) -> str:
        for line in (self.place / "go.mod").read_text().splitlines():
            words = line.removeprefix("require").split()
            if len(words) >= 2 and words[0] == self.module and words[1].startswith("v"):
                return words[1]
        raise Unavailable(f"{self.place / 'go.mod'} does not pin {self.module}")


def _volcano(command: str) -> Source:
    module = "volcano.sh/volcano"
    return Source("volcano", module, f"{module}/cmd/{command}", f"{module}/pkg/version.Version")


SOURCES = {
    "vc-scheduler": _volcano("scheduler"),
    "vc-controller-manager": _volcano("controller-manager"),
}


def program(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """The program, built if need be. Unavailable says why it cannot be had."""
    environment = os.environ if environment is None else environment
    source = SOURCES[name]
    target = cache(source, environment) / name
    if os.access(target, os.X_OK):
        return target
    version = source.version()
    return compiled(
        target,
        source.package,
        source.place,
        version,
        environment,
        stamp=f"{source.stamp}={version}",
    )


def cache(source: Source, environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(home) / "posse" / "peers" / f"{source.directory}-{source.version()}"


if __name__ == "__main__":
    for wanted in sys.argv[1:] or SOURCES:
        print(program(wanted))
