"""Other people's operators on a control plane with our definitions: started, stopped, looked at.

They run as the plane's administrator, beside the cluster: their leases are real, their Deployments
are objects without a node to run on, and nothing routes to their webhooks.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.kube.certificates import create_authority, write_private
from posse.objects.kinds import QUEUE
from posse.world import World
from tests.kubernetes.building import Unavailable
from tests.kubernetes.peers.building import built, program, sources
from tests.kubernetes.plane import ADMIN, ControlPlane
from tests.kubernetes.programs import Program, free_port

PEERS = "POSSE_PEERS"
_NAMES = ("training-operator", "mpi-operator", "vc-controller-manager")
KUBEFLOW, MPI, VOLCANO = "kubeflow", "mpi-operator", "volcano-system"

# Where each module keeps the definitions of its kinds, and those of them that we do not ship.
_TRAINING = "manifests/base/crds/kubeflow.org_{}.yaml"
_BASES = "installer/helm/chart/volcano/crd/bases/{}.yaml"
_FOREIGN = {
    "training-operator": (_TRAINING.format("pytorchjobs"),),
    "vc-controller-manager": (
        _BASES.format("batch.volcano.sh_jobs"),
        _BASES.format("bus.volcano.sh_commands"),
    ),
}
# The one place in which training-operator looks for its certificate, before it starts to work.
_MOUNTED = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")
_WEBHOOKS = "validator.training-operator.kubeflow.org"
_BUSY = ("--kube-api-qps=100", "--kube-api-burst=200")


def available() -> bool:
    """Whether any of the operators can be met without a wait, or may be waited for."""
    return bool(os.environ.get(PEERS)) or any(map(built, _NAMES))


def _operator(name: str) -> str:
    """The program; a test that meets it is left out where it would have to be built first."""
    if built(name) is None and not os.environ.get(PEERS):
        pytest.skip(f"{name} is not built: `make test-peers` does it, in some minutes")
    try:
        return str(program(name))
    except Unavailable as why:
        pytest.skip(str(why))


class Operators:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._directory = plane.directory

    def prepare(self) -> None:
        """What the operators need beyond our own installation."""
        self.apply(*(_namespace(name) for name in (KUBEFLOW, MPI, VOLCANO)))
        self.apply(
            *(_document(sources(name) / file) for name, files in _FOREIGN.items() for file in files)
        )
        self._serve_first_version_of_mpi_jobs()
        self.plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
        self.apply(*_certificates())

    def apply(self, *manifests: dict[str, Any], namespace: str = "") -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.plane.kubectl(
            *("apply", "--server-side", "--force-conflicts", "-f", "-"),
            *(("-n", namespace) if namespace else ()),
            stdin=json.dumps(listed),
        )

    async def posse(self, words: str, code: int = 0) -> str:
        """What the command says, on both of its outputs; everything else goes on meanwhile."""
        asked = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "posse", *words.split()),
            env=self._our_environment(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said = (await asked.communicate())[0].decode()
        assert asked.returncode == code, f"posse {words}\n{said}"
        return said

    @contextmanager
    def mpi_operator(self, scheduler: str = "volcano") -> Iterator[Program]:
        """It answers to health checks on port 8080, wherever it runs."""
        self._forget_lease(MPI, "mpi-operator")
        command = (
            _operator("mpi-operator"),
            f"-kubeConfig={self.plane.kubeconfig()}",
            f"-gang-scheduling={scheduler}",
            f"-lock-namespace={MPI}",
            *_BUSY,
        )
        with self._running("mpi-operator", *command) as started:
            yield started

    @contextmanager
    def training_operator(self, *kinds: str, scheduler: str = "volcano") -> Iterator[Program]:
        """With the Deployment that says so; without a lease, which it cannot have out here."""
        operator = _operator("training-operator")
        place = self._directory / "training-operator"
        _write_certificate(place / "k8s-webhook-server" / "serving-certs")
        deployment = _document(sources("training-operator") / "manifests/base/deployment.yaml")
        schemes = tuple(f"--enable-scheme={kind}" for kind in kinds)
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        container["command"] = [*container["command"], *schemes]
        command = (
            operator,
            *schemes,
            f"--gang-scheduler-name={scheduler}",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address=127.0.0.1:{free_port()}",
            f"--webhook-server-port={free_port()}",
            *_BUSY,
        )
        settings = {
            "KUBECONFIG": str(self.plane.kubeconfig()),
            "MY_POD_NAMESPACE": KUBEFLOW,
            "TMPDIR": str(place),
        }
        self.apply(deployment, namespace=KUBEFLOW)
        try:
            with _mounted(), self._running("training-operator", *command, **settings) as started:
                yield started
        finally:
            words = ("scale", "deployment", "training-operator", "--replicas=0")
            self.plane.kubectl("-n", KUBEFLOW, *words)

    @contextmanager
    def volcano_controllers(self) -> Iterator[Program]:
        """With the root of all queues, which Volcano's own scheduler leaves behind."""
        root = {
            "apiVersion": QUEUE.api_version,
            "kind": QUEUE.kind,
            "metadata": {"name": "root"},
            "spec": {"weight": 1, "reclaimable": False},
        }
        self.apply(root)
        command = (
            _operator("vc-controller-manager"),
            f"--kubeconfig={self.plane.kubeconfig()}",
            "--controllers=job-controller,queue-controller,pg-controller,gc-controller",
            "--leader-elect=false",
            *_BUSY,
        )
        with self._running("vc-controller-manager", *command) as started:
            yield started

    @contextmanager
    def posse_controllers(self, kinds: str) -> Iterator[Program]:
        """Ours, as the account that an installation gives them."""
        command = (
            *(sys.executable, "-m", "posse", "controllers"),
            f"--kinds={kinds}",
            "--lease-namespace=posse-system",
            "--identity=peer",
        )
        settings = self._our_environment("posse-controllers")
        with self._running("posse-controllers", *command, **settings) as started:
            yield started

    @contextmanager
    def _running(self, name: str, *command: str, **settings: str) -> Iterator[Program]:
        started = Program(
            name, list(command), self._directory, {"HOME": str(self._directory)} | settings
        )
        started.start()
        try:
            yield started
            assert started.running, f"{name} has ended:\n{started.tail()}"
        finally:
            started.stop()

    def _our_environment(self, user: str = ADMIN) -> dict[str, str]:
        given = {"KUBECONFIG": str(self.plane.kubeconfig(user)), "HOME": str(self._directory)}
        return dict(os.environ) | given

    def _forget_lease(self, namespace: str, name: str) -> None:
        """The holder of an earlier test is gone and has not said so."""
        self.plane.kubectl("-n", namespace, "delete", "lease", name, "--ignore-not-found")

    def _serve_first_version_of_mpi_jobs(self) -> None:
        """training-operator's MPIJob is another version of the kind that we have."""
        done = self.plane.kubectl("get", "crd", "mpijobs.kubeflow.org", "-o", "json")
        ours = json.loads(done.stdout)
        theirs = _document(sources("training-operator") / _TRAINING.format("mpijobs"))
        first = next(v for v in theirs["spec"]["versions"] if v["name"] == "v1")
        ours["spec"]["versions"].append(first | {"storage": False})
        self.plane.kubectl("replace", "-f", "-", stdin=json.dumps(ours))


