"""A running gang keeps its seats: what it loses is kept for its successor, and not for ever."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace

from posse.engine.cycle import cycle, wake_at
from posse.engine.decisions import Decision, Keep, Reason, Release, Start, Wait
from posse.engine.facts import Keeps, Purpose, Toleration
from posse.engine.fit.terms import PodTerm, Relations, Requirement, Selector
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import (
    Expectation,
    Scenario,
    Team,
    Turn,
    arrives,
    asks_only,
    ends,
    gang,
    goes,
    keeps,
    leaves,
    member,
    node,
    nodes,
    pod,
    releases,
    shape,
    starts,
    vanishes,
    waits,
)

# Nobody is ended for others here.
STEADY = Policy(preemption=False, reclaim=False, backfill=False)
scenario = partial(Scenario, policy=STEADY)
HOLD = Policy().repair_hold
RACK, ZONE = "posse.dev/rack", "topology.kubernetes.io/zone"


def trains(workers: int = 3, **more: object) -> Team:
    """A gang that runs, a worker per node."""
    on = [f"node-{at}" for at in range(workers)]
    return gang("train", workers=workers, gpus=1, on=on, **more)  # type: ignore[arg-type]


def thief(name: str = "thief", **more: object) -> Team:
    return gang(name, workers=1, gpus=1, priority=9, **more)  # type: ignore[arg-type]


def incomplete(name: str, because: str = "") -> Expectation:
    return waits(name, because=because, reason=Reason.INCOMPLETE)


KEPT = [
    scenario(
        "the seat of who leads is kept for it, whoever else waits",
        nodes=nodes(1, gpus=5),
        gangs=[
            gang(
                "train",
                roles={"ps": (1, shape(gpus=4)), "worker": (3, shape(gpus=1))},
                on=["node-0", "node-0"],
                least=2,
                started=True,
                facts={"role_minimums": (("ps", 1), ("worker", 1)), "ran_with": 2},
            )
        ],
        expect=[waits("train", because="beyond its minimum")],
        then=[
            Turn(
                [ends("train-ps-0"), arrives(gang("thief", workers=1, gpus=3))],
                [keeps("train", ("ps", "node-0")), incomplete("train"), waits("thief")],
            ),
            Turn(
                [arrives(member("train", "ps-0", role="ps", gpus=4))],
                [starts("train", 1), keeps("train"), waits("train", because="beyond its minimum")],
            ),
        ],
    ),
    scenario(
        "a lost member's seat is kept before its successor exists, and is its successor's",
        nodes=nodes(3, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [ends("train-worker-1"), arrives(thief())],
                [
                    keeps("train", ("worker", "node-1"), until=2.0 + HOLD),
                    incomplete("train", "2 of 3 pods exist; 1 seat on node-1 kept for its succ"),
                    waits("thief", because="1 held for team/train"),
                ],
            ),
            Turn(
                [arrives(member("train", "worker-1", gpus=1))],
                [starts("train", 1, on={"node-1": 1}), keeps("train")],
            ),
        ],
    ),
    scenario(
        "a successor that is there when the loss is seen needs nothing kept",
        nodes=nodes(4, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [ends("train-worker-1"), arrives(member("train", "worker-1", gpus=1))],
                [starts("train", 1, on={"node-1": 1})],
            ),
        ],
    ),
    scenario(
        "where its node is gone, its seat is kept in the same rack",
        nodes=[
            node("node-0", gpus=1, labels={RACK: "a"}),
            node("node-1", gpus=1, labels={RACK: "b", ZONE: "x"}),
            node("node-2", gpus=1, labels={RACK: "c"}),
            node("other", gpus=1, labels={RACK: "c"}),
            node("spare", gpus=1, labels={RACK: "b", ZONE: "x"}),
        ],
        gangs=[trains()],
        then=[
            Turn(
                [leaves("node-1"), ends("train-worker-1")],
                [keeps("train", ("worker", "spare")), incomplete("train")],
            ),
            Turn(
                [arrives(member("train", "worker-1", gpus=1))],
                [starts("train", 1, on={"spare": 1}), keeps("train")],
            ),
        ],
    ),
    scenario(
        "where its rack has no room, its seat is kept in the same zone",
        nodes=[
            node("a", gpus=1, labels={ZONE: "y"}),
            node("node-0", gpus=1, labels={RACK: "a", ZONE: "x"}),
            node("node-1", gpus=1, labels={RACK: "b", ZONE: "x"}),
            node("z", gpus=1, labels={RACK: "c", ZONE: "x"}),
        ],
        gangs=[trains(2)],
        then=[
            Turn(
                [leaves("node-1"), ends("train-worker-1")],
                [keeps("train", ("worker", "z")), incomplete("train")],
            ),
        ],
    ),
    scenario(
        "and else anywhere",
        nodes=[*nodes(2, gpus=1, labels={ZONE: "x"}), node("far", gpus=1, labels={ZONE: "y"})],
        gangs=[trains(2)],
        then=[
            Turn(
                [leaves("node-1"), ends("train-worker-1")],
                [keeps("train", ("worker", "far")), incomplete("train")],
            ),
        ],
    ),
    scenario(
        "drained: another seat is kept while the member is still on its way out",
        nodes=nodes(4, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [
                    arrives(node("node-1", gpus=1, cordoned=True), thief()),
                    goes("train-worker-1"),
                ],
                [keeps("train", ("worker", "node-3")), incomplete("train"), waits("thief")],
            ),
            Turn([ends("train-worker-1")], []),
            Turn(
                [arrives(member("train", "worker-1", gpus=1))],
                [starts("train", 1, on={"node-3": 1}), keeps("train")],
            ),
        ],
    ),
    scenario(
        "drained: who tolerates the cordon does not go back, where there is another seat",
        nodes=nodes(4, gpus=1),
        gangs=[trains(tolerations=[Toleration(operator="Exists")])],
        then=[
            Turn(
                [arrives(node("node-1", gpus=1, cordoned=True)), ends("train-worker-1")],
                [keeps("train", ("worker", "node-3")), incomplete("train")],
            ),
        ],
    ),
    scenario(
        "drained: who tolerates the cordon goes back, where there is no other seat",
        nodes=nodes(3, gpus=1),
        gangs=[trains(tolerations=[Toleration(operator="Exists")])],
        then=[
            Turn(
                [arrives(node("node-1", gpus=1, cordoned=True)), ends("train-worker-1")],
                [keeps("train", ("worker", "node-1")), incomplete("train")],
            ),
        ],
    ),
    scenario(
        "deleted: its own seat comes back, and no other is kept meanwhile",
        nodes=nodes(4, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [goes("train-worker-1"), arrives(thief())],
                [starts("thief", 1, on={"node-3": 1}), incomplete("train")],
            ),
            Turn(
                [ends("train-worker-1")],
                [keeps("train", ("worker", "node-1")), incomplete("train", "on node-1 kept")],
            ),
        ],
    ),
    scenario(
        "a node that is away for a while takes nothing from its gang",
        nodes=nodes(3, gpus=1),
        gangs=[trains()],
        then=[
            Turn([arrives(node("node-1", gpus=1, ready=False))], []),
            Turn([arrives(node("node-1", gpus=1))], []),
        ],
    ),
    scenario(
        "a node that comes back is the first choice again",
        nodes=nodes(3, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [arrives(node("node-1", gpus=1, ready=False)), ends("train-worker-1")],
                [keeps("train", ("worker", "node-1")), incomplete("train", "it goes on when")],
            ),
            Turn(
                [arrives(node("node-1", gpus=1))],
                [incomplete("train", "on node-1 kept")],
            ),
        ],
    ),
    scenario(
        "a node that would not have the member is not the first choice",
        nodes=nodes(4, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [ends("train-worker-1", shunned=True)],
                [keeps("train", ("worker", "node-3")), incomplete("train")],
            ),
            Turn(
                [arrives(member("train", "worker-1", gpus=1))],
                [starts("train", 1, on={"node-3": 1}), keeps("train")],
            ),
        ],
    ),
    scenario(
        "of two that are lost both seats are kept, and no successor sits down alone",
        nodes=nodes(3, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [ends("train-worker-1", "train-worker-2"), arrives(thief())],
                [
                    keeps("train", ("worker", "node-1"), ("worker", "node-2")),
                    incomplete("train", "1 of 3 pods exist; 2 seats on node-1, node-2 kept"),
                    waits("thief"),
                ],
            ),
            Turn(
                [arrives(member("train", "worker-1", gpus=1))],
                [incomplete("train", "2 of 3")],
            ),
            Turn(
                [arrives(member("train", "worker-2", gpus=1))],
                [starts("train", 2, on={"node-1": 1, "node-2": 1}), keeps("train")],
            ),
        ],
    ),
    scenario(
        "the seat of the role that misses somebody is the one that is kept",
        nodes=nodes(3, gpus=1),
        gangs=[
            gang(
                "train",
                roles={"ps": (1, shape(gpus=1)), "worker": (2, shape(gpus=1))},
                least=2,
                on=["node-0", "node-1", "node-2"],
                started=True,
                facts={"role_minimums": (("ps", 1), ("worker", 1))},
            )
        ],
        then=[
            Turn(
                [
                    ends("train-ps-0", "train-worker-1"),
                    arrives(thief(), gang("b", workers=1, gpus=1)),
                ],
                [
                    keeps("train", ("ps", "node-0")),
                    starts("thief", 1, on={"node-2": 1}),
                    incomplete("train", "1 of 2 pods exist; 1 seat on node-0 kept"),
                    waits("b"),
                ],
            ),
        ],
    ),
]

UNSEEN = [
    scenario(
        "a member lost while nobody looked: a seat like its fellows' is kept near them",
        nodes=[*nodes(2, gpus=1, labels={RACK: "a"}), node("a", gpus=1), node("b", gpus=1)],
        gangs=[trains(3, exist=2, started=True, facts={"ran_with": 3}), thief(), thief(name="z")],
        expect=[
            keeps("train", ("worker", "a")),
            starts("thief", 1, on={"b": 1}),
            incomplete("train", "2 of 3 pods exist; 1 seat on a kept for its successor"),
            waits("z"),
        ],
        then=[
            Turn(
                [arrives(member("train", "worker-2", gpus=1))],
                [starts("train", 1, on={"a": 1}), keeps("train")],
            )
        ],
    ),
    scenario(
        "whose like nobody can tell: nothing is kept",
        nodes=nodes(4, gpus=1),
        gangs=[
            gang(
                "train",
                roles={"ps": (1, shape(gpus=1)), "worker": (2, shape(gpus=1))},
                on=["node-0", "node-1"],
                exist=2,
                started=True,
                facts={"ran_with": 3},
            ),
            gang("new", workers=2, gpus=1),
        ],
        expect=[starts("new", 2), incomplete("train", "it goes on when all of them do")],
    ),
    scenario(
        "a minimum raised while nobody looked keeps nothing and ends nothing",
        nodes=nodes(4, gpus=1),
        gangs=[
            trains(3, exist=2, started=True, facts={"ran_with": 2}),
            gang("new", workers=2, gpus=1),
        ],
        expect=[starts("new", 2)],
        then=[Turn(after=2 * HOLD)],
    ),
    scenario(
        "nor do those that wait for it end who runs",
        nodes=nodes(3, gpus=1),
        gangs=[
            gang(
                "train",
                workers=4,
                gpus=1,
                on=["node-0", "node-1"],
                started=True,
                facts={"ran_with": 2},
            )
        ],
        expect=[waits("train", because="they need 2 GPUs")],
        then=[Turn(after=2 * HOLD)],
    ),
]

NOT_KEPT = [
    scenario(
        "a member that ended well leaves its seat to others",
        nodes=nodes(3, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [ends("train-worker-1"), asks_only("train", 2), arrives(thief())],
                [starts("thief", 1, on={"node-1": 1})],
            ),
        ],
    ),
    scenario(
        "a gang that is made smaller gives the kept seat away",
        nodes=nodes(3, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [ends("train-worker-1"), arrives(thief())],
                [keeps("train", ("worker", "node-1")), incomplete("train"), waits("thief")],
            ),
            Turn(
                [asks_only("train", 2)],
                [keeps("train"), starts("thief", 1, on={"node-1": 1})],
            ),
        ],
    ),
    scenario(
        "a member beyond the minimum leaves its seat to others",
        nodes=nodes(3, gpus=1),
        gangs=[trains(least=2)],
        then=[
            Turn(
                [ends("train-worker-1"), arrives(thief())],
                [starts("thief", 1, on={"node-1": 1})],
            ),
        ],
    ),
    scenario(
        "where nobody makes members anew, nothing is kept",
        nodes=nodes(3, gpus=1),
        gangs=[trains(recreated=False)],
        then=[
            Turn(
                [ends("train-worker-1"), arrives(thief())],
                [starts("thief", 1, on={"node-1": 1})],
            ),
        ],
    ),
    scenario(
        "a gang that ended leaves nothing behind",
        nodes=nodes(3, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [ends("train-worker-1"), arrives(thief())],
                [keeps("train", ("worker", "node-1")), incomplete("train"), waits("thief")],
            ),
            Turn([vanishes("train")], [starts("thief", 1)]),
        ],
    ),
    scenario(
        "a minimum raised above what runs keeps nothing and ends nothing",
        nodes=nodes(3, gpus=1),
        gangs=[trains(2)],
        then=[
            Turn([asks_only("train", 3), arrives(thief())], [starts("thief", 1)]),
            Turn(after=2 * HOLD),
        ],
    ),
]

IN_THE_END = [
    scenario(
        "nobody takes the lost one's place in time: all are let go, and others start",
        nodes=nodes(3, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [ends("train-worker-1"), arrives(thief())],
                [keeps("train", ("worker", "node-1")), incomplete("train"), waits("thief")],
            ),
            Turn(after=HOLD - 1),
            Turn(
                after=1,
                expect=[
                    releases("train", "train-worker-0", "train-worker-2"),
                    keeps("train"),
                    starts("thief", 1, on={"node-1": 1}),
                    incomplete("train", "0 of 3 pods exist"),
                ],
            ),
        ],
    ),
    scenario(
        "a successor that finds no room in time: all are let go, and wait together",
        nodes=nodes(3, gpus=1),
        gangs=[trains()],
        then=[
            Turn(
                [
                    leaves("node-1"),
                    ends("train-worker-1"),
                    arrives(member("train", "worker-1", gpus=1)),
                ],
                [waits("train", because="needs 1 GPU")],
            ),
            Turn(
                after=HOLD,
                expect=[
                    releases("train", "train-worker-0", "train-worker-2"),
                    incomplete("train", "1 of 3"),
                ],
            ),
        ],
    ),
    scenario(
        "two that are incomplete do not starve each other: the first in order gets what there is",
        nodes=nodes(5, gpus=1),
        gangs=[
            gang("one", workers=2, gpus=1, on=["node-0", "node-1"], age=2),
            gang("two", workers=2, gpus=1, on=["node-2", "node-3"], age=1),
        ],
        then=[
            Turn(
                [
                    leaves("node-1", "node-3"),
                    ends("one-worker-1", "two-worker-1"),
                    arrives(member("two", "worker-1", gpus=1), member("one", "worker-1", gpus=1)),
                ],
                [starts("one", 1, on={"node-4": 1}), waits("two")],
            ),
            Turn(
                after=HOLD,
                expect=[releases("two", "two-worker-0"), incomplete("two", "1 of 2")],
            ),
        ],
    ),
    scenario(
        "a gang that nobody recreates keeps a seat for who waits, and not for ever",
        nodes=nodes(3, gpus=1),
        others=[pod("busy", on="node-2", gpus=1)],
        gangs=[gang("train", workers=3, gpus=1, on=["node-0"], started=True, recreated=False)],
        expect=[waits("train", because="they need 2 GPUs")],
        then=[
            Turn([arrives(thief())], [waits("thief", because="1 held for team/train")]),
            Turn(after=HOLD, expect=[starts("thief", 1, on={"node-1": 1}), waits("train")]),
            Turn([ends("busy"), vanishes("thief")], [starts("train", 2)]),
        ],
    ),
]


@pytest.mark.parametrize(
    "scenario", KEPT + UNSEEN + NOT_KEPT + IN_THE_END, ids=lambda each: each.name
)
def test_repair(scenario: Scenario) -> None:
    scenario.play()


def restarted(
    *, until: float, seats: tuple[tuple[str, str], ...] = (("worker", "node-1"),)
) -> View:
    """A scheduler that has just come, with what its predecessor wrote; `train` misses one."""
    before = trains(facts={"keeps": Keeps(Purpose.REPAIR, seats, until)})
    view = View()
    team = Team(before.group, [each for each in before.pods if each.node != "node-1"])
    arrives(*nodes(3, gpus=1), team, thief())(view)
    return view


def decided(view: View, now: float) -> list[Decision]:
    decisions = list(cycle(view, STEADY, now))
    view.validate()
    return [each for each in decisions if not isinstance(each, Wait)]


def test_what_was_kept_before_a_restart_is_kept_after_it() -> None:
    view = restarted(until=700.0)
    assert decided(view, 200.0) == []
    assert wake_at(view, STEADY) == 700.0
    arrives(member("train", "worker-1", gpus=1))(view)
    start, keep = decided(view, 201.0)
    assert isinstance(start, Start) and [seat.node for seat in start.seats] == ["node-1"]
    assert keep == Keep("team/train", None)
    assert wake_at(view, STEADY) is None


def test_a_restart_does_not_begin_the_time_anew() -> None:
    view = restarted(until=700.0)
    assert decided(view, 200.0) == []
    released, keep, start = decided(view, 700.0)
    assert isinstance(released, Release) and released.gang == "team/train"
    assert keep == Keep("team/train", None)
    assert isinstance(start, Start) and start.gang == "team/thief"


def test_a_successor_that_came_during_the_restart_is_seated_however_late() -> None:
    view = restarted(until=700.0)
    arrives(member("train", "worker-1", gpus=1))(view)
    start, keep = decided(view, 5000.0)
    assert isinstance(start, Start) and start.gang == "team/train"
    assert keep == Keep("team/train", None)


def test_what_is_written_and_not_needed_any_more_is_taken_back() -> None:
    view = restarted(until=700.0)
    asks_only("train", 2)(view)
    keep, start = decided(view, 200.0)
    assert keep == Keep("team/train", None)
    assert isinstance(start, Start) and start.gang == "team/thief"


def test_a_role_that_nobody_is_left_of_is_waited_for_without_a_seat() -> None:
    view = restarted(until=700.0, seats=(("chief", "node-1"),))
    (start,) = [each for each in decided(view, 200.0) if isinstance(each, Start)]
    assert start.gang == "team/thief"


def test_a_seat_is_kept_where_its_company_allows_it() -> None:
    """One member per node: a fellow's node is near, has room, and is of no use."""
    host = "kubernetes.io/hostname"
    mine = Selector((Requirement("job", "In", ("train",)),))
    apart = Relations(avoids=(PodTerm(host, mine, ("team",)),))
    plain = gang("train", workers=2, gpus=1, on=["node-0", "node-1"], relations=apart)
    team = Team(plain.group, [replace(each, labels={"job": "train"}) for each in plain.pods])
    wide = [node(f"node-{at}", gpus=4, labels={host: f"node-{at}"}) for at in range(3)]
    scenario(
        "apart",
        nodes=wide,
        gangs=[team],
        then=[
            Turn(
                [leaves("node-1"), ends("train-worker-1"), arrives(thief())],
                [
                    keeps("train", ("worker", "node-2")),
                    starts("thief", 1),
                    incomplete("train", "1 seat on node-2 kept"),
                ],
            ),
        ],
    ).play()


