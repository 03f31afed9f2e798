"""The programs of a real control plane: where they are found, and how they are got.

`make test-kubernetes` runs this module first. Programs come from the directory KUBEBUILDER_ASSETS,
else from the user's cache; what is in neither is built there with Go, once, from the versions that
controlplane/go.mod pins. With POSSE_REQUIRE_KUBERNETES set, what cannot be had is a failure.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MODULE = Path(__file__).parent / "controlplane"
REQUIRED = "POSSE_REQUIRE_KUBERNETES"

KUBERNETES = "k8s.io/kubernetes"
ETCD = "go.etcd.io/etcd/server/v3"
PACKAGES = {
    "etcd": ETCD,
    "kube-apiserver": f"{KUBERNETES}/cmd/kube-apiserver",
    "kube-controller-manager": f"{KUBERNETES}/cmd/kube-controller-manager",
    "kubectl": f"{KUBERNETES}/cmd/kubectl",
}
# Built only when somebody asks for it: what the tests measure against, not what they run on.
EXTRAS = {"kube-scheduler": f"{KUBERNETES}/cmd/kube-scheduler"}


class Unavailable(Exception):
    """Why there is no control plane on this machine, and what would help."""


@dataclass(frozen=True)
class Programs:
    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path


def find(environment: Mapping[str, str] | None = None) -> Programs:
    """The programs that are here already. Unavailable names those that are not."""
    environment = os.environ if environment is None else environment
    places = {name: _place(name, environment) for name in PACKAGES}
    absent = [name for name, place in places.items() if place is None]
    if absent:
        raise Unavailable(
            f"{', '.join(absent)}: not in KUBEBUILDER_ASSETS and not in {cache(environment)};"
            " `make test-kubernetes` builds them where Go is installed"
        )
    return Programs(**{name.replace("-", "_"): place for name, place in places.items() if place})


def cache(environment: Mapping[str, str]) -> Path:
    """Named after the versions, so that another go.mod means another build."""
    home = environment.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(home) / "posse" / "kubernetes" / f"{pinned(KUBERNETES)}-etcd-{pinned(ETCD)}"


def pinned(module: str) -> str:
    for line in (MODULE / "go.mod").read_text().splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == module and words[1].startswith("v"):
            return words[1]
    raise Unavailable(f"{MODULE / 'go.mod'} does not pin {module}")


def build(environment: Mapping[str, str] | None = None) -> None:
    """Builds what is not here yet; Unavailable says why that cannot be."""
    environment = os.environ if environment is None else environment
    place = cache(environment)
    absent = [name for name in PACKAGES if _place(name, environment) is None]
    if not absent:
        return
    if shutil.which("go", path=environment.get("PATH")) is None:
        raise Unavailable(
            f"{', '.join(absent)}: not in KUBEBUILDER_ASSETS, not in {place},"
            " and Go is not installed to build them"
        )
    for name in absent:
        _build(name, PACKAGES[name], environment)


def extra(name: str, environment: Mapping[str, str] | None = None) -> Path:
    """One of EXTRAS, of the same versions; built if it is not here yet."""
    environment = os.environ if environment is None else environment
    return _place(name, environment) or _build(name, EXTRAS[name], environment)


def _build(name: str, package: str, environment: Mapping[str, str]) -> Path:
    version = pinned(KUBERNETES)
    return compiled(
        cache(environment) / name,
        package,
        MODULE,
        pinned(ETCD) if name == "etcd" else version,
        environment,
        stamp=f"k8s.io/component-base/version.gitVersion={version}",
    )


def _place(name: str, environment: Mapping[str, str]) -> Path | None:
    given = environment.get("KUBEBUILDER_ASSETS")
    for directory in ([Path(given)] if given else []) + [cache(environment)]:
        if os.access(directory / name, os.X_OK):
            return directory / name
    return None


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Two runs on one machine build once."""
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def compiled(
    target: Path,
    package: str,
    module: Path,
    version: str,
    environment: Mapping[str, str],
    *,
    stamp: str,
    flags: Sequence[str] = ("-mod=readonly",),
) -> Path:
    """The program of a Go package in a pinned module: built once, however many ask for it.

    `stamp` is the variable that carries its version, with the value.
    """
    if shutil.which("go", path=environment.get("PATH")) is None:
        raise Unavailable(f"{target.name} is not in {target.parent}, and Go is not installed")
    target.parent.mkdir(parents=True, exist_ok=True)
    with _alone(target.parent):
        if not target.is_file():
            _compile(target, package, module, version, environment, stamp, flags)
    return target


def _compile(
    target: Path,
    package: str,
    module: Path,
    version: str,
    environment: Mapping[str, str],
    stamp: str,
    flags: Sequence[str],
) -> None:
    name = target.name
    _say(f"building {name} {version}: some minutes, once")
    began = time.monotonic()
    beside = target.with_name(f"{name}.{os.getpid()}")
    link = f"-s -w -X {stamp}"
    command = ["go", "build", *flags, "-ldflags", link, "-o", str(beside), package]
    if shutil.which("nice"):
        command = ["nice", "-n", "10", *command]
    building = subprocess.Popen(
        command, cwd=module, env=dict(environment), stderr=subprocess.PIPE, text=True
    )
    assert building.stderr is not None
    said: list[str] = []
    for line in building.stderr:
        said.append(line.rstrip())
        if line.startswith("go: downloading"):
            _say(f"  {line.rstrip()}")
    if building.wait() != 0:
        beside.unlink(missing_ok=True)
        last = said[-1] if said else f"go ended with {building.returncode}"
        raise Unavailable(f"{name} could not be built: {last}")
    beside.rename(target)
    _say(f"built {name} in {time.monotonic() - began:.0f}s")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    if os.environ.get("KUBECONFIG"):
        _say("the cluster of KUBECONFIG is used")
        return 0
    try:
        build()
    except Unavailable as why:
        _say(f"no real control plane: {why}")
        return 1 if os.environ.get(REQUIRED) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
