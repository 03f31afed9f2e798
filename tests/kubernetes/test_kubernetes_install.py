"""Installing, upgrading, handing over and uninstalling, on a control plane of its own.

The tests are one story in order: each finds what the one before has left.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.admission.naming import KEPT_IN
from posse.client.installing import Options, objects
from posse.objects.crds import definitions
from tests.kubernetes.bare import Bare, bare_plane, hopeless, pod, queue
from tests.kubernetes.plane import ACCOUNTS, SYSTEM, ControlPlane
from tests.kubernetes.programs import free_port

pytestmark = pytest.mark.process

TRAINING_LEASE = "1ca428e5.training-operator.kubeflow.org"
EVERYTHING: dict[str, Any] = {"apiGroups": ["*"], "resources": ["*"]}
READS = EVERYTHING | {"verbs": ["get", "list", "watch"]}
WRITES = EVERYTHING | {"verbs": ["get", "list", "watch", "create", "update", "patch"]}


@pytest.fixture(scope="module")
def bare(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    """With somebody else's TFJobs on it."""
    with bare_plane(control_plane.programs, tmp_path_factory.mktemp("bare")) as made:
        foreign = next(d for d in definitions() if d["metadata"]["name"].startswith("tfjobs."))
        foreign["spec"]["versions"][0]["additionalPrinterColumns"] = []
        made.apply(foreign)
        named = f"crd/{foreign['metadata']['name']}"
        made.plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", named)
        yield made


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
        "posse-admission",
    ]
    assert not [m for m in made if m["kind"] == "ServiceMonitor"]
    assert json.loads(bare.posse("install --dry-run -o json")[0])["items"] == made
    assert bare.get("namespace", SYSTEM) is None


def test_a_dry_run_writes_nothing_at_all(bare: Bare) -> None:
    meant = [
        event["requestURI"]
        for event in bare.plane.audited()
        if event["userAgent"].startswith("posse/")
        and event["verb"] not in ("get", "list", "watch")
        and "dryRun=All" not in event["requestURI"]
    ]
    assert meant == []


@pytest.mark.parametrize(
    ("user", "may", "words"),
    [
        ("reader", READS, 'cannot patch resource "customresourcedefinitions"'),
        # Whoever may write roles may still not give away what they have not got.
        ("writer", WRITES, "is attempting to grant RBAC permissions not currently held"),
    ],
    ids=["reads", "writes"],
)
def test_who_may_not_do_all_of_it_does_nothing_of_it(
    bare: Bare, user: str, may: dict[str, Any], words: str
) -> None:
    grant(bare, user, may)
    _, said = bare.posse("install", code=5, user=user)
    last = said.splitlines()[-1]
    assert last.startswith("posse: nothing was changed: ")
    assert words in last
    assert bare.get("namespace", SYSTEM) is None
    assert bare.names("customresourcedefinitions") == []
    shown, said = bare.posse("install --dry-run", user=user)
    assert "note: it would not be applied" in said
    assert "kind: Deployment" in shown


def test_what_is_somebody_elses_is_not_written_over(bare: Bare) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "posse-view"},
        "rules": [],
    }
    bare.apply(role)
    _, said = bare.posse("install", code=1)
    assert "there is a clusterrole posse-view which is not Posse's" in said
    assert bare.get("namespace", SYSTEM) is None
    bare.plane.kubectl("delete", "clusterrole", "posse-view")


def test_an_installation_takes_what_nobody_owns(bare: Bare) -> None:
    """Even after one that was killed in the middle."""
    bare.interrupted("install", after="flowschema/posse ")
    assert bare.get("deployment", "posse-scheduler", SYSTEM) is None
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


def test_before_the_webhook_answers_nothing_is_held_up_but_the_end_of_a_queue(bare: Bare) -> None:
    """As on the day of an installation, and on any day on which it is down."""
    for scheduler in ("default-scheduler", "posse"):
        bare.apply(pod(f"for-{scheduler}", scheduler))
    bare.apply(hopeless("let-in"), queue("short-lived"))
    done = bare.plane.kubectl("delete", "queue", "short-lived", check=False)
    assert done.returncode != 0
    assert 'failed calling webhook "queue-deletions.validate.posse.dev"' in done.stderr


def test_the_webhook_answers_as_installed(bare: Bare, tmp_path: Path) -> None:
    """Found by the API server through its Service, and trusted for the Service's name."""
    with bare.answering(tmp_path) as webhook:
        refused = bare.plane.kubectl(
            "create", "-f", "-", stdin=json.dumps(hopeless("refused")), check=False
        )
        assert refused.returncode != 0, webhook.tail()
        assert refused.stderr == (
            "The request is invalid: spec.tfReplicaSpecs[Worker].template.spec.containers: "
            "Required value: must have at least one container with name tensorflow\n"
        )
        assert bare.get("tfjobs.v1.kubeflow.org", "refused") is None
        job = bare.get("tfjobs.v1.kubeflow.org", "let-in")
        assert job is not None, "what was let in meanwhile is still there"
        warned = bare.plane.kubectl("create", "-f", "-", stdin=json.dumps(pod("warned", "posse")))
        assert "queue 'nowhere' does not exist" in warned.stderr
        other = json.dumps(pod("other", "default-scheduler"))
        assert bare.plane.kubectl("create", "-f", "-", stdin=other).stderr == ""
        bare.plane.kubectl("delete", "queue", "short-lived")
        bare.plane.kubectl("delete", "tfjob", "let-in")
        assert webhook.running, webhook.tail()
    bare.plane.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    assert {place.rpartition(":")[2] for place in bare.gateway.asked} == {"443"}


