"""Other people's clients: where the tests find them, and how they are got.

`make test` uses what is there: kubectl and helm from the cache below or from PATH, the Python
clients where they are installed; for the rest it prints what is missing and skips. `make
test-tools` runs this module, which fetches and builds them: without root, and outside the cache
only into .venv. With POSSE_NO_SKIPS set, what is missing is a failure.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = Path(__file__).parent / "kubectl-source"
CLIENTS = ROOT / "requirements" / "clients.txt"
HELM = "helm.sh/helm/v3/cmd/helm@v3.19.0"
_HINT = "make test-tools"


def cache() -> Path:
    """POSSE_TEST_TOOLS, else posse-tests in the user's cache directory."""
    if given := os.environ.get("POSSE_TEST_TOOLS"):
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(home) / "posse-tests"


def debian_kubectl() -> Path:
    return cache() / "debian" / "usr" / "bin" / "kubectl"


def current_kubectl() -> Path:
    """Named after its sources, so that a change of go.mod means a new build."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((SOURCES / name).read_bytes())
    return cache() / f"kubectl-{digest.hexdigest()[:12]}"


def kubectl(which: str) -> str:
    """The path of Debian's or of a current kubectl, or the end of the test."""
    wanted = debian_kubectl() if which == "debian" else current_kubectl()
    if wanted.is_file():
        return str(wanted)
    if which == "debian":
        missing(f"Debian's kubectl is not in {cache()} ({_HINT} unpacks it where apt is)")
    found = shutil.which("kubectl")
    if found is None:
        missing(f"no kubectl on PATH or in {cache()} ({_HINT} builds one where Go is)")
    return str(found)


def cached_helm() -> Path:
    return cache() / f"helm-{HELM.rpartition('@')[2]}"


def helm() -> str:
    """The path of a helm, or the end of the test."""
    if cached_helm().is_file():
        return str(cached_helm())
    found = shutil.which("helm")
    if found is None:
        missing(f"no helm on PATH or in {cache()} ({_HINT} builds one where Go is)")
    return str(found)


def client(module: str) -> Any:
    """A Python client's module, or the end of the test."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing(f"{error} ({_HINT} installs the Python clients)")
        raise


def missing(reason: str) -> None:
    if os.environ.get("POSSE_NO_SKIPS"):
        pytest.fail(reason)
    pytest.skip(reason)


class Unavailable(Exception):
    """Why a tool cannot be had on this machine."""


def _fetch_debian() -> None:
    """Debian's package, unpacked: its kubectl is years old, as on many machines."""
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise Unavailable(f"{program} is not here")
    with tempfile.TemporaryDirectory() as scratch:
        _run("apt-get", "download", "kubernetes-client", cwd=Path(scratch))
        (package,) = Path(scratch).glob("kubernetes-client_*.deb")
        unpacked = Path(scratch) / "unpacked"
        _run("dpkg-deb", "-x", str(package), str(unpacked))
        _put(unpacked / "usr" / "bin" / "kubectl", debian_kubectl())


def _build_current() -> None:
    if shutil.which("go") is None:
        raise Unavailable("Go is not here")
    polite = ("nice", "-n", "10") if shutil.which("nice") else ()
    version = _required("k8s.io/kubectl").replace("v0.", "v1.", 1)
    with tempfile.TemporaryDirectory() as scratch:
        built = Path(scratch) / "kubectl"
        flags = f"-s -w -X k8s.io/component-base/version.gitVersion={version}"
        _run(*polite, "go", "build", "-trimpath", "-ldflags", flags, "-o", str(built), cwd=SOURCES)
        _put(built, current_kubectl())


def _build_helm() -> None:
    if shutil.which("go") is None:
        raise Unavailable("Go is not here")
    polite = ("nice", "-n", "10") if shutil.which("nice") else ()
    with tempfile.TemporaryDirectory() as scratch:
        into = {"GOBIN": scratch}
        _run(*polite, "go", "install", "-ldflags", "-s -w", HELM, environment=into)
        _put(Path(scratch) / "helm", cached_helm())


def _install_clients() -> None:
    uv = shutil.which("uv")
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    if uv is not None:
        command = [uv, "pip", "install", "--python", sys.executable]
    _run(*command, "--quiet", "--require-hashes", "-r", str(CLIENTS))


def _required(module: str) -> str:
    for line in (SOURCES / "go.mod").read_text().splitlines():
        words = line.split()
        if words[:1] == [module]:
            return words[1]
    raise Unavailable(f"go.mod does not name {module}")


def _run(*command: str, cwd: Path = ROOT, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Unavailable(f"{' '.join(command[:3])} ...: {last}")


def _put(made: Path, place: Path) -> None:
    """Whole or not at all: another run may be looking."""
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f"{place.name}.{os.getpid()}")
    shutil.copy2(made, beside)
    beside.rename(place)


def main() -> int:
    steps: list[tuple[str, Callable[[], bool], Callable[[], None]]] = [
        ("Debian's kubectl", debian_kubectl().is_file, _fetch_debian),
        ("a current kubectl", current_kubectl().is_file, _build_current),
        ("helm", cached_helm().is_file, _build_helm),
        ("the Python clients", lambda: False, _install_clients),
    ]
    failed = 0
    for name, is_there, get in steps:
        try:
            if not is_there():
                print(f"{name}: getting it, which may take minutes", file=sys.stderr)
                get()
            print(f"{name}: there", file=sys.stderr)
        except Unavailable as why:
            failed += 1
            print(f"{name}: not available: {why}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
