"""Installing, upgrading, handing over and uninstalling, on a control plane of its own.

The tests are one story in order: each finds what the one before has left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.client.installing import Options, objects
from posse.objects.crds import definitions
from posse.objects.keys import INSTALLED_LABEL
from tests.kubernetes.building import Unavailable, find
from tests.kubernetes.plane import SYSTEM, ControlPlane
from tests.kubernetes.programs import Program, free_port

pytestmark = pytest.mark.process

TRAINING_LEASE = "1ca428e5.training-operator.kubeflow.org"


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

    def posse(self, words: str, code: int = 0) -> tuple[str, str]:
        """What it shows, and what it says."""
        done = subprocess.run(
            [sys.executable, "-m", "posse", *words.split()],
            env={
                "KUBECONFIG": str(self.plane.kubeconfig()),
                "HOME": str(self.plane.directory),
                "PATH": os.environ["PATH"],
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        assert done.returncode == code, f"posse {words}\n{done.stdout}{done.stderr}"
        return done.stdout, done.stderr

    def arguments(self, deployment: str) -> list[str]:
        found = self.get("deployment", deployment, SYSTEM)
        assert found is not None
        words: list[str] = found["spec"]["template"]["spec"]["containers"][0]["args"]
        return words

    @contextmanager
    def renewing(self, namespace: str, lease: str) -> Iterator[None]:
        """Somebody who is alive, and says so every second."""
        over = threading.Event()

        def renew() -> None:
            count = 0
            while not over.wait(1.0):
                count += 1
                moved = {"spec": {"renewTime": f"2020-01-01T00:00:00.{count:06d}Z"}}
                self.plane.kubectl(
                    *("patch", "lease", lease, "-n", namespace, "--type=merge"),
                    *("-p", json.dumps(moved)),
                )

        thread = threading.Thread(target=renew)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@pytest.fixture(scope="module")
def bare(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    """A control plane that has never heard of Posse, with somebody else's TFJobs on it."""
    del control_plane  # where there is none, there is no second one either
    try:
        programs = find()
    except Unavailable as why:
        pytest.skip(str(why))
    plane = ControlPlane(programs, tmp_path_factory.mktemp("bare"))
    try:
        plane.start()
        plane.controller_manager.start()
        made = Bare(plane)
        foreign = next(d for d in definitions() if d["metadata"]["name"].startswith("tfjobs."))
        foreign["spec"]["versions"][0]["additionalPrinterColumns"] = []
        made.apply(foreign)
        yield made
    finally:
        plane.stop()


def rows(said: str) -> dict[str, list[str]]:
    table = [line.split("|") for line in said.splitlines() if line.count("|") == 2]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in table}


def test_a_dry_run_shows_everything_and_changes_nothing(bare: Bare) -> None:
    shown, said = bare.posse("install --dry-run")
    assert said.splitlines()[0].split("|")[0].strip() == "kind"
    made = list(yaml.safe_load_all(shown))
    assert [m["metadata"]["name"] for m in made if m["kind"] == "Deployment"] == [
        "posse-scheduler",
        "posse-controllers",
    ]
    assert not [m for m in made if m["kind"] == "ServiceMonitor"]
    assert bare.get("namespace", SYSTEM) is None


def test_an_installation_takes_what_nobody_owns(bare: Bare) -> None:
    before = bare.get("crd", "tfjobs.kubeflow.org")
    _, said = bare.posse("install")
    assert rows(said)["MPIJob"] == ["nobody", "takes it"]
    assert rows(said)["TFJob"] == ["nobody", "takes it"]
    assert rows(said)["schedulerName volcano"][1].startswith("leaves it")
    assert "--kinds=MPIJob,TFJob" in bare.arguments("posse-controllers")
    assert "--claim=posse" in bare.arguments("posse-scheduler")
    for obj in objects(Options()):
        kind = f"{obj['kind']}.{obj['apiVersion'].rpartition('/')[0]}".rstrip(".")
        assert bare.get(kind, obj["metadata"]["name"], SYSTEM) is not None, obj["metadata"]
    after = bare.get("crd", "tfjobs.kubeflow.org")
    assert before is not None and after is not None
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_installing_again_changes_nothing(bare: Bare) -> None:
    shown, said = bare.posse("install")
    assert {line.rpartition(" ")[2] for line in shown.splitlines()} == {"unchanged", "is"}
    assert rows(said)["MPIJob"] == ["posse", "keeps it"]


def test_an_upgrade_brings_ours_up_to_date_and_leaves_what_is_somebodys(bare: Bare) -> None:
    changed = {"spec": {"names": {"shortNames": ["old"]}}}
    bare.plane.kubectl(
        *("patch", "crd", "mpijobs.kubeflow.org", "--type=merge", "-p", json.dumps(changed))
    )
    weight = json.dumps({"spec": {"weight": 7}})
    bare.plane.kubectl("patch", "queue", "default", "--type=merge", "-p", weight)
    shown, _ = bare.posse("install --image=mirror/posse:2 --replicas=3")
    definition = bare.get("crd", "mpijobs.kubeflow.org")
    queue = bare.get("queue", "default")
    deployment = bare.get("deployment", "posse-scheduler", SYSTEM)
    assert definition is not None and queue is not None and deployment is not None
    assert definition["spec"]["names"]["shortNames"] == ["mj", "mpij"]
    assert queue["spec"]["weight"] == 7
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "mirror/posse:2"
    assert "customresourcedefinition/tfjobs.kubeflow.org was there" in shown


