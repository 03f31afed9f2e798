"""kubectl as a user types it, in a namespace of its own."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.processes import Commands, eventually

_SECONDS = 60


@dataclass(frozen=True)
class Kubectl:
    """One kubectl against the worker's cluster; `namespace` is where its commands act."""

    program: str
    commands: Commands
    namespace: str
    scratch: Path
    which: str

    @property
    def old(self) -> bool:
        """Debian's: 1.20 lacks some commands and flags of today."""
        return self.which == "debian"

    def environment(self) -> dict[str, str]:
        return self.commands.environment() | {"TMPDIR": str(self.scratch)}

    def line(self, words: str | list[str]) -> list[str]:
        split = shlex.split(words) if isinstance(words, str) else words
        return [self.program, "--namespace", self.namespace, *split]

    def run(
        self,
        words: str | list[str],
        *,
        exits: int = 0,
        stdin: str | None = None,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.line(words),
            env=self.environment() | environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        said = f"kubectl {words}\n{done.stdout}\n{done.stderr}"
        assert (done.returncode == 0) == (exits == 0), said
        return done

    def say(self, words: str | list[str], **more: Any) -> str:
        return self.run(words, **more).stdout

    def refused(self, words: str | list[str], **more: Any) -> str:
        return self.run(words, exits=1, **more).stderr

    def get(self, words: str) -> Any:
        return json.loads(self.say(f"get {words} -o json"))

    def names(self, words: str) -> list[str]:
        """`pod/a`, without the groups that kubectl adds to kinds."""
        return [
            f"{kind.partition('.')[0]}/{name}"
            for kind, _, name in (one.partition("/") for one in self.get_names(words))
        ]

    def get_names(self, words: str) -> list[str]:
        return self.say(f"get {words} -o name").split()

    def apply(self, *manifests: dict[str, Any]) -> str:
        return self.say("apply -f -", stdin=documents(*manifests))

    def gone(self, words: str) -> None:
        eventually(lambda: not self.get_names(f"{words} --ignore-not-found"), f"{words} is gone")

    def running(self, selector: str, count: int) -> list[dict[str, Any]]:
        """The pods of the selector, once so many of them run."""

        def pods() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = self.get(f"pods -l '{selector}'")["items"]
            return [
                pod
                for pod in found
                if pod["status"]["phase"] == "Running"
                and "deletionTimestamp" not in pod["metadata"]
            ]

        eventually(lambda: len(pods()) == count, f"{count} pods of {selector} run")
        return pods()

    def start(self, words: str) -> subprocess.Popen[str]:
        """A command that goes on; the caller ends it."""
        return subprocess.Popen(
            self.line(words),
            env=self.environment() | {"PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def documents(*manifests: dict[str, Any]) -> str:
    return yaml.safe_dump_all(manifests, sort_keys=False)


def deployment(name: str = "web", *, image: str = "one", replicas: int = 2) -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "main",
        "image": image,
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "ports": [{"containerPort": 80}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
            },
        },
    }


def pod(
    name: str = "p", *, annotations: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    containers = [{"name": "main", "image": "one"}, {"name": "side", "image": "two"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"pod": name}, "annotations": annotations or {}},
        "spec": {
            "containers": containers,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            **spec,
        },
    }


def service(name: str = "web") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    }


def mpi_job(name: str = "mpi", workers: int = 2) -> dict[str, Any]:
    def role(replicas: int, **container: Any) -> dict[str, Any]:
        one = {"name": "main", "image": "i", **container}
        return {"replicas": replicas, "template": {"spec": {"containers": [one]}}}

    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "mpiReplicaSpecs": {
                "Launcher": role(1, command=["mpirun", "x"]),
                "Worker": role(workers, resources={"limits": {"nvidia.com/gpu": 1}}),
            }
        },
    }
