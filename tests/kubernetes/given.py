"""A control plane that somebody else runs: the one that KUBECONFIG names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import msgspec

from posse.kube.certificates import create_authority, write_private
from posse.kube.config import Settings, kubeconfig_paths, load_kubeconfig
from posse.world import World
from tests.kubernetes.building import Unavailable, find
from tests.kubernetes.plane import ADMIN, SYSTEM, run_kubectl


class GivenPlane:
    """Its services act as its administrator; nothing here can hurt the servers themselves."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._settings = load_kubeconfig()
        self._kubectl = _kubectl()
        listed = self.kubectl("get", "nodes", "-o", "name").stdout.split()
        if listed:
            raise Unavailable(
                f"the cluster of KUBECONFIG has nodes of its own ({listed[0]}, ...): these tests "
                "place pods on simulated ones, and need a control plane without any"
            )

    def settings(self, user: str = ADMIN) -> Settings:
        del user
        return msgspec.structs.replace(self._settings, namespace="default")

    def kubelet_certificate(self) -> tuple[Path, Path]:
        place, secret = self._directory / "kubelet.crt", self._directory / "kubelet.key"
        certificate, key = create_authority(World.real()).issue([SYSTEM], ["127.0.0.1"], days=2)
        place.write_bytes(certificate)
        write_private(secret, key)
        return place, secret

    def kubectl(
        self, *words: str, user: str = ADMIN, check: bool = True, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        del user
        return run_kubectl(self._kubectl, kubeconfig_paths()[0], words, check, stdin)


def _kubectl() -> Path:
    on_path = shutil.which("kubectl")
    return Path(on_path) if on_path else find().kubectl
