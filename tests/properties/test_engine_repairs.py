"""A running gang keeps its seats: whatever others want, and through a restart of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from posse.engine.cycle import cycle, wake_at
from posse.engine.decisions import Decision, Keep, Release, Start
from posse.engine.facts import GroupFacts, Keeps, NodeFacts, PodFacts, Purpose, Shape, requests_of
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.trying import examples
from tests.scenarios.language import check_promises, overfull

GPU = "nvidia.com/gpu"
POLICY = Policy(
    preemption=False, reclaim=False, backfill=False, repair_hold=100.0, start_timeout=0.0
)


@dataclass
class World:
    """A cluster whose scheduler may be replaced: what is here is what the objects say."""

    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    groups: dict[str, GroupFacts] = field(default_factory=dict)
    pods: dict[str, PodFacts] = field(default_factory=dict)
    view: View = field(default_factory=View)
    now: float = 0.0

    def restart(self) -> None:
        self.view = View()
        for node in self.nodes.values():
            self.view.set_node(node)
        for group in self.groups.values():
            self.view.set_group(group)
        for pod in self.pods.values():
            self.view.set_pod(pod)

    def decide(self) -> list[Decision]:
        decisions: list[Decision] = []
        full = overfull(self.view)
        for decision in cycle(self.view, POLICY, self.now):
            self.view.validate()
            check_promises(self.view, decision, full)
            decisions.append(decision)
            self._carry_out(decision)
        return decisions

    def _carry_out(self, decision: Decision) -> None:
        match decision:
            case Start():
                for seat in decision.seats:
                    self.pods[seat.uid] = replace(self.pods[seat.uid], node=seat.node)
                    self.view.set_pod(self.pods[seat.uid])
            case Keep():
                group = replace(self.groups[decision.gang], keeps=decision.keeps)
                self.groups[decision.gang] = group
                self.view.set_group(group)
            case Release():
                for uid, _ in decision.pods:
                    self.end(uid)

    def end(self, uid: str) -> None:
        del self.pods[uid]
        self.view.remove_pod(uid)

    def add(self, pod: PodFacts) -> None:
        self.pods[pod.uid] = pod
        self.view.set_pod(pod)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """`train` runs whole; others, of any priority, run, wait, or come later."""
    world = World()
    for at in range(draw(st.integers(2, 5))):
        room = {GPU: draw(st.integers(1, 3)), "pods": 110}
        labels = {"posse.dev/rack": draw(st.sampled_from("ab"))}
        world.nodes[f"node-{at}"] = NodeFacts(f"node-{at}", room, labels)
    seats = [name for name, node in world.nodes.items() for _ in range(node.allocatable[GPU])]
    members = draw(st.integers(2, len(seats)))
    shape = Shape(requests_of({GPU: 1}))
    world.groups["team/train"] = GroupFacts(
        "team/train", "train", min_member=members, started=True, recreated=True, returns=True
    )
    for at, node in enumerate(draw(st.permutations(seats))[:members]):
        name = f"train-{at}"
        world.pods[name] = PodFacts(
            name, f"team/{name}", shape, "team/train", "worker", node, running=True
        )
    for number in range(draw(st.integers(1, 3))):
        key, size = f"team/{number}", draw(st.integers(1, 3))
        priority = draw(st.integers(-1, 1))
        world.groups[key] = GroupFacts(key, key, priority=priority, min_member=size)
        for at in range(size):
            name = f"{number}-{at}"
            world.pods[name] = PodFacts(name, f"team/{name}", shape, key, "worker")
    world.restart()
    return world


@examples(100)
@given(worlds(), st.data())
def test_every_successor_sits_where_the_lost_one_sat(world: World, data: st.DataObject) -> None:
    """In whatever order members are lost and come back, with restarts of the scheduler anywhere."""
    world.decide()
    members = [uid for uid, pod in world.pods.items() if pod.gang == "team/train"]
    lost = data.draw(st.lists(st.sampled_from(members), unique=True, max_size=len(members)))
    seats = sorted(str(world.pods[uid].node) for uid in lost)
    gone = [world.pods[uid] for uid in lost]
    for pod in gone:
        world.end(pod.uid)
        world.now += data.draw(st.integers(0, 5))
        world.decide()
        if data.draw(st.booleans()):
            world.restart()
            world.decide()
    for pod in data.draw(st.permutations(gone)):
        world.now += data.draw(st.integers(0, 5))
        world.add(replace(pod, uid=f"{pod.uid}-again", node=None))
        if data.draw(st.booleans()):
            world.restart()
        world.decide()
    assert sorted(str(world.pods[f"{uid}-again"].node) for uid in lost) == seats
    assert world.groups["team/train"].keeps is None
    assert wake_at(world.view, POLICY) is None or not lost


@examples(100)
@given(worlds(), st.data())
def test_whoever_never_comes_back_is_waited_for_only_so_long(
    world: World, data: st.DataObject
) -> None:
    """Then the gang is let go whole, nothing is kept, and everybody who fits has started."""
    world.decide()
    members = [uid for uid, pod in world.pods.items() if pod.gang == "team/train"]
    lost = data.draw(st.lists(st.sampled_from(members), unique=True, min_size=1))
    for uid in lost:
        world.end(uid)
    world.decide()
    keeps = world.groups["team/train"].keeps
    assert keeps is not None and keeps.purpose is Purpose.REPAIR and len(keeps.seats) == len(lost)
    if data.draw(st.booleans()):
        world.now += data.draw(st.integers(0, 99))
        world.restart()
        world.decide()
    date = wake_at(world.view, POLICY)
    assert date is not None and date <= POLICY.repair_hold + 1
    world.now = date
    world.decide()
    assert [uid for uid, pod in world.pods.items() if pod.gang == "team/train"] == []
    assert world.groups["team/train"].keeps is None
    assert not world.view.holding
    assert world.decide() is not None


@examples(100)
@given(worlds(), st.data())
def test_what_was_written_by_others_does_no_harm(world: World, data: st.DataObject) -> None:
    """Seats of any role on any node until any date: promises hold, and it ends."""
    roles = st.sampled_from(["worker", "", "chief"])
    nodes = st.sampled_from([*world.nodes, "elsewhere"])
    seats = data.draw(st.lists(st.tuples(roles, nodes), max_size=4))
    until = data.draw(st.sampled_from([None, -5.0, 50.0, 1e12]))
    for key in list(world.groups):
        keeps = Keeps(Purpose.REPAIR, tuple(sorted(seats)), until)
        world.groups[key] = replace(world.groups[key], keeps=keeps)
    world.restart()
    world.decide()
    uid = data.draw(st.sampled_from([u for u, p in world.pods.items() if p.gang == "team/train"]))
    world.end(uid)
    world.restart()
    for _ in range(3):
        world.decide()
        world.now += 1000
    world.decide()
    assert not any(hold.purpose for gang in world.view.holding.values() for hold in gang.holds)
