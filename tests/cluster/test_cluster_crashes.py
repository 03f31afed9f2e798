"""kill -9 at any moment: every acknowledged write is there, every gang is whole or waits whole."""

from __future__ import annotations

import threading

import pytest

from posse.client.jobs import TrainingJob
from posse.client.posse_client import PosseClient
from posse.client.submitting.mpi import MPIJob
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
        with PosseClient(kubeconfig=roomy.kubeconfig) as client:
            try:
                # Each asks for 4 of 160 GPUs: forty run whole, ten wait whole.
                for number in range(GANGS):
                    client.submit(_gang(f"g{number}"))
                    stop.wait(0.1)
            finally:
                stop.set()
                killer.join()
            wanted = [0] * 10 + [4] * 40
            eventually(
                lambda: sorted(_workers_seated(job) for job in client.jobs()) == wanted,
                "40 gangs run whole and 10 wait whole",
            )
    finally:
        roomy.run("posse down --purge")
    assert roomy.processes() == []


def _gang(name: str) -> MPIJob:
    return MPIJob(name=name, image="none", workers=4, gpus=1, command="mpirun train")


def _kill_over_and_over(commands: Commands, service: str, stop: threading.Event) -> None:
    while not stop.wait(0.3):
        if service in commands.services():
            commands.kill(service)


def _workers_seated(job: TrainingJob) -> int:
    return sum("worker" in i.name and i.node != "N/A" for i in job.instances)


def test_what_the_api_server_acknowledged_survives_kill_9(empty: Commands) -> None:
    for name in ("kept-0", "kept-1", "kept-2"):
        empty.run(f"posse submit mpi --name={name} --workers=1 --image=i c")
        empty.kill("apiserver")
        eventually(lambda: _answers(empty), "the API server answers again")
        assert name in empty.jobs()


def _answers(commands: Commands) -> bool:
    return commands.run("posse list -o json", exits=None).returncode == 0
