"""Taking back across queues what is due: who may take, who must give, and how far."""

from __future__ import annotations

from typing import Any

import pytest

from posse.engine.decisions import Reason
from posse.engine.facts import QueueFacts
from posse.engine.policy import Policy
from tests.scenarios.language import (
    GPU,
    Expectation,
    Scenario,
    Team,
    Turn,
    arrives,
    ends,
    evicts,
    gang,
    member,
    nodes,
    shape,
    starts,
    waits,
)

RESERVED = Reason.RESERVED


def runs(name: str, queue: str, *on: str, **like: Any) -> Team:
    return gang(name, workers=len(on), on=on, gpus=8, queue=queue, facts={"began": -10.0}, **like)


def ended(name: str) -> Expectation:
    return waits(name, because="ended for team/", reason=Reason.INCOMPLETE)


def of(**gpus: int) -> dict[str, object]:
    return {name: ((GPU, amount),) for name, amount in gpus.items()}


HALVES = [QueueFacts("a"), QueueFacts("b")]
FULL = [runs("a1", "a", "node-0", "node-1"), runs("a2", "a", "node-2", "node-3")]

SCENARIOS = [
    Scenario(
        "a queue below its due has back what another uses beyond its own",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[*FULL, gang("new", workers=2, gpus=8, queue="b")],
        expect=[evicts("new", {"a1": 2}), waits("new", reason=RESERVED), ended("a1")],
        then=[
            Turn([ends("a1-worker-0", "a1-worker-1")], [starts("new", 2)]),
            # What it lost is not its due: it does not take it back again.
            Turn(
                [arrives(*(member("a1", f"worker-{at}", gpus=8) for at in range(2)))],
                [waits("a1")],
            ),
        ],
    ),
    Scenario(
        "members that are only announced are part of what a queue asks for",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[*FULL, gang("new", workers=2, gpus=8, queue="b", launcher=shape())],
        expect=[evicts("new", {"a1": 2}), waits("new", reason=RESERVED), ended("a1")],
    ),
    Scenario(
        "nobody takes more than its due",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[*FULL, gang("new", workers=3, gpus=8, queue="b")],
        expect=[waits("new")],
    ),
    Scenario(
        "whatever its priority: that counts within a queue",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[*FULL, gang("new", workers=3, gpus=8, queue="b", priority=1000)],
        expect=[waits("new")],
    ),
    Scenario(
        "a queue that is not reclaimable gives nothing",
        nodes=nodes(4, gpus=8),
        queues=[QueueFacts("a", reclaimable=False), QueueFacts("b")],
        gangs=[*FULL, gang("new", workers=2, gpus=8, queue="b")],
        expect=[waits("new")],
    ),
    Scenario(
        "nobody goes below what is guaranteed to it",
        nodes=nodes(4, gpus=8),
        queues=[
            QueueFacts("a", **of(guarantee=24)),  # type: ignore[arg-type]
            QueueFacts("b", **of(deserved=16)),  # type: ignore[arg-type]
        ],
        gangs=[*FULL, gang("new", workers=1, gpus=8, queue="b")],
        expect=[waits("new")],
    ),
    Scenario(
        "nobody is left poorer than who takes: a whole gang would be too much",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[
            runs("a1", "a", "node-0", "node-1", "node-2", "node-3"),
            gang("new", workers=2, gpus=8, queue="b"),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "members that a gang can spare are not too much",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[
            runs("a1", "a", "node-0", "node-1", "node-2", "node-3", least=2),
            gang("new", workers=2, gpus=8, queue="b"),
        ],
        expect=[
            evicts("new", {"a1": ["a1-worker-2", "a1-worker-3"]}),
            waits("new", reason=RESERVED),
        ],
    ),
    Scenario(
        "a queue that has only its due gives nothing",
        nodes=nodes(4, gpus=8),
        queues=[*HALVES, QueueFacts("c")],
        gangs=[
            runs("a1", "a", "node-0", "node-1"),
            runs("b1", "b", "node-2", "node-3"),
            gang("new", workers=1, gpus=8, queue="b"),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "what is due is what was said to be",
        nodes=nodes(4, gpus=8),
        queues=[
            QueueFacts("a", **of(deserved=8)),  # type: ignore[arg-type]
            QueueFacts("b", **of(deserved=24)),  # type: ignore[arg-type]
        ],
        gangs=[
            runs("a1", "a", "node-0"),
            runs("a2", "a", "node-1"),
            runs("a3", "a", "node-2"),
            runs("a4", "a", "node-3"),
            gang("new", workers=3, gpus=8, queue="b"),
        ],
        expect=[
            evicts("new", {"a1": 1, "a2": 1, "a3": 1}),
            waits("new", reason=RESERVED),
            ended("a1"),
            ended("a2"),
            ended("a3"),
        ],
    ),
    Scenario(
        "a queue of higher priority takes beyond its due, down to the other's guarantee",
        nodes=nodes(4, gpus=8),
        queues=[
            QueueFacts("a", **of(guarantee=8)),  # type: ignore[arg-type]
            QueueFacts("b", priority=5),
        ],
        gangs=[
            runs("a1", "a", "node-0"),
            runs("a2", "a", "node-1"),
            runs("a3", "a", "node-2"),
            runs("a4", "a", "node-3"),
            gang("new", workers=3, gpus=8, queue="b"),
        ],
        expect=[
            evicts("new", {"a1": 1, "a2": 1, "a3": 1}),
            waits("new", reason=RESERVED),
            ended("a1"),
            ended("a2"),
            ended("a3"),
        ],
        then=[
            Turn([arrives(gang("more", workers=1, gpus=8, queue="b"))], [waits("more")]),
        ],
    ),
    Scenario(
        "a queue of lower priority takes nothing from a higher one, even below its due",
        nodes=nodes(4, gpus=8),
        queues=[QueueFacts("a", priority=5), QueueFacts("b")],
        gangs=[*FULL, gang("new", workers=1, gpus=8, queue="b")],
        expect=[waits("new")],
    ),
    Scenario(
        "the policy may forbid it",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[*FULL, gang("new", workers=2, gpus=8, queue="b")],
        policy=Policy(reclaim=False),
        expect=[waits("new")],
    ),
    Scenario(
        "who must not preempt does not take back either",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[*FULL, gang("new", workers=2, gpus=8, queue="b", facts={"preempts": False})],
        expect=[waits("new")],
    ),
    Scenario(
        "its own queue first: what is of lower priority there costs nobody else anything",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[
            runs("a1", "a", "node-0", "node-1"),
            runs("a2", "a", "node-2"),
            runs("b1", "b", "node-3"),
            gang("new", workers=1, gpus=8, queue="b", priority=5),
        ],
        expect=[evicts("new", {"b1": 1}), waits("new", reason=RESERVED), ended("b1")],
    ),
    Scenario(
        "a quota that is full of its own queue's lesser gangs makes way",
        nodes=nodes(4, gpus=8),
        queues=[QueueFacts("b", **of(capability=8))],  # type: ignore[arg-type]
        gangs=[runs("b1", "b", "node-3"), gang("new", workers=1, gpus=8, queue="b", priority=5)],
        expect=[evicts("new", {"b1": 1}), waits("new", reason=RESERVED), ended("b1")],
        then=[Turn([ends("b1-worker-0")], [starts("new", 1)])],
    ),
    Scenario(
        "nobody ends where a quota would still stand against it",
        nodes=nodes(4, gpus=8),
        queues=[QueueFacts("b", **of(capability=8))],  # type: ignore[arg-type]
        gangs=[runs("b1", "b", "node-3"), gang("new", workers=2, gpus=8, queue="b", priority=5)],
        expect=[waits("new", reason=Reason.QUOTA)],
    ),
    Scenario(
        "a branch of the tree takes back from another branch",
        nodes=nodes(4, gpus=8),
        queues=[
            QueueFacts("left"),
            QueueFacts("right"),
            QueueFacts("a", parent="left"),
            QueueFacts("b", parent="right"),
        ],
        gangs=[*FULL, gang("new", workers=2, gpus=8, queue="b")],
        expect=[evicts("new", {"a1": 2}), waits("new", reason=RESERVED), ended("a1")],
    ),
]


def cpus(name: str, queue: str, on: str, cores: int) -> Team:
    return gang(name, workers=1, on=[on], cores=cores, queue=queue, facts={"began": -10.0})


RESOURCES = [
    Scenario(
        "who has borrowed one resource has back another, of which it has nothing",
        nodes=nodes(2, gpus=8),
        queues=[
            QueueFacts("a", deserved=(("cpu", 16_000), (GPU, 8))),
            QueueFacts("b", deserved=(("cpu", 16_000), (GPU, 8))),
        ],
        gangs=[
            runs("a1", "a", "node-0"),
            runs("a2", "a", "node-1"),
            cpus("b1", "b", "node-0", 14),
            cpus("b2", "b", "node-1", 14),
            gang("new", workers=1, gpus=8, cores=0, queue="b"),
        ],
        expect=[evicts("new", {"a1": 1}), waits("new", reason=RESERVED), ended("a1")],
    ),
    Scenario(
        "so it has where it borrows some more of the first, as long as that lies about",
        nodes=nodes(2, gpus=8),
        queues=[
            QueueFacts("a", deserved=(("cpu", 16_000), (GPU, 8))),
            QueueFacts("b", deserved=(("cpu", 16_000), (GPU, 8))),
        ],
        gangs=[
            runs("a1", "a", "node-0"),
            runs("a2", "a", "node-1"),
            cpus("b1", "b", "node-0", 14),
            cpus("b2", "b", "node-1", 14),
            gang("new", workers=1, gpus=8, cores=1, queue="b"),
        ],
        expect=[evicts("new", {"a1": 1}), waits("new", reason=RESERVED), ended("a1")],
    ),
    Scenario(
        "but not where it would have to be taken from others, too",
        nodes=nodes(2, gpus=8),
        queues=[
            QueueFacts("a", deserved=(("cpu", 16_000), (GPU, 8))),
            QueueFacts("b", deserved=(("cpu", 16_000), (GPU, 8))),
        ],
        gangs=[
            runs("a1", "a", "node-0"),
            runs("a2", "a", "node-1"),
            cpus("b1", "b", "node-0", 15),
            cpus("b2", "b", "node-1", 15),
            gang("new", workers=1, gpus=8, cores=1, queue="b"),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "nobody gives of what it has only its due, whatever it uses beyond that of other things",
        nodes=nodes(2, gpus=8),
        queues=[
            QueueFacts("a", deserved=(("cpu", 1_000), (GPU, 16))),
            QueueFacts("b", deserved=(("cpu", 16_000), (GPU, 8))),
        ],
        gangs=[
            runs("a1", "a", "node-0"),
            runs("a2", "a", "node-1"),
            gang("new", workers=1, gpus=8, cores=0, queue="b"),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "who was promised nothing gives all of it to who was",
        nodes=nodes(2, gpus=8),
        queues=[
            QueueFacts("team-a"),
            QueueFacts("said", parent="team-a", **of(deserved=16)),  # type: ignore[arg-type]
            QueueFacts("unsaid", parent="team-a", weight=9),
        ],
        gangs=[
            runs("old", "unsaid", "node-0"),
            runs("older", "unsaid", "node-1"),
            gang("new", workers=2, gpus=8, queue="said"),
        ],
        expect=[
            evicts("new", {"old": 1, "older": 1}),
            waits("new", reason=RESERVED),
            ended("old"),
            ended("older"),
        ],
    ),
    Scenario(
        "a part of a queue has back what is the whole's, while the part it is promised to is idle",
        nodes=nodes(4, gpus=8),
        queues=[
            QueueFacts("one", **of(deserved=8)),  # type: ignore[arg-type]
            QueueFacts("steady", parent="one", **of(deserved=8)),  # type: ignore[arg-type]
            QueueFacts("loose", parent="one"),
            QueueFacts("a", **of(deserved=24)),  # type: ignore[arg-type]
        ],
        gangs=[
            *FULL[:1],
            runs("a2", "a", "node-2"),
            runs("a3", "a", "node-3"),
            gang("new", workers=1, gpus=8, queue="loose"),
        ],
        expect=[evicts("new", {"a2": 1}), waits("new", reason=RESERVED), ended("a2")],
        then=[
            # Then that part wants it: what was lent inside of the whole is given back.
            Turn([ends("a2-worker-0")], [starts("new", 1)]),
            Turn(
                [
                    arrives(runs("new", "loose", "node-2")),
                    arrives(gang("own", workers=1, gpus=8, queue="steady")),
                ],
                [evicts("own", {"new": 1}), waits("own", reason=RESERVED), ended("new")],
            ),
        ],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS + RESOURCES, ids=lambda scenario: scenario.name)
def test_reclaim(scenario: Scenario) -> None:
    scenario.play()
