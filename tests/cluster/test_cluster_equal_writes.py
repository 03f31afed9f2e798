"""Equal input gives equal writes: the whole system twice, under two hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def _run(hash_seed: str, seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.ride", seed],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_hash_seeds_give_a_byte_equal_write_log() -> None:
    first, second = _run("1", "7"), _run("2", "7")
    assert first == second
    assert int(first.split()[0]) > 100


def test_another_seed_gives_other_writes() -> None:
    assert _run("1", "7") != _run("1", "8")
