"""Which nodes a gang may use, by their labels and by what they are near to."""

from __future__ import annotations

import pytest

from posse.engine.facts import Taint, Toleration
from posse.engine.fit.terms import Choice, NodeTerm, Preference, Requirement
from tests.scenarios.language import Scenario, gang, node, nodes, starts, waits


def in_zone(*zones: str) -> NodeTerm:
    return NodeTerm((Requirement("zone", "In", zones),))


ZONES = [node(f"{zone}{at}", gpus=4, labels={"zone": zone}) for zone in "abc" for at in range(2)]
SHY = [
    node("shy", gpus=4, labels={"zone": "a"}, taints=[Taint("shy", effect="PreferNoSchedule")]),
    node(
        "coy",
        gpus=4,
        labels={"zone": "a"},
        taints=[Taint(key, effect="PreferNoSchedule") for key in ("shy", "coy")],
    ),
]

TABLE = [
    Scenario(
        "required node affinity keeps a gang on the nodes that match one of its terms",
        ZONES,
        gangs=[gang("j", workers=4, gpus=4, choices=[Choice((in_zone("a"), in_zone("c")))])],
        expect=[starts("j", on={"a0": 1, "a1": 1, "c0": 1, "c1": 1})],
    ),
    Scenario(
        "every choice must be met",
        ZONES,
        gangs=[
            gang(
                "j",
                workers=1,
                gpus=4,
                choices=[Choice((in_zone("a", "b"),)), Choice((in_zone("b", "c"),), "team/data")],
            )
        ],
        expect=[starts("j", on={"b0": 1})],
    ),
    Scenario(
        "an affinity that no node matches is told as such",
        nodes(2, gpus=4),
        gangs=[gang("j", workers=1, gpus=1, choices=[Choice((in_zone("z"),))])],
        expect=[waits("j", because="no node may take its pods: 2 nodes do not match its node aff")],
    ),
    Scenario(
        "an affinity of empty terms matches no node",
        ZONES,
        gangs=[gang("j", workers=1, gpus=1, choices=[Choice((NodeTerm(),))])],
        expect=[waits("j", because="do not match its node affinity")],
    ),
    Scenario(
        "the claim whose volume is elsewhere is named",
        ZONES[:2],
        gangs=[gang("j", workers=1, gpus=1, choices=[Choice((in_zone("b"),), "team/data")])],
        expect=[waits("j", because="2 nodes cannot reach the volume of team/data")],
    ),
    Scenario(
        "preferred nodes are taken first, and others when they are full",
        ZONES,
        gangs=[
            gang(
                "j",
                workers=3,
                gpus=4,
                prefers=[Preference(1, in_zone("b")), Preference(5, in_zone("c"))],
            )
        ],
        expect=[starts("j", on={"c0": 1, "c1": 1, "b0": 1})],
    ),
    Scenario(
        "nodes that would rather be without it are taken last, whatever it prefers itself",
        [*SHY, *ZONES[2:3]],
        gangs=[gang("j", workers=2, gpus=4, prefers=[Preference(100, in_zone("a"))])],
        expect=[starts("j", on={"b0": 1, "shy": 1})],
    ),
    Scenario(
        "the fewer such taints the better",
        SHY,
        gangs=[gang("j", workers=1, gpus=4)],
        expect=[starts("j", on={"shy": 1})],
    ),
    Scenario(
        "who tolerates them minds them not",
        [*SHY, node("z", gpus=8)],
        gangs=[
            gang("j", workers=1, gpus=4, tolerations=[Toleration("shy", "Exists")]),
            gang("k", workers=1, gpus=4, tolerations=[Toleration(operator="Exists")]),
        ],
        expect=[starts("j", on={"shy": 1}), starts("k", on={"coy": 1})],
    ),
    Scenario(
        "a taint of another effect is none",
        [node("a", gpus=4, taints=[Taint("x", effect="Whatever")]), node("b", gpus=8)],
        gangs=[gang("j", workers=1, gpus=4)],
        expect=[starts("j", on={"a": 1})],
    ),
    Scenario(
        "one of two roles is bound to a node by name",
        nodes(3, gpus=4),
        gangs=[
            gang(
                "j",
                workers=2,
                gpus=4,
                choices=[
                    Choice(
                        (NodeTerm(fields=(Requirement("metadata.name", "NotIn", ("node-0",)),)),)
                    )
                ],
            )
        ],
        expect=[starts("j", on={"node-1": 1, "node-2": 1})],
    ),
]


@pytest.mark.parametrize("scenario", TABLE, ids=lambda scenario: scenario.name)
def test_fit(scenario: Scenario) -> None:
    scenario.play()
