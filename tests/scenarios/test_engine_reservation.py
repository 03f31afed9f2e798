"""The first in line is not passed for ever: reservations, and who may start around them."""

from __future__ import annotations

import pytest

from posse.engine.decisions import Decision, Keep, Reason
from posse.engine.facts import Keeps, Purpose, QueueFacts, Topology
from posse.engine.policy import Policy
from tests.scenarios.language import (
    Expectation,
    Scenario,
    Team,
    Turn,
    arrives,
    ends,
    evicts,
    gang,
    keeps,
    leaves,
    node,
    nodes,
    pod,
    queue,
    starts,
    vanishes,
    waits,
)

HOUR = 3600.0
RACKS = [
    node(f"{rack}{at}", gpus=1, labels={"posse.dev/rack": rack}) for rack in "ab" for at in range(2)
]
# Long after any gang was created, so that nobody has waited for long.
SOON = Policy(reserve_after=300.0, most_overtakes=3)


def job(name: str, workers: int = 1, *, lasts: float | None = None, **like: object) -> Team:
    """A gang of GPU workers that says how long it runs; it began at 0 if it sits."""
    facts = {"runs_for": lasts, "began": 0.0 if like.get("on") else None}
    more = like.pop("facts", {})
    asks = {"gpus": 1} | like
    return gang(name, workers=workers, facts={**facts, **more}, **asks)  # type: ignore[arg-type, dict-item]


def reserved(name: str, because: str = "") -> Expectation:
    return waits(name, because=because, reason=Reason.RESERVED)


def gathers(name: str, *nodes: str, overtaken: int | None = None) -> Expectation:
    """From now on what comes free on these nodes is kept; none: nothing any more."""

    def check(decision: Decision) -> bool:
        if not isinstance(decision, Keep) or decision.gang != f"team/{name}":
            return False
        kept = decision.keeps
        there = [] if kept is None else sorted(node for _, node in kept.seats)
        right = kept is None or (kept.purpose is Purpose.RESERVATION and kept.until is None)
        return right and there == sorted(nodes) and decision.overtaken == overtaken

    return Expectation(f"gathers({name}, {nodes}, overtaken={overtaken})", check)


RUNNING = [
    job("early", 2, lasts=600, on=["node-0", "node-1"]),
    job("late", 1, lasts=HOUR, on=["node-2"]),
]

# One node comes free after ten minutes, the other after an hour.
BUSY = [
    job("soon", 1, lasts=600, on=["node-0"]),
    job("later", 1, lasts=HOUR, on=["node-1"]),
]
PEACEFUL = Policy(preemption=False, reclaim=False)

