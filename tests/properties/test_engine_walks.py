"""A walk through everything at once: tiers, HyperNodes, queues, reservations, victims, repairs.

Other properties look at one thing each, against an oracle. What goes wrong only where several meet
is met here: after every decision the view equals a recount, and every promise holds.
"""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from posse.engine.cycle import cycle
from posse.engine.decisions import Evict, Release, Start, Wait
from posse.engine.facts import (
    Constraints,
    Expected,
    GroupFacts,
    NodeFacts,
    PodFacts,
    QueueFacts,
    Shape,
    Taint,
    Toleration,
    Topology,
    requests_of,
)
from posse.engine.fit.hypernodes import HyperNodeFacts, Membership
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.trying import examples
from tests.scenarios.language import check_promises, overfull

GPU = "nvidia.com/gpu"
LABELS = {"rack": "abc", "block": "xy", "zone": "12"}
TOPOLOGIES = (
    None,
    None,
    Topology(tier=1),
    Topology(tier=3),
    Topology(required=False),
    Topology(tier=2, required=False),
    Topology(key="rack"),
)


class Walk:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0.0
        self.policy = Policy(
            tiers=tuple(LABELS),
            release_after=5.0,
            search_steps=200,
            reserve_after=random.choice([3.0, 30.0]),
            most_overtakes=random.choice([1, 20]),
        )
        self.view = View()
        self.nodes = [f"node-{at}" for at in range(random.randint(2, 9))]
        random.shuffle(self.nodes)
        self.queues = ["default"]
        self.groups: dict[str, GroupFacts] = {}
        self.pods: dict[str, PodFacts] = {}
        self.bound: dict[str, str] = {}
        self.made = 0
        for name in self.nodes:
            self.view.set_node(self.node(name))
        if random.random() < 0.35:
            self.draw_hypernodes()
        if random.random() < 0.7:
            self.draw_queues()

    # -- what there is -----------------------------------------------------------------------

    def node(self, name: str) -> NodeFacts:
        some = self.random
        room = {
            "cpu": 1000 * some.randint(1, 8),
            GPU: some.randint(0, 8),
            "pods": some.randint(2, 12),
        }
        return NodeFacts(
            name,
            room,
            {key: some.choice(values) for key, values in LABELS.items() if some.random() > 0.1},
            (Taint("team", "vision"),) if some.random() < 0.1 else (),
            ready=some.random() > 0.08,
            schedulable=some.random() > 0.08,
        )

    def draw_hypernodes(self) -> None:
        for at in range(self.random.randint(1, 4)):
            inside = self.random.sample(self.nodes, self.random.randint(1, len(self.nodes)))
            members = tuple(Membership(name=name) for name in inside)
            facts = HyperNodeFacts(f"h{at}", self.random.randint(1, 2), members=members)
            self.view.set_hypernode(facts)

    def draw_queues(self) -> None:
        some = self.random
        for at in range(some.randint(1, 4)):
            facts = QueueFacts(
                f"q{at}",
                parent=some.choice(["", "", *self.queues[1:]]),
                weight=some.randint(1, 3),
                priority=some.choice([0, 0, 1]),
                capability=((GPU, some.randint(2, 20)),) if some.random() < 0.4 else (),
                guarantee=((GPU, some.randint(1, 4)),) if some.random() < 0.3 else (),
                fifo=some.random() < 0.1,
            )
            self.view.set_queue(facts)
            self.queues.append(facts.name)

    def shape(self) -> Shape:
        some = self.random
        return Shape(
            requests_of({"cpu": 1000 * some.randint(0, 3), GPU: some.randint(0, 3)}),
            Constraints(
                (("zone", some.choice("12")),) if some.random() < 0.1 else (),
                (Toleration("team", "Exists"),) if some.random() < 0.5 else (),
            ),
        )

    # -- what happens ------------------------------------------------------------------------

    def arrive(self) -> None:
        some, key = self.random, f"team/{self.made}"
        self.made += 1
        members = [
            PodFacts(uid, f"team/{uid}", shape, key, f"role-{role}", created=self.now)
            for role in range(some.choice([1, 1, 2]))
            for shape in [self.shape()]
            for uid in [f"{self.made}-{role}-{at}" for at in range(some.randint(1, 6))]
        ]
        launcher = Expected("launcher", 1, Shape(requests_of({"cpu": 1000})))
        group = GroupFacts(
            key,
            key,
            some.choice(self.queues),
            min_member=some.randint(1, len(members)),
            expects=(launcher,) if some.random() < 0.2 else (),
            priority=some.choice([0, 0, 1, 5]),
            topology=some.choice(TOPOLOGIES),
            runs_for=some.choice([None, 30.0]),
            created=self.now,
            recreated=some.random() < 0.5,
        )
        self.groups[key] = group
        self.view.set_group(group)
        for pod in members:
            self.come(pod)

    def come(self, pod: PodFacts) -> None:
        self.pods[pod.uid] = pod
        self.view.set_pod(pod)

    def go(self, uid: str, returns: float) -> None:
        """The pod is gone; its controller makes another one, or does not."""
        pod = self.pods.pop(uid)
        self.bound.pop(uid, None)
        self.view.remove_pod(uid)
        if self.random.random() < returns:
            self.come(replace(pod, uid=f"{uid}+", node=None))

    def vanish(self, key: str) -> None:
        del self.groups[key]
        uids = [uid for uid, pod in self.pods.items() if pod.gang == key]
        if self.random.random() < 0.5:  # in either order
            self.view.remove_group(key)
            key = ""
        for uid in uids:
            self.go(uid, returns=0.0)
        if key:
            self.decide()
            self.view.remove_group(key)

    def run(self, key: str) -> None:
        group = self.groups[key]
        seated = sum(pod.gang == key and uid in self.bound for uid, pod in self.pods.items())
        if seated >= group.min_member:
            self.groups[key] = replace(group, started=True, began=self.now)
            self.view.set_group(self.groups[key])

    def happen(self) -> None:
        some, chance = self.random, self.random.random()
        if chance < 0.45 or not self.groups or not self.pods:
            self.arrive()
        elif chance < 0.6:
            self.vanish(some.choice(sorted(self.groups)))
        elif chance < 0.7:
            self.go(some.choice(sorted(self.pods)), returns=0.6)
        elif chance < 0.75:
            self.view.remove_node(some.choice(self.nodes))
        elif chance < 0.8:
            self.view.set_node(self.node(some.choice(self.nodes)))
        elif chance < 0.9:
            self.run(some.choice(sorted(self.groups)))

    # -- what is decided ---------------------------------------------------------------------

    def decide(self) -> None:
        full = overfull(self.view)
        going: list[str] = []
        for decision in cycle(self.view, self.policy, self.now):
            self.view.validate()
            check_promises(self.view, decision, full)
            if isinstance(decision, Start):
                self.bound.update((seat.uid, seat.node) for seat in decision.seats)
            elif isinstance(decision, Evict):
                going += [uid for victim in decision.victims for uid, _ in victim.pods]
            elif isinstance(decision, Release):
                going += [uid for uid, _ in decision.pods]
        # Numbers may be told anew, but there is nothing left to do.
        again = list(cycle(self.view, self.policy, self.now))
        assert [each for each in again if not isinstance(each, Wait)] == []
        for uid in going:
            if uid in self.pods and self.random.random() < 0.8:
                self.go(uid, returns=0.7)
        for uid, node in sorted(self.bound.items()):
            if self.pods[uid].node is None and self.random.random() < 0.7:
                self.come(replace(self.pods[uid], node=node))
        self.view.validate()

    def step(self) -> None:
        self.now += self.random.choice([0.0, 1.0, 4.0, 40.0])
        self.happen()
        self.decide()


@examples(60)
@given(st.randoms(use_true_random=False), st.integers(3, 20))
def test_every_promise_holds_at_every_step(random: Random, steps: int) -> None:
    walk = Walk(random)
    for _ in range(steps):
        walk.step()
