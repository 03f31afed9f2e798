"""`posse up` on this machine, in both isolation modes: pods are real, and so are their ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from posse.local.node.processes.isolation.choosing import choose
from posse.world import World
from tests.cluster.machine import Machine, pod
from tests.cluster.processes import eventually

pytestmark = pytest.mark.process

DAEMON = "(setsid sh -c 'setsid sleep 7777 >/dev/null 2>&1 &'); "


def _namespaces_work(home: Path) -> bool:
    watch = home / "watch"
    os.mkfifo(watch)
    return asyncio.run(choose("", World.real(), home, (), watch)).name == "namespaces"


@pytest.fixture(scope="module", params=["none", "namespaces"])
def machine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    if request.param == "namespaces" and not _namespaces_work(tmp_path_factory.mktemp("probe")):
        pytest.skip("this machine allows no namespaces")
    made = Machine(tmp_path_factory.mktemp("machine"), request.param)
    (made.directory / "shared").mkdir()
    made.run(f"posse up --allow-host-path {made.directory}/shared")
    yield made
    made.run("posse down --purge")
    assert made.processes() == []


def test_the_node_says_what_it_is(machine: Machine) -> None:
    node = machine.node()
    assert node["metadata"]["labels"]["posse.dev/isolation"] == machine.isolation
    assert "posse.dev/simulated" not in node["metadata"]["labels"]
    assert int(node["status"]["allocatable"]["cpu"]) >= 1


def test_status_says_how_pods_are_kept_apart(machine: Machine) -> None:
    page = machine.run("posse status").stdout
    assert f"Isolation:   {machine.isolation} (" in page
    report = json.loads(machine.run("posse status -o json").stdout)
    assert report["isolation"] == machine.isolation
    told = " ".join(report["lacks"])
    assert ("your kubeconfig" in told) == (machine.isolation == "none")


def test_a_pod_runs_and_its_exit_code_is_told(machine: Machine) -> None:
    machine.create(pod("ends", "echo one; echo two >&2; exit 3"))
    status = machine.reaches("ends", "Failed")["status"]
    terminated = status["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (3, "Error")
    assert sorted(machine.logs("ends").splitlines()) == ["one", "two"]
    assert machine.logs("ends", tail_lines=1) in ("one\n", "two\n")
    machine.delete("ends")


def test_nothing_of_the_users_environment_reaches_a_pod(machine: Machine) -> None:
    machine.create(pod("env", "env"))
    machine.reaches("env", "Succeeded")
    text = machine.logs("env")
    assert "the-users" not in text
    assert "KUBECONFIG" not in text
    assert "POSSE_HOME" not in text
    machine.delete("env")


def test_logs_are_followed_to_the_end(machine: Machine) -> None:
    script = "i=0; while [ $i -lt 20 ]; do echo line $i; i=$((i+1)); sleep 0.05; done"
    machine.create(pod("follow", script))
    eventually(lambda: "running" in machine.state("follow"), "it runs")
    assert machine.logs("follow", follow=True).splitlines() == [f"line {n}" for n in range(20)]
    machine.delete("follow")


def test_a_crashing_container_is_started_again_and_its_past_is_kept(machine: Machine) -> None:
    made = pod("crashes", 'echo "attempt at $(date +%s%N)"; exit 1', restartPolicy="Always")
    machine.create(made)
    eventually(lambda: machine.restarts("crashes") >= 1, "it is started again")
    eventually(lambda: "waiting" in machine.state("crashes"), "it waits for its next start")
    assert machine.state("crashes")["waiting"]["reason"] == "CrashLoopBackOff"
    assert machine.logs("crashes").startswith("attempt at")
    assert machine.logs("crashes", previous=True).startswith("attempt at")
    machine.delete("crashes")


def test_deleting_a_pod_ends_its_whole_tree_and_removes_its_files(machine: Machine) -> None:
    uid = machine.create(pod("tree", DAEMON + "sleep 7777"))["metadata"]["uid"]
    eventually(lambda: len(machine.marked(uid)) >= 2, "its processes run")
    began = time.monotonic()
    machine.delete("tree")
    assert time.monotonic() - began < 20
    assert machine.marked(uid) == []
    eventually(lambda: not (machine.home / "pods" / uid).exists(), "its files are gone")


def test_a_pod_that_ignores_its_signal_goes_after_its_grace(machine: Machine) -> None:
    script = "trap '' TERM; echo up; while :; do sleep 0.1; done"
    uid = machine.create(pod("stubborn", script, terminationGracePeriodSeconds=2))["metadata"][
        "uid"
    ]
    eventually(lambda: "running" in machine.state("stubborn"), "it runs")
    machine.delete("stubborn")
    assert machine.marked(uid) == []


def test_a_pod_that_cannot_start_waits_and_says_why(machine: Machine) -> None:
    nothing = pod("nothing", "")
    del nothing["spec"]["containers"][0]["command"]
    machine.create(nothing)
    eventually(lambda: "waiting" in machine.state("nothing"), "it waits")
    eventually(
        lambda: machine.state("nothing")["waiting"]["reason"] == "ImageEntrypointUnknown",
        "it says why",
    )
    assert "write `command`" in machine.state("nothing")["waiting"]["message"]
    machine.delete("nothing")


def test_only_allowed_directories_of_the_host_are_mounted(machine: Machine) -> None:
    for name, path in (("may", machine.directory / "shared"), ("may-not", machine.home)):
        made = pod(name, "echo hello > /host/f")
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "h", "mountPath": "/host"}]
        made["spec"]["volumes"] = [{"name": "h", "hostPath": {"path": str(path)}}]
        machine.create(made)
    machine.reaches("may", "Succeeded")
    assert (machine.directory / "shared" / "f").read_text() == "hello\n"
    eventually(
        lambda: machine.state("may-not").get("waiting", {}).get("reason") == "HostPathNotAllowed",
        "the other waits",
    )
    machine.delete("may")
    machine.delete("may-not")


def test_kill_9_of_the_agent_ends_no_pod_and_loses_no_exit_code(machine: Machine) -> None:
    script = "echo up; while [ ! -e ${TMPDIR:-/tmp}/go ]; do sleep 0.05; done; exit 7"
    uid = machine.create(pod("survivor", script))["metadata"]["uid"]
    machine.create(pod("meanwhile", "sleep 1; exit 4"))
    eventually(lambda: "running" in machine.state("survivor"), "the one was started")
    eventually(lambda: machine.logs("survivor") == "up\n", "its command runs")
    eventually(lambda: "waiting" not in machine.state("meanwhile"), "the other was started")
    before = sorted(machine.marked(uid))
    machine.kill("node")
    eventually(lambda: "node" in machine.services(), "another agent runs")
    assert set(before[:1]) <= set(machine.marked(uid))
    (machine.home / "pods" / uid / "tmp" / "go").touch()
    for name, code in (("survivor", 7), ("meanwhile", 4)):
        status = machine.reaches(name, "Failed")["status"]
        assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == code
        assert status["containerStatuses"][0]["restartCount"] == 0
        machine.delete(name)


def test_kill_9_of_a_shim_is_told_and_its_tree_is_gone(machine: Machine) -> None:
    uid = machine.create(pod("lost", DAEMON + "sleep 7777"))["metadata"]["uid"]
    eventually(lambda: len(machine.marked(uid)) >= 2, "its processes run")
    eventually(lambda: "running" in machine.state("lost"), "it runs")
    state = machine.home / "pods" / uid / "containers" / "main" / "0" / "state.json"
    os.kill(json.loads(state.read_text())["shim"], signal.SIGKILL)
    status = machine.reaches("lost", "Failed")["status"]
    terminated = status["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (137, "ContainerStatusUnknown")
    assert machine.marked(uid) == []
    machine.delete("lost")


def test_down_ends_every_pod_and_up_goes_on(machine: Machine) -> None:
    made = pod("back", DAEMON + "echo up; sleep 7777", restartPolicy="Always")
    uid = machine.create(made)["metadata"]["uid"]
    eventually(lambda: "running" in machine.state("back"), "it runs")
    mounts = Path("/proc/mounts").read_text() if Path("/proc/mounts").exists() else ""
    machine.run("posse down")
    assert machine.marked(uid) == []
    assert machine.processes() == []
    if mounts:
        assert str(machine.home) not in mounts
    machine.run(f"posse up --allow-host-path {machine.directory}/shared")
    eventually(lambda: machine.restarts("back") == 1, "it is started again")
    eventually(lambda: machine.logs("back") == "up\n", "it runs again")
    machine.delete("back")


def test_kill_9_of_supervisor_and_agent_leaves_no_process(machine: Machine) -> None:
    uid = machine.create(pod("orphan", DAEMON + "sleep 7777"))["metadata"]["uid"]
    eventually(lambda: "running" in machine.state("orphan"), "it runs")
    report = json.loads(machine.run("posse status -o json").stdout)
    for pid in [report["pid"], *(s["pid"] for s in report["services"])]:
        with contextlib.suppress(ProcessLookupError):  # it went with its supervisor
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: machine.marked(uid) == [], "its processes are gone", 60)
    eventually(lambda: machine.processes() == [], "nothing of the cluster is left", 60)
    machine.run(f"posse up --allow-host-path {machine.directory}/shared")
    machine.reaches("orphan", "Failed")
    machine.delete("orphan")


def test_other_options_than_the_running_clusters_are_named(machine: Machine) -> None:
    done = machine.run("posse up --simulate 2", exits=1)
    assert "this machine as its node" in done.stderr
    assert "--gpus is for simulated nodes" in machine.run("posse up --gpus 2", exits=2).stderr


def test_the_whole_of_it_speaks_to_kubectl(machine: Machine) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl on this machine")
    machine.create(pod("seen", "echo hello; sleep 7777"))
    eventually(lambda: "running" in machine.state("seen"), "it runs")
    done = subprocess.run(
        [kubectl, "logs", "seen"],
        env=machine.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "hello\n", done.stderr
    machine.delete("seen", grace=0)
