"""A running gang that loses all its members at once: its seats are kept for them as for one of
them, as long as they are to come back, and not for ever."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from posse.engine.cycle import cycle, wake_at
from posse.engine.decisions import Decision, Keep, Reason, Release, Start, Wait
from posse.engine.facts import Keeps, Purpose, Topology
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import (
    Expectation,
    Happening,
    Scenario,
    Team,
    Turn,
    arrives,
    ends,
    evicts,
    gang,
    goes,
    keeps,
    leaves,
    member,
    node,
    nodes,
    releases,
    shape,
    starts,
    vanishes,
    waits,
)
from tests.scenarios.test_engine_repair import HOLD, RACK, STEADY, incomplete, thief

scenario = partial(Scenario, policy=STEADY)
PAIR = ("train-worker-0", "train-worker-1")
BOTH = (("worker", "node-0"), ("worker", "node-0"))


def trains(workers: int = 2, *, on: tuple[str, ...] = ("node-0",), **more: object) -> Team:
    """A gang that runs, whose members somebody makes anew as long as its group is there."""
    sits = [on[at * len(on) // workers] for at in range(workers)]
    facts = {"returns": True, **more.pop("facts", {})}  # type: ignore[dict-item]
    return gang("train", workers=workers, gpus=1, on=sits, facts=facts, **more)  # type: ignore[arg-type]


def called_off(name: str = "train") -> Happening:
    """Whoever went was sent away: they do not come back."""

    def happen(view: View) -> None:
        facts = view.gangs[f"team/{name}"].facts
        assert facts is not None
        view.set_group(replace(facts, returns=False, recreated=False, started=False))

    return happen


def again(*numbers: int) -> Happening:
    return arrives(*(member("train", f"worker-{at}", gpus=1) for at in numbers))


def kept(*seats: tuple[str, str], where: str = "") -> list[Expectation]:
    told = f"0 of {len(seats)} pods exist; {len(seats)} seats on {where}" if where else ""
    return [keeps("train", *seats), incomplete("train", told)]


OVERCOME = [
    Scenario(
        "who could have ended it while it ran has its seats while they are kept for it",
        nodes=nodes(1, gpus=2),
        gangs=[trains()],
        then=[
            Turn([ends(*PAIR)], kept(*BOTH, where="node-0")),
            Turn(
                [arrives(gang("new", workers=2, gpus=1, priority=5))],
                [
                    releases("train"),
                    starts("new", 2, on={"node-0": 2}),
                    keeps("train"),
                    waits("train", because="ended for team/new", reason=Reason.INCOMPLETE),
                ],
            ),
            Turn([again(0, 1)], [waits("train")]),
        ],
    ),
    Scenario(
        "who could not has not",
        nodes=nodes(1, gpus=2),
        gangs=[trains(facts={"preemptable": False})],
        then=[
            Turn([ends(*PAIR)], kept(*BOTH, where="node-0")),
            Turn(
                [arrives(gang("new", workers=2, gpus=1, priority=5))],
                [waits("new", because="2 held for team/train")],
            ),
        ],
    ),
]

LOST = [
    scenario(
        "deleted, all of them: their seats are theirs again, and no thief's",
        nodes=nodes(1, gpus=2),
        gangs=[trains()],
        then=[
            Turn(
                [ends(*PAIR), arrives(thief())],
                [
                    keeps("train", *BOTH, until=2.0 + HOLD),
                    incomplete("train", "0 of 2 pods exist; 2 seats on node-0 kept for their"),
                    waits("thief", because="2 held for team/train"),
                ],
            ),
            Turn(
                [again(0)],
                [keeps("train", *BOTH), incomplete("train", "1 of 2 pods exist; 2 seats on")],
            ),
            Turn([again(1)], [starts("train", 2, on={"node-0": 2}), keeps("train")]),
        ],
    ),
    scenario(
        "successors that are there when the loss is seen need nothing kept",
        nodes=nodes(1, gpus=2),
        gangs=[trains()],
        then=[
            Turn(
                [ends(*PAIR), again(0, 1), arrives(thief())],
                [starts("train", 2, on={"node-0": 2}), waits("thief")],
            ),
        ],
    ),
    scenario(
        "while they go, their room is on its way back, and other room is for others",
        nodes=nodes(2, gpus=2),
        gangs=[trains()],
        then=[
            Turn(
                [goes(*PAIR), arrives(thief())],
                [starts("thief", 1, on={"node-1": 1}), incomplete("train", "0 of 2")],
            ),
            Turn([ends(*PAIR)], kept(*BOTH, where="node-0")),
        ],
    ),
    scenario(
        "drained: other seats are kept while they are still on their way out",
        nodes=nodes(2, gpus=2),
        gangs=[trains()],
        then=[
            Turn(
                [arrives(node("node-0", gpus=2, cordoned=True), thief()), goes(*PAIR)],
                [
                    *kept(("worker", "node-1"), ("worker", "node-1"), where="node-1"),
                    waits("thief"),
                ],
            ),
            Turn([ends(*PAIR)], [keeps("train", ("worker", "node-1"), ("worker", "node-1"))]),
            Turn([again(0, 1)], [starts("train", 2, on={"node-1": 2}), keeps("train")]),
        ],
    ),
    scenario(
        "its only node dies: other seats are kept in the same rack",
        nodes=[
            node("far", gpus=2, labels={RACK: "b"}),
            node("near", gpus=2, labels={RACK: "a"}),
            node("node-0", gpus=2, labels={RACK: "a"}),
        ],
        gangs=[trains()],
        then=[
            Turn(
                [leaves("node-0"), ends(*PAIR)],
                kept(("worker", "near"), ("worker", "near"), where="near"),
            ),
            Turn([again(0, 1)], [starts("train", 2, on={"near": 2}), keeps("train")]),
        ],
    ),
    scenario(
        "where no other node has room, the one that died is theirs when it comes back",
        nodes=nodes(1, gpus=2),
        gangs=[trains()],
        then=[
            Turn(
                [arrives(node("node-0", gpus=2, ready=False)), ends(*PAIR)],
                [keeps("train", *BOTH), incomplete("train", "it goes on when all of them do")],
            ),
            Turn(
                [arrives(node("node-0", gpus=2), thief())],
                [
                    incomplete("train", "2 seats on node-0 kept for their successors"),
                    waits("thief"),
                ],
            ),
            Turn([again(0, 1)], [starts("train", 2, on={"node-0": 2}), keeps("train")]),
        ],
    ),
    scenario(
        "a node that would have none of them is not the first choice",
        nodes=nodes(2, gpus=2),
        gangs=[trains()],
        then=[
            Turn(
                [ends(*PAIR, shunned=True)],
                kept(("worker", "node-1"), ("worker", "node-1"), where="node-1"),
            ),
        ],
    ),
    scenario(
        "on several nodes: each seat is kept where it was, and taken there",
        nodes=[
            node("node-0", gpus=1, labels={RACK: "b"}),
            node("node-1", gpus=1, labels={RACK: "c"}),
            *nodes(2, gpus=1, prefix="nearer", labels={RACK: "a"}),
        ],
        gangs=[trains(on=("node-0", "node-1"))],
        then=[
            Turn([ends(*PAIR)], kept(("worker", "node-0"), ("worker", "node-1"))),
            Turn(
                [again(0, 1)],
                [starts("train", 2, on={"node-0": 1, "node-1": 1}), keeps("train")],
            ),
        ],
    ),
    scenario(
        "who must sit in one rack has its seats kept in one rack",
        nodes=[
            node("a-0", gpus=1, labels={RACK: "a"}),
            node("a-1", gpus=1, labels={RACK: "a"}),
            node("b-0", gpus=1, labels={RACK: "b"}),
            node("b-1", gpus=1, labels={RACK: "b"}),
        ],
        gangs=[trains(on=("a-0", "a-1"), facts={"topology": Topology(key=RACK)})],
        then=[
            Turn(
                [leaves("a-0", "a-1"), ends(*PAIR)],
                kept(("worker", "b-0"), ("worker", "b-1")),
            ),
            Turn(
                [again(0, 1)],
                [starts("train", 2, on={"b-0": 1, "b-1": 1}), keeps("train")],
            ),
        ],
    ),
    scenario(
        "nor does it have one kept in a rack where the others find none",
        nodes=[
            node("a-0", gpus=1, labels={RACK: "a"}),
            node("a-1", gpus=1, labels={RACK: "a"}),
            node("b-0", gpus=1, labels={RACK: "b"}),
        ],
        gangs=[trains(on=("a-0", "a-1"), facts={"topology": Topology(key=RACK)})],
        then=[
            Turn(
                [leaves("a-0"), ends(*PAIR), arrives(thief())],
                [
                    keeps("train", ("worker", "a-0"), ("worker", "a-1")),
                    starts("thief", 1, on={"b-0": 1}),
                    incomplete("train", "0 of 2 pods exist; 1 seat on a-1"),
                ],
            ),
        ],
    ),
    scenario(
        "the announced launcher has its seat kept with the others",
        nodes=nodes(2, gpus=2, cores=3),
        gangs=[
            gang(
                "train",
                workers=2,
                gpus=1,
                on=["node-0", "node-0"],
                launcher=shape(cores=3),
                launcher_on="node-1",
                started=True,
                facts={"returns": True},
            )
        ],
        then=[
            Turn(
                [ends(*PAIR, "train-launcher"), arrives(gang("thief", workers=1, cores=2))],
                [keeps("train", *BOTH), incomplete("train", "0 of 2"), waits("thief")],
            ),
            Turn(
                [again(0, 1)],
                [
                    starts("train", 2, on={"node-0": 2}, holding=[("launcher", "node-1")]),
                    keeps("train"),
                ],
            ),
        ],
    ),
]

NOT_KEPT = [
    scenario(
        "who was sent away leaves nothing behind",
        nodes=nodes(1, gpus=2),
        gangs=[trains()],
        then=[
            Turn(
                [ends(*PAIR), called_off(), arrives(thief())],
                [starts("thief", 1), incomplete("train", "0 of 2 pods exist; it starts when")],
            ),
        ],
    ),
    scenario(
        "nor who is sent away later, while seats are kept",
        nodes=nodes(1, gpus=2),
        gangs=[trains()],
        then=[
            Turn(
                [ends(*PAIR), arrives(thief())],
                [keeps("train", *BOTH), incomplete("train"), waits("thief")],
            ),
            Turn([called_off()], [keeps("train"), starts("thief", 1), incomplete("train")]),
        ],
    ),
    scenario(
        "the group goes: what was kept for it is free at once",
        nodes=nodes(1, gpus=2),
        gangs=[trains()],
        then=[
            Turn(
                [ends(*PAIR), arrives(thief())],
                [keeps("train", *BOTH), incomplete("train"), waits("thief")],
            ),
            Turn([vanishes("train")], [starts("thief", 1)]),
        ],
    ),
    scenario(
        "members beyond the minimum leave their seats to others",
        nodes=nodes(1, gpus=2),
        gangs=[trains(least=1)],
        then=[
            Turn(
                [ends(*PAIR), arrives(thief())],
                [
                    keeps("train", ("worker", "node-0")),
                    starts("thief", 1),
                    incomplete("train", "0 of 1 pod exists; 1 seat on node-0"),
                ],
            ),
        ],
    ),
    scenario(
        "who never ran is simply placed again",
        nodes=nodes(1, gpus=2),
        gangs=[trains(started=False)],
        then=[
            Turn(
                [ends(*PAIR), arrives(thief())],
                [starts("thief", 1), incomplete("train", "it starts when")],
            ),
        ],
    ),
    Scenario(
        "who was ended for another does not take the room back",
        nodes=nodes(1, gpus=2),
        gangs=[trains()],
        policy=Policy(min_runtime=0.0, backfill=False),
        then=[
            Turn(
                [arrives(gang("urgent", workers=2, gpus=1, priority=9))],
                [
                    evicts("urgent", {"train": 2}),
                    waits("urgent", reason=Reason.RESERVED),
                    incomplete("train", "ended for team/urgent"),
                ],
            ),
            Turn([ends(*PAIR)], [starts("urgent", 2)]),
            Turn([again(0, 1)], [waits("train")]),
        ],
    ),
]

IN_THE_END = [
    scenario(
        "nobody comes back in time: it is let go, and waits like any other",
        nodes=nodes(1, gpus=2),
        gangs=[trains()],
        then=[
            Turn(
                [ends(*PAIR), arrives(thief())],
                [keeps("train", *BOTH), incomplete("train"), waits("thief")],
            ),
            Turn(after=HOLD - 1),
            Turn(
                after=1,
                expect=[
                    releases("train"),
                    keeps("train"),
                    starts("thief", 1),
                    incomplete("train", "0 of 2 pods exist; it starts when all of them do"),
                ],
            ),
            Turn([again(0, 1)], [waits("train", because="needs 2 GPUs")]),
            Turn([vanishes("thief")], [starts("train", 2)]),
        ],
    ),
    scenario(
        "they are back and find no room in time: they wait in line, and keep nothing",
        nodes=nodes(2, gpus=1),
        gangs=[trains(on=("node-0", "node-1"))],
        then=[
            Turn(
                [leaves("node-1"), ends(*PAIR), again(0, 1), arrives(thief())],
                [waits("train"), waits("thief", because="1 held for team/train")],
            ),
            # What it was told while it ailed holds still: two GPUs are more than there are.
            Turn(after=HOLD, expect=[releases("train"), starts("thief", 1)]),
        ],
    ),
]


@pytest.mark.parametrize(
    "scenario", LOST + OVERCOME + NOT_KEPT + IN_THE_END, ids=lambda each: each.name
)
def test_bereft(scenario: Scenario) -> None:
    scenario.play()


# -- across a restart ----------------------------------------------------------------------------

ASKS = (("worker", shape(gpus=1)),)


def restarted(keeps: Keeps) -> View:
    """A scheduler that has just come, and reads what was written; nobody of `train` is left."""
    view = View()
    group = trains(facts={"keeps": keeps}).group
    arrives(*nodes(2, gpus=2), Team(group, []), gang("big", workers=2, gpus=2))(view)
    return view


def decided(view: View, now: float) -> list[Decision]:
    decisions = list(cycle(view, STEADY, now))
    view.validate()
    return [each for each in decisions if not isinstance(each, Wait)]


def test_what_is_written_tells_who_sat_there() -> None:
    view = View()
    arrives(*nodes(1, gpus=2), trains())(view)
    assert decided(view, 0.0) == []
    ends(*PAIR)(view)
    (keep,) = decided(view, 1.0)
    assert keep == Keep("team/train", Keeps(Purpose.REPAIR, BOTH, 1.0 + HOLD, ASKS))
    again(0)(view)
    (keep,) = decided(view, 2.0)
    assert keep == Keep("team/train", Keeps(Purpose.REPAIR, BOTH, 1.0 + HOLD)), "who waits tells"


def test_what_was_kept_before_a_restart_is_kept_after_it() -> None:
    view = restarted(Keeps(Purpose.REPAIR, BOTH, 700.0, ASKS))
    assert decided(view, 200.0) == []
    assert wake_at(view, STEADY) == 700.0
    again(0, 1)(view)
    start, *_ = decided(view, 201.0)
    assert isinstance(start, Start) and {seat.node for seat in start.seats} == {"node-0"}


def test_a_restart_does_not_begin_the_time_anew() -> None:
    view = restarted(Keeps(Purpose.REPAIR, BOTH, 700.0, ASKS))
    assert decided(view, 200.0) == []
    released, keep, start = decided(view, 700.0)
    assert isinstance(released, Release) and released.gang == "team/train" and not released.pods
    assert keep == Keep("team/train", None)
    assert isinstance(start, Start) and start.gang == "team/big"


def test_seats_of_whom_nobody_can_tell_anything_are_not_kept() -> None:
    view = restarted(Keeps(Purpose.REPAIR, BOTH, 700.0))
    (start,) = [each for each in decided(view, 200.0) if isinstance(each, Start)]
    assert start.gang == "team/big"
