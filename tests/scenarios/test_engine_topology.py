"""Near each other: in one domain where a gang must, in the nearest where it should."""

from __future__ import annotations

import pytest

from posse.engine.facts import NodeFacts, Topology
from posse.engine.fit.hypernodes import HyperNodeFacts, Membership
from posse.engine.fit.terms import Requirement, Selector
from posse.engine.policy import Policy
from tests.scenarios.language import (
    Scenario,
    Turn,
    arrives,
    ends,
    gang,
    leaves,
    member,
    node,
    pod,
    shape,
    starts,
    vanishes,
    waits,
)

RACK, BLOCK, ZONE = "posse.dev/rack", "posse.dev/block", "topology.kubernetes.io/zone"


def must(**where: object) -> dict[str, object]:
    return {"topology": Topology(**where)}  # type: ignore[arg-type]


def should(**where: object) -> dict[str, object]:
    return {"topology": Topology(required=False, **where)}  # type: ignore[arg-type]


def racks(**sizes: int) -> list[NodeFacts]:
    """`a=2`: rack a of block x has nodes a-0 and a-1, of 8 GPUs each; racks c and d are block y."""
    return [
        node(
            f"{rack}-{at}",
            gpus=8,
            labels={RACK: rack, BLOCK: "x" if rack in "ab" else "y", ZONE: "z"},
        )
        for rack, size in sizes.items()
        for at in range(size)
    ]


def hypernode(name: str, tier: int, *members: Membership, called: str = "") -> HyperNodeFacts:
    return HyperNodeFacts(name, tier, called, members)


def exactly(*names: str, domains: bool = False) -> list[Membership]:
    return [Membership(domains, name=name) for name in names]


