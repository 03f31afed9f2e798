"""Ending others to start: who, for whom, and what becomes of the room."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from posse.engine.decisions import Reason
from posse.engine.facts import BudgetFacts, Keeps, Purpose, QueueFacts
from posse.engine.fit.terms import Requirement, Selector
from posse.engine.policy import Policy
from tests.scenarios.language import (
    Expectation,
    Scenario,
    Team,
    Turn,
    arrives,
    but,
    ends,
    evicts,
    gang,
    goes,
    keeps,
    leaves,
    member,
    node,
    nodes,
    pod,
    refused,
    shape,
    starts,
    waits,
)

RESERVED = Reason.RESERVED
INCOMPLETE = Reason.INCOMPLETE


def low(name: str, *on: str, gpus: int = 8, began: float = -100.0, **like: Any) -> Team:
    """A running gang, one pod per node named, begun a while ago."""
    facts = {"began": began, **like.pop("facts", {})}
    return gang(name, workers=len(on), on=on, gpus=gpus, facts=facts, **like)


def ended(name: str) -> Expectation:
    return waits(name, because="ended for team/", reason=INCOMPLETE)


SCENARIOS = [
    Scenario(
        "a gang of higher priority ends the one in its way, waits for it, and sits where it sat",
        nodes=nodes(2, gpus=8),
        gangs=[low("old", "node-0", "node-1"), gang("new", workers=2, gpus=8, priority=5)],
        expect=[
            evicts("new", {"old": 2}, on={"node-0": 1, "node-1": 1}),
            waits("new", because="waits for 2 pods of team/old to end", reason=RESERVED),
            waits("old", because="ended for team/new; 0 of 2 pods exist", reason=INCOMPLETE),
        ],
        then=[
            Turn(
                [goes("old-worker-0", "old-worker-1")],
            ),
            Turn(
                [ends("old-worker-0")],
                [waits("new", because="waits for 1 pod of team/old to end", reason=RESERVED)],
            ),
            Turn([ends("old-worker-1")], [starts("new", 2, on={"node-0": 1, "node-1": 1})]),
        ],
    ),
    Scenario(
        "equal priority ends nobody",
        nodes=nodes(1, gpus=8),
        gangs=[low("old", "node-0", priority=5), gang("new", workers=1, gpus=8, priority=5)],
        expect=[waits("new")],
    ),
    Scenario(
        "who must not preempt does not (preemptionPolicy: Never)",
        nodes=nodes(1, gpus=8),
        gangs=[
            low("old", "node-0"),
            gang("new", workers=1, gpus=8, priority=5, facts={"preempts": False}),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "behind one that must not preempt, one that asks the same and may does",
        nodes=nodes(1, gpus=8),
        gangs=[
            low("old", "node-0"),
            gang("meek", workers=1, gpus=8, priority=7, facts={"preempts": False}),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"old": 1}),
            waits("meek"),
            waits("new", reason=RESERVED),
            ended("old"),
        ],
    ),
    Scenario(
        "the policy may forbid it",
        nodes=nodes(1, gpus=8),
        gangs=[low("old", "node-0"), gang("new", workers=1, gpus=8, priority=5)],
        policy=Policy(preemption=False),
        expect=[waits("new")],
    ),
    Scenario(
        "nobody ends for a gang that would not fit even then",
        nodes=nodes(2, gpus=8),
        gangs=[low("old", "node-0"), gang("new", workers=3, gpus=8, priority=5)],
        expect=[waits("new", because="cluster has 16")],
    ),
    Scenario(
        "nobody ends where what is short is in the hands of strangers",
        nodes=nodes(2, gpus=8),
        others=[pod("alien", on="node-1", gpus=8)],
        gangs=[low("old", "node-0"), gang("new", workers=2, gpus=8, priority=5)],
        expect=[waits("new")],
    ),
    Scenario(
        "one victim where one is enough, however many are cheaper in all",
        nodes=[node("big", gpus=8), *nodes(10, gpus=1)],
        gangs=[
            *(low(f"small-{at}", f"node-{at}", gpus=1) for at in range(10)),
            low("large", "big"),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[evicts("new", {"large": 1}), waits("new", reason=RESERVED), ended("large")],
    ),
    Scenario(
        "the lowest priority goes first",
        nodes=nodes(2, gpus=8),
        gangs=[
            low("a", "node-0", priority=3),
            low("b", "node-1", priority=2),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[evicts("new", {"b": 1}), waits("new", reason=RESERVED), ended("b")],
    ),
    Scenario(
        "of one priority who loses the least work",
        nodes=nodes(2, gpus=8),
        gangs=[
            low("a", "node-0", began=-1000.0),
            low("b", "node-1", began=-10.0),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[evicts("new", {"b": 1}), waits("new", reason=RESERVED), ended("b")],
    ),
    Scenario(
        "who has saved its work loses little",
        nodes=nodes(2, gpus=8),
        gangs=[
            low("a", "node-0", began=-1000.0, facts={"checkpoint_interval": 5.0}),
            low("b", "node-1", began=-10.0),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[evicts("new", {"a": 1}), waits("new", reason=RESERVED), ended("a")],
    ),
    Scenario(
        "of equal loss the fewer pods",
        nodes=nodes(2, gpus=8),
        gangs=[
            low("a", "node-0", "node-0", gpus=4),
            low("b", "node-1"),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[evicts("new", {"b": 1}), waits("new", reason=RESERVED), ended("b")],
    ),
    Scenario(
        "a gang ends whole, wherever its members sit",
        nodes=nodes(3, gpus=8),
        gangs=[
            low("old", "node-0", "node-1", "node-2"),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"old": 3}, on={"node-0": 1}),
            waits("new", reason=RESERVED),
            ended("old"),
        ],
    ),
    Scenario(
        "members that a gang can spare end alone",
        nodes=nodes(3, gpus=8),
        gangs=[
            low("old", "node-0", "node-1", "node-2", least=2),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"old": ["old-worker-2"]}, on={"node-2": 1}),
            waits("new", reason=RESERVED),
        ],
    ),
    Scenario(
        "where it costs the same, two gangs spare a member each before one of them ends",
        nodes=nodes(4, gpus=8),
        gangs=[
            low("one", "node-0", "node-1", least=1),
            low("two", "node-2", "node-3", least=1),
            gang("new", workers=2, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"one": ["one-worker-1"], "two": ["two-worker-1"]}),
            waits("new", reason=RESERVED),
        ],
    ),
    Scenario(
        "of members that can be spared, the one that sits in the way",
        nodes=[node("zone-a", gpus=8, labels={"zone": "a"}), *nodes(2, gpus=8)],
        gangs=[
            low("old", "zone-a", "node-0", "node-1", least=2),
            gang("new", workers=1, gpus=8, priority=5, selector={"zone": "a"}),
        ],
        expect=[
            evicts("new", {"old": ["old-worker-0"]}, on={"zone-a": 1}),
            waits("new", reason=RESERVED),
        ],
    ),
    Scenario(
        "no role goes below its minimum",
        nodes=nodes(3, gpus=8),
        gangs=[
            gang(
                "old",
                roles={"chief": (1, shape(gpus=8)), "worker": (2, shape(gpus=8))},
                on=["node-0", "node-1", "node-2"],
                least=1,
                facts={"began": -5.0, "role_minimums": (("chief", 1),)},
            ),
            gang("new", workers=2, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"old": ["old-worker-0", "old-worker-1"]}),
            waits("new", reason=RESERVED),
        ],
    ),
    Scenario(
        "a gang that says so is ended pod by pod",
        nodes=nodes(3, gpus=8),
        gangs=[
            low("old", "node-0", "node-1", "node-2", facts={"severable": True}),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[evicts("new", {"old": 1}), waits("new", reason=RESERVED)],
    ),
    Scenario(
        "of a gang that is ended pod by pod nobody ends for a priority that is not above its own",
        nodes=nodes(3, gpus=8),
        gangs=[
            but(
                low("old", "node-0", "node-1", "node-2", facts={"severable": True}),
                "worker-1",
                "worker-2",
                priority=5,
            ),
            gang("one", workers=1, gpus=8, priority=5, age=1),
            gang("two", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("one", {"old": 1}, on={"node-0": 1}),
            waits("one", reason=RESERVED),
            waits("two", because="needs 8 GPUs"),
        ],
    ),
    Scenario(
        "its pods end for a priority that is above theirs",
        nodes=nodes(2, gpus=8),
        gangs=[
            but(
                low("old", "node-0", "node-1", facts={"severable": True}),
                "worker-1",
                priority=4,
            ),
            gang("new", workers=2, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"old": 2}),
            waits("new", reason=RESERVED),
            waits("old", because="ended for team/new", reason=Reason.INCOMPLETE),
        ],
    ),
    Scenario(
        "what must not be preempted is not",
        nodes=nodes(1, gpus=8),
        gangs=[
            low("old", "node-0", facts={"preemptable": False}),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "who was ended too often is spared",
        nodes=nodes(1, gpus=8),
        gangs=[
            low("old", "node-0", facts={"evictions": 3}),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "who has hardly run is spared until it has",
        nodes=nodes(1, gpus=8),
        gangs=[
            low("old", "node-0", began=0.0, facts={"min_runtime": 60.0}),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[
            waits(
                "new",
                because="; team/old of lower priority may not be ended for it before about 00:01"
                " UTC (min-runtime)",
            )
        ],
        then=[
            Turn(after=30.0),
            Turn(
                after=30.0,
                expect=[evicts("new", {"old": 1}), waits("new", reason=RESERVED), ended("old")],
            ),
        ],
    ),
    Scenario(
        "a room that is about to be free anyway is waited for",
        nodes=nodes(2, gpus=8),
        gangs=[
            low("going", "node-0", deleting=1),
            low("old", "node-1"),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[
            keeps("new", ("worker", "node-0"), until=301.0),
            waits("new", because="to end: its room is kept for it", reason=RESERVED),
        ],
    ),
    Scenario(
        "freed room is not given to others that come before the gang sits",
        nodes=nodes(2, gpus=8),
        gangs=[low("old", "node-0", "node-1"), gang("new", workers=2, gpus=8, priority=5)],
        expect=[
            evicts("new", {"old": 2}),
            waits("new", reason=RESERVED),
            ended("old"),
        ],
        then=[
            Turn(
                [ends("old-worker-0"), arrives(gang("small", workers=1, gpus=1))],
                [waits("new", reason=RESERVED), waits("small", because="held for team/new")],
            ),
        ],
    ),
    Scenario(
        "a victim that comes back waits, and does not end its evictor",
        nodes=nodes(1, gpus=8),
        gangs=[low("old", "node-0"), gang("new", workers=1, gpus=8, priority=5)],
        expect=[evicts("new", {"old": 1}), waits("new", reason=RESERVED), ended("old")],
        then=[
            Turn([ends("old-worker-0")], [starts("new", 1)]),
            Turn([arrives(member("old", "worker-0", gpus=8))], [waits("old")]),
        ],
    ),
    Scenario(
        "a node that goes bad while its room is waited for: planned again",
        nodes=nodes(2, gpus=8),
        gangs=[
            low("a", "node-0", began=-1.0),
            low("b", "node-1"),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"a": 1}, on={"node-0": 1}),
            waits("new", reason=RESERVED),
            ended("a"),
        ],
        then=[
            Turn(
                [leaves("node-0")],
                [
                    evicts("new", {"b": 1}, on={"node-1": 1}),
                    waits("new", because="1 pod of team/b", reason=RESERVED),
                    ended("b"),
                ],
            ),
        ],
    ),
    Scenario(
        "a victim that never ends is not waited for longer than the policy says",
        nodes=nodes(2, gpus=8),
        gangs=[
            low("a", "node-0", began=-1.0),
            low("b", "node-1"),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        policy=Policy(preemption_hold=60.0),
        expect=[evicts("new", {"a": 1}), waits("new", reason=RESERVED), ended("a")],
        then=[
            Turn([goes("a-worker-0")], after=30.0),
            Turn(
                after=31.0,
                expect=[
                    keeps("new"),
                    evicts("new", {"b": 1}),
                    waits("new", because="1 pod of team/b", reason=RESERVED),
                    ended("b"),
                ],
            ),
        ],
    ),
    Scenario(
        "room elsewhere is taken before the victims are gone",
        nodes=nodes(1, gpus=8),
        gangs=[low("old", "node-0"), gang("new", workers=1, gpus=8, priority=5)],
        expect=[evicts("new", {"old": 1}), waits("new", reason=RESERVED), ended("old")],
        then=[Turn([arrives(node("node-9", gpus=8))], [starts("new", 1, on={"node-9": 1})])],
    ),
    Scenario(
        "an eviction that did not happen is no room: it is decided again",
        nodes=nodes(1, gpus=8),
        gangs=[low("old", "node-0"), gang("new", workers=1, gpus=8, priority=5)],
        expect=[evicts("new", {"old": 1}), waits("new", reason=RESERVED), ended("old")],
        then=[
            Turn(
                [refused("old-worker-0")],
                [evicts("new", {"old": 1}), ended("old")],
            )
        ],
    ),
    Scenario(
        "what an earlier life kept is found again, on room that is still to come free",
        nodes=nodes(1, gpus=8),
        gangs=[
            low("old", "node-0", deleting=1),
            gang(
                "new",
                workers=1,
                gpus=8,
                priority=5,
                facts={"keeps": Keeps(Purpose.PREEMPTION, (("worker", "node-0"),), 100.0)},
            ),
            gang("small", workers=1, gpus=1, priority=9, facts={"preempts": False}),
        ],
        expect=[waits("small"), waits("new", reason=RESERVED)],
        then=[
            Turn(
                [ends("old-worker-0")],
                [starts("new", 1), waits("small", because="0 of 8 are free;")],
            )
        ],
    ),
    Scenario(
        "what was kept before anybody was ended is nothing: it is planned again",
        nodes=nodes(1, gpus=8),
        gangs=[
            low("old", "node-0"),
            gang(
                "new",
                workers=1,
                gpus=8,
                priority=5,
                facts={"keeps": Keeps(Purpose.PREEMPTION, (("worker", "node-0"),), 100.0)},
            ),
        ],
        expect=[evicts("new", {"old": 1}), waits("new", reason=RESERVED), ended("old")],
    ),
    Scenario(
        "who has just been given its nodes is not ended before it is known to have them",
        nodes=nodes(1, gpus=8),
        gangs=[gang("old", workers=1, gpus=8)],
        expect=[starts("old", 1)],
        then=[
            Turn([arrives(gang("new", workers=1, gpus=8, priority=5))], [waits("new")]),
            Turn(
                [arrives(gang("old", workers=1, gpus=8, on=["node-0"]).pods[0])],
                [evicts("new", {"old": 1}), waits("new", reason=RESERVED), ended("old")],
            ),
        ],
    ),
    Scenario(
        "an announced member's seat is made with the others",
        nodes=[node("node-0", gpus=8, cores=4)],
        gangs=[
            low("old", "node-0", gpus=8, cores=4),
            gang("new", workers=1, gpus=8, cores=2, launcher=shape(cores=2), priority=5),
        ],
        expect=[
            evicts("new", {"old": 1}, on={"node-0": 2}),
            waits("new", reason=RESERVED),
            ended("old"),
        ],
        then=[Turn([ends("old-worker-0")], [starts("new", 1, holding=[("launcher", "node-0")])])],
    ),
    Scenario(
        "a launcher beside the minimum of workers makes none of them spare",
        nodes=nodes(2, gpus=8),
        gangs=[
            low("old", "node-0", "node-1", gpus=8, launcher=shape(), launcher_on="node-0"),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[evicts("new", {"old": 3}), waits("new", reason=RESERVED), ended("old")],
    ),
    Scenario(
        "who comes before takes over the room that was made for another, and nobody else ends",
        nodes=nodes(1, gpus=8),
        gangs=[low("old", "node-0"), gang("new", workers=1, gpus=8, priority=5)],
        expect=[evicts("new", {"old": 1}), waits("new", reason=RESERVED), ended("old")],
        then=[
            Turn(
                [arrives(gang("newest", workers=1, gpus=8, priority=9))],
                [
                    keeps("newest", ("worker", "node-0"), until=302.0),
                    keeps("new"),
                    waits("newest", because="to end", reason=RESERVED),
                    waits("new", because="held for team/newest"),
                ],
            ),
            Turn(
                [ends("old-worker-0")],
                [starts("newest", 1), waits("new", because="0 of 8 are free;")],
            ),
        ],
    ),
    Scenario(
        "a running gang that lost a member and its node ends others for the successor",
        nodes=nodes(3, gpus=8),
        gangs=[
            low("mine", "node-0", "node-1", priority=5),
            low("old", "node-2"),
        ],
        then=[
            Turn(
                [ends("mine-worker-1"), leaves("node-1")],
                [
                    keeps("mine", ("worker", "node-1"), until=602.0),
                    waits("mine", reason=INCOMPLETE),
                ],
            ),
            Turn(
                [arrives(member("mine", "worker-1", gpus=8))],
                [
                    keeps("mine"),
                    evicts("mine", {"old": 1}, on={"node-2": 1}),
                    waits("mine", because="1 pod of team/old", reason=RESERVED),
                    ended("old"),
                ],
            ),
            Turn([ends("old-worker-0")], [starts("mine", 1, on={"node-2": 1})]),
        ],
    ),
    Scenario(
        "with a gang ends what was held for its announced members",
        nodes=nodes(2, gpus=8),
        gangs=[
            gang(
                "old",
                workers=1,
                gpus=8,
                on=["node-0"],
                launcher=shape(gpus=8),
                holds=[("launcher", "node-1")],
                facts={"began": -5.0},
            ),
            gang("new", workers=2, gpus=8, priority=5),
        ],
        expect=[
            evicts("new", {"old": 1}, on={"node-0": 1, "node-1": 1}),
            waits("new", reason=RESERVED),
            ended("old"),
        ],
        then=[Turn([ends("old-worker-0")], [starts("new", 2)])],
    ),
    Scenario(
        "what was made for a gang is not kept for it once its queue has closed",
        nodes=nodes(1, gpus=8),
        queues=[QueueFacts("q")],
        gangs=[
            low("old", "node-0", queue="q"),
            gang("new", workers=1, gpus=8, priority=5, queue="q"),
        ],
        expect=[evicts("new", {"old": 1}), waits("new", reason=RESERVED), ended("old")],
        then=[
            Turn(
                [arrives(QueueFacts("q", open=False)), arrives(gang("small", workers=1, gpus=1))],
                [
                    keeps("new"),
                    waits("small"),
                    waits("new", reason=Reason.QUEUE_CLOSED),
                ],
            ),
            Turn([ends("old-worker-0")], [starts("small", 1)]),
        ],
    ),
    Scenario(
        "two that may not both have it: the first in order gets the victims",
        nodes=nodes(1, gpus=8),
        gangs=[
            low("old", "node-0"),
            gang("first", workers=1, gpus=8, priority=5, age=10.0),
            gang("second", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("first", {"old": 1}),
            waits("first", reason=RESERVED),
            ended("old"),
            waits("second"),
        ],
    ),
    Scenario(
        "two that may both have it end one each",
        nodes=nodes(2, gpus=8),
        gangs=[
            low("a", "node-0"),
            low("b", "node-1"),
            gang("first", workers=1, gpus=8, priority=5, age=10.0),
            gang("second", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("first", {"a": 1}),
            evicts("second", {"b": 1}),
            waits("first", reason=RESERVED),
            ended("a"),
            waits("second", reason=RESERVED),
            ended("b"),
        ],
    ),
]

CPU_BUDGET = Selector((Requirement("app", "In", ("x",)),))


def labelled(team: Team, **labels: str) -> Team:
    return Team(team.group, [replace(each, labels=labels) for each in team.pods])


def protected(team: Team, *pods: str) -> Team:
    """Of these pods the budget speaks."""
    return Team(
        team.group,
        [replace(each, labels={"app": "x"}) if each.uid in pods else each for each in team.pods],
    )


BUDGETS = [
    Scenario(
        "a budget that allows all of a gang lets it end",
        nodes=nodes(2, gpus=8),
        budgets=[BudgetFacts("team", "b", CPU_BUDGET, 2)],
        gangs=[
            labelled(low("old", "node-0", "node-1"), app="x"),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[evicts("new", {"old": 2}), waits("new", reason=RESERVED), ended("old")],
    ),
    Scenario(
        "a budget that does not allow all of a gang spares it",
        nodes=nodes(2, gpus=8),
        budgets=[BudgetFacts("team", "b", CPU_BUDGET, 1)],
        gangs=[
            labelled(low("old", "node-0", "node-1"), app="x"),
            gang("new", workers=1, gpus=8, priority=5),
        ],
        expect=[waits("new")],
        then=[
            Turn(
                [arrives(BudgetFacts("team", "b", CPU_BUDGET, 2))],
                [evicts("new", {"old": 2}), waits("new", reason=RESERVED), ended("old")],
            )
        ],
    ),
    Scenario(
        "one budget is not spent twice",
        nodes=nodes(2, gpus=8),
        budgets=[BudgetFacts("team", "b", CPU_BUDGET, 1)],
        gangs=[
            labelled(low("a", "node-0"), app="x"),
            labelled(low("b", "node-1"), app="x"),
            gang("new", workers=2, gpus=8, priority=5),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "nor by two gangs, before the first eviction is counted",
        nodes=nodes(2, gpus=8),
        budgets=[BudgetFacts("team", "b", CPU_BUDGET, 1)],
        gangs=[
            labelled(low("a", "node-0"), app="x"),
            labelled(low("b", "node-1"), app="x"),
            gang("first", workers=1, gpus=8, priority=5, age=1.0),
            gang("second", workers=1, gpus=8, priority=5),
        ],
        expect=[
            evicts("first", {"a": 1}),
            waits("first", reason=RESERVED),
            ended("a"),
            waits("second"),
        ],
    ),
    Scenario(
        "a pod of two budgets cannot be evicted at all",
        nodes=nodes(1, gpus=8),
        budgets=[BudgetFacts("team", "b", CPU_BUDGET, 5), BudgetFacts("team", "c", CPU_BUDGET, 5)],
        gangs=[labelled(low("old", "node-0"), app="x"), gang("new", workers=1, gpus=8, priority=5)],
        expect=[waits("new")],
    ),
    Scenario(
        "of those that a gang can spare one ends that its budget lets go, not just the youngest",
        nodes=nodes(1, gpus=2),
        budgets=[BudgetFacts("team", "b", CPU_BUDGET, 0)],
        gangs=[
            protected(low("old", "node-0", "node-0", gpus=1, least=1), "old-worker-1"),
            gang("new", workers=1, gpus=1, priority=5),
        ],
        expect=[evicts("new", {"old": ["old-worker-0"]}), waits("new", reason=RESERVED)],
    ),
    Scenario(
        "nobody ends where a budget keeps the only ones that a gang could spare, and with them all",
        nodes=nodes(1, gpus=2),
        budgets=[BudgetFacts("team", "b", CPU_BUDGET, 0)],
        gangs=[
            protected(
                low("old", "node-0", "node-0", gpus=1, least=1), "old-worker-0", "old-worker-1"
            ),
            gang("new", workers=1, gpus=1, priority=5),
        ],
        expect=[waits("new")],
    ),
    Scenario(
        "a budget of another namespace says nothing",
        nodes=nodes(1, gpus=8),
        budgets=[BudgetFacts("other", "b", CPU_BUDGET, 0)],
        gangs=[labelled(low("old", "node-0"), app="x"), gang("new", workers=1, gpus=8, priority=5)],
        expect=[evicts("new", {"old": 1}), waits("new", reason=RESERVED), ended("old")],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS + BUDGETS, ids=lambda scenario: scenario.name)
def test_preemption(scenario: Scenario) -> None:
    scenario.play()
