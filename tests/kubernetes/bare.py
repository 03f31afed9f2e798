"""A control plane that has never heard of Posse, for installations to come and go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from posse.objects.keys import INSTALLED_LABEL, QUEUE_NAME
from tests.kubernetes.building import Programs
from tests.kubernetes.gateway import Gateway
from tests.kubernetes.plane import SYSTEM, ControlPlane
from tests.kubernetes.programs import Program, free_port


class Bare:
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def apply(self, *manifests: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        done = self.plane.kubectl("get", kind, name, "-n", namespace, "-o", "json", check=False)
        if done.returncode == 0:
            found: dict[str, Any] = json.loads(done.stdout)
            return found
        assert "NotFound" in done.stderr, done.stderr
        return None

    def names(self, kind: str) -> list[str]:
        """Those that an installation made."""
        done = self.plane.kubectl("get", kind, "-A", "-o", "name", "-l", f"{INSTALLED_LABEL}=true")
        return [line.partition("/")[2] for line in done.stdout.split()]

    def posse(self, words: str, code: int = 0, user: str = "") -> tuple[str, str]:
        """What it shows, and what it says; to the administrator, or to a user."""
        done = subprocess.run(
            [sys.executable, "-m", "posse", *words.split()],
            env=self._environment(user),
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        assert done.returncode == code, f"posse {words}\n{done.stdout}{done.stderr}"
        return done.stdout, done.stderr

    def interrupted(self, words: str, after: str) -> None:
        """Killed as soon as it has shown a line that begins so."""
        with subprocess.Popen(
            [sys.executable, "-m", "posse", *words.split()],
            env=self._environment("") | {"PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stdout is not None
            assert any(line.startswith(after) for line in running.stdout)
            running.kill()

    def _environment(self, user: str) -> dict[str, str]:
        config = self.plane.kubeconfig()
        if user:
            acting = yaml.safe_load(config.read_text())
            acting["users"][0]["user"]["as"] = user
            config = self.plane.directory / f"as-{user}.kubeconfig"
            config.write_text(yaml.safe_dump(acting))
        return {
            "KUBECONFIG": str(config),
            "HOME": str(self.plane.directory),
            "PATH": os.environ["PATH"],
        }

    def arguments(self, deployment: str) -> list[str]:
        found = self.get("deployment", deployment, SYSTEM)
        assert found is not None
        words: list[str] = found["spec"]["template"]["spec"]["containers"][0]["args"]
        return words

    @property
    def gateway(self) -> Gateway:
        assert self.plane.gateway is not None
        return self.plane.gateway

    @contextmanager
    def answering(self, directory: Path) -> Iterator[Program]:
        """The webhook as its Deployment says, behind its Service, once the API server trusts it."""
        port, diagnostics = free_port(), free_port()
        service = self.get("service", "posse-admission", SYSTEM)
        assert service is not None
        place = f"{service['spec']['clusterIP']}:443"
        replaced = {"--port=": f"--port={port}", "--metrics-port=": f"--metrics-port={diagnostics}"}
        program = self.program("admission", replaced, directory)
        self.gateway.routes[place] = port
        program.start()
        try:
            trusted = "--for=jsonpath={.webhooks[0].clientConfig.caBundle}"
            for kind in ("mutating", "validating"):
                named = f"{kind}webhookconfiguration/posse-admission"
                self.plane.kubectl("wait", named, trusted, "--timeout=50s")
            self._until_asked(program)
            yield program
        finally:
            del self.gateway.routes[place]
            program.stop()

    def _until_asked(self, program: Program) -> None:
        """The API server hears of the trust a little later than it was written."""
        deadline = time.monotonic() + 30
        while not self.refuses(hopeless("probe")):
            assert program.running, program.tail()
            assert time.monotonic() < deadline, program.tail()
            time.sleep(0.1)

    def refuses(self, manifest: dict[str, Any]) -> bool:
        """Whether it is not let in; it is not kept."""
        words = ("create", "--dry-run=server", "-f", "-")
        done = self.plane.kubectl(*words, stdin=json.dumps(manifest), check=False)
        return done.returncode != 0

    def program(self, name: str, replaced: dict[str, str], directory: Path) -> Program:
        """What the Deployment runs, with what only a pod has replaced, as its own account."""
        words = [
            next((new for old, new in replaced.items() if word.startswith(old)), word)
            for word in self.arguments(f"posse-{name}")
        ]
        config = f"--kubeconfig={self.plane.kubeconfig(f'posse-{name}')}"
        return Program(
            f"installed-{name}",
            [sys.executable, "-m", "posse", *words, config],
            directory,
            {"PATH": os.environ["PATH"], "HOME": str(directory)},
        )


@contextmanager
def bare_plane(programs: Programs, directory: Path) -> Iterator[Bare]:
    gateway = Gateway()
    plane = ControlPlane(programs, directory, gateway)
    try:
        plane.start()
        plane.controller_manager.start()
        yield Bare(plane)
    finally:
        plane.stop()
        gateway.close()


def pod(name: str, scheduler: str) -> dict[str, Any]:
    """Written by hand, for a queue that is not there."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {QUEUE_NAME: "nowhere"}},
        "spec": {
            "schedulerName": scheduler,
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "train"}],
        },
    }


def hopeless(name: str) -> dict[str, Any]:
    """The schema says nothing against it; only its controller would."""
    template = {"spec": {"containers": [{"name": "other", "image": "train"}]}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}},
    }


def queue(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1},
    }
