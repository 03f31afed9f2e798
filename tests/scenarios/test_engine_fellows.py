"""Pods of one gang that differ: some are more important, some must not be ended."""

from __future__ import annotations

import pytest

from posse.engine.decisions import Reason
from tests.scenarios.language import (
    Scenario,
    Team,
    but,
    evicts,
    gang,
    nodes,
    queue,
    starts,
    waits,
)

RESERVED = Reason.RESERVED


def seated(name: str, *on: str, **like: object) -> Team:
    """A gang that runs, one GPU to a pod, with more pods than it needs."""
    return gang(name, workers=len(on), on=on, gpus=1, least=1, **like)  # type: ignore[arg-type]


PRIORITIES = [
    Scenario(
        "where not all fit, the more important sit first, whatever their names and ages",
        nodes=nodes(1, gpus=2),
        gangs=[but(gang("job", workers=4, least=2, gpus=1), "worker-1", "worker-3", priority=9)],
        expect=[starts("job", 2, who=["job-worker-1", "job-worker-3"]), waits("job")],
    ),
    Scenario(
        "the minimum is made of the more important; the others follow where there is room",
        nodes=nodes(1, gpus=3),
        gangs=[but(gang("job", workers=4, least=1, gpus=1), "worker-3", priority=9)],
        expect=[
            starts("job", 1, who=["job-worker-3"]),
            starts("job", 2, who=["job-worker-0", "job-worker-1"]),
            waits("job"),
        ],
    ),
    Scenario(
        "of members that can be spared, the less important end, not the youngest",
        nodes=nodes(1, gpus=3),
        gangs=[
            but(seated("old", "node-0", "node-0", "node-0"), "worker-1", "worker-2", priority=9),
            gang("new", workers=1, gpus=1, priority=5),
        ],
        expect=[evicts("new", {"old": ["old-worker-0"]}), waits("new", reason=RESERVED)],
    ),
]

PROTECTED = [
    Scenario(
        "a pod that must not be ended stays; a fellow that can be spared ends",
        nodes=nodes(1, gpus=3),
        gangs=[
            but(seated("old", "node-0", "node-0", "node-0"), "worker-2", preemptable=False),
            gang("new", workers=1, gpus=1, priority=5),
        ],
        expect=[evicts("new", {"old": ["old-worker-1"]}), waits("new", reason=RESERVED)],
    ),
    Scenario(
        "as many end as can be spared, and no more than that",
        nodes=nodes(1, gpus=3),
        gangs=[
            but(seated("old", "node-0", "node-0", "node-0"), "worker-0", preemptable=False),
            gang("new", workers=2, gpus=1, priority=5),
            gang("next", workers=3, gpus=1, priority=5, age=-1.0),
        ],
        expect=[
            evicts("new", {"old": ["old-worker-1", "old-worker-2"]}),
            waits("new", reason=RESERVED),
            waits("next"),
        ],
    ),
    Scenario(
        "a gang with such a pod is not ended as a whole",
        nodes=nodes(2, gpus=1),
        gangs=[
            but(
                gang("old", workers=2, on=["node-0", "node-1"], gpus=1),
                "worker-0",
                preemptable=False,
            ),
            gang("new", workers=1, gpus=1, priority=5),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "nor while that pod waits for its place",
        nodes=nodes(2, gpus=1),
        gangs=[
            but(
                gang("old", workers=3, least=2, on=["node-0", "node-1"], gpus=1, started=True),
                "worker-2",
                preemptable=False,
            ),
            gang("new", workers=1, gpus=1, priority=5),
        ],
        expect=[waits("old", because="1 pod beyond its minimum"), waits("new")],
    ),
    Scenario(
        "what is ended pod by pod is so except for such a one",
        nodes=nodes(1, gpus=2),
        gangs=[
            but(
                gang("old", workers=2, on=["node-0"] * 2, gpus=1, facts={"severable": True}),
                "worker-1",
                preemptable=False,
            ),
            gang("new", workers=1, gpus=1, priority=5),
        ],
        expect=[evicts("new", {"old": ["old-worker-0"]}), waits("new", reason=RESERVED)],
    ),
    Scenario(
        "another queue has back what is borrowed from those that may be ended",
        nodes=nodes(1, gpus=4),
        queues=[queue("one", deserved=2), queue("two", deserved=2)],
        gangs=[
            but(
                seated("old", *["node-0"] * 4, queue="one"),
                "worker-1",
                "worker-3",
                preemptable=False,
            ),
            gang("new", workers=1, gpus=1, queue="two"),
        ],
        expect=[evicts("new", {"old": ["old-worker-2"]}), waits("new", reason=RESERVED)],
    ),
]


@pytest.mark.parametrize("scenario", PRIORITIES + PROTECTED, ids=lambda each: each.name)
def test_fellows(scenario: Scenario) -> None:
    scenario.play()
