"""What `status` makes of leases, deployments and kinds; and what it says to who may see little."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.client.overview import Deployed, Leader, _fresh, _problems, waiting_pods
from posse.objects.pods import Pod
from posse.scheduler.reading.claims import Claims

KINDS = {"podgroups.scheduling.volcano.sh": True, "queues.scheduling.volcano.sh": True}


def _leader(service: str = "scheduler", *, holder: str = "a", alive: bool = True) -> Leader:
    return Leader(
        service=service,
        lease=f"posse-system/posse-{service}",
        holder=holder,
        renewed="",
        alive=alive,
    )


def _deployed(name: str, ready: int = 2) -> Deployed:
    return Deployed(
        namespace="posse-system", name=name, ready=ready, wanted=2, version="1", image="i"
    )


@pytest.mark.parametrize(
    ("kinds", "leaders", "deployments", "problems"),
    [
        (dict.fromkeys(KINDS, False), (), (), ["Posse is not installed here"]),
        (KINDS, (_leader(), _leader("controllers")), (), []),
        (KINDS, (_leader(),), (), []),  # a cluster whose jobs have another controller
        (KINDS, (), (), ["Posse does not run here"]),
        (KINDS, (), (_deployed("posse-scheduler"),), ["no scheduler has ever led"]),
        (KINDS, (_leader(alive=False),), (), ["no scheduler leads: a has stopped renewing"]),
        (KINDS, (_leader(holder="", alive=False),), (), ["no scheduler leads: nobody holds"]),
        (KINDS, (_leader(),), (_deployed("posse-controllers"),), ["no controllers has ever led"]),
        (
            KINDS,
            (_leader(),),
            (_deployed("posse-scheduler", 1),),
            ["posse-scheduler: 1 of 2 replicas are ready"],
        ),
        (
            KINDS | {"queues.scheduling.volcano.sh": False},
            (_leader(),),
            (),
            ["queues.scheduling.volcano.sh is not served"],
        ),
    ],
)
def test_what_is_wrong(
    kinds: dict[str, bool],
    leaders: tuple[Leader, ...],
    deployments: tuple[Deployed, ...],
    problems: list[str],
) -> None:
    found = _problems(kinds, leaders, deployments, leases_seen=True)
    assert len(found) == len(problems)
    for sentence, start in zip(found, problems, strict=True):
        assert sentence.startswith(start)


def test_who_may_not_see_leases_hears_of_no_missing_leader() -> None:
    assert _problems(KINDS, (), (), leases_seen=False) == ()


@pytest.mark.parametrize(
    ("renewed", "fresh"),
    [
        ("2026-01-01T00:00:00.000000Z", True),
        ("2025-12-31T23:59:46Z", True),
        ("2025-12-31T23:59:44Z", False),
        ("2026-01-01T00:00:01Z", True),
        ("2026-01-01T00:01:00Z", False),  # the clocks do not agree: nothing is proven
        ("nonsense", False),
        (None, False),
    ],
)
def test_a_lease_is_fresh_by_our_clock(renewed: str | None, fresh: bool) -> None:
    lease = {"spec": {"renewTime": renewed, "leaseDurationSeconds": 15}}
    assert _fresh(lease, 1767225600.0) is fresh


def _pod(name: str, *, scheduler: str = "posse", node: str = "", **spec: Any) -> Pod:
    metadata = {"name": name, "namespace": "team", **spec.pop("metadata", {})}
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}
    raw = {
        "metadata": metadata,
        "spec": {"containers": [], "schedulerName": scheduler, "nodeName": node, **spec},
        "status": {"phase": "Pending", "conditions": [said]},
    }
    return msgspec.convert(raw, Pod)


def _grouped(name: str) -> dict[str, Any]:
    return {"annotations": {"scheduling.k8s.io/group-name": name}}


@pytest.mark.parametrize(
    ("pods", "waiting"),
    [
        ([_pod("a"), _pod("b")], ["a", "b"]),
        ([_pod("placed", node="n1")], []),
        ([_pod("others", scheduler="default-scheduler")], []),
        ([_pod("a", metadata=_grouped("there"))], []),
        ([_pod(n, metadata=_grouped("gone")) for n in "ab"], ["gone"]),
        ([_pod(n, schedulingGroup={"podGroupName": "native"}) for n in "ab"], ["native"]),
        (
            [
                _pod(n, metadata={"labels": {"pod-group.scheduling.sigs.k8s.io/name": "bare"}})
                for n in "ab"
            ],
            ["bare"],
        ),
    ],
    ids=["alone", "placed", "others'", "a group says it", "no group", "native", "labels"],
)
def test_pods_that_wait_are_told_of_once_for_each_gang(pods: list[Pod], waiting: list[str]) -> None:
    found = waiting_pods(pods, {("team", "there")}, Claims(("posse",)))
    assert [gang.name for gang in found] == waiting


def test_where_no_scheduler_says_whose_pods_it_is_for_all_are_told_of() -> None:
    pods = [_pod("theirs", scheduler="default-scheduler")]
    assert [gang.name for gang in waiting_pods(pods, set(), Claims(everything=True))] == ["theirs"]
