"""The user's kubeconfig: our context in it, and what was there before.

What is about to be replaced is written down first, so that whatever happens in between, `down` can
put it back. An entry that is not the one we wrote has another owner, and is never taken out.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec

from posse.kube.config import KubeconfigFile, kubeconfig_paths
from posse.local.supervisor.home import Home

CONTEXT = "posse"


class Written(msgspec.Struct, frozen=True):
    """One kubeconfig file that names the cluster, and what stood there before."""

    file: str
    before: str = ""  # the context that was selected
    cluster: dict[str, Any] = {}  # as we wrote it
    replaced: dict[str, dict[str, Any]] = {}  # of the same name, by section; not ours


def check(kubeconfig: Path | None = None) -> None:
    """Raises ConfigError where the context could not be written."""
    KubeconfigFile(_path(kubeconfig)).look(CONTEXT)


def add(home: Home, server: str, *, select: bool, kubeconfig: Path | None = None) -> Path:
    """Write the context into the user's file, or into `kubeconfig`; returns the file."""
    path = _path(kubeconfig)
    file = KubeconfigFile(path)
    authority = base64.b64encode(home.authority.read_bytes()).decode()
    cluster = {"server": server, "certificate-authority-data": authority}
    present = file.look(CONTEXT)
    written = {each.file: each for each in _written(home)}
    known = written.get(str(path))
    ours = known is not None and present.cluster == known.cluster
    if known is None or not ours:
        known = Written(str(path), replaced=present.items)
    selected_ours = ours and present.selected == CONTEXT
    before = present.selected if select and not selected_ours else known.before
    written[str(path)] = Written(str(path), before, cluster, known.replaced)
    home.save(home.contexts, list(written.values()))
    file.add(
        CONTEXT,
        cluster=cluster,
        user={"token": home.token("admin").read_text().strip()},
        select=select,
    )
    return path


def remove(home: Home) -> None:
    """Take the context out of every file it was written into, and put back what was before."""
    for each in _written(home):
        file = KubeconfigFile(each.file)
        if Path(each.file).exists() and file.look(CONTEXT).cluster == each.cluster:
            file.remove(CONTEXT, restore=each.before, instead=each.replaced)
    home.contexts.unlink(missing_ok=True)


def _path(kubeconfig: Path | None) -> Path:
    return (kubeconfig or kubeconfig_paths()[0]).absolute()


def _written(home: Home) -> list[Written]:
    return home.load(home.contexts, list[Written]) or []
