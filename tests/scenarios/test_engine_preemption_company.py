"""Ending others whose company, not whose room, is in the way."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from posse.engine.decisions import Reason
from posse.engine.fit.terms import HostPort, PodTerm, Relations, Requirement, Selector
from tests.scenarios.language import Scenario, Team, Turn, ends, evicts, gang, node, starts, waits

HOST = "kubernetes.io/hostname"
HOSTS = [node(name, gpus=8, labels={HOST: name}) for name in ("a", "b")]
ANY_APP = Selector((Requirement("app", "Exists"),))
NOT_MINE = Selector((Requirement("app", "NotIn", ("mine",)), Requirement("app", "Exists")))
SHOP = Selector((Requirement("app", "In", ("shop",)),))


def runs(name: str, on: str, **like: Any) -> Team:
    """One pod that takes little room, and says what it is."""
    team = gang(name, workers=1, on=[on], gpus=1, facts={"began": -100.0}, **like)
    return Team(team.group, [replace(each, labels={"app": "shop"}) for each in team.pods])


def comes(relations: Relations, *, workers: int = 2, gpus: int = 4) -> Team:
    return gang("new", workers=workers, gpus=gpus, priority=5, relations=relations)


def avoids(selector: Selector) -> Relations:
    return Relations(avoids=(PodTerm(HOST, selector, ("team",)),))


def one_goes(what: str, relations: Relations, **like: Any) -> Scenario:
    """Both nodes have room; the one in the way sits on `a`, and another of no concern on `b`."""
    return Scenario(
        what,
        nodes=HOSTS,
        gangs=[
            runs("old", "a", **like),
            gang("bulk", workers=1, on=["b"], gpus=4, facts={"began": -100.0}),
            comes(relations),
        ],
        expect=[
            evicts("new", {"old": 1}),
            waits("new", reason=Reason.RESERVED),
            waits("old", because="ended for team/new", reason=Reason.INCOMPLETE),
        ],
        then=[Turn([ends("old-worker-0")], [starts("new", 2)])],
    )


SCENARIOS = [
    one_goes("whoever has the label at all, where no value is named", avoids(ANY_APP)),
    one_goes("whoever has another value than this one", avoids(NOT_MINE)),
    one_goes("whoever has this value", avoids(SHOP)),
    Scenario(
        "a label that nobody asked for before is sorted without those that are tried to be gone",
        nodes=[HOSTS[0]],
        gangs=[
            runs("old", "a"),
            gang("bulk", workers=1, on=["a"], gpus=5, facts={"began": -100.0}),
            comes(avoids(SHOP), workers=1),
        ],
        expect=[
            evicts("new", {"old": 1, "bulk": 1}),
            waits("new", reason=Reason.RESERVED),
            waits("old", because="ended for team/new", reason=Reason.INCOMPLETE),
            waits("bulk", because="ended for team/new", reason=Reason.INCOMPLETE),
        ],
    ),
    Scenario(
        "who has the host port",
        nodes=[HOSTS[0]],
        gangs=[
            runs("old", "a", relations=Relations(ports=(HostPort(2222),))),
            comes(Relations(ports=(HostPort(2222),)), workers=1),
        ],
        expect=[
            evicts("new", {"old": 1}),
            waits("new", reason=Reason.RESERVED),
            waits("old", because="ended for team/new", reason=Reason.INCOMPLETE),
        ],
    ),
    Scenario(
        "nobody ends whose like of higher priority stays in the way",
        nodes=HOSTS,
        gangs=[runs("old", "a"), runs("lord", "b", priority=9), comes(avoids(ANY_APP), gpus=5)],
        expect=[waits("new")],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_company_in_the_way(scenario: Scenario) -> None:
    scenario.play()
