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
    member,
    nodes,
    queue,
    starts,
    vanishes,
    waits,
)

FIFO = QueueFacts("line", fifo=True)
NO_BACKFILL = Policy(backfill=False)


def behind(name: str, head: str) -> Expectation:
    return waits(name, because=f"waits behind team/{head}: queue line", reason=Reason.RESERVED)


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
            behind("second", "first"),
            behind("third", "first"),
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
        expect=[waits("first"), behind("second", "first")],
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
            Turn([arrives(member("grows", "worker-1", gpus=8))], [behind("grows", "first")]),
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
        expect=[waits("first"), behind("second", "first")],
        then=[Turn([arrives(QueueFacts("line"))], [starts("second", 1)])],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_fifo(scenario: Scenario) -> None:
    scenario.play()
