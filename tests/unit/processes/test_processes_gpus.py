"""GPUs are handed out by index, each to one container; memory is counted by family."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from posse.local.node.manifests import allocatable_of
from posse.local.node.processes.gpus import Allotment
from posse.local.node.processes.machine import survey
from posse.local.node.processes.memory import exceeding
from posse.local.node.runtime import NotYet
from tests.unit.processes.rig import container, pod
from tests.unit.processes.rig import rig as make_rig

GPU = {"limits": {"nvidia.com/gpu": "2"}}


class Four:
    def indices(self) -> list[int]:
        return [0, 1, 2, 3]


def test_each_gpu_belongs_to_one_container() -> None:
    gpus = Allotment(range(4))
    assert gpus.take("a", "main", 2) == (0, 1)
    assert gpus.take("b", "main", 2) == (2, 3)
    assert gpus.take("a", "main", 2) == (0, 1)
    assert gpus.take("c", "main", 1) is None
    gpus.release("a")
    assert gpus.take("c", "main", 1) == (0,)


def test_what_an_earlier_agent_gave_is_not_given_again() -> None:
    gpus = Allotment(range(3))
    gpus.keep("a", "main", [1])
    assert gpus.take("b", "main", 2) == (0, 2)


def test_cuda_is_told_and_who_has_none_sees_none() -> None:
    gpus = Allotment(range(2))
    assert gpus.variables((1,))["CUDA_VISIBLE_DEVICES"] == "1"
    assert gpus.variables(())["CUDA_VISIBLE_DEVICES"] == ""
    assert gpus.variables(())["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert Allotment(()).variables(()) == {}


def test_the_machine_says_what_it_has(tmp_path: Path) -> None:
    node = survey("this", tmp_path, "none", Four())
    assert node["metadata"]["labels"]["posse.dev/isolation"] == "none"
    has = allocatable_of(node)
    assert has["nvidia.com/gpu"] == 4
    assert has["pods"] == 110
    assert 0 < has["cpu"] <= (psutil.cpu_count() or 1) * 1000
    assert abs(has["memory"] - psutil.virtual_memory().total) < 1024


def test_a_machine_without_a_driver_has_none(tmp_path: Path) -> None:
    class Nothing:
        def indices(self) -> list[int]:
            return []

    node = survey("this", tmp_path, "none", Nothing())
    assert "nvidia.com/gpu" not in node["status"]["capacity"]


@pytest.mark.process
async def test_gpus_stay_with_their_container_through_a_restart_of_the_agent(
    tmp_path: Path,
) -> None:
    script = "echo $CUDA_VISIBLE_DEVICES; sleep 7777"
    async with make_rig(tmp_path / "home", "none", gpus=(0, 1, 2)) as rig:
        one = pod(container("sh", "-c", script, resources=GPU), name="one")
        two = pod(container("sh", "-c", script, resources=GPU), name="two")
        await rig.start(one)
        assert await rig.printed(one, "\n") == "0,1\n"
        await rig.restart()
        with pytest.raises(NotYet, match="2 GPUs are asked"):
            await rig.start(two)
        await rig.runtime.stop(one["metadata"]["uid"], 0.0)
        await rig.start(two)
        assert await rig.printed(two, "\n") == "0,1\n"


def _process(script: str) -> subprocess.Popen[bytes]:
    started = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert started.stdout is not None
    started.stdout.readline()
    return started


@pytest.mark.process
def test_memory_is_that_of_the_whole_family_and_shared_pages_count_once() -> None:
    script = (
        "import os, time; x = bytearray(b'x' * (80 << 20))\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0: time.sleep(600)\n"
        "print(flush=True); time.sleep(600)"
    )
    family = _process(script)
    try:
        me = psutil.Process().pid
        # Four processes of 80 MB each, which they share: more than 60, not more than 250.
        assert exceeding({me: 60 << 20}) == [me]
        assert exceeding({me: 250 << 20}) == []
    finally:
        for child in psutil.Process(family.pid).children():
            child.kill()
        family.kill()
        family.wait()