FORESEEN = [
    Scenario(
        "the first in line is told when it starts",
        nodes=nodes(4, gpus=1),
        gangs=[*RUNNING, job("big", 3)],
        expect=[waits("big", because="; expected to start at about 00:10 UTC")],
    ),
    Scenario(
        "who is gone before the first in line starts may use its room",
        nodes=nodes(4, gpus=1),
        gangs=[*RUNNING, job("big", 3, age=9), job("brief", 1, lasts=590)],
        expect=[starts("brief", 1), waits("big", because="about 00:10 UTC")],
    ),
    Scenario(
        "who would still be there may not",
        nodes=nodes(4, gpus=1),
        gangs=[*RUNNING, job("big", 3, age=9), job("long", 1, lasts=601), job("vague", 1)],
        expect=[
            waits("big", because="about 00:10 UTC"),
            reserved("long", "waits behind team/big, for which the free room is kept until"),
            reserved("vague", "it could start now if its max runtime ended before then"),
        ],
        then=[
            # It ends as it said: the first in line starts, and so does whoever still fits.
            Turn(
                [ends("early-worker-0", "early-worker-1"), vanishes("early")],
                [
                    starts("big", 3),
                    waits("vague", because="about 01:15 UTC"),
                    waits("long", because="about 01:00 UTC"),
                ],
                after=599,
            ),
        ],
    ),
    Scenario(
        "who uses none of its room may start, however long it runs",
        nodes=nodes(5, gpus=1),
        gangs=[*RUNNING, job("big", 3, age=9), job("long", 1, lasts=HOUR), job("vague", 1)],
        expect=[
            starts("long", 1),
            waits("big", because="about 00:10 UTC"),
            reserved("vague"),
        ],
    ),
    Scenario(
        "room of a kind that it does not use is anybody's",
        nodes=nodes(3, gpus=1),
        gangs=[*RUNNING, job("big", 3, age=9), gang("etl", workers=6, cores=2)],
        expect=[starts("etl", 6), waits("big")],
    ),
    Scenario(
        "whoever comes before it in order is not kept waiting by it",
        nodes=nodes(4, gpus=1),
        gangs=[*RUNNING, job("big", 3)],
        expect=[waits("big")],
        then=[
            Turn(
                [arrives(job("urgent", 1, priority=5))],
                [starts("urgent", 1), waits("big", because="01:00 UTC")],
            )
        ],
    ),
    Scenario(
        "a running gang's lost member comes before it",
        nodes=nodes(4, gpus=1),
        gangs=[*RUNNING, job("big", 3)],
        expect=[waits("big", because="00:10")],
        then=[
            Turn(
                [
                    leaves("node-2"),
                    ends("late-worker-0"),
                    arrives(job("late", 1, lasts=HOUR, started=True)),
                ],
                [starts("late", on={"node-3": 1}), waits("big", because="about 01:05 UTC")],
            )
        ],
    ),
    Scenario(
        "one that runs longer than it said is expected to need twice as long",
        nodes=nodes(3, gpus=1),
        gangs=[
            job("early", 2, lasts=600, on=["node-0", "node-1"]),
            job("big", 3, age=9),
        ],
        expect=[waits("big", because="about 00:10 UTC")],
        then=[Turn([], [waits("big", because="about 00:20 UTC")], after=700)],
    ),
    Scenario(
        "one that ends before it said lets the first in line start at once",
        nodes=nodes(3, gpus=1),
        gangs=[job("early", 1, lasts=HOUR, on=["node-0"]), job("big", 3, age=9), job("more", 2)],
        expect=[waits("big", because="01:00 UTC"), reserved("more")],
        then=[Turn([vanishes("early")], [starts("big", 3), waits("more")], after=60)],
    ),
    Scenario(
        "when the first in line leaves, the room is free for the next",
        nodes=nodes(4, gpus=1),
        gangs=[*RUNNING, job("big", 3, age=9), job("vague", 1)],
        expect=[waits("big"), reserved("vague")],
        then=[Turn([vanishes("big")], [starts("vague", 1)])],
    ),
    Scenario(
        "one that could not start on empty nodes keeps nobody waiting",
        nodes=nodes(4, gpus=1),
        gangs=[*RUNNING, job("huge", 5, age=9), job("vague", 1)],
        expect=[starts("vague", 1), waits("huge", because="the cluster has 4")],
    ),
    Scenario(
        "a higher priority that comes later is first in line, and has the reservation",
        policy=Policy(preemption=False),
        nodes=nodes(4, gpus=1),
        gangs=[*RUNNING, job("big", 4)],
        expect=[waits("big", because="01:00 UTC")],
        then=[
            Turn(
                [arrives(job("first", 3, priority=5))],
                [waits("first", because="00:10 UTC"), waits("big", because="3 more are free")],
            )
        ],
    ),
    Scenario(
        "what is expected is told anew when it has changed",
        nodes=nodes(4, gpus=1),
        gangs=[*RUNNING, job("big", 4)],
        expect=[waits("big", because="01:00 UTC")],
        then=[
            Turn([vanishes("late")], [waits("big", because="00:10 UTC")]),
            Turn([vanishes("early")], [starts("big", 4)]),
        ],
    ),
    Scenario(
        "backfill may be turned off",
        policy=Policy(backfill=False),
        nodes=nodes(4, gpus=1),
        gangs=[*RUNNING, job("big", 3, age=9), job("vague", 1)],
        expect=[starts("vague", 1), waits("big", because="it can start when 3 more are free")],
    ),
    Scenario(
        "in a domain: the room of the rack that comes free first is kept",
        nodes=RACKS,
        gangs=[
            job("x", 1, lasts=HOUR, on=["a0"]),
            job("y", 1, lasts=600, on=["b0"]),
            job("pair", 2, age=9, facts={"topology": Topology(tier=1)}),
            job("vague", 1),
        ],
        expect=[starts("vague", on={"a1": 1}), waits("pair", because="about 00:10 UTC")],
        then=[Turn([vanishes("y")], [starts("pair", on={"b0": 1, "b1": 1})], after=599)],
    ),
    Scenario(
        "in a domain: the pods of the first in line are deleted before their group is",
        nodes=RACKS,
        gangs=[
            job("x", 1, lasts=HOUR, on=["a0"]),
            job("y", 1, lasts=600, on=["b0"]),
            job("pair", 2, age=9, facts={"topology": Topology(tier=1)}),
        ],
        expect=[waits("pair", because="about 00:10 UTC")],
        then=[
            Turn(
                [ends("pair-worker-0", "pair-worker-1")],
                [waits("pair", because="0 of 2 pods exist", reason=Reason.INCOMPLETE)],
            ),
            Turn([vanishes("pair"), arrives(job("late", 2))], [starts("late", 2)]),
        ],
    ),
    Scenario(
        "quota that it will need is not given away either",
        queues=[QueueFacts("q", capability=(("nvidia.com/gpu", 3),))],
        nodes=nodes(8, gpus=1),
        gangs=[
            job("one", 1, lasts=600, on=["node-0"], queue="q"),
            job("big", 3, age=9, queue="q"),
            job("vague", 1, queue="q"),
            job("brief", 1, lasts=300, queue="q"),
            job("other", 1),
        ],
        expect=[
            starts("other", 1),
            starts("brief", 1),
            waits("big", because="about 00:10 UTC", reason=Reason.QUOTA),
            reserved("vague", "waits behind team/big"),
        ],
    ),
    Scenario(
        "resources that nobody had heard of when it was reserved change nothing",
        queues=[QueueFacts("q", capability=(("nvidia.com/gpu", 3),))],
        nodes=nodes(8, gpus=1),
        gangs=[
            job("one", 1, lasts=600, on=["node-0"], queue="q"),
            job("big", 3, age=9, queue="q"),
        ],
        expect=[waits("big", because="about 00:10 UTC", reason=Reason.QUOTA)],
        then=[
            Turn(
                [
                    arrives(
                        gang(
                            "odd",
                            workers=1,
                            queue="q",
                            extra={f"example.com/thing-{at}": 1 for at in range(20)},
                        ),
                        job("vague", 1, queue="q"),
                    )
                ],
                [waits("odd", because="example.com/thing-0"), reserved("vague")],
            )
        ],
    ),
]

