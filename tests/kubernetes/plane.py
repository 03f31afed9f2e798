"""A real control plane on loopback: etcd, kube-apiserver and kube-controller-manager.

RBAC is on and every request is in the audit log. Who is who: `admin` may do anything; the services
are the service accounts that an installation gives them, and may do what roles let them.
"""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from posse.kube.certificates import create_authority, write_private
from posse.kube.config import Settings
from posse.objects.times import parse_time
from posse.world import World
from tests.kubernetes.building import Programs
from tests.kubernetes.gateway import Gateway
from tests.kubernetes.programs import Program, free_port

SYSTEM = "posse-system"
ACCOUNTS = ("posse-scheduler", "posse-controllers", "posse-admission")
ADMIN = "admin"

# The native gang API, and what of it needs a gate of its own.
GANG_API = "scheduling.k8s.io/v1alpha2=true"
GANG_GATES = "GenericWorkload=true,GangScheduling=true"
_NATIVE_GATES = f"{GANG_GATES},TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true"

AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
# The first start on a busy machine makes the API server's own objects.
READY_WITHIN = 120.0


class Plane(Protocol):
    """A control plane to talk to, whoever started it."""

    def settings(self, user: str = ADMIN) -> Settings: ...

    def kubectl(
        self, *words: str, user: str = ADMIN, check: bool = True, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]: ...

    def kubelet_certificate(self) -> tuple[Path, Path]:
        """The certificate of a node agent, and its key."""
        ...