def test_fewer_kinds_mean_fewer_roles(bare: Bare) -> None:
    shown, said = bare.posse("install --kinds=TFJob")
    assert rows(said)["MPIJob"] == ["posse", "gives it back"]
    assert "clusterrole/posse-controllers-ssh removed" in shown
    assert not {"posse-controllers-mpijob", "posse-controllers-ssh"} & set(
        bare.names("clusterroles")
    )
    can = ("auth", "can-i", "--as=system:serviceaccount:posse-system:posse-controllers")
    assert bare.plane.kubectl(*can, "get", "secrets", "-A", check=False).stdout == "no\n"
    assert bare.plane.kubectl(*can, "get", "tfjobs", "-A").stdout == "yes\n"
    assert bare.get("crd", "mpijobs.kubeflow.org") is not None
    bare.posse("install --kinds=MPIJob,TFJob")
    assert bare.plane.kubectl(*can, "create", "secrets", "-A").stdout == "yes\n"


@pytest.mark.parametrize("account", ["posse-scheduler", "posse-controllers"])
def test_no_account_may_do_everything_with_anything(bare: Bare, account: str) -> None:
    as_account = f"--as=system:serviceaccount:{SYSTEM}:{account}"
    listed = bare.plane.kubectl("auth", "can-i", "--list", as_account).stdout
    assert "*" not in listed.replace("/*", "")
    assert ("secrets" in listed) is (account == "posse-controllers")
    cannot = [("list", "secrets"), ("create", "customresourcedefinitions"), ("update", "nodes")]
    for verb, what in cannot:
        asked = bare.plane.kubectl("auth", "can-i", verb, what, as_account, "-A", check=False)
        assert asked.stdout == "no\n", (verb, what)


@pytest.mark.parametrize("name", ["scheduler", "controllers"])
def test_the_programs_run_as_their_deployments_say(bare: Bare, name: str, tmp_path: Path) -> None:
    """With their own accounts: they lead, and tell that they live."""
    port = free_port()
    policy = tmp_path / "policy.yaml"
    policy.write_text("frozen: false\n")
    replaced = {
        "--identity=": "--identity=pod-1",
        "--metrics-port=": f"--metrics-port={port}",
        "--policy=": f"--policy={policy}",
    }
    words = [
        next((new for old, new in replaced.items() if word.startswith(old)), word)
        for word in bare.arguments(f"posse-{name}")
    ]
    config = f"--kubeconfig={bare.plane.kubeconfig(f'posse-{name}')}"
    program = Program(
        f"installed-{name}",
        [sys.executable, "-m", "posse", *words, config],
        tmp_path,
        {"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    program.start()
    try:
        lease = ("wait", "lease", f"posse-{name}", "-n", SYSTEM, "--timeout=50s")
        bare.plane.kubectl(*lease, "--for=create")
        bare.plane.kubectl(*lease, "--for=jsonpath={.spec.holderIdentity}=pod-1")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as answer:
            assert answer.status == 200
        assert program.running, program.tail()
    finally:
        program.stop()


def test_a_kind_is_handed_over_once_its_owner_has_stopped(bare: Bare) -> None:
    bare.posse("uninstall")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kubeflow"}}
    bare.apply(namespace)
    bare.apply(_operator(), _lease())
    with bare.renewing("kubeflow", TRAINING_LEASE):
        _, said = bare.posse("install")
        assert rows(said)["TFJob"][0].startswith("training-operator (kubeflow/training-operator)")
        assert "--kinds=MPIJob" in bare.arguments("posse-controllers")
        _, said = bare.posse("install --take=TFJob", code=1)
        assert f"its lease kubeflow/{TRAINING_LEASE} is being renewed" in said
        assert "--kinds=MPIJob" in bare.arguments("posse-controllers")
    _, said = bare.posse("install --take=TFJob")
    assert rows(said)["TFJob"][1] == "takes it over"
    assert "--kinds=MPIJob,TFJob" in bare.arguments("posse-controllers")


def test_uninstalling_leaves_what_people_made(bare: Bare) -> None:
    job = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "stays", "namespace": "default"},
        "spec": {"mpiReplicaSpecs": {}},
    }
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "stays", "namespace": "default"},
        "spec": {"minMember": 1},
    }
    bare.apply(job, group)
    planned, _ = bare.posse("uninstall --dry-run")
    assert bare.get("deployment", "posse-scheduler", SYSTEM) is not None
    done, _ = bare.posse("uninstall")
    assert [line.split()[0] for line in done.splitlines()] == planned.split()
    kinds = "deployments,services,clusterroles,clusterrolebindings,flowschemas"
    assert bare.names(kinds) == []
    assert bare.get("mpijob", "stays") is not None
    assert bare.get("podgroups.scheduling.volcano.sh", "stays") is not None
    assert bare.get("queue", "default") is not None
    assert bare.names("priorityclasses") == ["posse-high", "posse-low"]
    _, said = bare.posse("uninstall")
    assert "nothing of Posse" in said


def test_purging_takes_what_posse_brought_and_nothing_else(bare: Bare) -> None:
    bare.posse("uninstall --purge-crds")
    assert bare.names("customresourcedefinitions,priorityclasses") == []
    assert bare.get("crd", "tfjobs.kubeflow.org") is not None
    assert bare.get("deployment", "training-operator", "kubeflow") is not None


def _operator() -> dict[str, Any]:
    labels = {"control-plane": "kubeflow-training-operator"}
    container = {
        "name": "training-operator",
        "image": "kubeflow/training-operator:v1.9.4",
        "args": ["--enable-scheme=tfjob"],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "training-operator", "namespace": "kubeflow"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _lease() -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": TRAINING_LEASE, "namespace": "kubeflow"},
        "spec": {
            "holderIdentity": "training-operator-1",
            "leaseDurationSeconds": 5,
            "renewTime": "2020-01-01T00:00:00.000000Z",
        },
    }
