"""Queues that keep their order: who comes first must start before the next one does."""

from __future__ import annotations

import pytest

from posse.engine.decisions import Reason
from posse.engine.facts import QueueFacts
from posse.engine.policy import Policy
from tests.scenarios.language import (
    Expectation,
    Scenario,
    Turn,
    arrives,
    ends,
    evicts,
    gang,
    leaves,
    member,
    node,
    nodes,
    pod,
    queue,
    starts,
    vanishes,
    waits,
)

FIFO = QueueFacts("line", fifo=True)
NO_BACKFILL = Policy(backfill=False)


IN_ORDER = "queue line keeps its order (dequeueStrategy: fifo)"


def behind(name: str, head: str) -> Expectation:
    because = f"waits behind team/{head}: {IN_ORDER}; it can start once that has"
    return waits(name, because=because, reason=Reason.RESERVED)


def behind_for_ever(name: str, head: str) -> Expectation:
    because = (
        f"waits behind team/{head}: {IN_ORDER}, and that one cannot start on today's nodes;"
        " delete it, or add nodes for it"
    )
    return waits(name, because=because, reason=Reason.RESERVED)


SCENARIOS = [
    Scenario(
        "the one behind does not start though it would fit, until the first has",
        nodes=nodes(2, gpus=8),
        queues=[FIFO],
        gangs=[
            gang("runs", workers=1, on=["node-0"], gpus=8),
            gang("first", workers=2, gpus=8, queue="line", age=2),
            gang("next", workers=1, gpus=1, queue="line", age=1),
        ],
        expect=[waits("first"), behind("next", "first")],
        then=[
            Turn(
                [arrives(gang("last", workers=1, gpus=1, queue="line"))], [behind("last", "first")]
            ),
            Turn(
                [ends("runs-worker-0")], [starts("first", 2), waits("next"), behind("last", "next")]
            ),
        ],
        policy=NO_BACKFILL,
    ),
    Scenario(
        "in other queues they go on as ever, and where nothing is said",
        nodes=nodes(2, gpus=8),
        queues=[FIFO, queue("other")],
        gangs=[
            gang("runs", workers=1, on=["node-0"], gpus=8),
            gang("first", workers=2, gpus=8, queue="line", age=2),
            gang("next", workers=1, gpus=4, queue="other", age=1),
            gang("wide", workers=2, gpus=8, age=2),
            gang("small", workers=1, gpus=4, age=1),
        ],
        expect=[starts("next", 1), starts("small", 1), waits("first"), waits("wide")],
        policy=NO_BACKFILL,
    ),
    Scenario(
        "when the first leaves, the line moves up, all of it in one go",
        nodes=nodes(2, gpus=8),
        queues=[FIFO],
        gangs=[
            gang("first", workers=3, gpus=8, queue="line", age=3),
            gang("second", workers=1, gpus=8, queue="line", age=2),
            gang("third", workers=1, gpus=8, queue="line", age=1),
        ],
        expect=[
            waits("first", because="cluster has 16"),
            behind_for_ever("second", "first"),
            behind_for_ever("third", "first"),
        ],
        then=[Turn([vanishes("first")], [starts("second", 1), starts("third", 1)])],
    ),
    Scenario(
        "one of higher priority comes first, and is not held up by those it passes",
        nodes=nodes(2, gpus=8),
        queues=[FIFO],
        gangs=[
            gang("first", workers=3, gpus=8, queue="line", age=3),
            gang("second", workers=1, gpus=8, queue="line", age=2),
        ],
        expect=[waits("first"), behind_for_ever("second", "first")],
        then=[
            Turn(
                [arrives(gang("urgent", workers=1, gpus=8, queue="line", priority=5))],
                [starts("urgent", 1)],
            ),
        ],
    ),
    Scenario(
        "one whose pods are not all there yet holds nobody up",
        nodes=nodes(2, gpus=8),
        queues=[FIFO],
        gangs=[
            gang("first", workers=2, exist=1, gpus=8, queue="line", age=3),
            gang("second", workers=1, gpus=8, queue="line", age=2),
        ],
        expect=[starts("second", 1), waits("first", reason=Reason.INCOMPLETE)],
    ),
    Scenario(
        "the capability of the queue holds up, too",
        nodes=nodes(2, gpus=8),
        queues=[queue("line", gpus=8, fifo=True)],
        gangs=[
            gang("runs", workers=1, on=["node-0"], gpus=4, queue="line"),
            gang("first", workers=1, gpus=8, queue="line", age=2),
            gang("next", workers=1, gpus=4, queue="line", age=1),
        ],
        expect=[waits("first", reason=Reason.QUOTA), behind("next", "first")],
        then=[
            Turn([ends("runs-worker-0")], [starts("first", 1), waits("next", reason=Reason.QUOTA)])
        ],
        policy=NO_BACKFILL,
    ),
    Scenario(
        "who runs and has lost a member gets it back, whoever waits",
        nodes=nodes(2, gpus=8),
        queues=[FIFO],
        gangs=[
            gang("runs", workers=2, on=["node-0", "node-1"], gpus=4, queue="line"),
            gang("first", workers=2, gpus=8, queue="line", age=2),
        ],
        expect=[waits("first")],
        then=[
            Turn(
                [ends("runs-worker-1"), arrives(member("runs", "worker-1", gpus=4))],
                [starts("runs", 1, on={"node-1": 1})],
            ),
        ],
        policy=NO_BACKFILL,
    ),
    Scenario(
        "members beyond a minimum come after every minimum, blocked or not",
        nodes=nodes(2, gpus=8),
        queues=[FIFO],
        gangs=[
            gang("grows", workers=1, least=1, on=["node-0"], gpus=8, queue="line"),
            gang("first", workers=3, gpus=8, queue="line", age=2),
        ],
        expect=[waits("first")],
        then=[
            Turn(
                [arrives(member("grows", "worker-1", gpus=8))], [behind_for_ever("grows", "first")]
            ),
            Turn([vanishes("first")], [starts("grows", 1)]),
        ],
    ),
    Scenario(
        "only the first ends others; who stands behind does not pass it by that",
        nodes=nodes(2, gpus=8),
        queues=[FIFO],
        gangs=[
            gang("low", workers=1, on=["node-0"], gpus=8, queue="line", facts={"began": -9.0}),
            gang("alien", workers=1, on=["node-1"], gpus=8, priority=9),
            gang("first", workers=2, gpus=8, queue="line", priority=5, age=2),
            gang("next", workers=1, gpus=8, queue="line", priority=5, age=1),
        ],
        expect=[waits("first"), behind("next", "first")],
        then=[
            Turn(
                [ends("alien-worker-0"), vanishes("alien")],
                [
                    evicts("first", {"low": 1}),
                    waits("first", reason=Reason.RESERVED),
                    waits("low", because="ended for", reason=Reason.INCOMPLETE),
                ],
            ),
        ],
        policy=NO_BACKFILL,
    ),
    Scenario(
        "a queue that no longer keeps its order lets everybody try",
        nodes=nodes(2, gpus=8),
        queues=[FIFO],
        gangs=[
            gang("first", workers=3, gpus=8, queue="line", age=3),
            gang("second", workers=1, gpus=8, queue="line", age=2),
        ],
        expect=[waits("first"), behind_for_ever("second", "first")],
        then=[Turn([arrives(QueueFacts("line"))], [starts("second", 1)])],
    ),
    Scenario(
        "who asks for more than the queue could ever have is told so, whoever stands before it",
        nodes=nodes(2, gpus=8),
        queues=[queue("line", gpus=8, fifo=True)],
        gangs=[
            gang("runs", workers=1, on=["node-0"], gpus=6, queue="line"),
            gang("first", workers=1, gpus=4, queue="line", age=3),
            gang("greedy", workers=2, gpus=8, queue="line", age=2),
            gang("next", workers=1, gpus=1, queue="line", age=1),
        ],
        expect=[
            waits("first", reason=Reason.QUOTA),
            waits(
                "greedy", because="asks for 16 GPUs, but queue line may use 8", reason=Reason.QUOTA
            ),
            behind("next", "first"),
        ],
        then=[
            Turn(
                [arrives(queue("line", gpus=16, fifo=True))],
                [
                    starts("first", 1),
                    waits("greedy", because="it can start when 10 more", reason=Reason.QUOTA),
                    behind("next", "greedy"),
                ],
            ),
        ],
        policy=NO_BACKFILL,
    ),
    Scenario(
        "and who asks for more than today's nodes have",
        nodes=nodes(2, gpus=8),
        queues=[FIFO],
        gangs=[
            gang("runs", workers=1, on=["node-0"], gpus=8),
            gang("first", workers=2, gpus=8, queue="line", age=5),
            gang("large", workers=1, gpus=20, queue="line", age=4),
            gang("many", workers=3, gpus=8, queue="line", age=3),
            gang("barred", workers=1, selector={"zone": "x"}, queue="line", age=2),
            gang("next", workers=1, gpus=1, queue="line", age=1),
        ],
        expect=[
            waits("first"),
            waits("large", because="needs 20 GPUs on one node; the largest of today's nodes has 8"),
            waits("many", because="asks for 24 GPUs (3 pods x 8 each), but the cluster has 16"),
            waits("barred", because="no node matches selector zone=x"),
            behind("next", "first"),
        ],
        then=[
            Turn(
                [arrives(node("big", gpus=24))],
                [
                    starts("first", 2, on={"big": 2}),
                    waits("large", because="20 GPUs"),
                    behind("many", "large"),
                    behind("next", "large"),
                ],
            ),
        ],
        policy=NO_BACKFILL,
    ),
    Scenario(
        "who stands behind one that today's nodes have no room for hears it",
        nodes=nodes(1, gpus=8),
        queues=[FIFO],
        gangs=[
            gang("large", workers=1, gpus=9, queue="line", age=3),
            gang("next", workers=1, gpus=1, queue="line", age=2),
            gang("last", workers=1, gpus=1, queue="line", age=1),
        ],
        expect=[
            waits("large", because="today's nodes", place=0),
            behind_for_ever("next", "large"),
            behind_for_ever("last", "large"),
        ],
        then=[
            Turn(
                [arrives(node("big", gpus=16), pod("alien", on="big", gpus=16))],
                [
                    waits("large", because="it can start when"),
                    behind("next", "large"),
                    behind("last", "large"),
                ],
            ),
            Turn(
                [ends("alien"), leaves("big")],
                [
                    waits("large", because="today's nodes"),
                    behind_for_ever("next", "large"),
                    behind_for_ever("last", "large"),
                ],
            ),
            Turn([vanishes("large")], [starts("next", 1), starts("last", 1)]),
        ],
        policy=NO_BACKFILL,
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_fifo(scenario: Scenario) -> None:
    scenario.play()
