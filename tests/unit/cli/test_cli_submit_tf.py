"""`submit tf`, as people have always typed it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from posse.cli.main import program
from posse.cli.options import App
from posse.client.submitting.tf import TFJob

SEEDS = Path(__file__).parents[4] / "shared" / "seeds"
WRITTEN = """arena submit tf --name=tf-dist-git \
    --gpus=1 \
    --workers=2 \
    --workerImage=tensorflow/tensorflow:1.5.0-devel-gpu \
    --syncMode=git \
    --syncSource=https://example.com/team/sample-code.git \
    --ps=1 \
    --psImage=tensorflow/tensorflow:1.5.0-devel \
    "python code/sample-code/main.py --logdir /training_logs"
"""


def _from_documents() -> str:
    for document in sorted(SEEDS.glob("000_*.txt")) if SEEDS.is_dir() else []:
        text = document.read_text(encoding="utf-8")
        found = re.search(r"(arena submit tf .*?\")\nNAME:", text, re.DOTALL)
        assert found is not None
        return found[1]
    return WRITTEN


class Sent:
    """A client that keeps what it is given."""

    namespace = "default"

    def __init__(self) -> None:
        self.jobs: list[TFJob] = []

    def submit(self, job: TFJob, *, dry_run: bool) -> dict[str, Any]:
        self.jobs.append(job)
        return job.manifest()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Sent:
    made = Sent()

    @contextmanager
    def client(app: App) -> Iterator[Sent]:
        yield made

    monkeypatch.setattr(App, "client", client)
    monkeypatch.setenv("HOME", str(tmp_path))
    return made


def typed(line: str) -> Result:
    return CliRunner().invoke(program, shlex.split(line)[1:], prog_name=line.split()[0])


def test_the_documents_command_line(sent: Sent) -> None:
    done = typed(_from_documents())
    assert done.exit_code == 0, done.output
    assert done.stdout == "tfjob.kubeflow.org/tf-dist-git created\n"
    assert done.stderr.splitlines() == [
        "Flag --workerImage has been deprecated, please use --worker-image instead",
        "Flag --syncMode has been deprecated, please use --sync-mode instead",
        "Flag --syncSource has been deprecated, please use --sync-source instead",
        "Flag --psImage has been deprecated, please use --ps-image instead",
        "INFO[0000] The Job tf-dist-git has been submitted successfully",
        "INFO[0000] You can run `arena get tf-dist-git --type tfjob -n default` to check the job"
        " status",
    ]
    specs = sent.jobs[0].manifest()["spec"]["tfReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in specs.items()} == {"PS": 1, "Worker": 2}
    worker, server = (specs[r]["template"]["spec"]["containers"][0] for r in ("Worker", "PS"))
    assert worker["image"] == "tensorflow/tensorflow:1.5.0-devel-gpu"
    assert server["image"] == "tensorflow/tensorflow:1.5.0-devel"
    assert worker["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert server["resources"] == {}


@pytest.mark.parametrize("name", ["tf", "tfjob"])
def test_every_flag(sent: Sent, name: str) -> None:
    done = typed(
        f"posse submit {name} --name=j --image=i --workers=2 --ps=1 --chief --evaluator=true"
        " --worker-image=wi --ps-image=pi --worker-port=1 --ps-port 2 --chief-port=3"
        " --worker-cpu=1 --worker-cpu-limit=2 --worker-memory=1Gi --worker-memory-limit=2Gi"
        " --ps-cpu=1 --ps-memory=1Gi --chief-cpu=1 --chief-memory-limit=1Gi"
        " --evaluator-cpu=1 --evaluator-memory=1Gi --ps-gpus=1"
        " --worker-affinity-policy=spread --worker-affinity-constraint=required"
        " --ps-affinity-policy=binpack --worker-selector=a=b --worker-selector=c=d"
        " --ps-selector=e=f --chief-selector=g=h --evaluator-selector=i=j"
        " --role-sequence=w,p --success-policy=AllWorkers --clean-task-policy=None"
        " --running-timeout=1h --ttl-after-finished=5s --starting-timeout=1m --share-memory=1Gi"
        " -- python train.py"
    )
    assert done.exit_code == 0, done.output
    (job,) = sent.jobs
    assert (job.chief, job.evaluator, job.ps, job.ps_gpus) == (True, True, 1, 1)
    worker = job.roles["Worker"]
    assert (worker.image, worker.port, worker.cpu, worker.cpu_limit) == ("wi", 1, "1", "2")
    assert worker.selectors == {"a": "b", "c": "d"}
    assert (worker.affinity_policy, worker.affinity_constraint) == ("spread", "required")
    assert job.roles["Chief"].memory_limit == "1Gi"
    assert job.roles["Evaluator"].selectors == {"i": "j"}
    assert job.command == "python train.py"
    assert (job.running_timeout, job.ttl_after_finished) == ("1h", "5s")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("--workerImage", "--worker-image"),
        ("--psPort", "--ps-port"),
        ("--workerCpu", "--worker-cpu"),
        ("--workerMemory", "--worker-memory"),
        ("--psCpu", "--ps-cpu"),
        ("--psMemory", "--ps-memory"),
        ("--ChiefCpu", "--chief-cpu"),
        ("--ChiefMemory", "--chief-memory"),
        ("--evaluatorCpu", "--evaluator-cpu"),
        ("--evaluatorMemory", "--evaluator-memory"),
        ("--cleanTaskPolicy", "--clean-task-policy"),
    ],
)
def test_old_spellings_are_taken_with_a_word(sent: Sent, old: str, new: str) -> None:
    value = "None" if "Policy" in old else "1"
    done = typed(f"arena submit tf --name=j --image=i {old}={value} run")
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines()[0] == (
        f"Flag {old} has been deprecated, please use {new} instead"
    )


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--name=j --gpus=-1 run", "--gpus must be 0 or more, not -1"),
        ("--name=j", "not found command args"),
        ("run", "--name must be set"),
        ("--name=j --worker-selector=zone run", "--worker-selector takes KEY=VALUE"),
        ("--name=j --ps=x run", "--ps"),
    ],
)
def test_nonsense_reaches_nobody(sent: Sent, flags: str, sentence: str) -> None:
    done = typed(f"posse submit tf --image=i {flags}")
    assert done.exit_code == 2
    assert sentence in done.output
    assert sent.jobs == []


def test_the_sequence_of_roles_may_stand_in_the_configuration(
    sent: Sent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("tfjob_role_sequence=p,w\n")
    monkeypatch.setenv("ARENA_CONFIG", str(tmp_path / "config"))
    assert typed("arena submit tf --name=j --image=i run").exit_code == 0
    annotations = sent.jobs[0].manifest()["metadata"]["annotations"]
    assert annotations["job-role-sequence"] == "PS,Worker"
