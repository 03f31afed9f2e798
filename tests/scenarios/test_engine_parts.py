"""Parts of a gang that sit nearer to each other than the whole of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from posse.engine.decisions import Reason
from posse.engine.facts import NodeFacts, Topology
from posse.engine.policy import Policy
from tests.scenarios.language import (
    Happening,
    Scenario,
    Team,
    Turn,
    arrives,
    but,
    ends,
    evicts,
    gang,
    member,
    node,
    pod,
    queue,
    shape,
    starts,
    waits,
)

RACK, BLOCK = "posse.dev/rack", "posse.dev/block"
QUIET = Policy(backfill=False)


def racks(**sizes: int) -> list[NodeFacts]:
    """`a=2`: rack a of block x has nodes a-0 and a-1, of 8 GPUs each; racks c and d are block y."""
    return [
        node(f"{rack}-{at}", gpus=8, labels={RACK: rack, BLOCK: "x" if rack in "ab" else "y"})
        for rack, size in sizes.items()
        for at in range(size)
    ]


def parted(
    name: str,
    *sizes: int,
    tier: int = 1,
    required: bool = True,
    whole: Topology | None = None,
    together: int = 0,
    parts: int = 0,
    **like: object,
) -> Team:
    """A gang whose workers, a GPU node each, are parts of these sizes, in their order.

    `together` of each part start together or nobody does; `parts`: so many such it needs.
    """
    facts: dict[str, object] = {"nearer": (("0", Topology(required, tier)),), "topology": whole}
    if together:
        facts["squads"] = (("0", together, parts),)
    team = gang(name, workers=sum(sizes), gpus=8, facts=facts, **like)  # type: ignore[arg-type]
    first = 0
    for at, size in enumerate(sizes):
        team = but(team, *(f"worker-{first + i}" for i in range(size)), part=f"0/{at}")
        first += size
    return team


def ended_well(team: Team, *parts: str) -> Team:
    """The same, of whose parts each of these had one more, which has ended well."""
    return Team(replace(team.group, ended=tuple((part, 1) for part in parts)), team.pods)


def late(team: str, name: str, part: str) -> Happening:
    return arrives(replace(member(team, name, gpus=8), part=part))


SCENARIOS = [
    Scenario(
        "each part has a rack of its own, though the gang has none",
        nodes=racks(a=2, b=2),
        gangs=[parted("job", 2, 2)],
        expect=[starts("job", 4, on={"a-0": 1, "a-1": 1, "b-0": 1, "b-1": 1})],
    ),
    Scenario(
        "as a whole it would fit, but no rack has room for a part: nobody starts",
        nodes=racks(a=2, b=2),
        gangs=[parted("job", 3, 1)],
        expect=[
            waits(
                "job",
                because="a part of it sits together: no rack of today's nodes can hold 3 pods",
            )
        ],
    ),
    Scenario(
        "the part that asks most is seated first: a small one does not spoil its rack",
        nodes=racks(a=3, b=1),
        gangs=[parted("job", 1, 3)],
        expect=[starts("job", 4, on={"a-0": 1, "a-1": 1, "a-2": 1, "b-0": 1})],
    ),
    Scenario(
        "what is in use counts: the part goes where there is room for all of it",
        nodes=racks(a=2, b=2, c=2),
        others=[pod("x", on="a-0", gpus=8)],
        gangs=[parted("job", 2, 2)],
        expect=[starts("job", 4, on={"b-0": 1, "b-1": 1, "c-0": 1, "c-1": 1})],
    ),
    Scenario(
        "within what the whole asks for: both parts in racks of one block",
        nodes=racks(a=2, c=2, d=2),
        gangs=[parted("job", 2, 2, whole=Topology(tier=2))],
        expect=[starts("job", 4, on={"c-0": 1, "c-1": 1, "d-0": 1, "d-1": 1})],
    ),
    Scenario(
        "no block has two racks with room: nobody starts",
        nodes=racks(a=2, c=2),
        gangs=[parted("job", 2, 2, whole=Topology(tier=2))],
        expect=[waits("job")],
    ),
    Scenario(
        "a part that merely should sit together does so where it can, and starts where not",
        nodes=racks(a=2, b=1, c=1),
        gangs=[parted("job", 2, 2, required=False)],
        expect=[starts("job", 4, on={"a-0": 1, "a-1": 1, "b-0": 1, "c-0": 1})],
    ),
    Scenario(
        "of a gang that can do with fewer whole parts start, not half of each",
        nodes=racks(a=2, b=1, c=1),
        gangs=[parted("job", 2, 2, least=2)],
        expect=[
            starts("job", 2, who=["job-worker-0", "job-worker-1"], on={"a-0": 1, "a-1": 1}),
            starts("job", 1),
            waits("job"),
        ],
        policy=QUIET,
    ),
    Scenario(
        "who takes the place of a lost member sits with its part, not where there is room",
        nodes=racks(a=2, b=3),
        gangs=[
            parted("job", 2, 2, on=["a-0", "a-1", "b-0", "b-1"]),
        ],
        then=[
            Turn(
                [ends("job-worker-1"), late("job", "worker-1", "0/0")],
                [starts("job", 1, on={"a-1": 1})],
            ),
        ],
    ),
    Scenario(
        "one more of a part waits for room in its rack, though others have some",
        nodes=racks(a=2, b=3),
        gangs=[parted("job", 2, 2, on=["a-0", "a-1", "b-0", "b-1"])],
        then=[
            Turn(
                [late("job", "worker-4", "0/0")],
                [waits("job", because="a part of it sits together: the rack that its members sit")],
            ),
            Turn(
                [late("job", "worker-5", "0/1")],
                [starts("job", 1, on={"b-2": 1}), waits("job", because="1 pod beyond")],
            ),
        ],
        policy=QUIET,
    ),
    Scenario(
        "others end where a part can sit, not just anywhere",
        nodes=racks(a=2, b=2),
        gangs=[
            gang("one", workers=1, on=["a-0"], gpus=8, facts={"began": -9.0}),
            gang("two", workers=1, on=["a-1"], gpus=8, facts={"began": -9.0}),
            gang("spared", workers=1, on=["b-0"], gpus=8, facts={"preemptable": False}),
            parted("new", 2, priority=5),
        ],
        expect=[
            evicts("new", {"one": 1, "two": 1}, on={"a-0": 1, "a-1": 1}),
            waits("new", reason=Reason.RESERVED),
            waits("one", reason=Reason.INCOMPLETE),
            waits("two", reason=Reason.INCOMPLETE),
        ],
        policy=QUIET,
    ),
]

A, B = ["job-worker-0", "job-worker-1"], ["job-worker-2", "job-worker-3"]

SQUADS = [
    Scenario(
        "a part is a gang itself: whole parts start, as many as there is room for, never half one",
        nodes=racks(a=2, b=2, c=1),
        gangs=[parted("job", 2, 2, 2, least=1, together=2)],
        expect=[starts("job", 2, who=A), starts("job", 2, who=B), waits("job", because="2 pods")],
        policy=QUIET,
    ),
    Scenario(
        "so it is where nothing is said of how near they sit",
        nodes=racks(a=2, b=1),
        gangs=[parted("job", 2, 2, tier=9, least=1, together=2)],
        expect=[starts("job", 2, who=A), waits("job")],
        policy=QUIET,
    ),
    Scenario(
        "a minimum that ends within a part takes the whole of it",
        nodes=racks(a=3),
        gangs=[parted("job", 2, 2, tier=9, least=3, together=2)],
        expect=[waits("job", because="asks for 32 GPUs (4 pods x 8 each), but the cluster has 24")],
        policy=QUIET,
    ),
    Scenario(
        "of a gang that fits into no block its parts are told together",
        nodes=racks(a=2, c=2),
        gangs=[parted("job", 2, 2, whole=Topology(tier=2), together=2)],
        expect=[waits("job", because="no block of today's nodes can hold 4 pods x 8 GPUs")],
        policy=QUIET,
    ),
    Scenario(
        "so many whole parts, or nobody: pods enough are not enough",
        nodes=racks(a=2, b=1, c=1),
        gangs=[parted("job", 2, 2, least=2, together=2, parts=2)],
        expect=[waits("job")],
        policy=QUIET,
    ),
    Scenario(
        "whoever's fellows do not exist waits for them, and others of its gang do not",
        nodes=racks(a=2, b=2),
        gangs=[parted("job", 1, 2, least=1, together=2)],
        expect=[
            starts("job", 2, who=["job-worker-1", "job-worker-2"]),
            waits(
                "job",
                because="1 pod beyond its minimum: of its part 1 of 2 pods exist; it starts when",
                reason=Reason.INCOMPLETE,
            ),
        ],
        then=[Turn([late("job", "worker-3", "0/0")], [starts("job", 2)])],
    ),
    Scenario(
        "who comes to a part that is not all there, later, is told so once",
        nodes=racks(a=2, b=2),
        gangs=[parted("job", 2, least=2, together=2, on=["a-0", "a-1"])],
        then=[
            Turn(
                [late("job", "worker-2", "0/1")],
                [waits("job", because="1 pod beyond its minimum", reason=Reason.INCOMPLETE)],
            ),
            Turn([arrives(node("new", gpus=8))]),
            Turn([late("job", "worker-3", "0/1")], [starts("job", 2, on={"b-0": 1, "b-1": 1})]),
        ],
    ),
    Scenario(
        "a gang whose parts are not all there is told so",
        nodes=racks(a=2, b=2),
        gangs=[parted("job", 2, 1, least=2, together=2, parts=2)],
        expect=[
            waits(
                "job",
                because="1 pod of its parts does not exist; it starts when all of them do",
                reason=Reason.INCOMPLETE,
            )
        ],
    ),
    Scenario(
        "members beyond what makes a part whole follow it one by one",
        nodes=racks(a=3),
        gangs=[parted("job", 4, least=2, together=2)],
        expect=[starts("job", 2), starts("job", 1), waits("job")],
        policy=QUIET,
    ),
    Scenario(
        "but not before it is whole, whatever there is room for",
        nodes=racks(a=2, b=1),
        gangs=[parted("job", 2, 3, tier=9, least=2, together=2)],
        expect=[starts("job", 2, who=A), waits("job", because="3 pods beyond")],
        policy=QUIET,
    ),
    Scenario(
        "to others it gives up a whole part, not a pod of each",
        nodes=racks(a=2, b=2),
        gangs=[
            parted("job", 2, 2, least=2, together=2, parts=1, on=["a-0", "b-0", "a-1", "b-1"]),
            gang("new", workers=2, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"job": B}, on={"a-1": 1, "b-1": 1}),
            waits("new", reason=Reason.RESERVED),
        ],
        policy=QUIET,
    ),
    Scenario(
        "first it gives up whom a part can spare",
        nodes=racks(a=3, b=2),
        gangs=[
            parted("job", 3, 2, least=2, together=2, on=["a-0", "a-1", "a-2", "b-0", "b-1"]),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"job": ["job-worker-2"]}),
            waits("new", reason=Reason.RESERVED),
        ],
        policy=QUIET,
    ),
    Scenario(
        "a part that it needs is not ended without the rest of it",
        nodes=racks(a=2, b=2),
        gangs=[
            parted("job", 2, 2, least=2, together=2, parts=2, on=["a-0", "a-1", "b-0", "b-1"]),
            gang("new", workers=2, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"job": A + B}),
            waits("new", reason=Reason.RESERVED),
            waits("job", reason=Reason.INCOMPLETE),
        ],
        policy=QUIET,
    ),
    Scenario(
        "a part of which somebody ended well is as whole as it was: others of its gang follow",
        nodes=racks(a=1, b=3),
        gangs=[
            ended_well(
                parted(
                    "job",
                    1,
                    3,
                    least=3,
                    together=2,
                    parts=2,
                    on=["a-0", "b-0", "b-1"],
                    started=True,
                ),
                "0/0",
            )
        ],
        expect=[starts("job", 1, on={"b-2": 1})],
    ),
    Scenario(
        "nor is what is left of it given up to others in place of a part that is not needed",
        nodes=racks(a=1, b=2, c=2),
        gangs=[
            ended_well(
                parted(
                    "job",
                    *(1, 2, 2),
                    least=3,
                    together=2,
                    parts=2,
                    on=["a-0", "b-0", "b-1", "c-0", "c-1"],
                ),
                "0/0",
            ),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"job": ["job-worker-3", "job-worker-4"]}),
            waits("new", reason=Reason.RESERVED),
        ],
        policy=QUIET,
    ),
    Scenario(
        "a part that lost a member gets it back before others are served",
        nodes=racks(a=2, b=2),
        gangs=[
            parted("job", 2, 2, least=2, together=2, on=["a-0", "a-1", "b-0", "b-1"]),
            gang("other", workers=1, gpus=8, age=-5),
        ],
        expect=[waits("other")],
        then=[
            Turn(
                [ends("job-worker-3"), late("job", "worker-3", "0/1")],
                [starts("job", 1, on={"b-1": 1})],
            ),
        ],
        policy=QUIET,
    ),
    Scenario(
        "what a part beyond the minimum lacks is told of the whole of it",
        nodes=racks(a=3),
        gangs=[parted("job", 2, 2, least=2, together=2, parts=1, required=False)],
        expect=[
            starts("job", 2),
            waits("job", because="2 pods beyond its minimum: the next part needs 16 GPUs"),
        ],
        policy=QUIET,
    ),
    Scenario(
        "a part for which there is room, though not in its queue, is told of the queue",
        nodes=racks(a=2, b=2),
        queues=[queue("small", gpus=24)],
        gangs=[parted("job", 2, 2, least=2, together=2, parts=1, queue="small")],
        expect=[starts("job", 2), waits("job", because="may use 24", reason=Reason.QUOTA)],
        policy=QUIET,
    ),
    Scenario(
        "all its parts sit, and only one who is announced has no node",
        nodes=racks(a=2, b=2),
        gangs=[
            parted(
                "job",
                *(2, 2),
                together=2,
                parts=2,
                on=["a-0", "a-1", "b-0", "b-1"],
                launcher=shape(gpus=8),
            )
        ],
        expect=[waits("job", because="needs 8 GPUs (a seat for 1 launcher), 0 of 32 are free")],
        policy=QUIET,
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS + SQUADS, ids=lambda each: each.name)
def test_parts(scenario: Scenario) -> None:
    scenario.play()
