"""Who may use a queue, asked at the door."""

from __future__ import annotations

from typing import Any

import pytest

from posse.admission.lookups import queue_standing
from posse.objects.keys import NAMESPACES
from posse.objects.kinds import NAMESPACE, QUEUE, Kind
from tests.unit.admission.questions import Known

Object = dict[str, Any]


def queue(name: str, allowed: str | None = None, state: str = "Open", parent: str = "") -> Any:
    meta: Object = {"name": name}
    if allowed is not None:
        meta["annotations"] = {NAMESPACES: allowed}
    return QUEUE, {"metadata": meta, "spec": {"parent": parent}, "status": {"state": state}}


def namespace(name: str, **labels: str) -> tuple[Kind, Object]:
    return NAMESPACE, {"metadata": {"name": name, "labels": labels}}


CASES = [
    ("anybody's", [queue("q")], ""),
    ("named", [queue("q", "other,ns")], ""),
    ("not named", [queue("q", "other")], "queue 'q' is not for namespace 'ns'"),
    ("nobody's", [queue("q", "")], "queue 'q' is not for namespace 'ns'"),
    ("selected", [queue("q", "team in (a,b)"), namespace("ns", team="a")], ""),
    ("not selected", [queue("q", "team=b"), namespace("ns", team="a")], "queue 'q' is not for"),
    ("of a namespace nobody knows", [queue("q", "team=b")], "queue 'q' is not for"),
    ("nonsense", [queue("q", "team=!")], "queue 'q' is shut"),
    ("its parent's", [queue("q", parent="p"), queue("p", "other")], "queue 'q' is not for"),
    ("its own word first", [queue("q", "ns", parent="p"), queue("p", "other")], ""),
    ("part of a closed one", [queue("q", parent="p"), queue("p", state="Closed")], "queue 'p' is"),
    ("round in a circle", [queue("q", parent="p"), queue("p", parent="q")], ""),
]


@pytest.mark.parametrize(("why", "known", "refused"), CASES, ids=[row[0] for row in CASES])
async def test_a_queue_is_for_some_namespaces(
    why: str, known: list[tuple[Kind, Object]], refused: str
) -> None:
    standing = await queue_standing(Known(*known), "q", "ns")
    assert standing.doubt == ""
    assert standing.refusal.startswith(refused)
    assert bool(standing.refusal) is bool(refused)


async def test_a_namespace_that_cannot_be_read_is_a_doubt_and_no_refusal() -> None:
    standing = await queue_standing(Known(queue("q", "team=a"), broken=(NAMESPACE,)), "q", "ns")
    assert standing.refusal == ""
    assert "could not be looked at" in standing.doubt
