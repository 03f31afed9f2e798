"""A job's place in the line of its queue."""

from __future__ import annotations

import msgspec
import pytest

from posse.client.turns import turn
from posse.objects.groups import PodGroup

NEEDS = "needs 8 GPUs, 0 of 8 are free; it can start when 8 more are free"


def group(
    name: str,
    age: int = 0,
    *,
    queue: str = "default",
    reason: str = "NotEnoughResources",
    says: str = NEEDS,
    phase: str = "Inqueue",
    priority: str = "",
) -> PodGroup:
    condition = {"type": "Unschedulable", "status": "True", "reason": reason, "message": says}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "uid": name,
                "creationTimestamp": f"2026-01-01T00:00:{30 - age:02}Z",
            },
            "spec": {"queue": queue, "priorityClassName": priority},
            "status": {"phase": phase, "conditions": [condition]},
        },
        PodGroup,
    )


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ([], ""),
        ([group("old", 9)], "number 2 of 2"),
        ([group("young", -9)], "number 1 of 2"),
        ([group("young", -9, priority="urgent")], "number 2 of 2"),
        ([group("old", 9, priority="no-such-class")], "number 2 of 2"),
        ([group("old", 9, queue="other")], ""),
        ([group("old", 9, phase="Running")], ""),
        ([group("old", 9, reason="NotEnoughTasks")], ""),
        ([group("old", 9, reason="QueueQuotaExceeded"), group("older", 10)], "number 3 of 3"),
    ],
)
def test_the_line_is_of_those_that_wait_their_turn(others: list[PodGroup], says: str) -> None:
    mine = group("mine")
    assert says in turn(mine, [mine, *others], {"urgent": 1000})
    assert bool(says) == bool(turn(mine, [mine, *others], {}))


def test_of_one_second_the_numbers_in_their_names_count() -> None:
    line = [group("job-10"), group("job-2")]
    assert "number 2 of 2" in turn(line[0], line, {})


@pytest.mark.parametrize(
    ("verdict", "unknown"),
    [
        (NEEDS, True),
        ("waits behind ns/big, for which the free room is kept", True),
        (f"{NEEDS}; expected to start at about 14:05 UTC", False),
        (f"{NEEDS}; when it starts is unknown: 1 job states no max runtime", False),
    ],
)
def test_that_nobody_can_know_is_said_once(verdict: str, unknown: bool) -> None:
    mine = group("mine", says=verdict)
    assert ("nobody can know" in turn(mine, [mine, group("old", 9)], {})) == unknown


@pytest.mark.parametrize(
    ("verdict", "added"),
    [
        (f"{NEEDS}; number 2 in queue default", "Nobody can know yet when it will start."),
        (f"{NEEDS}; expected to start at about 14:05 UTC; number 2 in queue default", ""),
    ],
)
def test_a_place_that_the_verdict_tells_is_not_told_twice(verdict: str, added: str) -> None:
    mine = group("mine", says=verdict)
    assert turn(mine, [mine, group("old", 9)], {}) == added


@pytest.mark.parametrize(
    "never",
    [
        "asks for 10 GPUs, but the cluster has 8 on today's nodes; add 2",
        "no node matches selector gpu=h100",
        "asks for 6 GPUs, but queue q may use 4 (capability); ask for 4 at most, or raise it",
        "asks for 6 GPUs, but queue q may use 0 (capability); name another queue, or raise it",
        "waits behind ns/big: queue default keeps its order (dequeueStrategy: fifo), and that one"
        " cannot start on today's nodes; delete it, or add nodes for it",
    ],
)
def test_whom_no_waiting_helps_is_in_no_line(never: str) -> None:
    mine, other, old = group("mine"), group("never", 10, says=never), group("old", 9)
    assert turn(other, [mine, other, old], {}) == ""
    assert "number 2 of 2" in turn(mine, [mine, other, old], {})


def test_who_does_not_wait_for_room_has_no_place() -> None:
    mine = group("mine", reason="QueueClosed")
    assert turn(mine, [mine, group("old", 9)], {}) == ""