def _document(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = next(doc for doc in yaml.safe_load_all(file.read_text()) if doc)
    return found


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _certificates() -> tuple[dict[str, Any], ...]:
    """What training-operator writes its certificate into: a Secret, and webhooks of no effect."""
    nowhere = {"matchLabels": {"kubernetes.io/metadata.name": "nowhere"}}
    webhook = {
        "name": "validator.tfjob.training-operator.kubeflow.org",
        "clientConfig": {"service": {"name": "training-operator", "namespace": KUBEFLOW}},
        "namespaceSelector": nowhere,
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return (
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "training-operator-webhook-cert", "namespace": KUBEFLOW},
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": _WEBHOOKS},
            "webhooks": [webhook],
        },
    )


def _write_certificate(place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    authority = create_authority(World.real())
    certificate, key = authority.issue([f"training-operator.{KUBEFLOW}.svc"], [], days=2)
    (place / "tls.crt").write_bytes(certificate)
    write_private(place / "tls.key", key)


@contextmanager
def _mounted() -> Iterator[None]:
    """As if the Secret were mounted: only that the file is there is looked at."""
    _MOUNTED.parent.mkdir(parents=True, exist_ok=True)
    _MOUNTED.touch()
    try:
        yield
    finally:
        _MOUNTED.unlink(missing_ok=True)
        with suppress(OSError):  # somebody else uses the directory
            _MOUNTED.parent.rmdir()
            _MOUNTED.parent.parent.rmdir()
