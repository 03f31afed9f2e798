"""Which nodes a pod may use: Posse and kube-scheduler answer alike, on random pods and clusters."""

from __future__ import annotations

import json
import os

import pytest

from tests.kubernetes.building import REQUIRED, Unavailable
from tests.kubernetes.fitting import Maker, ours, program, theirs

_EACH = 500


@pytest.fixture(autouse=True)
def _stories_ride_here() -> None:
    """No cluster is needed here, only kube-scheduler's filters."""
    try:
        program()
    except Unavailable as why:
        if os.environ.get(REQUIRED):
            pytest.fail(f"no filters of kube-scheduler: {why}", pytrace=False)
        pytest.skip(f"no filters of kube-scheduler: {why}")


@pytest.mark.parametrize("seed", range(4))
def test_fit_agrees_with_kube_scheduler(seed: int) -> None:
    maker = Maker(seed)
    questions = [maker.question() for _ in range(_EACH)]
    answers = theirs(questions)
    admitted = 0
    for question, answer in zip(questions, answers, strict=True):
        assert "error" not in answer, f"{answer['error']}\n{json.dumps(question)}"
        found = ours(question)
        assert found == answer["nodes"], (
            f"Posse says {found}, kube-scheduler {answer['nodes']}, for {answer['why']}:\n"
            f"{json.dumps(question)}"
        )
        admitted += len(found)
    assert 0 < admitted < sum(len(question["nodes"]) for question in questions)
