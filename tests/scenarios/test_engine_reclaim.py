"""Taking back across queues what is due: who may take, who must give, and how far."""

from __future__ import annotations

from typing import Any

import pytest

from posse.engine.decisions import Reason
from posse.engine.facts import BudgetFacts, QueueFacts
from posse.engine.fit.terms import Selector
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
    queue,
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
        "what a queue is said to deserve it has back, though the borrower ends whole",
        nodes=nodes(4, gpus=8),
        queues=[queue("a", deserved=16), queue("b", deserved=16)],
        gangs=[
            runs("a1", "a", "node-0", "node-1", "node-2", "node-3"),
            gang("new", workers=1, gpus=8, queue="b"),
        ],
        expect=[evicts("new", {"a1": 4}), waits("new", reason=RESERVED), ended("a1")],
    ),
    Scenario(
        "never below a guarantee, nor from one that has no more than its due",
        nodes=nodes(4, gpus=8),
        queues=[
            queue("a", deserved=16, guarantee=8),
            queue("b", deserved=16),
            queue("c", deserved=8),
        ],
        gangs=[
            runs("a1", "a", "node-0", "node-1", "node-2"),
            runs("c1", "c", "node-3"),
            gang("new", workers=1, gpus=8, queue="b"),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "nor for more than it is said to deserve",
        nodes=nodes(4, gpus=8),
        queues=[queue("a", deserved=16), queue("b", deserved=8)],
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
        "what others were lent first: a lesser gang of its own queue would have that back anyway",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[
            runs("a1", "a", "node-0", "node-1"),
            runs("a2", "a", "node-2"),
            runs("b1", "b", "node-3"),
            gang("new", workers=1, gpus=8, queue="b", priority=5),
        ],
        expect=[evicts("new", {"a2": 1}), waits("new", reason=RESERVED), ended("a2")],
    ),
    Scenario(
        "but before that members that a lesser gang of its own queue can spare",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[
            runs("a1", "a", "node-0", "node-1"),
            runs("b1", "b", "node-2", "node-3", least=1),
            gang("new", workers=1, gpus=8, queue="b", priority=5),
        ],
        expect=[evicts("new", {"b1": ["b1-worker-1"]}), waits("new", reason=RESERVED)],
    ),
    Scenario(
        "its own queue where that has all its due",
        nodes=nodes(4, gpus=8),
        queues=HALVES,
        gangs=[
            runs("a1", "a", "node-0", "node-1"),
            runs("b1", "b", "node-2"),
            runs("b2", "b", "node-3", priority=5),
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


def small(name: str, queue: str, on: str = "node-0", **like: Any) -> Team:
    return gang(name, workers=1, on=[on], gpus=1, queue=queue, facts={"began": -10.0}, **like)


def taken(name: str, *victims: str) -> list[Expectation]:
    """These end for it, one pod each."""
    told = [waits(name, reason=RESERVED), *(ended(each) for each in victims)]
    return [evicts(name, dict.fromkeys(victims, 1)), *told]


THIRDS = [queue(each, deserved=2) for each in "abc"]

TOGETHER = [
    Scenario(
        "a lesser gang of its own queue and one of another's end together, where neither would do",
        nodes=nodes(1, gpus=6),
        queues=THIRDS,
        gangs=[
            small("a1", "a"),
            *(small(f"b{at}", "b") for at in range(5)),
            gang("new", workers=2, gpus=1, queue="a", priority=5),
        ],
        expect=taken("new", "a1", "b0"),
    ),
    Scenario(
        "of the other's the lowest priority all the same",
        nodes=nodes(1, gpus=6),
        queues=THIRDS,
        gangs=[
            small("a1", "a", priority=1),
            *(small(f"b{at}", "b", priority=2) for at in range(3)),
            *(small(f"b{at}", "b") for at in range(3, 5)),
            gang("new", workers=2, gpus=1, queue="a", priority=5),
        ],
        expect=taken("new", "a1", "b3"),
    ),
    Scenario(
        "not if its queue would still have more than its due",
        nodes=nodes(1, gpus=6),
        queues=THIRDS,
        gangs=[
            small("a1", "a"),
            *(small(f"b{at}", "b") for at in range(5)),
            gang("new", workers=3, gpus=1, queue="a", priority=5),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "nor if the other would be left with less, where nobody said what is due to whom",
        nodes=nodes(1, gpus=5),
        queues=[queue("a", weight=3), queue("b", weight=2)],
        gangs=[
            small("a1", "a"),
            gang("b1", workers=3, on=["node-0"] * 3, gpus=1, queue="b", facts={"began": -1.0}),
            gang("new", workers=3, gpus=1, queue="a", priority=5),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "who is left poorer ends last, however little it costs",
        nodes=nodes(1, gpus=8),
        queues=[queue("a", deserved=4), queue("b", deserved=2), queue("c", deserved=2)],
        gangs=[
            gang("b1", workers=3, on=["node-0"] * 3, gpus=1, queue="b", facts={"began": -1.0}),
            *(small(f"c{at}", "c", priority=1) for at in range(5)),
            gang("new", workers=2, gpus=1, queue="a"),
        ],
        expect=taken("new", "c0", "c1"),
    ),
    Scenario(
        "a gang of its own whose room is no use does not end for its part of the due: it would be"
        " back at once",
        nodes=[*nodes(1, gpus=2), *nodes(1, gpus=4, prefix="new", labels={"kind": "new"})],
        queues=THIRDS,
        gangs=[
            small("a1", "a"),
            small("c1", "c"),
            *(small(f"b{at}", "b", "new-0") for at in range(4)),
            gang("new", workers=2, gpus=1, queue="a", priority=5, selector={"kind": "new"}),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "what a queue above is due counts without those that end inside of it",
        nodes=nodes(1, gpus=6),
        queues=[
            queue("left", deserved=3),
            queue("a", deserved=2, parent="left"),
            queue("b", deserved=1, parent="left"),
            queue("c", deserved=3),
        ],
        gangs=[
            *(small(f"b{at}", "b") for at in range(2)),
            *(small(f"c{at}", "c") for at in range(4)),
            gang("new", workers=2, gpus=1, queue="a"),
        ],
        expect=taken("new", "b0", "c0"),
    ),
    Scenario(
        "a quota makes way by its own queue's gangs, the nodes by another's",
        nodes=nodes(1, gpus=4),
        queues=[queue("a", gpus=2, deserved=2), queue("b", deserved=2)],
        gangs=[
            small("a1", "a"),
            *(small(f"b{at}", "b") for at in range(3)),
            gang("new", workers=2, gpus=1, queue="a", priority=5),
        ],
        expect=taken("new", "a1", "b0"),
    ),
    Scenario(
        "what one borrowed beyond what it is said to deserve goes to whom it is due by weight",
        nodes=nodes(1, gpus=4),
        queues=[queue("prod", deserved=2), queue("x"), queue("idle"), queue("asleep")],
        gangs=[
            *(small(f"p{at}", "prod") for at in range(4)),
            gang("new", workers=1, gpus=2, queue="x"),
        ],
        expect=taken("new", "p0", "p1"),
    ),
    Scenario(
        "who deserves nothing keeps nothing that is due to another by weight",
        nodes=nodes(1, gpus=4),
        queues=[queue("spare", deserved=0), queue("a")],
        gangs=[
            *(small(f"a{at}", "a") for at in range(3)),
            small("s", "spare"),
            gang("new", workers=1, gpus=1, queue="a"),
        ],
        expect=taken("new", "s"),
    ),
    Scenario(
        "what is guaranteed is had back, too, though the borrower ends whole",
        nodes=nodes(1, gpus=8),
        queues=[queue("a", guarantee=4), queue("b")],
        gangs=[
            gang("long", workers=8, on=["node-0"] * 8, gpus=1, queue="b", facts={"began": -10.0}),
            gang("new", workers=4, gpus=1, queue="a"),
        ],
        expect=[evicts("new", {"long": 8}), waits("new", reason=RESERVED), ended("long")],
    ),
    Scenario(
        "beyond what is guaranteed nobody insists",
        nodes=nodes(1, gpus=8),
        queues=[queue("a", guarantee=2), queue("b")],
        gangs=[
            gang("long", workers=8, on=["node-0"] * 8, gpus=1, queue="b", facts={"began": -10.0}),
            gang("new", workers=4, gpus=1, queue="a"),
        ],
        expect=[waits("new")],
    ),
]


def eight(name: str, on: str, began: float) -> Team:
    facts = {"began": began}
    return gang(name, workers=1, on=[on], gpus=4, queue="b", facts=facts)


SCATTERED = [
    Scenario(
        "who makes a whole seat ends, not who costs least and leaves half of one on every node",
        nodes=nodes(3, gpus=8),
        queues=[queue("a", deserved=8), queue("b", deserved=16)],
        gangs=[
            eight("b0", "node-0", -1.0),
            eight("b1", "node-0", -9.0),
            eight("b2", "node-1", -2.0),
            eight("b3", "node-1", -6.0),
            eight("b4", "node-2", -3.0),
            eight("b5", "node-2", -6.0),
            gang("new", workers=1, gpus=8, queue="a"),
        ],
        expect=taken("new", "b2", "b3"),
    ),
    Scenario(
        "who sits where the gang can ends, not who costs least and sits elsewhere",
        nodes=[*nodes(1, gpus=2), *nodes(1, gpus=2, prefix="new", labels={"kind": "new"})],
        queues=[queue("a", deserved=1), queue("b", deserved=3)],
        gangs=[
            small("b0", "b"),
            small("b1", "b"),
            small("b2", "b", "new-0", priority=3),
            small("b3", "b", "new-0", priority=2),
            gang("new", workers=1, gpus=1, queue="a", selector={"kind": "new"}),
        ],
        expect=taken("new", "b3"),
    ),
    Scenario(
        "one large gang where it must be either that or a small one",
        nodes=nodes(1, gpus=3),
        queues=[queue("a", deserved=2), queue("b", deserved=1)],
        gangs=[
            gang("large", workers=1, on=["node-0"], gpus=2, queue="b", facts={"began": -9.0}),
            small("tiny", "b"),
            gang("new", workers=2, gpus=1, queue="a"),
        ],
        expect=taken("new", "large"),
    ),
    Scenario(
        "a budget is not spent on who sits elsewhere",
        nodes=[*nodes(1, gpus=1), *nodes(1, gpus=1, prefix="new", labels={"kind": "new"})],
        queues=[queue("a")],
        budgets=[BudgetFacts("team", "one", Selector(), 1)],
        gangs=[
            small("a0", "a"),
            small("a1", "a", "new-0", priority=3),
            gang("new", workers=1, gpus=1, queue="a", priority=5, selector={"kind": "new"}),
        ],
        expect=taken("new", "a1"),
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


@pytest.mark.parametrize(
    "scenario", SCENARIOS + TOGETHER + SCATTERED + RESOURCES, ids=lambda scenario: scenario.name
)
def test_reclaim(scenario: Scenario) -> None:
    scenario.play()
