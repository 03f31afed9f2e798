"""The files that give a pod its names: its own, and those of the others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from posse.local.node.naming import NameBook, Reach, hostname
from posse.local.node.processes.layout import PodPlace
from posse.objects import raw

Manifest = dict[str, Any]

_HEAD = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"


def hosts_file(pod: Manifest, reach: Reach, book: NameBook) -> str:
    namespace = str(pod["metadata"]["namespace"])
    own = hostname(pod)
    names = own
    if subdomain := raw.text(pod["spec"], "subdomain"):
        names = f"{own}.{subdomain}.{namespace}.svc.cluster.local {own}"
    lines = [f"{reach.address}\t{names}"]
    lines += [f"{address}\t{' '.join(known)}" for address, known in book.hosts(namespace)]
    lines += [
        f"{raw.text(alias, 'ip')}\t{' '.join(raw.texts(alias, 'hostnames'))}"
        for alias in raw.mappings(pod, "spec", "hostAliases")
    ]
    return _HEAD + "\n".join(lines) + "\n"


def write_names(pod: Manifest, place: PodPlace, reach: Reach, book: NameBook) -> None:
    rewrite(place.etc / "hosts", hosts_file(pod, reach, book))
    rewrite(place.etc / "hostname", f"{hostname(pod)}\n")
    rewrite(place.etc / "resolv.conf", _resolver())


def rewrite(path: Path, text: str) -> None:
    """In place: a container has this very file mounted. No reader ever finds it empty."""
    content = text.encode()
    if path.exists() and path.read_bytes() == content:
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))
        os.fchmod(descriptor, 0o644)
    finally:
        os.close(descriptor)


def _resolver() -> str:
    try:
        return Path("/etc/resolv.conf").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
