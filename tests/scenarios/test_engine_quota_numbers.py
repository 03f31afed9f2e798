"""What a gang is told that its quota stops, as others end one by one: never numbers of yesterday.

Most ends do not help whoever waits for many. Then the quota is held against the new numbers
alone, without a look at nodes; a look is taken as soon as it could end otherwise.
"""

from __future__ import annotations

import pytest

from posse.engine.decisions import Reason
from posse.engine.policy import Policy
from tests.scenarios.language import (
    Scenario,
    Team,
    Turn,
    arrives,
    evicts,
    gang,
    nodes,
    queue,
    shape,
    starts,
    vanishes,
    waits,
)

QUIET = Policy(preemption=False, reclaim=False, backfill=False)
FORESEEN = Policy(preemption=False, reclaim=False)
QUOTA = Reason.QUOTA


def ones(number: int, queue: str, *, on: str = "node-0", priority: int = 0) -> list[Team]:
    """Gangs of one pod with one GPU that run."""
    return [
        gang(f"{queue}{at}", workers=1, gpus=1, queue=queue, on=[on], priority=priority)
        for at in range(number)
    ]


SCENARIOS = [
    Scenario(
        "each end of another is told, and with the last that is needed it starts",
        nodes=nodes(2, gpus=8),
        queues=[queue("q", gpus=4)],
        gangs=[*ones(4, "q"), gang("new", workers=3, gpus=1, queue="q")],
        expect=[waits("new", reason=QUOTA, because="and 4 are in use; it can start when 3 more")],
        then=[
            Turn([vanishes("q0")], [waits("new", reason=QUOTA, because="and 3 are in use")]),
            Turn([vanishes("q1")], [waits("new", reason=QUOTA, because="when 1 more is free")]),
            Turn([vanishes("q2")], [starts("new", 3)]),
        ],
    ),
    Scenario(
        "of those that ask the same the first alone hears of it",
        nodes=nodes(2, gpus=8),
        queues=[queue("q", gpus=4)],
        gangs=[
            *ones(4, "q"),
            gang("new", workers=3, gpus=1, queue="q", age=2),
            gang("newer", workers=3, gpus=1, queue="q", age=1),
        ],
        expect=[
            waits("new", reason=QUOTA, because="and 4 are in use"),
            waits("newer", reason=QUOTA, because="and 4 are in use"),
        ],
        then=[Turn([vanishes("q0")], [waits("new", reason=QUOTA, because="and 3 are in use")])],
    ),
    Scenario(
        "the limit of the queue itself is none any more, that of the one above is",
        nodes=nodes(2, gpus=8),
        queues=[queue("all", gpus=6), queue("a", gpus=4, parent="all"), queue("b", parent="all")],
        gangs=[*ones(3, "a"), *ones(2, "b"), gang("new", workers=3, gpus=1, queue="a")],
        expect=[
            waits("new", reason=QUOTA, because="queue all, of which queue a is part, may use 6")
        ],
        then=[
            Turn([vanishes("b0")], [waits("new", reason=QUOTA, because="and 4 are in use")]),
            Turn([vanishes("b1")], [waits("new", reason=QUOTA, because="queue a may use 4")]),
            Turn([vanishes("a0"), vanishes("a1")], [starts("new", 3)]),
        ],
    ),
    Scenario(
        "the quota would do, and the nodes have no room",
        nodes=nodes(1, gpus=8),
        queues=[queue("q", gpus=4), queue("r")],
        gangs=[*ones(3, "q"), *ones(5, "r"), gang("new", workers=3, gpus=1, queue="q")],
        expect=[waits("new", reason=QUOTA, because="when 2 more")],
        then=[
            Turn([vanishes("q0")], [waits("new", reason=QUOTA, because="when 1 more")]),
            Turn([vanishes("q1")], [waits("new", because="2 of 8 are free")]),
        ],
    ),
    Scenario(
        "what is kept for another queue, as less of it is free to all",
        nodes=nodes(1, gpus=8),
        queues=[queue("q"), queue("r", guarantee=4)],
        gangs=[*ones(4, "q"), gang("new", workers=3, gpus=1, queue="q")],
        expect=[waits("new", reason=QUOTA, because="4 are free, but 4 are kept for queue r")],
        then=[
            Turn([vanishes("q0")], [waits("new", reason=QUOTA, because="5 are free, but 4")]),
            Turn([vanishes("q1"), vanishes("q2")], [starts("new", 3)]),
        ],
    ),
    Scenario(
        "others of its members are content with less: it is looked at whole",
        nodes=nodes(1, gpus=8),
        queues=[queue("q", gpus=4)],
        gangs=[
            *ones(4, "q"),
            gang(
                "new",
                least=1,
                queue="q",
                roles={"large": (1, shape(gpus=3)), "small": (1, shape(gpus=2))},
            ),
        ],
        expect=[waits("new", reason=QUOTA)],
        then=[
            Turn([vanishes("q0"), vanishes("q1")], [starts("new", 1), waits("new", reason=QUOTA)])
        ],
    ),
    Scenario(
        "its oldest ask for more than the queue may ever use, and others of its members do not",
        nodes=nodes(1, gpus=8),
        queues=[queue("q", gpus=4)],
        gangs=[
            *ones(4, "q"),
            gang(
                "new",
                least=1,
                queue="q",
                roles={"large": (1, shape(gpus=5)), "small": (1, shape(gpus=2))},
            ),
        ],
        expect=[waits("new", reason=QUOTA)],
        then=[
            Turn([vanishes("q0"), vanishes("q1")], [starts("new", 1), waits("new", reason=QUOTA)])
        ],
    ),
    Scenario(
        "whom no end helps is told nothing new by one, and starts when the limit is another one",
        nodes=nodes(1, gpus=8),
        queues=[queue("q", gpus=4)],
        gangs=[*ones(4, "q"), gang("new", workers=5, gpus=1, queue="q")],
        expect=[waits("new", reason=QUOTA, because="may use 4 (capability); ask for 4 at most")],
        then=[
            Turn([vanishes("q0"), vanishes("q1")], []),
            Turn([vanishes("q2"), arrives(queue("q", gpus=6))], [starts("new", 5)]),
        ],
    ),
    Scenario(
        "the capability is another one: it is looked at whole",
        nodes=nodes(1, gpus=8),
        queues=[queue("q", gpus=4)],
        gangs=[*ones(4, "q"), gang("new", workers=3, gpus=1, queue="q")],
        expect=[waits("new", reason=QUOTA, because="may use 4")],
        then=[
            Turn([arrives(queue("q", gpus=5))], [waits("new", reason=QUOTA, because="may use 5")]),
            Turn(
                [arrives(queue("q", gpus=2))],
                [waits("new", reason=QUOTA, because="ask for 2 at most")],
            ),
            Turn([arrives(queue("q", gpus=7))], [starts("new", 3)]),
        ],
    ),
    Scenario(
        "with the one that ended there are enough to end for it, before those behind it take that",
        nodes=nodes(1, gpus=8),
        queues=[queue("q", gpus=4)],
        policy=Policy(backfill=False),
        gangs=[
            *ones(1, "q"),
            *[
                gang(f"high{at}", workers=1, gpus=1, queue="q", on=["node-0"], priority=5)
                for at in range(3)
            ],
            gang("new", workers=2, gpus=1, queue="q", priority=5),
            gang("meek", workers=1, gpus=1, queue="q", priority=4, facts={"preempts": False}),
        ],
        expect=[
            waits("new", reason=QUOTA, because="when 2 more"),
            waits("meek", reason=QUOTA, because="when 1 more"),
        ],
        then=[
            Turn(
                [vanishes("high0")],
                [
                    evicts("new", {"q0": 1}),
                    waits("new", reason=Reason.RESERVED),
                    waits("q0", reason=Reason.INCOMPLETE),
                ],
            )
        ],
    ),
    Scenario(
        "more is used since: whoever is told anyway is told so",
        nodes=nodes(1, gpus=8),
        queues=[queue("q", gpus=5)],
        policy=FORESEEN,
        gangs=[*ones(2, "q"), gang("new", workers=4, gpus=1, queue="q")],
        expect=[waits("new", reason=QUOTA, because="and 2 are in use; it can start when 1 more")],
        then=[
            Turn(
                [arrives(gang("small", workers=1, gpus=3, queue="q", age=-5))],
                [
                    starts("small", 1),
                    waits("new", reason=QUOTA, because="and 5 are in use; it can start when 4"),
                ],
            )
        ],
    ),
    Scenario(
        "the queue above is full since, and heard of as it empties",
        nodes=nodes(2, gpus=8),
        queues=[queue("all", gpus=6), queue("a", gpus=4, parent="all"), queue("b", parent="all")],
        policy=FORESEEN,
        gangs=[*ones(2, "a"), *ones(1, "b"), gang("new", workers=3, gpus=1, queue="a")],
        expect=[waits("new", reason=QUOTA, because="queue a may use 4 (capability) and 2 are")],
        then=[
            Turn(
                [arrives(gang("small", workers=1, gpus=2, queue="a", age=-5))],
                [
                    starts("small", 1),
                    waits("new", reason=QUOTA, because="may use 6 (capability) and 5 are in use"),
                ],
            ),
            Turn([vanishes("b0")], [waits("new", reason=QUOTA, because="and 4 are in use")]),
        ],
    ),
    Scenario(
        "less is free beside what is kept for another queue",
        nodes=nodes(1, gpus=8),
        queues=[queue("q"), queue("r", guarantee=4)],
        policy=FORESEEN,
        gangs=[*ones(2, "q"), gang("new", workers=3, gpus=1, queue="q")],
        expect=[waits("new", reason=QUOTA, because="6 are free, but 4 are kept for queue r")],
        then=[
            Turn(
                [arrives(gang("small", workers=1, gpus=2, queue="q", age=-5))],
                [
                    starts("small", 1),
                    waits("new", reason=QUOTA, because="4 are free, but 4 are kept for queue r"),
                ],
            )
        ],
    ),
    Scenario(
        "members beyond a minimum are seated in the cycle in which it was looked at",
        nodes=nodes(1, gpus=8),
        queues=[queue("q", gpus=5)],
        gangs=[
            gang("wide", workers=4, gpus=1, least=1, queue="q", age=2),
            gang("new", workers=5, gpus=1, queue="q", age=1),
        ],
        expect=[
            starts("wide", 1),
            starts("wide", 3),
            waits("new", reason=QUOTA, because="and 4 are in use; it can start when 4 more"),
        ],
    ),
    Scenario(
        "so are members beyond a minimum told what others took since",
        nodes=nodes(1, gpus=8),
        queues=[queue("q", gpus=6)],
        gangs=[
            gang("large", roles={"worker": (2, shape(gpus=3))}, least=1, queue="q", age=2),
            gang("wide", workers=3, gpus=1, least=1, queue="q", age=1),
        ],
        expect=[
            starts("large", 1),
            starts("wide", 1),
            starts("wide", 2),
            waits("large", reason=QUOTA, because="and 6 are in use; it can start when 3 more"),
        ],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_quota_numbers(scenario: Scenario) -> None:
    if scenario.policy == Policy():
        scenario = Scenario(**{**vars(scenario), "policy": QUIET})
    scenario.play()
