"""The user's kubeconfig: our context in it, and what was selected there before."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec

from posse.kube.config import KubeconfigFile, kubeconfig_paths
from posse.local.supervisor.home import Home

CONTEXT = "posse"


class Written(msgspec.Struct, frozen=True):
    """One kubeconfig file that names the cluster; `before` was selected in it earlier."""

    file: str
    before: str = ""


def add(home: Home, server: str, *, select: bool, kubeconfig: Path | None = None) -> Path:
    """Write the context into the user's file, or into `kubeconfig`; returns the file."""
    path = (kubeconfig or kubeconfig_paths()[0]).absolute()
    authority = base64.b64encode(home.authority.read_bytes()).decode()
    before = KubeconfigFile(path).add(
        CONTEXT,
        cluster={"server": server, "certificate-authority-data": authority},
        user={"token": home.token("admin").read_text().strip()},
        select=select,
    )
    written = {each.file: each for each in _written(home)}
    known = written.get(str(path))
    if known is None or before:
        written[str(path)] = Written(str(path), before if select else "")
    home.save(home.contexts, list(written.values()))
    return path


def remove(home: Home) -> None:
    """Take the context out of every file it was written into, and put back the one before."""
    for each in _written(home):
        KubeconfigFile(each.file).remove(CONTEXT, restore=each.before)
    home.contexts.unlink(missing_ok=True)


def _written(home: Home) -> list[Written]:
    return home.load(home.contexts, list[Written]) or []