ACROSS = [
    Scenario(
        "a queue whose turn is later starts around it too",
        queues=[queue("here"), queue("there")],
        nodes=nodes(4, gpus=1),
        gangs=[
            job("x", 1, lasts=600, on=["node-0"], queue="there"),
            job("y", 1, lasts=HOUR, on=["node-1"], queue="there"),
            job("big", 3, queue="here", age=9),
            job("vague", 1, queue="there", age=99),
            job("brief", 1, queue="there", lasts=60),
        ],
        expect=[
            starts("brief", 1),
            waits("big", because="about 00:10 UTC"),
            reserved("vague", "waits behind team/big"),
        ],
    ),
    Scenario(
        "a queue whose turn is earlier is not kept waiting",
        queues=[queue("here"), queue("there")],
        nodes=nodes(4, gpus=1),
        gangs=[
            job("x", 1, lasts=600, on=["node-0"], queue="here"),
            job("y", 1, lasts=HOUR, on=["node-1"], queue="here"),
            job("big", 3, queue="here", age=9),
            job("vague", 1, queue="there"),
        ],
        expect=[starts("vague", 1), waits("big", because="about 01:00 UTC")],
    ),
    Scenario(
        "each queue has its first in line, and one does not count on the other's room",
        queues=[queue("here"), queue("there")],
        nodes=nodes(3, gpus=1),
        gangs=[
            job("x", 2, lasts=600, on=["node-0", "node-1"], queue="here"),
            job("y", 1, lasts=HOUR, on=["node-2"], queue="there"),
            job("pair", 2, queue="here", age=9),
            job("one", 1, queue="there"),
        ],
        expect=[
            # Its queue has less: it comes first.
            waits("one", because="about 00:10 UTC"),
            waits("pair", because="about 01:00 UTC"),
        ],
    ),
    Scenario(
        "who is served first is expected first, whatever the queues are called",
        queues=[queue("a"), queue("z", priority=5)],
        nodes=nodes(2, gpus=1),
        gangs=[*BUSY, job("low", queue="a", age=9), job("high", queue="z")],
        expect=[
            waits("high", because="about 00:10 UTC"),
            waits("low", because="about 01:00 UTC"),
        ],
        policy=PEACEFUL,
    ),
    Scenario(
        "who comes later and is served before has the earlier room, and the other is told",
        queues=[queue("a"), queue("z", priority=5)],
        nodes=nodes(2, gpus=1),
        gangs=[*BUSY, job("low", queue="a", age=9)],
        expect=[waits("low", because="about 00:10 UTC")],
        then=[
            Turn(
                [arrives(job("high", queue="z"))],
                [waits("high", because="about 00:10 UTC"), waits("low", because="about 01:00 UTC")],
            ),
            Turn([vanishes("high")], [waits("low", because="about 00:10 UTC")]),
        ],
        policy=PEACEFUL,
    ),
    Scenario(
        "parts of a queue wait in its turn",
        queues=[
            queue("a"),
            queue("above", priority=5),
            queue("z-small", parent="above"),
            queue("z-first", parent="above", priority=1),
        ],
        nodes=nodes(3, gpus=1),
        gangs=[
            *BUSY,
            job("latest", 1, lasts=2 * HOUR, on=["node-2"]),
            job("low", queue="a", age=9),
            job("second", queue="z-small", age=5),
            job("first", queue="z-first"),
        ],
        expect=[
            waits("first", because="about 00:10 UTC"),
            waits("second", because="about 01:00 UTC"),
            waits("low", because="about 02:00 UTC"),
        ],
        policy=PEACEFUL,
    ),
    Scenario(
        "what is kept for whom others end is not taken back by the reservation it had before",
        nodes=nodes(1, gpus=1),
        gangs=[
            job("spared", on=["node-0"], facts={"preemptable": False}),
            job("big", age=400, priority=5),
        ],
        expect=[gathers("big", "node-0", overtaken=0), waits("big", because="is kept for it")],
        then=[
            Turn(
                [arrives(job("spared", on=["node-0"]))],
                [
                    evicts("big", {"spared": 1}, on={"node-0": 1}),
                    reserved("big", "waits for 1 pod of team/spared to end"),
                    waits("spared", reason=Reason.INCOMPLETE),
                ],
            ),
        ],
    ),
    Scenario(
        "who has to wait for those before it to end has not lost its place",
        queues=[queue("a"), queue("z", priority=5)],
        nodes=nodes(1, gpus=1),
        gangs=[BUSY[0], job("low", queue="a", age=9), job("high", queue="z")],
        expect=[waits("high", because="about 00:10 UTC", place=1), waits("low", place=1)],
        policy=PEACEFUL,
        places=True,
    ),
]

