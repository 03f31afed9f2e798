"""Other people's programs to meet on a real control plane, each from a go.mod that pins it.

Nothing is built before somebody asks for it; what is built stays in the user's cache.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
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


def _kubeflow(name: str, command: str) -> Source:
    module = f"github.com/kubeflow/{name}"
    stamp = f"{module}/pkg/version.Version"
    return Source(f"kubeflow/{name}", module, f"{module}/cmd/{command}", stamp)


SOURCES = {
    "vc-scheduler": _volcano("scheduler"),
    "vc-controller-manager": _volcano("controller-manager"),
    "training-operator": _kubeflow("training-operator", "training-operator.v1"),
    "mpi-operator": _kubeflow("mpi-operator", "mpi-operator"),
}


def program(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """The program, built if need be. Unavailable says why it cannot be had."""
    environment = os.environ if environment is None else environment
    if (present := built(name, environment)) is not None:
        return present
    source = SOURCES[name]
    target = cache(source, environment) / name
    version = source.version()
    return compiled(
        target,
        source.package,
        source.place,
        version,
        environment,
        stamp=f"{source.stamp}={version}",
    )


def built(name: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """The program, if it is here already."""
    environment = os.environ if environment is None else environment
    target = cache(SOURCES[name], environment) / name
    return target if os.access(target, os.X_OK) else None


def sources(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """Where Go keeps the files of the program's module: its manifests come with it."""
    environment = os.environ if environment is None else environment
    if shutil.which("go", path=environment.get("PATH")) is None:
        raise Unavailable(f"the manifests of {name} come with its module, and Go is not installed")
    source = SOURCES[name]
    command = ["go", "mod", "download", "-json", f"{source.module}@{source.version()}"]
    told = subprocess.run(
        command,
        cwd=source.place,
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode != 0:
        raise Unavailable(f"{source.module} cannot be had: {told.stdout}{told.stderr}")
    return Path(json.loads(told.stdout)["Dir"])


def cache(source: Source, environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(home) / "posse" / "peers" / f"{source.directory}-{source.version()}"


def main(names: list[str]) -> int:
    try:
        for wanted in names or SOURCES:
            print(program(wanted))
    except Unavailable as why:
        print(why, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