class ControlPlane:
    """With a `gateway` it finds Services there, of which it would know only cluster IPs."""

    def __init__(self, programs: Programs, directory: Path, gateway: Gateway | None = None) -> None:
        self.gateway = gateway
        self.programs = programs
        self.directory = directory
        self.audit_log = directory / "audit.log"
        self._world = World.real()
        self._unsettled: list[tuple[float, float]] = []
        self._tokens = {name: self._world.entropy(16).hex() for name in (ADMIN, *ACCOUNTS)}
        self._authority = create_authority(self._world)
        self._server = f"https://127.0.0.1:{free_port()}"
        self._write_files()
        client, peer = free_port(), free_port()
        self.etcd = self._program("etcd", str(programs.etcd), *self._etcd(client, peer))
        self.api_server = self._program(
            "kube-apiserver", str(programs.kube_apiserver), *self._api_server(client)
        )
        self.controller_manager = self._program(
            "kube-controller-manager",
            str(programs.kube_controller_manager),
            *self._controller_manager(),
        )

    def kubeconfig(self, user: str = ADMIN) -> Path:
        return self.directory / f"{user}.kubeconfig"

    def settings(self, user: str = ADMIN) -> Settings:
        return Settings(
            server=self._server,
            ca_data=self._authority.certificate_pem,
            token=self._tokens[user],
        )

    def start(self) -> None:
        """The servers. Controllers come later: they look for new kinds only every half minute."""
        self.etcd.start()
        self.api_server.start()
        self._until(self.ready, "kube-apiserver is ready")

    def restart_api_server(self) -> None:
        """Killed and started again; `settled` when it is ready."""
        self._unsettled.append((self._world.now(), math.inf))
        self.api_server.kill()
        self.api_server.start()

    def settled(self) -> bool:
        """Whether it is ready. One that has just started has not read the roles yet."""
        if not self.ready():
            return False
        self._unsettled = [(since, min(to, self._world.now())) for since, to in self._unsettled]
        return True

    def ready(self) -> bool:
        return self.kubectl("get", "--raw", "/readyz", check=False).returncode == 0

    def stop(self) -> None:
        for program in (self.controller_manager, self.api_server, self.etcd):
            program.kill()

    def kubelet_certificate(self) -> tuple[Path, Path]:
        return self.directory / "kubelet.crt", self.directory / "kubelet.key"

    def kubectl(
        self, *words: str, user: str = ADMIN, check: bool = True, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return run_kubectl(self.programs.kubectl, self.kubeconfig(user), words, check, stdin)

    def audited(self) -> Iterator[dict[str, Any]]:
        """Every answered request so far, but for denials by a server that knew no roles yet."""
        with self.audit_log.open() as log:
            for line in log:
                entry = json.loads(line) if line.endswith("\n") else None
                if entry is not None and not self._premature(entry):
                    yield entry

    def _premature(self, entry: dict[str, Any]) -> bool:
        if (entry.get("responseStatus") or {}).get("code") != 403:
            return False
        at = parse_time(entry["requestReceivedTimestamp"])
        return any(since <= at <= to for since, to in self._unsettled)

    def _program(self, name: str, *command: str) -> Program:
        return Program(name, list(command), self.directory, {"HOME": str(self.directory)})

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + READY_WITHIN
        while not holds():
            for program in (self.etcd, self.api_server):
                if not program.running:
                    raise RuntimeError(f"{program.name} has ended:\n{program.tail()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"still not: {what}\n{self.api_server.tail()}")
            time.sleep(0.1)

    def _write_files(self) -> None:
        places = self.directory
        key = rsa.generate_private_key(65537, 2048)
        write_private(
            places / "accounts.key",
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            ),
        )
        (places / "accounts.pub").write_bytes(
            key.public_key().public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        (places / "ca.crt").write_bytes(self._authority.certificate_pem)
        for name in ("server", "kubelet-client", "kubelet"):
            certificate, secret = self._authority.issue(
                ["kubernetes.default.svc", "localhost"], ["127.0.0.1", "10.96.0.1"], days=2
            )
            (places / f"{name}.crt").write_bytes(certificate)
            write_private(places / f"{name}.key", secret)
        (places / "audit-policy.yaml").write_text(yaml.safe_dump(AUDIT))
        if self.gateway is not None:
            (places / "egress.yaml").write_text(yaml.safe_dump(self.gateway.configuration))
        rows = [f'{self._tokens[ADMIN]},{ADMIN},{ADMIN},"system:masters"']
        rows += [
            f"{self._tokens[name]},system:serviceaccount:{SYSTEM}:{name},{name},"
            f'"system:serviceaccounts,system:serviceaccounts:{SYSTEM}"'
            for name in ACCOUNTS
        ]
        write_private(places / "tokens.csv", "\n".join([*rows, ""]).encode())
        for user, token in self._tokens.items():
            write_private(self.kubeconfig(user), yaml.safe_dump(self._config(token)).encode())

    def _config(self, token: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests"}}],
            "clusters": [
                {
                    "name": "tests",
                    "cluster": {
                        "server": self._server,
                        "certificate-authority": str(self.directory / "ca.crt"),
                    },
                }
            ],
            "users": [{"name": "tests", "user": {"token": token}}],
        }

    def _etcd(self, client: int, peer: int) -> list[str]:
        return [
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{client}",
            f"--advertise-client-urls=http://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self, etcd: int) -> list[str]:
        places = self.directory
        return [
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._server.rpartition(':')[2]}",
            f"--tls-cert-file={places / 'server.crt'}",
            f"--tls-private-key-file={places / 'server.key'}",
            f"--token-auth-file={places / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={places / 'accounts.pub'}",
            f"--service-account-signing-key-file={places / 'accounts.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
            f"--kubelet-client-certificate={places / 'kubelet-client.crt'}",
            f"--kubelet-client-key={places / 'kubelet-client.key'}",
            f"--kubelet-certificate-authority={places / 'ca.crt'}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--audit-policy-file={places / 'audit-policy.yaml'}",
            f"--audit-log-path={self.audit_log}",
            f"--runtime-config={GANG_API}",
            f"--feature-gates={_NATIVE_GATES}",
            "--profiling=false",
            *([f"--egress-selector-config-file={places / 'egress.yaml'}"] if self.gateway else []),
        ]

    def _controller_manager(self) -> list[str]:
        places = self.directory
        return [
            f"--kubeconfig={self.kubeconfig()}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--service-account-private-key-file={places / 'accounts.key'}",
            f"--root-ca-file={places / 'ca.crt'}",
            f"--feature-gates={_NATIVE_GATES}",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            "--profiling=false",
        ]


def run_kubectl(
    program: Path, kubeconfig: Path, words: tuple[str, ...], check: bool, stdin: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(program), "--kubeconfig", str(kubeconfig), *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"HOME": str(kubeconfig.parent), "PATH": ""},
    )
    if check:
        assert done.returncode == 0, f"kubectl {' '.join(words)}\n{done.stdout}{done.stderr}"
    return done
