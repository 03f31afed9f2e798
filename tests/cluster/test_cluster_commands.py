"""The command lines people already have, typed at real processes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cluster.processes import Commands, eventually

pytestmark = pytest.mark.process

SUBMIT = """arena submit mpi \
    --name=mpi-dist \
    --gpus=2 \
    --workers={workers} \
    --gang=true \
    --image=uber/horovod:0.13.11-tf1.10.0-torch0.4.0-py3.5 \
    --env=GIT_SYNC_BRANCH=cnn_tf_v1.9_compatible \
    --sync-mode=git \
    --sync-source=https://github.com/tensorflow/benchmarks.git \
    --tensorboard \
    "mpirun python code/benchmarks/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py \
--model resnet101 --batch_size 64 --variable_update horovod --train_dir=/training_logs \
--summary_verbosity=3 --save_summaries_steps=10"
"""
SUBMIT_TF = """arena submit tf --name=tf-dist-git \
              --gpus=1 \
              --workers=2 \
              --workerImage=tensorflow/tensorflow:1.5.0-devel-gpu \
              --syncMode=git \
              --syncSource=https://github.com/cheyang/tensorflow-sample-code.git \
              --ps=1 \
              --psImage=tensorflow/tensorflow:1.5.0-devel \
              "python code/tensorflow-sample-code/tfjob/docker/v1alpha2/distributed-mnist/main.py \
--logdir /training_logs"
"""
DOCUMENTS = Path(__file__).parents[3] / "shared" / "seeds"


def as_documented(document: str, pattern: str, *otherwise: str) -> list[str]:
    """The command lines as they stand in a document where it is at hand, else our copies."""
    for file in sorted(DOCUMENTS.glob(f"{document}_*.txt")) if DOCUMENTS.is_dir() else []:
        found = re.findall(pattern, file.read_text(encoding="utf-8"), re.DOTALL)
        return [shlex.join(shlex.split(line)) for line in found]
    return list(otherwise)


def test_five_workers_on_eight_gpus_wait_whole_and_four_run_whole(empty: Commands) -> None:
    five, four = as_documented(
        "001",
        r"(arena submit mpi \\\n.*?)\n    ```",
        SUBMIT.format(workers=5),
        SUBMIT.format(workers=4),
    )
    done = empty.run(five)
    assert done.stdout == "mpijob.kubeflow.org/mpi-dist created\n"
    assert "The Job mpi-dist has been submitted successfully" in done.stderr
    eventually(lambda: len(empty.instances("mpi-dist")) == 5, "five workers exist")

    sentence = empty.run("arena why mpi-dist").stdout
    assert "10 GPUs" in sentence
    assert re.search(r"\b8\b", sentence)
    assert {(i["status"], i["node"]) for i in empty.instances("mpi-dist")} == {("Pending", "N/A")}

    empty.run("arena delete mpi-dist")
    empty.run(four)
    eventually(
        lambda: [i["status"] for i in empty.instances("mpi-dist")] == ["Running"] * 5,
        "the launcher and four workers run",
    )
    page = empty.run("arena get mpi-dist").stdout
    table = page.split("Instances:\n")[1].splitlines()
    assert table[0].split() == ["NAME", "STATUS", "AGE", "IS_CHIEF", "GPU(Requested)", "NODE"]
    assert re.fullmatch(
        r"  mpi-dist-launcher-[a-z0-9]{5}  Running  \d+[sm]\s+true\s+0\s+node-\d", table[2]
    )
    for index, row in enumerate(table[3:7]):
        assert re.fullmatch(
            rf"  mpi-dist-worker-{index}\s+Running  \d+[sm]\s+false\s+2\s+node-\d", row
        )


def test_a_tfjob_of_one_server_and_two_workers_runs_whole(empty: Commands) -> None:
    (line,) = as_documented("000", r"(arena submit tf .*?)\nNAME:", SUBMIT_TF)
    done = empty.run(line)
    assert done.stdout == "tfjob.kubeflow.org/tf-dist-git created\n"
    assert (
        "Flag --workerImage has been deprecated, please use --worker-image instead" in done.stderr
    )
    eventually(
        lambda: (
            [(i["name"], i["status"]) for i in empty.instances("tf-dist-git")]
            == [
                ("tf-dist-git-ps-0", "Running"),
                ("tf-dist-git-worker-0", "Running"),
                ("tf-dist-git-worker-1", "Running"),
            ]
        ),
        "one parameter server and two workers run",
    )
    assert empty.jobs()["tf-dist-git"]["requestGPUs"] == 2


def test_without_a_gang_four_run_and_one_waits(empty: Commands) -> None:
    empty.run(SUBMIT.format(workers=5).replace("--gang=true", "--gang=false"))
    eventually(
        lambda: (
            sorted(i["status"] for i in empty.instances("mpi-dist"))
            == ["Pending"] + ["Running"] * 4
        ),
        "four workers run and one waits",
    )


def test_list_top_and_logs(empty: Commands) -> None:
    empty.run("posse submit mpi --name=a --workers=2 --gpus=1 --image=i 'mpirun x'")
    eventually(lambda: empty.jobs()["a"]["status"] == "RUNNING", "a runs")
    listed = empty.run("arena ls").stdout.splitlines()
    assert listed[0].split() == [
        "NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE",
    ]  # fmt: skip
    assert listed[1].split()[:3] == ["a", "RUNNING", "MPIJOB"]
    assert listed[1].split()[4:6] == ["2", "2"]
    top = empty.run("arena top node").stdout.splitlines()
    assert top[0].split() == [
        "NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)",
    ]  # fmt: skip
    assert top[-2:] == ["Allocated/Total GPUs In Cluster:", "2/8 (25.0%)"]
    assert "simulated" in empty.run("posse logs a").stdout


@pytest.mark.parametrize(
    ("ends", "until", "code", "words"),
    [
        (0, "running", 0, "j is RUNNING"),
        (0, "succeeded", 0, "j is SUCCEEDED"),
        (1, "succeeded", 1, "j has failed; `posse why j` says who died first"),
        (1, "finished", 0, "j is FAILED"),
    ],
)
def test_a_job_is_waited_for(empty: Commands, ends: int, until: str, code: int, words: str) -> None:
    empty.run(
        "posse submit mpi --name=j --workers=1 --gpus=1 --image=i 'mpirun x'"
        f" -a posse.dev/simulated-duration=4s -a posse.dev/simulated-exit-code={ends}"
    )
    done = empty.run(f"posse wait j --for={until} --timeout=60s", exits=code)
    assert words in done.stderr
    assert done.stdout == ""


def test_a_wait_that_is_in_vain_ends_with_a_code_of_its_own(empty: Commands) -> None:
    empty.run("posse submit mpi --name=big --workers=9 --gpus=2 --image=i 'mpirun x'")
    done = empty.run("posse wait big --for=running --timeout=1s", exits=4)
    assert done.stderr == "posse: big is PENDING and not RUNNING after 1s\n"


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("posse get nothing", 3, "training job not found"),
        ("posse delete nothing", 3, "training job not found"),
        ("posse wait nothing", 3, "training job not found"),
        ("posse wait x --timeout=soon", 2, "--timeout: "),
        ("posse wait x --for=ever", 2, "'ever' is not one of"),
        ("posse submit mpi --gpus=-1 --name=x c", 2, "--gpus must be 0 or more, not -1"),
        ("posse submit mpi --name=x", 2, "not found command args"),
        ("posse submit mpi --name=x --priority=none --workers=2 c", 1, "priority class none"),
        ("posse list --nope", 2, "unknown flag: --nope"),
        ("posse up --simulate 3 --gpus 2", 1, "--simulate 4, not 3"),
        ("posse up --simulate 0", 2, "--simulate must be 1 or more, not 0"),
        ("posse up --simulate 4 --gpus -1", 2, "--gpus must be 0 or more, not -1"),
        ("posse up --simulate 4 --memory lots", 2, "status.capacity[memory]"),
        ("posse list --context nope", 5, "no context 'nope'"),
    ],
)
def test_an_error_is_one_line_and_a_code(
    commands: Commands, line: str, code: int, words: str
) -> None:
    done = commands.run(line, exits=code)
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


def test_a_name_can_be_taken_once(empty: Commands) -> None:
    line = "posse submit mpi --name=twice --workers=1 --image=i c"
    empty.run(line)
    assert "the job twice is already exist" in empty.run(line, exits=1).stderr


def test_up_again_finds_the_cluster_running(commands: Commands) -> None:
    before = commands.services()
    assert "is already running" in commands.run("posse up --simulate 4 --gpus 2").stderr
    assert commands.services() == before
