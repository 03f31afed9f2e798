"""`posse demo` as a newcomer runs it."""

from __future__ import annotations

import subprocess

import pytest

from tests.cluster.processes import Commands

pytestmark = pytest.mark.process


def test_the_demo_shows_what_it_says_and_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    commands = Commands(tmp_path_factory.mktemp("demo"))
    commands.kubeconfig.write_text("this is not even YAML: [")
    done = subprocess.run(
        [commands.program("posse"), "demo"],
        # Where there are no namespaces; `make demo` runs it with whatever this machine allows.
        env={
            **commands.environment(),
            "POSSE_ISOLATION": "none",
            "TMPDIR": str(commands.directory),
        },
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "asks for 10 GPUs (5 pods x 2 each), but the cluster has 8" in done.stdout
    assert "the loss fell from" in done.stdout
    assert commands.kubeconfig.read_text() == "this is not even YAML: ["
    assert sorted(path.name for path in commands.directory.iterdir()) == ["kubeconfig"]