REQUIRED = [
    Scenario(
        "the smallest rack that has room is taken, whole",
        nodes=racks(a=4, b=2, c=3),
        gangs=[gang("mpi", workers=2, gpus=8, facts=must(tier=1))],
        expect=[starts("mpi", on={"b-0": 1, "b-1": 1})],
    ),
    Scenario(
        "room in two racks together is not room in one",
        nodes=racks(a=2, b=2),
        gangs=[gang("mpi", workers=3, gpus=8, facts=must(tier=1))],
        expect=[
            waits(
                "mpi",
                because="no rack of today's nodes can hold 3 pods x 8 GPUs: the largest has 16",
            )
        ],
        then=[Turn([arrives(*racks(b=3)[2:])], [starts("mpi", on={"b-0": 1, "b-1": 1, "b-2": 1})])],
    ),
    Scenario(
        "a rack that would do if it were empty is waited for, and says how much of it is free",
        nodes=racks(a=4, b=4),
        others=[pod("one", on="a-0", gpus=8), pod("two", on="b-3", gpus=8)],
        gangs=[gang("mpi", workers=8, gpus=4, facts=must(tier=1))],
        expect=[
            waits("mpi", because="no rack has room for 8 pods x 4 GPUs: the best has 24 of 32 free")
        ],
        then=[Turn([ends("two")], [starts("mpi", on={f"b-{at}": 2 for at in range(4)})])],
    ),
    Scenario(
        "room in pieces: the best rack says how many it seats",
        nodes=racks(a=2, b=2),
        others=[pod(f"p{rack}{at}", on=f"{rack}-{at}", gpus=3) for rack in "ab" for at in range(2)],
        gangs=[gang("mpi", workers=3, gpus=3, facts=must(tier=1))],
        expect=[
            waits(
                "mpi", because="no rack has room for 3 pods x 3 GPUs: the best has room for 2 of 3"
            )
        ],
    ),
    Scenario(
        "a tier further out is used when no nearer one has room",
        nodes=racks(a=2, b=2, c=3, d=2),
        gangs=[gang("mpi", workers=4, gpus=8, facts=must(tier=2))],
        expect=[starts("mpi", on={"a-0": 1, "a-1": 1, "b-0": 1, "b-1": 1})],
    ),
    Scenario(
        "a nearer tier comes before a further one that is allowed",
        nodes=racks(a=1, b=1, c=2, d=2),
        gangs=[gang("mpi", workers=2, gpus=8, facts=must(tier=3))],
        expect=[starts("mpi", on={"c-0": 1, "c-1": 1})],
    ),
    Scenario(
        "beyond the last tier is the whole cluster",
        nodes=[*racks(a=1, c=1), node("stray", gpus=8)],
        gangs=[gang("mpi", workers=3, gpus=8, facts=must(tier=4))],
        expect=[starts("mpi", on={"a-0": 1, "c-0": 1, "stray": 1})],
    ),
    Scenario(
        "a tier may be asked for by name",
        nodes=racks(a=2, b=2),
        gangs=[gang("mpi", workers=3, gpus=8, facts=must(tier_name="rack"))],
        expect=[waits("mpi", because="no rack of today's nodes")],
        then=[
            Turn(
                [arrives(gang("mpi", workers=3, gpus=8, facts=must(tier_name=BLOCK)))],
                [starts("mpi", 3)],
            )
        ],
    ),
    Scenario(
        "a name that no tier has is said to mean nothing",
        nodes=racks(a=2),
        gangs=[gang("mpi", workers=2, gpus=8, facts=must(tier_name="pod"))],
        expect=[waits("mpi", because="one domain of tier pod, but nothing says which")],
    ),
    Scenario(
        "a label key makes domains of its own",
        nodes=[
            node(f"n{at}", gpus=8, labels={"switch": "left" if at < 2 else "right"})
            for at in range(5)
        ],
        gangs=[gang("mpi", workers=3, gpus=8, facts=must(key="switch"))],
        expect=[starts("mpi", on={"n2": 1, "n3": 1, "n4": 1})],
    ),
    Scenario(
        "a label that no node has",
        nodes=racks(a=2),
        gangs=[gang("mpi", workers=2, gpus=8, facts=must(key="switch"))],
        expect=[waits("mpi", because="the node label switch, but none of today's nodes has it")],
        then=[
            Turn(
                [arrives(*(node(f"s{at}", gpus=8, labels={"switch": "1"}) for at in range(2)))],
                [starts("mpi", on={"s0": 1, "s1": 1})],
            )
        ],
    ),
    Scenario(
        "nodes without any label of a tier are in no domain",
        nodes=[node(f"n{at}", gpus=8) for at in range(4)],
        gangs=[gang("mpi", workers=2, gpus=8, facts=must(tier=1))],
        expect=[waits("mpi", because="one domain of tier 1 or nearer, but nothing says which")],
    ),
    Scenario(
        "racks of one name in two zones are two",
        nodes=[
            node(f"{zone}{at}", gpus=8, labels={RACK: "1", ZONE: zone})
            for zone in "pq"
            for at in range(2)
        ],
        gangs=[gang("mpi", workers=3, gpus=8, facts=must(tier=1))],
        expect=[waits("mpi", because="no rack of today's nodes can hold 3 pods x 8 GPUs")],
    ),
    Scenario(
        "several roles share the domain, and a launcher's seat is held in it",
        nodes=[*racks(a=2, b=3), node("cpu", cores=64)],
        gangs=[
            gang("mpi", workers=2, gpus=8, cores=8, launcher=shape(cores=8), facts=must(tier=1))
        ],
        expect=[starts("mpi", on={"a-0": 1, "a-1": 1}, holding=[("launcher", "a-0")])],
    ),
    Scenario(
        "a rack whose rooms do for each role, but not for both, is passed over",
        nodes=racks(a=2, b=2),
        others=[pod("x", on="a-0", gpus=4)],
        gangs=[
            gang(
                "mixed",
                roles={"ps": (1, shape(gpus=8)), "worker": (2, shape(gpus=4))},
                facts=must(tier=1),
            )
        ],
        expect=[starts("mixed", on={"b-0": 1, "b-1": 2})],
    ),
    Scenario(
        "members beyond the minimum stay in the domain in use",
        nodes=racks(a=2, b=3),
        others=[pod("x", on="b-0", gpus=8), pod("y", on="a-0", gpus=8)],
        gangs=[gang("elastic", workers=4, least=1, gpus=8, facts=must(tier=1))],
        expect=[
            starts("elastic", on={"b-1": 1}),
            starts("elastic", on={"b-2": 1}),
            waits("elastic", because="the rack that its members sit in (z/x/b) has no room for"),
        ],
        then=[Turn([ends("x")], [starts("elastic", on={"b-0": 1}), waits("elastic")])],
    ),
    Scenario(
        "whose members sit outside of every rack has none to stay in, and is told so",
        nodes=[node("bare", gpus=8), *racks(a=2)],
        gangs=[gang("mpi", workers=2, on=["bare"], gpus=8, started=True, facts=must(key=RACK))],
        expect=[waits("mpi", because="its members sit on nodes of no rack")],
    ),
    Scenario(
        "a rack for all who wait comes before one that is just large enough for the minimum",
        nodes=racks(a=2, b=4, c=3),
        gangs=[gang("elastic", workers=3, least=2, gpus=8, facts=must(key=RACK))],
        expect=[
            starts("elastic", on={"c-0": 1, "c-1": 1}),
            starts("elastic", on={"c-2": 1}),
        ],
    ),
    Scenario(
        "where no rack is for all of them, the one for most is taken",
        nodes=racks(a=1, b=3, c=2),
        gangs=[gang("elastic", workers=4, least=1, gpus=8, facts=must(key=RACK))],
        expect=[
            starts("elastic", on={"b-0": 1}),
            starts("elastic", on={"b-1": 1, "b-2": 1}),
            waits("elastic", because="1 pod beyond its minimum"),
        ],
    ),
    Scenario(
        "a rack in which somebody of every role has a seat comes before one that has none for some",
        nodes=[
            *racks(a=2, b=2),
            node("b-2", cores=64, labels={RACK: "b", BLOCK: "x", ZONE: "z"}),
        ],
        gangs=[
            gang(
                "mixed",
                roles={"worker": (2, shape(gpus=8)), "ps": (1, shape(cores=32))},
                least=2,
                facts=must(key=RACK),
            )
        ],
        expect=[
            starts("mixed", on={"b-0": 1, "b-2": 1}),
            starts("mixed", on={"b-1": 1}),
        ],
    ),
    Scenario(
        "members beyond the minimum go one tier further when the gang may",
        nodes=racks(a=1, b=1, c=1),
        gangs=[gang("elastic", workers=3, least=1, gpus=8, facts=must(tier=2))],
        expect=[
            starts("elastic", on={"a-0": 1}),
            starts("elastic", on={"b-0": 1}),
            waits("elastic", because="1 pod beyond its minimum"),
        ],
    ),
    Scenario(
        "a replacement stays in the rack in use though another has more room",
        nodes=racks(a=3, b=4),
        gangs=[gang("train", workers=2, gpus=8, on=["a-0", "a-1"], facts=must(tier=1))],
        then=[
            Turn(
                [
                    leaves("a-1"),
                    ends("train-worker-1"),
                    arrives(member("train", "worker-1", gpus=8)),
                ],
                [starts("train", on={"a-2": 1})],
            )
        ],
    ),
    Scenario(
        "two gangs that ask the same of room, and not of nearness, do not share a verdict",
        nodes=racks(a=1, b=1),
        gangs=[
            gang("near", workers=2, gpus=8, facts=must(tier=1), age=1),
            gang("any", workers=2, gpus=8),
        ],
        expect=[starts("any", 2), waits("near", because="no rack")],
    ),
    Scenario(
        "a node's new label is news",
        nodes=[*racks(a=1), node("n", gpus=8)],
        gangs=[gang("mpi", workers=2, gpus=8, facts=must(tier=1))],
        expect=[waits("mpi", because="no rack of today's nodes")],
        then=[
            Turn(
                [arrives(node("n", gpus=8, labels={RACK: "a", BLOCK: "x", ZONE: "z"}))],
                [starts("mpi", on={"a-0": 1, "n": 1})],
            )
        ],
    ),
]

