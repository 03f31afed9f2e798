"""Other people's programs to meet on a real control plane, each from a go.mod that pins it.

Nothing is built before somebody asks for it; what is built stays in the user's cache.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kubernetes.building import Unavailable, compiled

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Source:
    """Where a program comes from; `stamp` is the variable of its that names its version.

    A release may lean on a name that no published version of a module of its has. `lacks` is then
    the package that has to have it, and the Go files beside the go.mod say what it is.
    """

    directory: str
    module: str
    package: str
    stamp: str
    lacks: str = ""

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
    stamp, api = f"{module}/pkg/version.Version", "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
    return Source("volcano", module, f"{module}/cmd/{command}", stamp, lacks=api)


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
    with _module(source, target.parent, environment) as (place, flags):
        return compiled(
            target,
            source.package,
            place,
            version,
            environment,
            stamp=f"{source.stamp}={version}",
            flags=flags,
        )


@contextmanager
def _module(
    source: Source, beside: Path, environment: Mapping[str, str]
) -> Iterator[tuple[Path, list[str]]]:
    """Where to build, and how. Go lets nothing be laid over its cache, but over a vendored copy."""
    if not source.lacks:
        yield source.place, ["-mod=readonly"]
        return
    if shutil.which("go", path=environment.get("PATH")) is None:
        raise Unavailable(f"{source.package} is not in {beside}, and Go is not installed")
    beside.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=beside) as made:
        place = Path(made)
        for name in ("go.mod", "go.sum"):
            shutil.copy(source.place / name, place)
        told = subprocess.run(
            ["go", "mod", "vendor"],
            cwd=place,
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
        )
        if told.returncode != 0:
            raise Unavailable(f"{source.module} cannot be had: {told.stderr}")
        target = place / "vendor" / source.lacks
        laid = {str(target / file.name): str(file) for file in source.place.glob("*.go")}
        overlay = place / "overlay.json"
        overlay.write_text(json.dumps({"Replace": laid}))
        yield place, ["-mod=vendor", f"-overlay={overlay}"]


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