def test_a_kept_seat_does_not_wander_from_node_to_node() -> None:
    scenario(
        "steady",
        nodes=[node("big", gpus=4), node("small", gpus=2), node("full", gpus=1, cordoned=True)],
        others=[pod("x", on="full", gpus=1)],
        gangs=[gang("train", workers=2, exist=1, started=True, gpus=1)],
        expect=[incomplete("train", "1 of 2 pods exist; 1 seat on small kept for its succ")],
        then=[Turn([arrives(pod("y", on="big", gpus=3)), ends("x")], [])],
    ).play()


def test_what_one_gives_up_goes_to_an_earlier_one_before_anyone_else_looks() -> None:
    """Its launcher is not to come any more; the seat is all that a gang before it lacks."""
    mpi = gang(
        "mpi", workers=1, cores=1, on=["a"], launcher=shape(gpus=1), holds=[("launcher", "a")]
    )
    scenario(
        "given up",
        nodes=[node("a", gpus=1), node("b", gpus=1)],
        gangs=[gang("train", workers=2, gpus=1, on=["b"], started=True, age=1.0), mpi],
        expect=[waits("train", because="1 held for team/mpi")],
        then=[
            Turn(
                [arrives(Team(replace(mpi.group, expects=()), mpi.pods), thief())],
                [starts("mpi", 0), starts("train", 1, on={"a": 1}), waits("thief")],
            ),
        ],
    ).play()