PREFERRED = [
    Scenario(
        "a gang that should sit near does, whatever nodes it takes",
        nodes=[*racks(a=1, b=2), *racks(c=4)],
        others=[pod("x", on="b-0", gpus=4)],
        gangs=[gang("mpi", workers=3, gpus=4, facts=should(tier=1))],
        expect=[starts("mpi", on={"b-0": 1, "b-1": 2})],
    ),
    Scenario(
        "the rack with the least to spare, and be it less than a seat",
        nodes=racks(a=2, b=2),
        others=[pod("x", on="b-0", gpus=1)],
        gangs=[gang("mpi", workers=4, gpus=3, facts=should(tier=1))],
        expect=[starts("mpi", on={"b-0": 2, "b-1": 2})],
    ),
    Scenario(
        "so it is with pods that ask for no devices",
        nodes=racks(a=2, b=2),
        others=[pod("x", on="b-0", cores=1)],
        gangs=[gang("mpi", workers=4, cores=6, facts=should(tier=1))],
        expect=[starts("mpi", on={"b-0": 2, "b-1": 2})],
    ),
    Scenario(
        "it is never a reason to wait",
        nodes=racks(a=1, c=1),
        gangs=[gang("mpi", workers=2, gpus=8, facts=should(tier=1))],
        expect=[starts("mpi", on={"a-0": 1, "c-0": 1})],
    ),
    Scenario(
        "where no domain has room for all, as few domains as can be",
        nodes=[
            node(f"{rack}{at}", gpus=8, labels={RACK: rack})
            for rack, size in {"a": 1, "b": 3, "c": 2}.items()
            for at in range(size)
        ],
        gangs=[gang("mpi", workers=5, gpus=8, facts=should(tier=1))],
        expect=[starts("mpi", on={"b0": 1, "b1": 1, "b2": 1, "c0": 1, "c1": 1})],
    ),
    Scenario(
        "without any topology it is as if nobody had asked",
        nodes=[node(f"n{at}", gpus=8) for at in range(2)],
        gangs=[gang("mpi", workers=2, gpus=8, facts=should(tier=1))],
        expect=[starts("mpi", 2)],
    ),
]