BEHIND = [
    Scenario(
        "those behind the first in line are told as well, one after the other",
        nodes=nodes(3, gpus=1),
        gangs=[
            job("x", 3, lasts=600, on=["node-0", "node-1", "node-2"]),
            job("first", 2, lasts=600, age=9),
            job("second", 2, lasts=HOUR, age=8),
            job("third", 1, lasts=60, age=7),
            job("fourth", 3, lasts=60, age=6),
        ],
        expect=[
            waits("first", because="about 00:10 UTC"),
            waits("second", because="about 00:20 UTC"),
            waits("third", because="about 00:10 UTC"),
            waits("fourth", because="about 01:20 UTC"),
        ],
        then=[
            Turn(
                [vanishes("x")],
                [
                    starts("first", 2),
                    starts("third", 1),
                    waits("fourth", because="about 01:15 UTC"),
                    waits("second", because="about 00:11 UTC"),
                ],
            ),
        ],
    ),
    Scenario(
        "behind one of whom nobody can know, nobody can know",
        nodes=nodes(2, gpus=1),
        gangs=[
            job("x", 2, lasts=600, on=["node-0", "node-1"]),
            job("first", 1, age=9),
            job("second", 2, lasts=60, age=8),
            job("third", 1, lasts=60, age=7),
        ],
        expect=[
            waits("first", because="about 00:10 UTC"),
            waits("second", because="it can start when 2 more are free"),
            waits("third", because="it can start when 1 more is free"),
        ],
    ),
]

