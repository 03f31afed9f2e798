"""What a pod does next, container by container."""

from __future__ import annotations

from typing import Any

import pytest

from posse.local.node.lifecycle import Step, next_step
from posse.local.node.lives import Ended, Life, Outcome, Running, begin
from posse.local.node.runtime import Exit
from posse.local.node.statuses import shows, status_of

NOW = 1_600_000_000.0
STAMP = "2020-09-13T12:26:40Z"


def pod(policy: str = "Never", init: tuple[str, ...] = (), **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "d", "uid": "u"},
        "spec": {
            "nodeName": "node-0",
            "restartPolicy": policy,
            "containers": [{"name": "main", "image": "i"}],
            "initContainers": [{"name": name, "image": "i"} for name in init],
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def life(policy: str = "Never", init: tuple[str, ...] = (), **spec: Any) -> Life:
    return begin(pod(policy, init, **spec), NOW)


def run(a_life: Life, name: str, code: int, at: float, lasted: float = 1.0) -> None:
    a_life.containers[name].started(at - lasted)
    a_life.containers[name].ended(at, Exit(code))


def test_init_containers_run_one_after_another_before_the_others() -> None:
    a = life(init=("one", "two"))
    assert next_step(a, NOW).start == ("one",)
    run(a, "one", 0, NOW)
    assert next_step(a, NOW).start == ("two",)
    run(a, "two", 0, NOW)
    assert next_step(a, NOW).start == ("main",)


def test_a_failed_init_container_fails_a_pod_that_never_restarts() -> None:
    a = life(init=("one",))
    run(a, "one", 1, NOW)
    assert next_step(a, NOW).outcome == Outcome("Failed")


def test_a_sidecar_stays_up_beside_the_containers() -> None:
    sidecar = {"name": "proxy", "image": "i", "restartPolicy": "Always"}
    a = life(initContainers=[sidecar])
    assert next_step(a, NOW).start == ("proxy", "main")
    a.containers["proxy"].started(NOW)
    run(a, "main", 0, NOW)
    assert next_step(a, NOW).outcome == Outcome("Succeeded")


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        ("Never", 0, "Succeeded"),
        ("Never", 3, "Failed"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 3, None),
        ("Always", 0, None),
        ("Always", 3, None),
    ],
)
def test_the_restart_policy_says_whether_the_end_of_a_container_ends_the_pod(
    policy: str, code: int, phase: str | None
) -> None:
    a = life(policy)
    run(a, "main", code, NOW)
    outcome = next_step(a, NOW).outcome
    assert (outcome.phase if outcome else None) == phase


def test_restarts_are_spaced_further_and_further_apart() -> None:
    a = life("Always")
    pauses = []
    now = NOW
    for _ in range(7):
        run(a, "main", 1, now)
        step = next_step(a, now)
        assert step.start == ()
        assert step.wake_in is not None
        pauses.append(step.wake_in)
        now += step.wake_in + 1
        assert next_step(a, now).start == ("main",)
    assert pauses == [10, 20, 40, 80, 160, 300, 300]
    assert a.containers["main"].attempt == 6


def test_a_long_quiet_run_starts_the_backoff_afresh() -> None:
    a = life("Always")
    for at in (NOW, NOW + 100, NOW + 200):
        run(a, "main", 1, at)
    run(a, "main", 1, NOW + 2000, lasted=700)
    assert next_step(a, NOW + 2000).wake_in == 10


def test_the_deadline_counts_from_the_start_of_the_pod() -> None:
    a = life(activeDeadlineSeconds=30)
    a.containers["main"].started(NOW)
    assert next_step(a, NOW + 10) == Step((), 20.0)
    outcome = next_step(a, NOW + 30).outcome
    assert outcome is not None
    assert (outcome.phase, outcome.reason) == ("Failed", "DeadlineExceeded")


def test_a_life_is_told_again_from_the_status_it_has_written() -> None:
    a = life("Always")
    run(a, "main", 2, NOW)
    a.containers["main"].started(NOW + 10)
    told = {**pod("Always"), "status": status_of(a, NOW + 10)}
    again = begin(told, NOW + 99)
    main = again.containers["main"]
    assert again.resumed
    assert main.attempt == 1
    assert main.state == Running(NOW + 10)
    assert isinstance(main.previous, Ended)
    assert main.previous.how.code == 2


def test_a_pod_in_backoff_keeps_its_pause_after_a_restart_of_the_agent() -> None:
    a = life("Always")
    run(a, "main", 2, NOW)
    a.containers["main"].started(NOW + 10)
    a.containers["main"].ended(NOW + 12, Exit(2))
    told = {**pod("Always"), "status": status_of(a, NOW + 12)}
    assert told["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == (
        "CrashLoopBackOff"
    )
    step = next_step(begin(told, NOW + 15), NOW + 15)
    assert step.wake_in == next_step(a, NOW + 15).wake_in == 17


def test_a_running_pod_reports_what_a_kubelet_reports() -> None:
    a = life(init=("one",))
    a.ip = "10.244.0.1"
    run(a, "one", 0, NOW)
    a.containers["main"].started(NOW)
    status = status_of(a, NOW)
    assert status["phase"] == "Running"
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert status["containerStatuses"][0]["state"] == {"running": {"startedAt": STAMP}}
    init = status["initContainerStatuses"][0]["state"]["terminated"]
    assert (init["exitCode"], init["reason"]) == (0, "Completed")
    assert status["podIPs"] == [{"ip": "10.244.0.1"}]


def test_conditions_keep_the_time_of_their_last_transition() -> None:
    a = life()
    a.containers["main"].started(NOW)
    first = status_of(a, NOW)
    a.pod = {**a.pod, "status": first}
    assert status_of(a, NOW + 500) == first
    a.containers["main"].ended(NOW + 500, Exit(0))
    a.outcome = Outcome("Succeeded")
    after = {c["type"]: c for c in status_of(a, NOW + 500)["conditions"]}
    assert after["PodScheduled"]["lastTransitionTime"] == STAMP
    assert after["Ready"]["lastTransitionTime"] != STAMP
    assert after["Ready"]["reason"] == "PodCompleted"


def test_what_others_wrote_into_the_status_is_no_difference() -> None:
    wanted = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    current = {
        "phase": "Running",
        "qosClass": "BestEffort",
        "conditions": [
            {"type": "DisruptionTarget", "status": "True"},
            {"type": "Ready", "status": "True", "lastProbeTime": None},
        ],
    }
    assert shows(current, wanted)
    assert not shows({**current, "phase": "Pending"}, wanted)
    assert not shows(None, wanted)