UNASKED = [
    Scenario(
        "devices: the fewest nodes, then the nearest of them",
        nodes=racks(a=1, b=1, c=2),
        gangs=[gang("mpi", workers=2, gpus=8)],
        expect=[starts("mpi", on={"c-0": 1, "c-1": 1})],
    ),
    Scenario(
        "fewer nodes come before nearer ones",
        nodes=racks(a=2, b=2, c=1, d=1),
        others=[pod(f"x{rack}{at}", on=f"{rack}-{at}", gpus=5) for rack in "ab" for at in range(2)],
        gangs=[gang("mpi", workers=4, gpus=3)],
        expect=[starts("mpi", on={"c-0": 2, "d-0": 2})],
    ),
    Scenario(
        "the rack with the least to spare, so that whole racks stay whole",
        nodes=racks(a=4, b=2, c=3),
        gangs=[gang("mpi", workers=2, gpus=8)],
        expect=[starts("mpi", on={"b-0": 1, "b-1": 1})],
    ),
    Scenario(
        "a block, where no rack has room",
        nodes=racks(a=1, c=2, d=2),
        gangs=[gang("mpi", workers=3, gpus=8)],
        expect=[starts("mpi", on={"c-0": 1, "c-1": 1, "d-0": 1})],
    ),
    Scenario(
        "a launcher without devices is not drawn to the devices",
        nodes=[*racks(a=2), node("cpu", cores=8)],
        gangs=[gang("mpi", workers=2, gpus=8, launcher=shape(cores=1))],
        expect=[starts("mpi", 2, holding=[("launcher", "cpu")])],
    ),
    Scenario(
        "a replacement: the same rack where its nodes are full",
        nodes=racks(a=2, b=3),
        gangs=[gang("train", workers=2, gpus=8, on=["b-0", "b-1"])],
        then=[
            Turn(
                [
                    leaves("b-1"),
                    ends("train-worker-1"),
                    arrives(member("train", "worker-1", gpus=8)),
                ],
                [starts("train", on={"b-2": 1})],
            )
        ],
    ),
    Scenario(
        "where the policy spreads, nearness is nothing",
        policy=Policy(spread=True),
        nodes=racks(a=2, c=2),
        gangs=[gang("mpi", workers=4, gpus=2)],
        expect=[starts("mpi", on={"a-0": 1, "a-1": 1, "c-0": 1, "c-1": 1})],
    ),
    Scenario(
        "where the policy spreads, a required domain still holds",
        policy=Policy(spread=True),
        nodes=racks(a=2, c=2),
        gangs=[gang("mpi", workers=4, gpus=2, facts=must(tier=1))],
        expect=[starts("mpi", on={"a-0": 2, "a-1": 2})],
    ),
    Scenario(
        "the policy's own labels make the tiers",
        policy=Policy(tiers=("switch",)),
        nodes=[node(f"n{at}", gpus=8, labels={"switch": "12"[at % 2]}) for at in range(4)],
        gangs=[gang("mpi", workers=2, gpus=8)],
        expect=[starts("mpi", on={"n0": 1, "n2": 1})],
    ),
]