UNKNOWN = [
    Scenario(
        "where nobody can know, that is said",
        nodes=nodes(4, gpus=1),
        gangs=[job("a", 1, on=["node-0"]), job("b", 1, on=["node-1"]), job("big", 3)],
        expect=[waits("big", because="; when it starts is unknown: 2 jobs state no max runtime")],
    ),
    Scenario(
        "others pass until it was overtaken too often; then what comes free is kept for it",
        policy=SOON,
        nodes=nodes(3, gpus=1),
        gangs=[
            job("a", 1, on=["node-0"]),
            job("b", 1, on=["node-1"]),
            job("big", 3, age=9),
            job("s1", 1),
        ],
        expect=[
            starts("s1", on={"node-2": 1}),
            gathers("big", overtaken=1),
            waits("big", because="unknown: 3 jobs"),
        ],
        then=[
            Turn(
                [vanishes("s1"), arrives(job("s2", 1))],
                [starts("s2", 1), gathers("big", overtaken=2)],
            ),
            Turn(
                [vanishes("a"), arrives(job("s3", 1))],
                [
                    starts("s3", 1),
                    gathers("big", "node-0", "node-1", "node-2", overtaken=3),
                    waits("big", because="what comes free on 3 nodes is kept for it"),
                ],
            ),
            Turn(
                [vanishes("b"), arrives(job("s4", 1))],
                [waits("big"), reserved("s4", "waits behind team/big")],
            ),
            Turn([vanishes("s2")], [waits("big")]),
            Turn([vanishes("s3")], [starts("big", 3), gathers("big"), waits("s4")]),
        ],
    ),
    Scenario(
        "what is kept for a member that another lost does not end the hope of the first in line",
        policy=SOON,
        nodes=nodes(2, gpus=1),
        gangs=[job("a", 2, on=["node-0", "node-1"], recreated=True), job("big", 2)],
        expect=[waits("big")],
        then=[
            Turn(
                [],
                [gathers("big", "node-0", "node-1", overtaken=0), waits("big", because="is kept")],
                after=300,
            ),
            Turn(
                [ends("a-worker-0")],
                [
                    keeps("a", ("worker", "node-0")),
                    waits("a", reason=Reason.INCOMPLETE),
                    waits("big", because="is kept"),
                ],
            ),
            Turn([arrives(job("small", 1))], [waits("small")]),
            Turn(
                [vanishes("a")],
                [
                    starts("big", 2),
                    gathers("big"),
                    gathers("small", "node-0", overtaken=0),
                    waits("small"),
                ],
            ),
        ],
    ),
    Scenario(
        "or until it waited for too long",
        policy=SOON,
        nodes=nodes(2, gpus=1),
        gangs=[job("a", 1, on=["node-0"]), job("big", 2)],
        expect=[waits("big")],
        then=[
            Turn(
                [],
                [gathers("big", "node-0", "node-1", overtaken=0), waits("big", because="is kept")],
                after=300,
            ),
            Turn([arrives(job("small", 1))], [reserved("small")]),
            Turn(
                [vanishes("a")],
                [
                    starts("big", 2),
                    gathers("big"),
                    gathers("small", "node-0", overtaken=0),
                    waits("small", because="0 of 2 are free"),
                ],
            ),
        ],
    ),
    Scenario(
        "half a seat that came free is kept too",
        policy=Policy(reserve_after=9.0),
        nodes=[node("node-0", gpus=2)],
        gangs=[
            job("a", 1, on=["node-0"]),
            job("b", 1, on=["node-0"]),
            job("whole", 1, gpus=2, age=9),
        ],
        expect=[gathers("whole", "node-0", overtaken=0), waits("whole")],
        then=[
            Turn([vanishes("a"), arrives(job("small", 1))], [waits("whole"), reserved("small")]),
            Turn([vanishes("b")], [starts("whole", 1), gathers("whole"), waits("small")]),
        ],
    ),
    Scenario(
        "the nodes are those from which the fewest must go",
        policy=Policy(reserve_after=1.0),
        nodes=nodes(4, gpus=2),
        gangs=[
            job("a", 4, on=["node-0", "node-0", "node-1", "node-1"]),
            job("b", 1, on=["node-2"]),
            job("c", 1, on=["node-3"]),
            job("big", 2, gpus=2, age=9),
            job("small", 2),
        ],
        expect=[
            gathers("big", "node-2", "node-3", overtaken=0),
            waits("big"),
            reserved("small"),
        ],
    ),
    Scenario(
        "what an earlier life gathered is gathered on",
        nodes=nodes(4, gpus=1),
        gangs=[
            job("a", 2, on=["node-0", "node-1"]),
            job(
                "big",
                3,
                age=9,
                facts={
                    "keeps": Keeps(
                        Purpose.RESERVATION,
                        (("worker", "node-0"), ("worker", "node-1"), ("worker", "node-2")),
                    )
                },
            ),
            job("s1", 1),
            job("s2", 1),
        ],
        expect=[
            gathers("big", "node-0", "node-2", "node-3", overtaken=0),
            waits("big"),
            reserved("s1"),
            reserved("s2"),
        ],
    ),
    Scenario(
        "where all that comes free is kept for another queue's first, the next asks for no date",
        nodes=nodes(1, gpus=2),
        queues=[QueueFacts("a"), QueueFacts("b")],
        gangs=[
            job("runs", gpus=2, on=["node-0"]),
            job("first", gpus=2, queue="a", age=9.0),
            job("next", gpus=2, queue="b"),
        ],
        policy=Policy(reserve_after=300.0, preemption=False, reclaim=False),
        expect=[waits("first"), waits("next")],
        then=[
            Turn(after=400.0, expect=[gathers("first", "node-0", overtaken=0), waits("first")]),
            Turn(
                [ends("runs-worker-0")],
                [
                    starts("first", 1),
                    gathers("first"),
                    gathers("next", "node-0", overtaken=1),
                    waits("next"),
                ],
            ),
        ],
    ),
    Scenario(
        "a stream of small gangs and one large one: it starts after a bounded wait",
        policy=Policy(reserve_after=600.0, most_overtakes=2),
        nodes=nodes(2, gpus=1),
        gangs=[job("s0", 1, age=9), job("big", 2, age=5), job("s1", 1)],
        expect=[
            starts("s0", 1),
            starts("s1", 1),
            gathers("big", overtaken=1),
            waits("big"),
        ],
        then=[
            Turn(
                [vanishes("s0"), arrives(job("s2", 1))],
                [
                    starts("s2", 1),
                    gathers("big", "node-0", "node-1", overtaken=2),
                    waits("big", because="is kept for it"),
                ],
            ),
            Turn([vanishes("s1"), arrives(job("s3", 1))], [waits("big"), reserved("s3")]),
            Turn(
                [vanishes("s2"), arrives(job("s4", 1))],
                [starts("big", 2), gathers("big"), waits("s4"), waits("s3")],
            ),
        ],
    ),
    Scenario(
        "pods that are not ours and have devices end some time; daemons do not",
        policy=Policy(reserve_after=1.0),
        nodes=nodes(2, gpus=1, cores=4),
        others=[
            pod("theirs", on="node-0", gpus=1),
            pod("daemon", on="node-1", cores=2),
        ],
        gangs=[job("big", 2, cores=3, age=9), job("fits", 2, age=8), job("small", 1)],
        expect=[
            gathers("fits", "node-0", "node-1", overtaken=0),
            waits("big", because="1 core"),
            waits("fits", because="1 job states no max runtime"),
            reserved("small"),
        ],
    ),
]


SCENARIOS = FORESEEN + ACROSS + BEHIND + UNKNOWN


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_reservation(scenario: Scenario) -> None:
    scenario.play()