def test_installing_again_changes_nothing(bare: Bare) -> None:
    """Not even the certificates and the trust that the webhook has put into what was installed."""
    secret = bare.get("secret", KEPT_IN, SYSTEM)
    assert secret is not None and secret["data"]
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


def test_monitors_come_once_the_cluster_has_them(bare: Bare) -> None:
    bare.apply(_monitors())
    named = "servicemonitors.monitoring.coreos.com"
    bare.plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", f"crd/{named}")
    bare.posse("install")
    assert sorted(bare.names(named)) == ["posse-admission", "posse-controllers", "posse-scheduler"]
    bare.plane.kubectl("delete", "crd", named)
    bare.posse("install")


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


@pytest.mark.parametrize("account", ACCOUNTS)
def test_no_account_may_do_everything_with_anything(bare: Bare, account: str) -> None:
    as_account = f"--as=system:serviceaccount:{SYSTEM}:{account}"
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
    program = bare.program(name, replaced, tmp_path)
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
    bare.apply(_operator(), _lease(), _door())
    with renewing(bare, "kubeflow", TRAINING_LEASE):
        _, said = bare.posse("install")
        assert rows(said)["TFJob"][0].startswith("training-operator (kubeflow/training-operator)")
        assert "--kinds=MPIJob" in bare.arguments("posse-controllers")
        _, said = bare.posse("install --take=TFJob", code=1)
        assert f"its lease kubeflow/{TRAINING_LEASE} is being renewed" in said
        assert "--kinds=MPIJob" in bare.arguments("posse-controllers")
    _, said = bare.posse("install --take=TFJob")
    assert rows(said)["TFJob"][1] == "takes it over"
    assert "nobody answers webhook tfjob.training-operator.kubeflow.org" in said
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
    kinds = "deployments,services,secrets,clusterroles,clusterrolebindings,flowschemas"
    hooks = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
    assert bare.names(f"{kinds},{hooks}") == []
    assert bare.get("secret", KEPT_IN, SYSTEM) is None
    assert bare.get("mpijob", "stays") is not None
    assert bare.get("podgroups.scheduling.volcano.sh", "stays") is not None
    assert bare.get("queue", "default") is not None
    assert bare.names("priorityclasses") == ["posse-high", "posse-low"]
    _, said = bare.posse("uninstall")
    assert "nothing of Posse" in said


def test_who_may_not_remove_all_of_it_removes_nothing(bare: Bare) -> None:
    bare.posse("install")
    _, said = bare.posse("uninstall", code=5, user="reader")
    assert said.startswith("posse: nothing was removed: ")
    assert bare.get("validatingwebhookconfiguration", "posse-admission") is not None


def test_purging_takes_what_posse_brought_and_nothing_else(bare: Bare) -> None:
    bare.posse("uninstall --purge-crds")
    assert bare.names("customresourcedefinitions,priorityclasses") == []
    assert bare.get("crd", "tfjobs.kubeflow.org") is not None
    assert bare.get("deployment", "training-operator", "kubeflow") is not None


def grant(bare: Bare, user: str, may: dict[str, Any]) -> None:
    """A role of the user's own; it is in force when this returns."""
    group = "rbac.authorization.k8s.io"
    role = {"kind": "ClusterRole", "metadata": {"name": user}, "rules": [may]}
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }
    bare.apply(*({"apiVersion": f"{group}/v1", **obj} for obj in (role, binding)))
    asked = ("auth", "can-i", "list", "leases", "-A", f"--as={user}")
    deadline = time.monotonic() + 30
    while bare.plane.kubectl(*asked, check=False).stdout != "yes\n":
        assert time.monotonic() < deadline, "the role is not in force"
        time.sleep(0.1)


@contextmanager
def renewing(bare: Bare, namespace: str, lease: str) -> Iterator[None]:
    """Somebody who is alive, and says so every second."""
    over = threading.Event()

    def renew() -> None:
        count = 0
        while not over.wait(1.0):
            count += 1
            moved = {"spec": {"renewTime": f"2020-01-01T00:00:00.{count:06d}Z"}}
            bare.plane.kubectl(
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


def _monitors() -> dict[str, Any]:
    """A kind of others that takes anything."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "names": {
                "kind": "ServiceMonitor",
                "listKind": "ServiceMonitorList",
                "plural": "servicemonitors",
                "singular": "servicemonitor",
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


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


def _door() -> dict[str, Any]:
    """The operator's webhook, which stays when the operator stops."""
    service = {"namespace": "kubeflow", "name": "training-operator", "path": "/validate"}
    rule = {
        "apiGroups": ["kubeflow.org"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["tfjobs"],
    }
    webhook = {
        "name": "tfjob.training-operator.kubeflow.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"service": service},
        "rules": [rule],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "validator.training-operator.kubeflow.org"},
        "webhooks": [webhook],
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
