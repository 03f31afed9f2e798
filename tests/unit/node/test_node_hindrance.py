"""A container that cannot be started yet: it waits, says why, and is tried again."""

from __future__ import annotations

from typing import Any

from posse.local.node.lifecycle import next_step
from posse.local.node.lives import Ended, Hindrance, Life, begin
from posse.local.node.runtime import Exit
from posse.local.node.statuses import status_of


def life(**spec: Any) -> Life:
    container = {"name": "main", "image": "image"}
    return begin(
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "u"},
            "spec": {"containers": [container], "nodeName": "n", "restartPolicy": "Always", **spec},
        },
        100.0,
    )


def state(one: Life) -> dict[str, Any]:
    shown = status_of(one, 100.0)["containerStatuses"][0]
    assert isinstance(shown, dict)
    return shown


def test_a_hindered_container_waits_and_says_why() -> None:
    one = life()
    one.containers["main"].hindrance = Hindrance("Reason", "a sentence", 105.0)
    assert status_of(one, 100.0)["phase"] == "Pending"
    assert state(one)["state"] == {"waiting": {"reason": "Reason", "message": "a sentence"}}
    assert state(one)["ready"] is False


def test_it_is_tried_again_when_its_time_has_come() -> None:
    one = life()
    one.containers["main"].hindrance = Hindrance("Reason", "a sentence", 105.0)
    assert next_step(one, 100.0).start == ()
    assert next_step(one, 100.0).wake_in == 5.0
    assert next_step(one, 105.0).start == ("main",)


def test_once_started_nothing_hinders_it_any_more() -> None:
    one = life()
    main = one.containers["main"]
    main.hindrance = Hindrance("Reason", "a sentence", 105.0)
    main.started(106.0)
    assert main.hindrance is None
    assert "running" in state(one)["state"]


def test_a_restart_that_is_hindered_keeps_count_and_past() -> None:
    one = life()
    main = one.containers["main"]
    main.started(100.0)
    main.ended(101.0, Exit(3))
    assert main.next_attempt == 1
    main.hindrance = Hindrance("Reason", "a sentence", 120.0)
    assert (main.attempt, main.next_attempt) == (0, 1)
    assert state(one)["lastState"]["terminated"]["exitCode"] == 3
    main.started(121.0)
    assert main.attempt == 1


def test_a_container_that_is_over_is_not_kept_waiting() -> None:
    one = life(restartPolicy="Never")
    main = one.containers["main"]
    main.started(100.0)
    main.ended(101.0, Exit(3))
    main.hindrance = Hindrance("Reason", "a sentence", 120.0)
    assert next_step(one, 102.0).outcome is not None


def test_the_runtime_knows_best_when_it_ended() -> None:
    one = life()
    main = one.containers["main"]
    main.started(100.0)
    main.ended(500.0, Exit(0, started_at=99.0, finished_at=130.0))
    assert isinstance(main.state, Ended)
    assert (main.state.started_at, main.state.finished_at) == (99.0, 130.0)


def test_a_container_that_runs_unready_keeps_its_pod_from_being_ready() -> None:
    one = life()
    one.containers["main"].started(100.0, ready=False)
    conditions = {c["type"]: c["status"] for c in status_of(one, 100.0)["conditions"]}
    assert (conditions["Ready"], conditions["ContainersReady"]) == ("False", "False")
    assert state(one)["ready"] is False
    one.containers["main"].ready = True
    conditions = {c["type"]: c["status"] for c in status_of(one, 100.0)["conditions"]}
    assert conditions["Ready"] == "True"
