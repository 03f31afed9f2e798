"""kill -9 at any moment: every acknowledged write is there, every gang is whole or waits whole."""

from __future__ import annotations

import json
import subprocess
import threading

import pytest
from tests.cluster.processes import Commands, eventually

pytestmark = pytest.mark.process

GANGS = 50


@pytest.fixture
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    """A cluster of its own, with room for fifty gangs of four."""
    return Commands(tmp_path_factory.mktemp("roomy"))


def test_kill_9_of_the_scheduler_during_fifty_submissions(roomy: Commands) -> None:
    roomy.run("posse up --simulate 20 --gpus 8")
    try:
        stop = threading.Event()
        killer = threading.Thread(target=_kill_over_and_over, args=(roomy, "scheduler", stop))
        killer.start()
        try:
            # Each asks for 4 of 160 GPUs: forty run whole, ten wait whole.
            for batch in range(5):
                _submit(roomy, range(batch * 10, batch * 10 + 10))
        finally:
            stop.set()
            killer.join()
        eventually(lambda: _settled(roomy), "40 gangs run whole and 10 wait whole")
        for job in roomy.jobs().values():
            assert _workers_seated(job) in (0, 4), job
    finally:
        roomy.run("posse down --purge")
    assert roomy.processes() == []


def _submit(commands: Commands, numbers: range) -> None:
    running = [
        subprocess.Popen(
            [
                commands.program("posse"),
                *f"submit mpi --name=g{n} --workers=4 --gpus=1 --image=i c".split(),
            ],
            env=commands.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for n in numbers
    ]
    for process in running:
        _, complaint = process.communicate(timeout=120)
        assert process.returncode == 0, complaint


def _kill_over_and_over(commands: Commands, service: str, stop: threading.Event) -> None:
    while not stop.wait(0.3):
        if service in commands.services():
            commands.kill(service)


def _settled(commands: Commands) -> bool:
    seated = [_workers_seated(job) for job in commands.jobs().values()]
    return sorted(seated) == [0] * 10 + [4] * 40


def _workers_seated(job: dict[str, object]) -> int:
    instances = job["instances"]
    assert isinstance(instances, list)
    return sum("worker" in i["name"] and i["node"] != "N/A" for i in instances)


def test_what_the_api_server_acknowledged_survives_kill_9(empty: Commands) -> None:
    for name in ("kept-0", "kept-1", "kept-2"):
        empty.run(f"posse submit mpi --name={name} --workers=1 --image=i c")
        empty.kill("apiserver")
        eventually(lambda: _answers(empty), "the API server answers again")
        assert name in empty.jobs()


def _answers(commands: Commands) -> bool:
    return commands.run("posse list -o json", exits=None).returncode == 0


def test_kill_9_of_the_supervisor_leaves_no_process(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    commands = Commands(tmp_path_factory.mktemp("orphans"))
    commands.run("posse up --simulate 1")
    report = json.loads(commands.run("posse status -o json").stdout)
    subprocess.run(["kill", "-9", str(report["pid"])], check=True)
    eventually(lambda: commands.processes() == [], "no process of the cluster is left")
    assert "No cluster is running" in commands.run("posse status", exits=1).stdout
    commands.run("posse up --simulate 1")
    commands.run("posse down --purge")


def test_down_puts_back_the_context_that_was_selected(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    commands = Commands(tmp_path_factory.mktemp("contexts"))
    before = (
        "apiVersion: v1\nkind: Config\ncurrent-context: mine\n"
        "contexts:\n- name: mine\n  context: {cluster: c, user: u}\n"
    )
    commands.kubeconfig.write_text(before)
    commands.run("posse up --simulate 1")
    assert "current-context: posse" in commands.kubeconfig.read_text()
    commands.run("posse down --purge")
    after = commands.kubeconfig.read_text()
    assert "current-context: mine" in after
    assert "posse" not in after


def test_a_taken_port_is_said_before_anything_starts(commands: Commands) -> None:
    report = json.loads(commands.run("posse status -o json").stdout)
    port = report["server"].rpartition(":")[2]
    other = Commands(commands.directory / "other")
    other.directory.mkdir()
    done = other.run(f"posse up --simulate 1 --port {port}", exits=1)
    assert f"port {port} is taken" in done.stderr
    assert other.processes() == []
