"""A TFJob as processes of this machine: code from git, peers from TF_CONFIG, logs in common."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.processes import Commands, eventually

pytestmark = pytest.mark.process

# A server that adds up what two workers send it; each writes what it heard into the log directory.
PROGRAM = """
import json, os, pathlib, socket, sys, time

config = json.loads(os.environ["TF_CONFIG"])
role, index = config["task"]["type"], config["task"]["index"]
place = {role: [tuple(a.rsplit(":", 1)) for a in all] for role, all in config["cluster"].items()}
if role == "ps":
    host, port = place["ps"][index]
    server = socket.create_server((host, int(port)))
    calls = [server.accept()[0] for _ in place["worker"]]
    total = sum(int(call.recv(16)) for call in calls)
    for call in calls:
        call.sendall(str(total).encode())
else:
    for _ in range(600):
        try:
            call = socket.create_connection((place["ps"][0][0], int(place["ps"][0][1])))
            break
        except OSError:
            time.sleep(0.05)
    call.sendall(str(index + 20).encode())
    total = call.recv(16).decode()
    logs = pathlib.Path(sys.argv[sys.argv.index("--logdir") + 1])
    (logs / f"worker-{index}").write_text(total)
    print("the total is", total)
"""


@dataclass(frozen=True)
class ThisMachine(Commands):
    """A cluster whose node is this machine; `isolation` forces a mode, "" takes the best."""

    isolation: str = ""

    def environment(self) -> dict[str, str]:
        forced = {"POSSE_ISOLATION": self.isolation} if self.isolation else {}
        return super().environment() | forced


@pytest.fixture(params=["", "none"], ids=["the best isolation there is", "no isolation"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ThisMachine]:
    made = ThisMachine(tmp_path, request.param)
    made.run("posse up")
    yield made
    made.run("posse down --purge")
    assert made.processes() == []


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[str]:
    """A repository behind a port: no directory of ours is there inside a pod."""
    programs = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True)
    if not (Path(programs.stdout.strip()) / "git-daemon").exists():
        pytest.skip("this git cannot serve repositories: git-daemon is not installed")
    work = tmp_path / "served" / "sample-code"
    work.mkdir(parents=True)
    (work / "main.py").write_text(PROGRAM)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "sample"]):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *identity, *words], cwd=work, check=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    served = [f"--base-path={work.parent}", "--export-all", "--reuseaddr"]
    daemon = subprocess.Popen(
        ["git", "daemon", "--listen=127.0.0.1", f"--port={port}", *served, str(work.parent)]
    )
    try:
        eventually(lambda: _answers(port), "the repository is served")
        yield f"git://127.0.0.1:{port}/sample-code"
    finally:
        daemon.terminate()
        daemon.wait(10)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _status(machine: ThisMachine, job: str) -> str:
    found = json.loads(machine.run(f"posse get {job} -o json").stdout)
    return str(found["status"])


def test_a_distributed_job_fetches_its_code_and_finds_its_peers(
    machine: ThisMachine, repository: str
) -> None:
    machine.run(
        f"arena submit tf --name=sum --workers=2 --ps=1 --workerImage=tf-gpu --psImage=tf"
        f" --syncMode=git --syncSource={repository} --tensorboard --clean-task-policy=None"
        ' "python3 code/sample-code/main.py --logdir /training_logs"'
    )
    eventually(lambda: _status(machine, "sum") in ("SUCCEEDED", "FAILED"), "the job has ended")
    assert _status(machine, "sum") == "SUCCEEDED", machine.run("posse why sum").stdout

    def answered(worker: str) -> bool:
        return "the total is 41" in machine.run(f"posse logs sum -i {worker}").stdout

    for worker in ("sum-worker-0", "sum-worker-1"):
        eventually(partial(answered, worker), f"{worker} was answered")
    # What the workers wrote lies in the one directory that TensorBoard reads.
    logs = machine.home / "shared" / "default" / "sum" / "logs"
    assert {path.name: path.read_text() for path in logs.iterdir()} == {
        "worker-0": "41",
        "worker-1": "41",
    }
    page = machine.run("posse get sum").stdout
    assert "Your tensorboard will be available on:\n  http://127.0.0.1:3" in page


def test_a_job_that_failed_tells_the_last_words_of_who_died_first(machine: ThisMachine) -> None:
    machine.run(
        "arena submit tf --name=torn --workers=1 --workerImage=any --clean-task-policy=None"
        """ "python3 -c 'print(41); print(42); raise SystemExit(3)'" """
    )
    eventually(lambda: _status(machine, "torn") == "FAILED", "the job has failed")
    said = machine.run("posse why torn").stdout
    assert "torn-chief-0 was the first to die: exit code 3." in said
    assert said.endswith("\n    41\n    42\n")