def test_what_one_gives_up_as_it_starts_elsewhere_completes_another_in_the_same_cycle() -> None:
    made = Keeps(Purpose.PREEMPTION, (("worker", "a"),), 1000.0)
    here = {"pool": "here"}
    scenario(
        "given up late",
        nodes=[node("a", gpus=2, labels=here), node("b", gpus=1, labels=here)],
        others=[replace(pod("x", on="a", gpus=1), deleting=True)],
        gangs=[
            gang("urgent", workers=1, gpus=2, priority=9, facts={"keeps": made}),
            gang("train", workers=2, gpus=1, on=["b"], started=True, selector=here),
        ],
        expect=[
            waits("train", because="held for team/urgent"),
            waits("urgent", reason=Reason.RESERVED),
        ],
        then=[
            Turn(
                [arrives(node("c", gpus=2))],
                [starts("urgent", 1, on={"c": 1}), starts("train", 1, on={"a": 1})],
            ),
        ],
    ).play()


def test_the_cycle_comes_back_when_the_time_is_over() -> None:
    view = View()
    arrives(*nodes(3, gpus=1), trains())(view)
    assert decided(view, 0.0) == []
    assert wake_at(view, STEADY) is None
    ends("train-worker-1")(view)
    assert [type(each) for each in decided(view, 5.0)] == [Keep]
    assert wake_at(view, STEADY) == 5.0 + HOLD
    assert [type(each) for each in decided(view, 5.0 + HOLD)] == [Release, Keep]
    assert wake_at(view, STEADY) is None


