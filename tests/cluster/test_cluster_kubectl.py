"""kubectl, Debian's and a current one, against the embedded cluster."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import tools
from tests.cluster.kubectl import Kubectl, deployment, documents, mpi_job, pod, service
from tests.cluster.processes import Commands, eventually

pytestmark = pytest.mark.process

CONTAINERS = "/spec/template/spec/containers"
NEW = {"name": "main", "image": "new"}


@pytest.fixture(params=["debian", "current"])
def kubectl(
    request: pytest.FixtureRequest, commands: Commands, tmp_path: Path
) -> Iterator[Kubectl]:
    """One kubectl and a namespace that goes with the test."""
    name = f"k{time.time_ns() % 10**12}"
    made = Kubectl(tools.kubectl(request.param), commands, name, tmp_path, request.param)
    made.run(["create", "namespace", name])
    yield made
    made.run(["delete", "namespace", name])


# Looking


def test_what_the_cluster_says_of_itself(kubectl: Kubectl) -> None:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", kubectl.say("cluster-info"))
    assert "is running at https://127.0.0.1:" in plain
    server = json.loads(kubectl.say("version -o json"))["serverVersion"]
    assert server["gitVersion"].startswith(f"v1.{server['minor']}.")
    assert {"v1", "apps/v1", "kubeflow.org/v2beta1"} <= set(kubectl.say("api-versions").split())
    resources = " ".join(kubectl.say("api-resources").split())
    for line in (
        "pods po v1 true Pod",
        "persistentvolumeclaims pvc v1 true PersistentVolumeClaim",
        "mpijobs mj,mpij kubeflow.org/v2beta1 true MPIJob",
    ):
        assert line in resources


def test_every_kind_can_be_listed(kubectl: Kubectl) -> None:
    kinds = kubectl.say("api-resources --verbs=list -o name").split()
    assert {"pods", "nodes", "persistentvolumes", "podgroups.scheduling.volcano.sh"} <= set(kinds)
    kubectl.run(["get", ",".join(kinds), "--all-namespaces"])
    kubectl.run("get all")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("name", "pod/a\npod/b\n"),
        ("jsonpath={.items[*].metadata.name}", "a b"),
        ("jsonpath={.items[?(@.metadata.name=='b')].spec.containers[1].image}", "two"),
        ("custom-columns=N:.metadata.name,S:.spec.restartPolicy", "N S\na Never\nb Never\n"),
        ("go-template={{range .items}}{{.metadata.name}};{{end}}", "a;b;"),
    ],
)
def test_output_in_the_form_asked_for(kubectl: Kubectl, form: str, expected: str) -> None:
    kubectl.apply(pod("b"), pod("a"))
    said = kubectl.say(["get", "pods", "--sort-by=.metadata.name", "-o", form])
    assert [line.split() for line in said.splitlines()] == [
        line.split() for line in expected.splitlines()
    ]


def test_tables_and_whole_objects(kubectl: Kubectl) -> None:
    kubectl.apply(pod("a"))
    kubectl.running("pod=a", 1)
    head, row = kubectl.say("get pod a -o wide").splitlines()
    assert head.split()[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert row.split()[:3] == ["a", "2/2", "Running"]
    assert "restartPolicy: Never\n" in kubectl.say("get pod a -o yaml")
    assert kubectl.get("pod a")["spec"]["containers"][1]["name"] == "side"
    assert "pod=a" in kubectl.say("get pods --show-labels")
    assert kubectl.say("get pods -L pod --no-headers").split()[-1] == "a"


def test_selectors(kubectl: Kubectl) -> None:
    kubectl.apply(pod("a"), pod("b"), pod("c"))
    kubectl.running("pod in (a,b,c)", 3)
    assert kubectl.get_names("pods -l 'pod in (a,c)'") == ["pod/a", "pod/c"]
    assert kubectl.get_names("pods -l pod!=a") == ["pod/b", "pod/c"]
    assert kubectl.get_names("pods --field-selector metadata.name=b") == ["pod/b"]
    assert kubectl.get_names("pods --field-selector status.phase!=Running") == []
    node = kubectl.get("pod a")["spec"]["nodeName"]
    assert "pod/a" in kubectl.get_names(f"pods --field-selector spec.nodeName={node}")
    everywhere = kubectl.get("pods --all-namespaces")["items"]
    assert {"a", "b", "c"} <= {one["metadata"]["name"] for one in everywhere}


def test_a_watch_tells_what_happens(kubectl: Kubectl) -> None:
    kubectl.run("create configmap a")
    watching = kubectl.start("get configmaps -w -o name --request-timeout=30s")
    try:
        stream = watching.stdout
        assert stream is not None
        assert stream.readline() == "configmap/a\n"
        kubectl.run("create configmap b")
        kubectl.run("label configmap a c=d")
        kubectl.run("delete configmap b")
        told = [stream.readline() for _ in range(3)]
        assert told == ["configmap/b\n", "configmap/a\n", "configmap/b\n"]
    finally:
        watching.kill()
        watching.communicate()


def test_describe(kubectl: Kubectl) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {"template": {"spec": pod()["spec"]}},
    }
    kubectl.apply(deployment(), service(), mpi_job(), job)
    kubectl.run("wait --for=condition=Running mpijob/mpi --timeout=60s")
    running = kubectl.running("app=web", 2)
    address = running[0]["status"]["podIP"]
    eventually(lambda: address in kubectl.say("get endpoints web"), "the service has its pods")
    node = running[0]["spec"]["nodeName"]
    for words, expected in {
        "pod -l app=web": ("Controlled By: ReplicaSet/web-", "Ready True", "Started"),
        f"node {node}": ("nvidia.com/gpu: 2", "Non-terminated Pods:", "Ready True"),
        "mpijob mpi": ("MPIJobRunning", "Slots Per Worker: 1"),
        "podgroup mpi": ("Min Member: 3", "Phase: Running"),
        "deployment web": ("2 desired | 2 updated | 2 total | 2 available", "ScalingReplicaSet"),
        "replicaset -l app=web": ("Replicas: 2 current / 2 desired",),
        "job job": ("Pods Statuses: 1", "SuccessfulCreate"),
        "service web": ("Selector: app=web", f"{address}:80"),
        "queue default": ("Kind: Queue",),
        "namespace default": ("Status: Active",),
        "serviceaccount default": ("Name: default",),
    }.items():
        for word in expected:
            eventually(lambda: word in _described(kubectl, words), f"describe {words}: {word}", 20)  # noqa: B023


def _described(kubectl: Kubectl, words: str) -> str:
    return " ".join(kubectl.say(f"describe {words}").split())


def test_explain(kubectl: Kubectl) -> None:
    assert "The image the container is made of." in kubectl.say("explain pod.spec.containers.image")
    assert "launcherCreationPolicy" in kubectl.say("explain mpijob.spec")
    assert "nodeSelector\t<map[string]string>" in kubectl.say("explain pod --recursive")
    assert "does not exist" in kubectl.refused("explain pod.spec.nothing")


def test_may_i(kubectl: Kubectl) -> None:
    assert kubectl.say("auth can-i create pods") == "yes\n"
    assert kubectl.say("auth can-i get /healthz") == "yes\n"
    assert kubectl.say("auth can-i --list").splitlines()[1].split()[0] == "*.*"
    if not kubectl.old:
        assert "system:masters" in kubectl.say("auth whoami")


# Writing


def test_apply(kubectl: Kubectl) -> None:
    made = deployment()
    assert kubectl.apply(made, service()) == "deployment.apps/web created\nservice/web created\n"
    assert (
        kubectl.apply(made, service()) == "deployment.apps/web unchanged\nservice/web unchanged\n"
    )
    last = kubectl.get("deployment web")["metadata"]["annotations"]
    assert "kubectl.kubernetes.io/last-applied-configuration" in last


def test_apply_keeps_what_others_set_and_drops_what_the_manifest_dropped(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    env = '{"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"C"}]}]}}}}'
    kubectl.run(["patch", "deployment", "web", "-p", env])
    changed = deployment(image="two")
    changed["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "3"}]
    dry = kubectl.say("apply --dry-run=server -f -", stdin=documents(changed))
    assert dry == "deployment.apps/web configured (server dry run)\n"
    assert _container(kubectl)["image"] == "one"
    assert kubectl.apply(changed) == "deployment.apps/web configured\n"
    assert _container(kubectl)["image"] == "two"
    assert {one["name"]: one.get("value") for one in _container(kubectl)["env"]} == {
        "A": "3",
        "C": None,
    }


def _container(kubectl: Kubectl) -> dict[str, Any]:
    found: list[dict[str, Any]] = kubectl.get("deployment web")["spec"]["template"]["spec"][
        "containers"
    ]
    return found[0]


def test_apply_of_a_directory(kubectl: Kubectl, tmp_path: Path) -> None:
    directory = tmp_path / "manifests"
    directory.mkdir()
    (directory / "a.yaml").write_text(documents(deployment(), service()))
    (directory / "b.json").write_text(documents(mpi_job()))
    said = kubectl.say(["apply", "-f", str(directory)])
    assert said.splitlines() == [
        "deployment.apps/web created",
        "service/web created",
        "mpijob.kubeflow.org/mpi created",
    ]
    kubectl.run(["delete", "-f", str(directory)])
    assert kubectl.get_names("deployments,services,mpijobs") == []


def test_a_manifest_with_a_mistake_is_refused(kubectl: Kubectl) -> None:
    wrong = deployment()
    wrong["spec"]["replica"] = 3
    assert "replica" in kubectl.refused("apply -f -", stdin=documents(wrong))
    wrong = deployment()
    wrong["spec"]["selector"] = {"matchLabels": {"app": "other"}}
    said = kubectl.refused("apply -f -", stdin=documents(wrong))
    assert "`selector` does not match template `labels`" in said
    assert kubectl.get_names("deployments") == []


def test_server_side_apply_is_refused_in_so_many_words(kubectl: Kubectl) -> None:
    said = kubectl.refused("apply --server-side -f -", stdin=documents(deployment()))
    assert "server-side apply is not served" in said


def test_diff(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    said = kubectl.run("diff -f -", exits=1, stdin=documents(deployment(image="two"))).stdout
    assert "-        image: one\n+        image: two\n" in said


def test_create_and_replace(kubectl: Kubectl) -> None:
    kubectl.run("create -f -", stdin=documents(pod("a")))
    assert "already exists" in kubectl.refused("create -f -", stdin=documents(pod("a")))
    old = kubectl.get("pod a")
    labelled = old | {"metadata": old["metadata"] | {"labels": {"new": "label"}}}
    kubectl.run("replace -f -", stdin=documents(labelled))
    assert kubectl.get("pod a")["metadata"]["labels"] == {"new": "label"}
    assert "modified" in kubectl.refused("replace -f -", stdin=documents(old))
    kubectl.run("replace --force -f -", stdin=documents(pod("a")))
    assert kubectl.get("pod a")["metadata"]["uid"] != old["metadata"]["uid"]


def test_edit(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    kubectl.run("edit deployment web", KUBE_EDITOR="sed -i s/replicas:.2/replicas:\\ 1/")
    assert kubectl.get("deployment web")["spec"]["replicas"] == 1


@pytest.mark.parametrize(
    ("how", "patch"),
    [
        ("strategic", {"spec": {"template": {"spec": {"containers": [NEW]}}}}),
        ("merge", {"spec": {"template": {"spec": {"containers": [NEW]}}}}),
        ("json", [{"op": "replace", "path": f"{CONTAINERS}/0/image", "value": "new"}]),
    ],
    ids=["strategic", "merge", "json"],
)
def test_patch(kubectl: Kubectl, how: str, patch: Any) -> None:
    kubectl.apply(deployment())
    kubectl.run(["patch", "deployment", "web", "--type", how, "-p", json.dumps(patch)])
    container = _container(kubectl)
    assert container["image"] == "new"
    assert ("env" in container) == (how != "merge")


def test_label_annotate_and_set(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    kubectl.run("label deployment web tier=front")
    kubectl.run("annotate deployment web note='a word'")
    kubectl.run("set image deployment/web main=two")
    kubectl.run("set env deployment/web A=9 B-")
    found = kubectl.get("deployment web")
    assert found["metadata"]["labels"]["tier"] == "front"
    assert found["metadata"]["annotations"]["note"] == "a word"
    assert _container(kubectl)["image"] == "two"
    assert _container(kubectl)["env"] == [{"name": "A", "value": "9"}]
    assert "--overwrite is false" in kubectl.refused("label deployment web tier=back")
    kubectl.run("label deployment web tier-")
    assert "tier" not in kubectl.get("deployment web")["metadata"].get("labels", {})


def test_nodes_are_tainted_and_cordoned(kubectl: Kubectl) -> None:
    kubectl.run("taint node node-3 trial=yes:NoSchedule")
    try:
        taints = kubectl.get("node node-3")["spec"]["taints"]
        assert taints == [{"key": "trial", "value": "yes", "effect": "NoSchedule"}]
    finally:
        kubectl.run("taint node node-3 trial-")
    assert "taints" not in kubectl.get("node node-3")["spec"]
    kubectl.run("cordon node-3")
    try:
        assert "SchedulingDisabled" in kubectl.say("get node node-3")
    finally:
        kubectl.run("uncordon node-3")
    assert "SchedulingDisabled" not in kubectl.say("get node node-3")


def test_scale(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=1))
    kubectl.running("app=web", 1)
    kubectl.run("scale deployment/web --replicas=3")
    kubectl.running("app=web", 3)
    wrong = kubectl.refused("scale deployment/web --replicas=1 --current-replicas=2")
    assert "xpected" in wrong
    kubectl.run("scale deployment/web --replicas=0 --current-replicas=3")
    kubectl.gone("pods -l app=web")


def test_objects_from_flags(kubectl: Kubectl) -> None:
    for words, name in {
        "create deployment d --image=i --replicas=1": "deployment/d",
        "create configmap c --from-literal=a=b": "configmap/c",
        "create secret generic s --from-literal=a=b": "secret/s",
        "create job j --image=i -- true": "job/j",
        "create serviceaccount robot": "serviceaccount/robot",
        "create quota q --hard=pods=10": "resourcequota/q",
        "create role r --verb=get,list --resource=pods": "role/r",
        "create rolebinding rb --role=r --serviceaccount=default:robot": "rolebinding/rb",
        "create service clusterip svc --tcp=80:8080": "service/svc",
        "expose deployment d --name=exposed --port=80": "service/exposed",
        "run p --image=i --restart=Never --labels=a=b": "pod/p",
    }.items():
        kubectl.run(words)
        assert name in kubectl.names(name), words
    assert kubectl.get("secret s")["data"] == {"a": "Yg=="}
    assert kubectl.get("service exposed")["spec"]["selector"] == {"app": "d"}
    assert kubectl.get("job j")["spec"]["template"]["spec"]["containers"][0]["command"] == ["true"]
    assert kubectl.get("pod p")["metadata"]["labels"] == {"a": "b"}
    kubectl.run(f"create priorityclass {kubectl.namespace} --value=7")
    try:
        assert kubectl.get(f"priorityclass {kubectl.namespace}")["value"] == 7
    finally:
        kubectl.run(f"delete priorityclass {kubectl.namespace}")


def test_a_quota_holds(kubectl: Kubectl) -> None:
    kubectl.run("create quota q --hard=pods=1")
    eventually(lambda: "status" in kubectl.get("quota q"), "the quota is counted")
    kubectl.run("run a --image=i")
    assert "exceeded quota: q" in kubectl.refused("run b --image=i")


# Deleting


@pytest.mark.parametrize("cascade", ["background", "foreground", "orphan"])
def test_delete_with_every_cascade(kubectl: Kubectl, cascade: str) -> None:
    kubectl.apply(deployment())
    before = kubectl.running("app=web", 2)
    kubectl.run(f"delete deployment web --cascade={cascade} --timeout=30s")
    assert kubectl.get_names("deployments") == []
    if cascade == "orphan":
        (left,) = kubectl.get("replicasets")["items"]
        assert "ownerReferences" not in left["metadata"]
        pods = kubectl.running("app=web", 2)
        assert [one["metadata"]["uid"] for one in pods] == [
            one["metadata"]["uid"] for one in before
        ]
    elif cascade == "foreground":
        assert kubectl.get_names("pods,replicasets") == []
    else:
        kubectl.gone("pods,replicasets")


def test_delete_all_by_label_and_by_force(kubectl: Kubectl) -> None:
    kubectl.apply(*(pod(name) for name in "abcd"))
    kubectl.running("pod in (a,b,c,d)", 4)
    kubectl.run("delete pod a --grace-period=0 --force")
    kubectl.run("delete pods -l pod=b --now")
    assert kubectl.get_names("pods") == ["pod/c", "pod/d"]
    kubectl.run("delete pods --all")
    assert kubectl.get_names("pods") == []
    assert "not found" in kubectl.refused("delete pod a")
    kubectl.run("delete pod a --ignore-not-found")


def test_a_namespace_takes_everything_with_it(kubectl: Kubectl) -> None:
    other = f"{kubectl.namespace}-other"
    kubectl.run(f"create namespace {other}")
    kubectl.run(f"apply -n {other} -f -", stdin=documents(deployment(), mpi_job()))
    kubectl.run(f"delete namespace {other} --timeout=60s")
    assert "not found" in kubectl.refused(f"get namespace {other}")
    everywhere = kubectl.get("pods,mpijobs,podgroups --all-namespaces")["items"]
    assert [one for one in everywhere if one["metadata"]["namespace"] == other] == []


def test_drain(kubectl: Kubectl) -> None:
    kubectl.apply(pod("a", nodeName="node-3"))
    kubectl.running("pod=a", 1)
    try:
        kubectl.run("drain node-3 --force --ignore-daemonsets --timeout=60s --pod-selector=pod=a")
        assert kubectl.get_names("pods") == []
        assert kubectl.get("node node-3")["spec"]["unschedulable"] is True
    finally:
        kubectl.run("uncordon node-3")


def test_drain_asks_the_budgets(kubectl: Kubectl) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "one"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"pod": "a"}}},
    }
    kubectl.apply(pod("a", nodeName="node-2"), budget)
    kubectl.running("pod=a", 1)

    def reckoned() -> bool:
        return bool(kubectl.get("pdb one")["status"].get("currentHealthy") == 1)

    eventually(reckoned, "the budget knows its pod")
    assert kubectl.say("get pdb one --no-headers").split()[:4] == ["one", "1", "N/A", "0"]
    drain = "drain node-2 --force --ignore-daemonsets --pod-selector=pod=a"
    try:
        said = kubectl.refused(f"{drain} --timeout=2s")
        assert "violate the pod's disruption budget" in said
        change = '{"spec":{"minAvailable":0}}'
        kubectl.run(["patch", "pdb", "one", "--type=merge", "-p", change])
        kubectl.run(f"{drain} --timeout=60s")
        assert kubectl.get_names("pods") == []
    finally:
        kubectl.run("uncordon node-2")


# Following


def test_logs(kubectl: Kubectl) -> None:
    kubectl.apply(pod("a", annotations={"posse.dev/simulated-duration": "3s"}))
    kubectl.run("wait --for=condition=Ready pod/a --timeout=60s")
    followed = kubectl.start("logs -f a -c main")
    told, _ = followed.communicate(timeout=60)
    assert followed.returncode == 0
    assert "simulated" in told
    assert kubectl.get("pod a")["status"]["phase"] == "Succeeded"
    assert kubectl.say("logs a -c side --tail=1").count("\n") == 1
    assert kubectl.say("logs a -c main --tail=0") == ""
    assert "simulated" in kubectl.say("logs a -c main --since=1h --timestamps")
    assert "simulated" in kubectl.say("logs -l pod=a --all-containers")
    assert "nothing" in kubectl.refused("logs a -c nothing")
    assert "previous terminated container" in kubectl.refused("logs a -c main --previous")


def test_logs_of_the_container_before(kubectl: Kubectl) -> None:
    short = {"posse.dev/simulated-duration": "1s", "posse.dev/simulated-exit-code": "3"}
    kubectl.apply(pod("a", annotations=short, restartPolicy="Always"))

    def ended() -> bool:
        status = kubectl.get("pod a")["status"].get("containerStatuses") or [{}]
        return "terminated" in (status[0].get("lastState") or {})

    eventually(ended, "the container has ended once")
    assert "simulated" in kubectl.say("logs a -c main --previous")


def test_wait(kubectl: Kubectl) -> None:
    waiting = kubectl.start("wait --for=condition=Available deployment/web --timeout=60s")
    waiting.communicate(timeout=60)
    assert waiting.returncode != 0  # nothing to wait for yet
    kubectl.apply(deployment())
    assert "condition met" in kubectl.say(
        "wait --for=condition=Available deployment/web --timeout=60s"
    )
    if not kubectl.old:
        kubectl.run("wait --for=jsonpath={.status.readyReplicas}=2 deployment/web --timeout=60s")
    waiting = kubectl.start("wait --for=delete deployment/web --timeout=60s")
    kubectl.run("delete deployment web")
    waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    kubectl.apply(pod("stuck", nodeSelector={"no": "where"}))
    said = kubectl.refused("wait --for=condition=Ready pod/stuck --timeout=1s")
    assert "timed out" in said


def test_rollout(kubectl: Kubectl) -> None:
    kubectl.apply(deployment())
    kubectl.run("rollout status deployment/web --timeout=60s")
    kubectl.apply(deployment(image="two"))
    kubectl.run("rollout status deployment/web --timeout=60s")
    history = kubectl.say("rollout history deployment/web").splitlines()
    assert [line.split()[0] for line in history if line[:1].isdigit()] == ["1", "2"]
    assert "two" in kubectl.say("rollout history deployment/web --revision=2")
    kubectl.run("rollout undo deployment/web")
    assert "successfully rolled out" in kubectl.say("rollout status deployment/web --timeout=60s")
    assert _container(kubectl)["image"] == "one"
    before = {one["metadata"]["uid"] for one in kubectl.running("app=web", 2)}
    kubectl.run("rollout restart deployment/web")
    kubectl.run("rollout status deployment/web --timeout=60s")
    after = {one["metadata"]["uid"] for one in kubectl.running("app=web", 2)}
    assert not before & after
    kubectl.run("rollout pause deployment/web")
    kubectl.run("set image deployment/web main=three")
    kubectl.run("rollout resume deployment/web")
    kubectl.run("rollout status deployment/web --timeout=60s")
    assert {one["spec"]["containers"][0]["image"] for one in kubectl.running("app=web", 2)} == {
        "three"
    }


# Kinds


def test_a_gang_by_kubectl_alone(kubectl: Kubectl) -> None:
    kubectl.apply(mpi_job())
    kubectl.run("wait --for=condition=Running mpijob/mpi --timeout=60s")
    assert len(kubectl.running("training.kubeflow.org/job-name=mpi", 3)) == 3
    row = kubectl.say("get podgroup mpi --no-headers").split()
    assert row[:2] == ["mpi", "Running"]
    kubectl.run("delete mpijob mpi --cascade=foreground --timeout=60s")
    kubectl.gone("pods,podgroups")


def test_claims_are_bound(kubectl: Kubectl) -> None:
    name = kubectl.namespace
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "hostPath": {"path": "/data"},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "resources": {"requests": {"storage": "500Mi"}},
        },
    }
    try:
        kubectl.apply(claim)
        assert kubectl.say("get pvc data --no-headers").split()[:2] == ["data", "Pending"]
        kubectl.apply(volume)
        eventually(lambda: "Bound" in kubectl.say("get pvc data"), "the claim is bound")
        row = kubectl.say("get pvc data --no-headers").split()
        assert row[:5] == ["data", "Bound", name, "1Gi", "RWO"]
        eventually(lambda: "Bound" in kubectl.say(f"get pv {name}"), "the volume is bound")
        assert f"{name}/data" in kubectl.say(f"get pv {name}")
        assert "Volume: " + name in " ".join(kubectl.say("describe pvc data").split())
        assert "Claim: " + f"{name}/data" in " ".join(kubectl.say(f"describe pv {name}").split())
    finally:
        kubectl.run(f"delete pvc/data pv/{name} --ignore-not-found")


def test_a_service_has_its_endpoints(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(), service())
    addresses = sorted(one["status"]["podIP"] for one in kubectl.running("app=web", 2))
    eventually(
        lambda: all(one in kubectl.say("get endpoints web") for one in addresses),
        "the endpoints are those of the pods",
    )
    (made,) = kubectl.get("endpointslices -l kubernetes.io/service-name=web")["items"]
    assert sorted(one["addresses"][0] for one in made["endpoints"]) == addresses
    kubectl.run("delete service web")
    kubectl.gone("endpoints,endpointslices")
