"""Queues: what they may use, what is kept for them, whose turn it is, and who may use them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from posse.engine.cycle import cycle
from posse.engine.decisions import Reason, Start
from posse.engine.facts import QueueFacts
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import (
    GPU,
    Happening,
    Scenario,
    Team,
    Turn,
    arrives,
    ends,
    gang,
    goes,
    keeps,
    member,
    node,
    nodes,
    pod,
    queue,
    refused,
    shape,
    starts,
    vanishes,
    waits,
)

# Nobody is ended and nothing is gathered: these tables are about who may have what is free.
QUIET = Policy(preemption=False, reclaim=False, backfill=False)
QUOTA = Reason.QUOTA


def closes(name: str, **like: object) -> Happening:
    return arrives(queue(name, open=False, **like))  # type: ignore[arg-type]


def disappears(name: str) -> Happening:
    return lambda view: view.remove_queue(name)


def running(name: str, gpus: int, queue: str, *, on: str = "node-0") -> Team:
    """A gang of one pod that has its node."""
    return gang(name, workers=1, gpus=gpus, queue=queue, on=[on])


CAPABILITY = [
    Scenario(
        "12 of 16 in use and 8 asked: it waits, and is told of the queue",
        nodes=nodes(4, gpus=8),
        queues=[queue("vision", gpus=16)],
        gangs=[
            gang("old", workers=2, gpus=4, queue="vision", on=["node-0", "node-0"]),
            running("one", 4, "vision", on="node-1"),
            gang("new", workers=2, gpus=4, queue="vision"),
        ],
        expect=[
            waits(
                "new",
                reason=QUOTA,
                because="but queue vision may use 16 (capability) and 12 are in use;"
                " it can start when 4 more are free in the queue",
            )
        ],
        then=[Turn([vanishes("one")], [starts("new", 2)])],
    ),
    Scenario(
        "9 of 10 in use and 10 asked",
        nodes=nodes(4, gpus=10),
        queues=[queue("q", gpus=10)],
        gangs=[running("old", 9, "q"), gang("new", workers=1, gpus=10, queue="q")],
        expect=[waits("new", reason=QUOTA, because="when 9 more are free in the queue")],
    ),
    Scenario(
        "exactly what is left may be taken",
        nodes=nodes(4, gpus=10),
        queues=[queue("q", gpus=10)],
        gangs=[running("old", 9, "q"), gang("new", workers=1, gpus=1, queue="q")],
        expect=[starts("new", 1)],
    ),
    Scenario(
        "more than the queue may ever use is said to be that",
        nodes=nodes(4, gpus=8),
        queues=[queue("vision", gpus=16)],
        gangs=[gang("big", workers=5, gpus=4, queue="vision")],
        expect=[
            waits(
                "big",
                reason=QUOTA,
                because="asks for 20 GPUs, but queue vision may use 16 (capability);"
                " ask for 16 at most, or raise it",
            )
        ],
        then=[Turn([arrives(queue("vision", gpus=20))], [starts("big", 5)])],
    ),
    Scenario(
        "what a capability does not name is unlimited, and what it names as zero is none",
        nodes=nodes(1, gpus=8),
        queues=[queue("cpu", gpus=0), QueueFacts("gpu", capability=(("cpu", 1000),))],
        gangs=[
            gang("a", workers=2, cores=4, queue="cpu"),
            gang("b", workers=1, cores=1, gpus=8, queue="gpu"),
            gang("c", workers=1, cores=1, gpus=1, queue="cpu"),
        ],
        expect=[
            starts("a", 2),
            starts("b", 1),
            waits("c", reason=QUOTA, because="asks for 1 GPU, but queue cpu may use 0"),
        ],
    ),
    Scenario(
        "an ancestor's limit binds, and is named",
        nodes=nodes(4, gpus=8),
        queues=[
            queue("research", gpus=12),
            queue("vision", parent="research", gpus=10),
            queue("nlp", parent="research"),
        ],
        gangs=[running("old", 8, "nlp"), gang("new", workers=2, gpus=4, queue="vision")],
        expect=[
            waits(
                "new",
                reason=QUOTA,
                because="queue research, of which queue vision is part, may use 12"
                " (capability) and 8 are in use; it can start when 4 more are free in queue"
                " research",
            )
        ],
        then=[Turn([ends("old-worker-0")], [starts("new", 2)])],
    ),
    Scenario(
        "a child may be allowed more than its parent: the smaller counts",
        nodes=nodes(4, gpus=8),
        queues=[queue("research", gpus=4), queue("vision", parent="research", gpus=32)],
        gangs=[gang("new", workers=2, gpus=4, queue="vision")],
        expect=[waits("new", reason=QUOTA, because="queue research, of which queue vision is")],
    ),
    Scenario(
        "a queue named root limits all",
        nodes=nodes(4, gpus=8),
        queues=[queue("root", gpus=8), queue("vision"), queue("nlp", parent="root")],
        gangs=[
            running("a", 4, "vision"),
            gang("b", workers=1, gpus=4, queue="nlp"),
            gang("c", workers=1, gpus=4, queue="default"),
        ],
        expect=[
            starts("b", 1),
            waits("c", reason=QUOTA, because="queue root, of which queue default is part"),
        ],
    ),
    Scenario(
        "two small ones fit where a large one does not: the queue is not held up",
        nodes=nodes(4, gpus=8),
        queues=[queue("q", gpus=8)],
        gangs=[
            gang("big", workers=3, gpus=4, queue="q", age=3),
            gang("one", workers=1, gpus=4, queue="q", age=2),
            gang("two", workers=1, gpus=4, queue="q", age=1),
            gang("three", workers=1, gpus=4, queue="q"),
        ],
        expect=[
            starts("one"),
            starts("two"),
            waits("big", reason=QUOTA),
            waits("three", reason=QUOTA, because="8 are in use"),
        ],
    ),
    Scenario(
        "members beyond the minimum take what the quota leaves",
        nodes=nodes(4, gpus=8),
        queues=[queue("q", gpus=8)],
        gangs=[gang("elastic", workers=6, least=2, gpus=2, queue="q")],
        expect=[
            starts("elastic", 2),
            starts("elastic", 2),
            waits(
                "elastic",
                reason=QUOTA,
                because="2 pods beyond its minimum: asks for 2 GPUs beside",
            ),
        ],
        then=[
            Turn(
                [ends("elastic-worker-0")],
                [
                    starts("elastic", 1),
                    waits("elastic", reason=QUOTA, because="1 pod beyond its minimum"),
                ],
            )
        ],
    ),
    Scenario(
        "the minimum is chosen from roles that the quota bears",
        nodes=nodes(4, gpus=8),
        queues=[queue("q", gpus=2)],
        gangs=[
            gang(
                "mixed",
                roles={"a": (3, shape(gpus=2)), "b": (3, shape(cores=1))},
                least=3,
                queue="q",
            )
        ],
        expect=[
            starts("mixed", who=["mixed-a-0", "mixed-b-0", "mixed-b-1"]),
            starts("mixed", who=["mixed-b-2"]),
            waits("mixed", reason=QUOTA, because="2 pods beyond its minimum"),
        ],
    ),
    Scenario(
        "what the gang says it needs as a whole counts, whatever its pods come to",
        nodes=nodes(4, gpus=8),
        queues=[queue("q", gpus=8)],
        gangs=[gang("g", workers=2, gpus=2, queue="q", facts={"min_resources": ((GPU, 12),)})],
        expect=[waits("g", reason=QUOTA, because="asks for 12 GPUs, but queue q may use 8")],
    ),
    Scenario(
        "and what it needs must be free in the queue",
        nodes=nodes(4, gpus=8),
        queues=[queue("q", gpus=8)],
        gangs=[
            running("old", 2, "q"),
            gang("g", workers=2, gpus=2, queue="q", facts={"min_resources": ((GPU, 8),)}),
        ],
        expect=[waits("g", reason=QUOTA, because="2 are in use; it can start when 2 more are")],
        then=[Turn([ends("old-worker-0")], [starts("g", 2)])],
    ),
    Scenario(
        "a member on its way out counts until it is gone",
        nodes=nodes(4, gpus=8),
        queues=[queue("q", gpus=8)],
        gangs=[running("old", 8, "q"), gang("new", workers=1, gpus=8, queue="q")],
        expect=[waits("new", reason=QUOTA)],
        then=[
            Turn([goes("old-worker-0")], []),
            Turn([ends("old-worker-0")], [starts("new", 1)]),
        ],
    ),
    Scenario(
        "the seats of a group that is gone are still its queue's",
        nodes=nodes(4, gpus=8),
        queues=[queue("q", gpus=8)],
        gangs=[running("old", 8, "q"), gang("new", workers=1, gpus=8, queue="q")],
        expect=[waits("new", reason=QUOTA)],
        then=[
            Turn([lambda view: view.remove_group("team/old")], []),
            Turn([ends("old-worker-0")], [starts("new", 1)]),
        ],
    ),
    Scenario(
        "a seat held for an announced member counts",
        nodes=nodes(4, gpus=8),
        queues=[queue("q", gpus=4)],
        gangs=[
            gang("mpi", workers=2, gpus=1, launcher=shape(gpus=1), queue="q", age=1),
            gang("two", workers=2, gpus=1, queue="q"),
        ],
        expect=[
            starts("mpi", 2),
            waits("two", reason=QUOTA, because="may use 4 (capability) and 3 are in use"),
        ],
        then=[
            Turn(
                [
                    arrives(
                        gang(
                            "mpi",
                            workers=2,
                            gpus=1,
                            launcher=shape(gpus=1),
                            launcher_exists=True,
                            queue="q",
                            age=1,
                        )
                    )
                ],
                [starts("mpi", 1)],
            )
        ],
    ),
    Scenario(
        "a bind that did not happen gives its quota back",
        nodes=nodes(4, gpus=8),
        queues=[queue("q", gpus=8)],
        gangs=[gang("a", workers=1, gpus=8, queue="q"), gang("b", workers=1, gpus=8, queue="q")],
        expect=[starts("a", 1), waits("b", reason=QUOTA)],
        then=[Turn([refused("a-worker-0"), vanishes("a")], [starts("b", 1)])],
    ),
    Scenario(
        "a gang that moves to another queue takes its use along",
        nodes=nodes(4, gpus=8),
        queues=[queue("a", gpus=8), queue("b", gpus=8)],
        gangs=[running("old", 8, "a"), gang("new", workers=1, gpus=8, queue="a")],
        expect=[waits("new", reason=QUOTA)],
        then=[Turn([arrives(running("old", 8, "b"))], [starts("new", 1)])],
    ),
    Scenario(
        "a quota that was lowered binds the successor of a lost member too",
        nodes=nodes(4, gpus=8),
        queues=[queue("q", gpus=8)],
        gangs=[gang("old", workers=2, gpus=4, queue="q", on=["node-0", "node-1"])],
        then=[
            Turn(
                [arrives(queue("q", gpus=4)), ends("old-worker-1")],
                [keeps("old", ("worker", "node-1")), waits("old", reason=Reason.INCOMPLETE)],
            ),
            Turn(
                [
                    arrives(
                        gang("new", workers=1, gpus=1, queue="q"),
                        member("old", "worker-1", gpus=4),
                    )
                ],
                [
                    waits(
                        "old",
                        reason=QUOTA,
                        because="asks for 4 GPUs beside the 4 it has",
                    ),
                    waits("new", reason=QUOTA, because="8 are in use"),
                ],
            ),
        ],
    ),
]

GUARANTEE = [
    Scenario(
        "what is guaranteed stays free while its queue is idle",
        nodes=nodes(2, gpus=8),
        queues=[queue("vision", guarantee=6), queue("nlp")],
        gangs=[gang("new", workers=3, gpus=4, queue="nlp")],
        expect=[
            waits(
                "new",
                reason=QUOTA,
                because="asks for 12 GPUs, but today's nodes have 16, of which 6 are kept for"
                " queue vision (guarantee); ask for 10 at most, add 2, or lower the guarantee",
            )
        ],
        then=[
            Turn([arrives(node("node-2", gpus=8))], [starts("new", 3)]),
            Turn([arrives(gang("mine", workers=1, gpus=6, queue="vision"))], [starts("mine", 1)]),
        ],
    ),
    Scenario(
        "what its queue uses of it need not be kept",
        nodes=nodes(2, gpus=8),
        queues=[queue("vision", guarantee=6), queue("nlp")],
        gangs=[
            running("mine", 4, "vision"),
            gang("a", workers=1, gpus=2, queue="nlp", age=1),
            gang("b", workers=2, gpus=4, queue="nlp"),
        ],
        expect=[starts("a", 1), starts("b", 2)],
    ),
    Scenario(
        "what is not guaranteed of a resource binds nobody",
        nodes=nodes(1, gpus=8, cores=4),
        queues=[queue("vision", guarantee=8), queue("nlp")],
        gangs=[gang("cpu", workers=4, cores=1, queue="nlp")],
        expect=[starts("cpu", 4)],
    ),
    Scenario(
        "a guarantee is kept inside of what a queue above may use, too",
        nodes=nodes(4, gpus=8),
        queues=[
            queue("research", gpus=24),
            queue("vision", parent="research", guarantee=8),
            queue("nlp", parent="research"),
            queue("other"),
        ],
        gangs=[
            gang("a", workers=3, gpus=8, queue="nlp", age=2),
            gang("b", workers=2, gpus=8, queue="nlp", age=1),
        ],
        expect=[
            starts("b", 2),
            waits(
                "a",
                reason=QUOTA,
                because="asks for 24 GPUs, but queue research, of which queue nlp is part, may use"
                " 24 (capability), of which 8 are kept for queue vision (guarantee); ask for 16 at"
                " most, raise the capability, or lower the guarantee",
            ),
        ],
        then=[
            Turn([arrives(gang("c", workers=1, gpus=8, queue="other"))], [starts("c", 1)]),
            Turn([arrives(gang("d", workers=1, gpus=8, queue="vision"))], [starts("d", 1)]),
        ],
    ),
    Scenario(
        "of a guarantee no more is kept than its queue may use",
        nodes=nodes(1, gpus=8),
        queues=[queue("small", gpus=4, guarantee=8), queue("nlp")],
        gangs=[
            gang("a", workers=5, gpus=1, queue="nlp", age=2),
            gang("b", workers=4, gpus=1, queue="nlp", age=1),
        ],
        expect=[
            starts("b", 4),
            waits(
                "a",
                reason=QUOTA,
                because="of which 4 are kept for queue small (guarantee); ask for 4 at most",
            ),
        ],
    ),
    Scenario(
        "nor than a queue above it may use",
        nodes=nodes(1, gpus=8),
        queues=[
            queue("research", gpus=4),
            queue("vision", parent="research", guarantee=8),
            queue("nlp"),
        ],
        gangs=[
            gang("a", workers=4, gpus=1, queue="nlp"),
            gang("b", workers=1, gpus=1, queue="nlp"),
        ],
        expect=[
            starts("a", 4),
            waits("b", reason=QUOTA, because="4 are free, but 4 are kept for queue research"),
        ],
    ),
    Scenario(
        "a queue that uses all it may is below its guarantee no more",
        nodes=nodes(2, gpus=8),
        queues=[queue("small", gpus=4, guarantee=8), queue("nlp", weight=100)],
        gangs=[
            gang("runs", workers=1, gpus=4, queue="small", on=["node-0"]),
            gang("a", workers=1, gpus=0, queue="small", age=2),
            gang("b", workers=1, gpus=4, queue="nlp", age=1),
        ],
        expect=[starts("b", 1), starts("a", 1)],
    ),
    Scenario(
        "a guarantee inside a guarantee is kept from its siblings too",
        nodes=nodes(1, gpus=8),
        queues=[
            queue("research", guarantee=8),
            queue("vision", parent="research", guarantee=6),
            queue("nlp", parent="research"),
            queue("other"),
        ],
        gangs=[
            gang("a", workers=1, gpus=4, queue="nlp", age=3),
            gang("b", workers=1, gpus=2, queue="nlp", age=2),
            gang("c", workers=1, gpus=1, queue="other", age=1),
            gang("d", workers=1, gpus=6, queue="vision"),
        ],
        expect=[
            starts("d", 1),
            starts("b", 1),
            waits("a", reason=Reason.QUOTA, because="6 are kept for queue vision"),
            waits("c", reason=Reason.QUOTA, because="8 are kept for queue research"),
        ],
    ),
    Scenario(
        "a queue below its guarantee is served first",
        nodes=nodes(1, gpus=8),
        queues=[queue("vision", guarantee=4, weight=1), queue("nlp", weight=100)],
        gangs=[
            gang("a", workers=1, gpus=4, queue="nlp", age=9),
            gang("b", workers=1, gpus=4, queue="vision"),
        ],
        expect=[starts("b", 1), starts("a", 1)],
    ),
    Scenario(
        "guarantees that nodes cannot meet keep all that is there",
        nodes=nodes(1, gpus=4),
        queues=[queue("vision", guarantee=8), queue("nlp")],
        gangs=[gang("a", workers=1, gpus=1, queue="nlp")],
        expect=[
            waits(
                "a",
                reason=QUOTA,
                because="asks for 1 GPU, but today's nodes have 4, and 8 are kept for",
            )
        ],
    ),
]

DOORS = [
    Scenario(
        "a queue that does not exist",
        nodes=nodes(1, gpus=8),
        gangs=[gang("a", workers=1, gpus=1, queue="nowhere")],
        expect=[waits("a", reason=Reason.QUEUE_MISSING, because="queue nowhere does not exist")],
        then=[Turn([arrives(queue("nowhere"))], [starts("a", 1)])],
    ),
    Scenario(
        "default is always there",
        nodes=nodes(1, gpus=8),
        gangs=[gang("a", workers=1, gpus=1)],
        expect=[starts("a", 1)],
    ),
    Scenario(
        "default obeys its object like any other",
        nodes=nodes(1, gpus=8),
        queues=[queue("default", gpus=0)],
        gangs=[gang("a", workers=1, gpus=1)],
        expect=[waits("a", reason=QUOTA, because="queue default may use 0")],
        then=[Turn([disappears("default")], [starts("a", 1)])],
    ),
    Scenario(
        "nothing starts in a closed queue; what runs there goes on and is made whole",
        nodes=nodes(2, gpus=4),
        queues=[queue("q")],
        gangs=[gang("old", workers=2, gpus=2, queue="q", on=["node-0", "node-0"])],
        then=[
            Turn(
                [closes("q"), arrives(gang("new", workers=1, gpus=1, queue="q"))],
                [waits("new", reason=Reason.QUEUE_CLOSED, because="queue q is closed")],
            ),
            Turn(
                [ends("old-worker-1"), arrives(member("old", "worker-1", gpus=2))],
                [starts("old", 1)],
            ),
            Turn([arrives(queue("q"))], [starts("new", 1)]),
        ],
    ),
    Scenario(
        "a closed ancestor closes what is part of it",
        nodes=nodes(1, gpus=4),
        queues=[queue("research", open=False), queue("vision", parent="research")],
        gangs=[gang("new", workers=1, gpus=1, queue="vision")],
        expect=[
            waits(
                "new",
                reason=Reason.QUEUE_CLOSED,
                because="queue research, of which queue vision is part, is closed",
            )
        ],
        then=[Turn([arrives(queue("research"))], [starts("new", 1)])],
    ),
    Scenario(
        "a parent that does not exist",
        nodes=nodes(1, gpus=4),
        queues=[queue("vision", parent="research")],
        gangs=[gang("new", workers=1, gpus=1, queue="vision")],
        expect=[
            waits(
                "new",
                reason=Reason.QUEUE_BROKEN,
                because="queue vision is part of queue research, which does not exist",
            )
        ],
        then=[Turn([arrives(queue("research"))], [starts("new", 1)])],
    ),
    Scenario(
        "queues that are part of one another",
        nodes=nodes(1, gpus=4),
        queues=[queue("a", parent="b"), queue("b", parent="a"), queue("c", parent="a")],
        gangs=[
            gang("one", workers=1, gpus=1, queue="c"),
            gang("two", workers=1, gpus=1, queue="default"),
        ],
        expect=[
            starts("two", 1),
            waits("one", reason=Reason.QUEUE_BROKEN, because="is its own ancestor (a, b, a)"),
        ],
        then=[Turn([arrives(queue("a"))], [starts("one", 1)])],
    ),
    Scenario(
        "each of those that are part of one another says so",
        nodes=nodes(1, gpus=4),
        queues=[queue("a", parent="b"), queue("b", parent="a")],
        gangs=[
            gang("one", workers=1, gpus=1, queue="a", age=1),
            gang("two", workers=1, gpus=1, queue="b"),
        ],
        expect=[
            waits("one", reason=Reason.QUEUE_BROKEN, because="queue a is its own ancestor (a, b"),
            waits("two", reason=Reason.QUEUE_BROKEN, because="queue b is its own ancestor (b, a"),
        ],
    ),
    Scenario(
        "a queue that is its own parent",
        nodes=nodes(1, gpus=4),
        queues=[queue("a", parent="a")],
        gangs=[gang("one", workers=1, gpus=1, queue="a")],
        expect=[waits("one", reason=Reason.QUEUE_BROKEN, because="is its own ancestor (a, a)")],
    ),
    Scenario(
        "jobs live in leaf queues",
        nodes=nodes(1, gpus=4),
        queues=[queue("research"), queue("vision", parent="research")],
        gangs=[gang("new", workers=1, gpus=1, queue="research")],
        expect=[
            waits(
                "new",
                reason=Reason.QUEUE_FORBIDDEN,
                because="queue research is divided into queues (vision); name one of these",
            )
        ],
        then=[Turn([disappears("vision")], [starts("new", 1)])],
    ),
    Scenario(
        "a queue that cannot be read takes nothing new",
        nodes=nodes(1, gpus=4),
        queues=[queue("q", problem="cannot be read (spec.weight)")],
        gangs=[running("old", 1, "q"), gang("new", workers=1, gpus=1, queue="q")],
        expect=[
            waits(
                "new",
                reason=Reason.QUEUE_BROKEN,
                because="queue q cannot be read (spec.weight); it can start once that is mended",
            )
        ],
    ),
    Scenario(
        "a queue for other namespaces",
        nodes=nodes(1, gpus=4),
        queues=[queue("q", namespaces=("other",))],
        gangs=[gang("new", workers=1, gpus=1, queue="q")],
        expect=[
            waits(
                "new",
                reason=Reason.QUEUE_FORBIDDEN,
                because="queue q is not for namespace team (posse.dev/namespaces)",
            )
        ],
        then=[Turn([arrives(queue("q", namespaces=("other", "team")))], [starts("new", 1)])],
    ),
    Scenario(
        "who may use a queue is said by itself, else by its nearest ancestor that does",
        nodes=nodes(1, gpus=4),
        queues=[
            queue("research", namespaces=("other",)),
            queue("open", parent="research", namespaces=("team",)),
            queue("shut", parent="research"),
        ],
        gangs=[
            gang("a", workers=1, gpus=1, queue="open"),
            gang("b", workers=1, gpus=1, queue="shut"),
        ],
        expect=[
            starts("a", 1),
            waits(
                "b",
                reason=Reason.QUEUE_FORBIDDEN,
                because="queue shut, as part of queue research, is not for namespace team",
            ),
        ],
    ),
    Scenario(
        "a namespace that loses a queue keeps what runs there",
        nodes=nodes(2, gpus=4),
        queues=[queue("q", namespaces=("team",))],
        gangs=[gang("old", workers=2, gpus=2, queue="q", on=["node-0", "node-0"])],
        then=[
            Turn(
                [
                    arrives(queue("q", namespaces=())),
                    ends("old-worker-1"),
                    arrives(member("old", "worker-1", gpus=2)),
                ],
                [starts("old", 1)],
            ),
        ],
    ),
]

ORDER = [
    Scenario(
        "the queue of higher priority first, whatever its share",
        nodes=nodes(1, gpus=4),
        queues=[queue("low"), queue("high", priority=5)],
        gangs=[
            gang("a", workers=1, gpus=2, queue="low", age=9, priority=100),
            gang("b", workers=1, gpus=2, queue="high"),
            gang("c", workers=1, gpus=2, queue="high"),
        ],
        expect=[starts("b"), starts("c"), waits("a")],
    ),
    Scenario(
        "queues take turns as their shares grow",
        nodes=nodes(1, gpus=6),
        queues=[queue("a"), queue("b")],
        gangs=[
            *[gang(f"a{at}", workers=1, gpus=1, queue="a", age=100 - at) for at in range(4)],
            *[gang(f"b{at}", workers=1, gpus=1, queue="b", age=50 - at) for at in range(4)],
        ],
        expect=[
            *[starts(f"{name}{at}") for at in range(3) for name in "ab"],
            waits("a3"),
            waits("b3"),
        ],
    ),
    Scenario(
        "a queue of twice the weight gets twice as much",
        nodes=nodes(1, gpus=6),
        queues=[queue("a", weight=2), queue("b")],
        gangs=[
            *[gang(f"a{at}", workers=1, gpus=1, queue="a", age=9 - at) for at in range(6)],
            *[gang(f"b{at}", workers=1, gpus=1, queue="b") for at in range(6)],
        ],
        expect=[
            *[starts(name) for name in ("a0", "b0", "a1", "a2", "b1", "a3")],
            *[waits(name) for name in ("a4", "a5", "b2", "b3", "b4", "b5")],
        ],
    ),
    Scenario(
        "what a queue deserves by its own word counts, not its weight",
        nodes=nodes(1, gpus=6),
        queues=[queue("a", deserved=4), queue("b", deserved=2, weight=50)],
        gangs=[
            running("old", 1, "a"),
            *[gang(f"a{at}", workers=1, gpus=1, queue="a", age=9 - at) for at in range(4)],
            *[gang(f"b{at}", workers=1, gpus=1, queue="b") for at in range(4)],
        ],
        expect=[
            *[starts(name) for name in ("b0", "a0", "a1", "b1", "a2")],
            *[waits(name) for name in ("a3", "b2", "b3")],
        ],
    ),
    Scenario(
        "two departments share evenly, however many queues each has",
        nodes=nodes(1, gpus=4),
        queues=[
            queue("one"),
            queue("two"),
            queue("one-a", parent="one"),
            *[queue(f"two-{at}", parent="two") for at in range(3)],
        ],
        gangs=[
            *[gang(f"a{at}", workers=1, gpus=1, queue="one-a", age=9 - at) for at in range(3)],
            *[gang(f"b{at}", workers=1, gpus=1, queue=f"two-{at}", age=-at) for at in range(3)],
        ],
        expect=[
            *[starts(name) for name in ("a0", "b0", "a1", "b1")],
            waits("a2"),
            waits("b2"),
        ],
    ),
    Scenario(
        "the largest share of any resource counts",
        nodes=nodes(1, gpus=8, cores=16),
        queues=[queue("cpu"), queue("gpu")],
        gangs=[
            # Half of the cores against a quarter of the GPUs.
            gang("c0", workers=1, cores=8, queue="cpu", on=["node-0"]),
            gang("g0", workers=1, gpus=2, cores=1, queue="gpu", on=["node-0"]),
            gang("c1", workers=1, cores=4, queue="cpu", age=9),
            gang("g1", workers=1, gpus=2, cores=1, queue="gpu"),
        ],
        expect=[starts("g1"), starts("c1")],
    ),
    Scenario(
        "the policy says how much each resource counts",
        nodes=nodes(1, gpus=8, cores=16),
        queues=[queue("cpu"), queue("gpu")],
        gangs=[
            gang("c0", workers=1, cores=8, queue="cpu", on=["node-0"]),
            gang("g0", workers=1, gpus=2, cores=1, queue="gpu", on=["node-0"]),
            gang("c1", workers=1, cores=4, queue="cpu", age=-9),
            gang("g1", workers=1, gpus=2, cores=1, queue="gpu"),
        ],
        policy=replace(QUIET, share_weights=(("cpu", 100), ("pods", 100))),
        expect=[starts("c1"), starts("g1")],
    ),
    Scenario(
        "equal shares: the older gang, whatever its queue",
        nodes=nodes(1, gpus=4),
        queues=[queue("a"), queue("b")],
        gangs=[
            gang("young", workers=1, gpus=4, queue="a", age=1),
            gang("old", workers=1, gpus=4, queue="b", age=2),
        ],
        expect=[starts("old"), waits("young")],
    ),
    Scenario(
        "inside a queue priority, then age",
        nodes=nodes(1, gpus=3),
        queues=[queue("a")],
        gangs=[
            gang("old", workers=1, gpus=1, queue="a", age=2),
            gang("young", workers=1, gpus=1, queue="a", age=1),
            gang("urgent", workers=1, gpus=1, queue="a", priority=1),
        ],
        expect=[starts("urgent"), starts("old"), starts("young")],
    ),
    Scenario(
        "an idle queue's share is lent, and a queue that comes back is served before the borrower",
        nodes=nodes(1, gpus=4),
        queues=[queue("a"), queue("b")],
        gangs=[gang(f"a{at}", workers=1, gpus=1, queue="a", age=9 - at) for at in range(6)],
        expect=[*[starts(f"a{at}") for at in range(4)], waits("a4"), waits("a5")],
        then=[
            Turn(
                [arrives(gang("b0", workers=1, gpus=1, queue="b", age=-9))],
                [waits("b0")],
            ),
            Turn([vanishes("a0")], [starts("b0")]),
            Turn([vanishes("a1")], [starts("a4")]),
        ],
    ),
]

OTHERS = [
    Scenario(
        "pods that are not ours are in no queue, and take what is kept all the same",
        nodes=nodes(1, gpus=8),
        others=[pod("stranger", gpus=4, on="node-0")],
        queues=[queue("vision", guarantee=4), queue("nlp", gpus=4)],
        gangs=[gang("a", workers=1, gpus=4, queue="nlp")],
        expect=[waits("a", reason=QUOTA, because="4 are kept for queue vision (guarantee)")],
        then=[Turn([ends("stranger")], [starts("a", 1)])],
    ),
    Scenario(
        "what fits the quota and no node waits for the cluster, and holds none of the quota",
        nodes=nodes(2, gpus=4),
        queues=[queue("q", gpus=8)],
        gangs=[
            gang("wide", workers=1, gpus=8, queue="q", age=1),
            gang("small", workers=2, gpus=4, queue="q"),
        ],
        expect=[starts("small", 2), waits("wide", because="the largest of today's nodes has 4")],
    ),
]


@pytest.mark.parametrize(
    "scenario",
    [*CAPABILITY, *GUARANTEE, *DOORS, *ORDER, *OTHERS],
    ids=lambda scenario: scenario.name,
)
def test_queues(scenario: Scenario) -> None:
    if scenario.policy == Policy():
        scenario = Scenario(**{**vars(scenario), "policy": QUIET})
    scenario.play()


def test_the_facts_in_any_order_give_the_same_plan() -> None:
    queues = [queue("b", parent="a"), queue("c", parent="a", gpus=4), queue("a", gpus=6)]
    gangs = [gang(f"g{at}", workers=1, gpus=2, queue="bc"[at % 2], age=at) for at in range(6)]
    plans = []
    for queues_first in (True, False):
        view = View()
        arrives(*nodes(2, gpus=4))(view)
        if queues_first:
            arrives(*queues, *gangs)(view)
        else:
            arrives(*reversed(gangs), *reversed(queues))(view)
        plans.append([d for d in cycle(view, QUIET, 0.0) if isinstance(d, Start)])
    assert len(plans[0]) == 3
    assert plans[0] == plans[1]