PLAIN = [node(f"n{at}", gpus=8) for at in range(6)]
LEAVES = [
    hypernode("s0", 1, *exactly("n0", "n1")),
    hypernode("s1", 1, Membership(pattern="^n[2-4]$")),
    hypernode("s2", 1, Membership(labels=Selector((Requirement("row", "In", ("9",)),)))),
]
HYPERNODES = [
    Scenario(
        "HyperNodes make the tiers: by name, by pattern",
        nodes=PLAIN,
        hypernodes=LEAVES,
        gangs=[gang("mpi", workers=3, gpus=8, facts=must(tier=1))],
        expect=[starts("mpi", on={"n2": 1, "n3": 1, "n4": 1})],
    ),
    Scenario(
        "by label",
        nodes=[*PLAIN, *(node(f"m{at}", gpus=8, labels={"row": "9"}) for at in range(4))],
        hypernodes=LEAVES,
        gangs=[gang("mpi", workers=4, gpus=8, facts=must(tier=1))],
        expect=[starts("mpi", on={f"m{at}": 1 for at in range(4)})],
    ),
    Scenario(
        "a HyperNode of HyperNodes",
        nodes=PLAIN,
        hypernodes=[
            *LEAVES,
            hypernode("top", 2, *exactly("s0", "s1", domains=True), called="spine"),
        ],
        gangs=[
            gang("six", workers=6, gpus=8, facts=must(tier=2), age=1),
            gang("five", workers=5, gpus=8, facts=must(tier_name="spine")),
        ],
        expect=[
            starts("five", on={f"n{at}": 1 for at in range(5)}),
            waits(
                "six",
                because="no spine of today's nodes can hold 6 pods x 8 GPUs: the largest has 40",
            ),
        ],
    ),
    Scenario(
        "where there are HyperNodes, labels make no tiers",
        nodes=racks(a=2, b=3),
        hypernodes=[hypernode("one", 1, *exactly("a-0", "b-0"))],
        gangs=[gang("mpi", workers=2, gpus=8, facts=must(tier=1))],
        expect=[starts("mpi", on={"a-0": 1, "b-0": 1})],
    ),
    Scenario(
        "HyperNodes that contain each other harm nobody",
        nodes=PLAIN,
        hypernodes=[
            hypernode("p", 1, *exactly("n0"), *exactly("q", domains=True)),
            hypernode("q", 2, *exactly("n1"), *exactly("p", domains=True)),
        ],
        gangs=[gang("mpi", workers=2, gpus=8, facts=must(tier=2))],
        expect=[starts("mpi", on={"n0": 1, "n1": 1})],
    ),
    Scenario(
        "HyperNodes in a circle have all nodes of the circle, each of them",
        nodes=PLAIN,
        hypernodes=[
            hypernode("p", 3, *exactly("n0"), *exactly("q", domains=True)),
            hypernode("q", 1, *exactly("n1"), *exactly("r", domains=True)),
            hypernode("r", 2, *exactly("n2"), *exactly("p", domains=True)),
        ],
        gangs=[gang("mpi", workers=3, gpus=8, facts=must(tier=1))],
        expect=[starts("mpi", on={"n0": 1, "n1": 1, "n2": 1})],
    ),
    Scenario(
        "HyperNodes whose patterns mean all of them, themselves too, are no riddle",
        nodes=PLAIN,
        hypernodes=[
            hypernode(f"s{at}", 1, *exactly(f"n{at % 6}"), Membership(domains=True, pattern="^s"))
            for at in range(24)
        ],
        gangs=[gang("mpi", workers=6, gpus=8, facts=must(tier=1))],
        expect=[starts("mpi", on={f"n{at}": 1 for at in range(6)})],
    ),
    Scenario(
        "a HyperNode that comes later is news",
        nodes=PLAIN,
        hypernodes=LEAVES[:1],
        gangs=[gang("mpi", workers=3, gpus=8, facts=must(tier=1))],
        expect=[
            waits("mpi", because="no HyperNode of tier 1 of today's nodes can hold 3 pods x 8 GPUs")
        ],
        then=[Turn([arrives(LEAVES[1])], [starts("mpi", on={"n2": 1, "n3": 1, "n4": 1})])],
    ),
    Scenario(
        "a node that comes later joins the domains that mean it, and one that left is gone",
        nodes=PLAIN[:4],
        hypernodes=LEAVES[1:2],
        gangs=[gang("mpi", workers=3, gpus=8, facts=must(tier=1))],
        expect=[waits("mpi")],
        then=[
            Turn([arrives(PLAIN[4])], [starts("mpi", on={"n2": 1, "n3": 1, "n4": 1})]),
            Turn([vanishes("mpi"), leaves("n4")], []),
            Turn(
                [arrives(gang("late", workers=3, gpus=8, facts=must(tier=1)))],
                [waits("late", because="the largest has 16")],
            ),
        ],
    ),
]


@pytest.mark.parametrize(
    "scenario", REQUIRED + PREFERRED + UNASKED + HYPERNODES, ids=lambda each: each.name
)
def test_topology(scenario: Scenario) -> None:
    scenario.play()
