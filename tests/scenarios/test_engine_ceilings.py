"""Gangs that ask for more than their queue could ever have: no waiting helps, and they are told."""

from __future__ import annotations

import pytest

from posse.engine.decisions import Reason
from posse.engine.facts import QueueFacts
from posse.engine.policy import Policy
from tests.scenarios.language import (
    GPU,
    Expectation,
    Scenario,
    Turn,
    arrives,
    ends,
    gang,
    nodes,
    queue,
    starts,
    waits,
)

# What comes of running is told elsewhere; what is told of dates would only be in the way here.
PLAIN = Policy(backfill=False, preemption=False, reclaim=False)


def quota(name: str, because: str, place: int | None = None) -> Expectation:
    return waits(name, reason=Reason.QUOTA, because=because, place=place)


TABLE = [
    Scenario(
        "its own queue's capability, though one above is only in use",
        nodes=nodes(4, gpus=8),
        queues=[
            queue("team", gpus=10),
            queue("mine", parent="team", gpus=4),
            queue("b", parent="team"),
        ],
        gangs=[
            gang("has", workers=1, gpus=8, queue="b", on=["node-0"]),
            gang("a", workers=3, gpus=2, queue="mine"),
        ],
        expect=[
            quota(
                "a", "asks for 6 GPUs, but queue mine may use 4 (capability); ask for 4 at most, or"
            )
        ],
        then=[
            Turn(
                [arrives(queue("mine", parent="team", gpus=6))],
                [quota("a", "may use 10 (capability) and 8 are in use; it can start when 4 more")],
            ),
        ],
        policy=PLAIN,
    ),
    Scenario(
        "of two that are too small, the smaller is told of",
        nodes=nodes(4, gpus=8),
        queues=[queue("team", gpus=4), queue("mine", parent="team", gpus=5)],
        gangs=[gang("a", workers=3, gpus=2, queue="mine")],
        expect=[
            quota("a", "asks for 6 GPUs, but queue team, of which queue mine is part, may use 4")
        ],
        policy=PLAIN,
    ),
    Scenario(
        "what it can never have of one resource comes before what is in use of a graver one",
        nodes=nodes(4, gpus=8),
        queues=[QueueFacts("q", capability=((GPU, 8), ("cpu", 4_000)))],
        gangs=[
            gang("has", workers=1, gpus=8, cores=1, queue="q", on=["node-0"]),
            gang("a", workers=1, gpus=1, cores=6, queue="q"),
        ],
        expect=[quota("a", "asks for 6 cores, but queue q may use 4 (capability)")],
        policy=PLAIN,
    ),
    Scenario(
        "what is guaranteed to those beside it counts also while they use it",
        nodes=nodes(4, gpus=8),
        queues=[
            queue("team", gpus=8),
            queue("vision", parent="team", guarantee=6),
            queue("nlp", parent="team"),
        ],
        gangs=[
            gang("has", workers=1, gpus=6, queue="vision", on=["node-0"]),
            gang("a", workers=2, gpus=2, queue="nlp"),
        ],
        expect=[
            quota(
                "a",
                "asks for 4 GPUs, but queue team, of which queue nlp is part, may use 8"
                " (capability), of which 6 are kept for queue vision (guarantee); ask for 2 at"
                " most, raise the capability, or lower the guarantee",
            ),
        ],
        then=[
            Turn(
                [arrives(queue("vision", parent="team", guarantee=4))],
                [quota("a", "8 (capability) and 6 are in use; it can start when 2 more are")],
            ),
            Turn([ends("has-worker-0")], [starts("a", 2)]),
        ],
        policy=PLAIN,
    ),
    Scenario(
        "guarantees of the parts of a queue beside it are kept too, its own are not",
        nodes=nodes(4, gpus=8),
        queues=[
            queue("team", gpus=10),
            queue("vision", parent="team", guarantee=2),
            queue("eyes", parent="vision", guarantee=3),
            queue("ears", parent="vision", guarantee=3),
            queue("nlp", parent="team", guarantee=4),
        ],
        gangs=[
            gang("a", workers=5, gpus=1, queue="nlp", age=2),
            gang("b", workers=4, gpus=1, queue="nlp", age=1),
        ],
        expect=[
            starts("b", 4),
            quota("a", "asks for 5 GPUs, but queue team, of which queue nlp is part, may use 10"),
        ],
        policy=PLAIN,
    ),
    Scenario(
        "what is in use only, is said to be",
        nodes=nodes(2, gpus=8),
        queues=[queue("vision", guarantee=6), queue("nlp")],
        gangs=[
            gang("has", workers=1, gpus=4, queue="nlp", on=["node-0"]),
            gang("a", workers=2, gpus=4, queue="nlp"),
        ],
        expect=[quota("a", "it can start when 2 more are free")],
        policy=PLAIN,
    ),
    Scenario(
        "a guarantee that is in use does not look as if its end would help",
        nodes=nodes(1, gpus=8),
        queues=[queue("vision", guarantee=4), queue("nlp")],
        gangs=[
            gang("has", workers=4, gpus=1, queue="vision", on=["node-0"] * 4),
            gang("a", workers=8, gpus=1, queue="nlp"),
        ],
        expect=[
            quota(
                "a",
                "asks for 8 GPUs, but today's nodes have 8, of which 4 are kept for queue vision"
                " (guarantee); ask for 4 at most, add 4, or lower the guarantee",
            )
        ],
        then=[
            Turn(
                [
                    arrives(queue("vision", guarantee=0)),
                    ends(*(f"has-worker-{at}" for at in range(4))),
                ],
                [starts("a", 8)],
            )
        ],
        policy=PLAIN,
    ),
    Scenario(
        "several keepers",
        nodes=nodes(2, gpus=8),
        queues=[queue(name, guarantee=4) for name in ("b", "c", "d")] + [queue("nlp")],
        gangs=[gang("a", workers=2, gpus=4, queue="nlp")],
        expect=[
            quota(
                "a",
                "asks for 8 GPUs, but today's nodes have 16, of which 12 are kept for queues b, c"
                " and 1 more (guarantee); ask for 4 at most, add 4, or lower the guarantee",
            ),
        ],
        policy=PLAIN,
    ),
    Scenario(
        "a pod that no node can take is told so, though its queue is full, too",
        nodes=nodes(2, gpus=8),
        queues=[queue("q", gpus=16)],
        gangs=[
            gang("has", workers=1, gpus=8, queue="q", on=["node-0"]),
            gang("a", workers=1, gpus=10, queue="q"),
        ],
        expect=[
            quota(
                "a",
                "the pod needs 10 GPUs on one node; the largest of today's nodes has 8;"
                " ask for 8 at most, or add a larger node; besides,"
                " queue q may use 16 (capability) and 8 are in use",
            ),
        ],
        then=[
            Turn(
                [arrives(*nodes(1, prefix="large", gpus=16)), ends("has-worker-0")], [starts("a")]
            ),
        ],
        policy=PLAIN,
    ),
    Scenario(
        "a pod that no node can take is told so, though room is kept for others, too",
        nodes=nodes(2, gpus=8),
        queues=[queue("vision", guarantee=6), queue("nlp")],
        gangs=[
            gang("has", workers=1, gpus=8, queue="nlp", on=["node-0"]),
            gang("a", workers=1, gpus=9, queue="nlp"),
        ],
        expect=[
            quota(
                "a",
                "the pod needs 9 GPUs on one node; the largest of today's nodes has 8;"
                " ask for 8 at most, or add a larger node; besides, 8"
                " are free, but 6 are kept for queue vision (guarantee)",
            ),
        ],
        policy=PLAIN,
    ),
    Scenario(
        "whoever can never start stands in nobody's line, until its queue is another one",
        nodes=nodes(2, gpus=8),
        queues=[queue("q", gpus=4)],
        gangs=[
            gang("has", workers=1, gpus=4, queue="q", on=["node-0"]),
            gang("huge", workers=1, gpus=6, queue="q", age=9),
            gang("small", workers=1, gpus=3, queue="q"),
        ],
        expect=[quota("huge", "asks for 6 GPUs", place=0), quota("small", "in use", place=1)],
        then=[
            Turn(
                [arrives(queue("q", gpus=6))],
                [
                    quota("huge", "may use 6 (capability) and 4 are in use", place=1),
                    quota("small", "may use 6 (capability) and 4 are in use", place=2),
                ],
            ),
        ],
        policy=PLAIN,
        places=True,
    ),
]


@pytest.mark.parametrize("scenario", TABLE, ids=lambda scenario: scenario.name)
def test_ceilings(scenario: Scenario) -> None:
    scenario.play()