def test_a_gang_let_go_is_not_first_in_line_with_its_next_pods() -> None:
    """Its group says for a while that it runs: the old pods are still going."""
    view = View()
    arrives(*nodes(3, gpus=1), trains())(view)
    assert decided(view, 0.0) == []
    ends("train-worker-1")(view)
    decided(view, 5.0)
    decided(view, 5.0 + HOLD)
    for at in range(3):
        arrives(member("train", f"worker-{at}", gpus=1))(view)
    arrives(thief())(view)
    (start,) = decided(view, 6.0 + HOLD)
    assert isinstance(start, Start) and start.gang == "team/thief"


@pytest.mark.parametrize("read", [(0, 1), (1, 0)])
def test_whose_seat_is_kept_does_not_hang_on_who_was_read_first(read: tuple[int, int]) -> None:
    """Two go from drained nodes and one is missed: the seat of the elder, wherever that was."""
    drained = [node(name, gpus=1, cordoned=True) for name in "bc"]
    scenario(
        f"read in this order: {read}",
        nodes=[node(name, gpus=1) for name in "abc"],
        gangs=[gang("train", workers=3, least=2, gpus=1, on=["c", "b", "a"])],
        then=[
            Turn(
                [arrives(*drained), goes(*(f"train-worker-{at}" for at in read))],
                [keeps("train", ("worker", "c")), incomplete("train")],
            )
        ],
    ).play()
