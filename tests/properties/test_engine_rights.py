"""Who ends for a gang, its own queue's lesser gangs and others' together, against trying all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from posse.engine.cycle import cycle
from posse.engine.decisions import Evict, Start
from posse.engine.facts import (
    GroupFacts,
    NodeFacts,
    PodFacts,
    QueueFacts,
    Shape,
    requests_of,
)
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.engine_worlds import can_place
from tests.properties.trying import examples

GPU = "nvidia.com/gpu"
NEW = "team/new"
PARENTS = {"a": "left", "b": "left", "c": "right"}


@dataclass(frozen=True)
class Job:
    """A gang that ends whole or not at all."""

    name: str
    queue: str
    priority: int
    gpus: int
    pods: int
    on: tuple[str, ...] = ()

    @property
    def shapes(self) -> list[Shape]:
        return [Shape(requests_of({GPU: self.gpus, "cpu": 100}))] * self.pods

    @property
    def takes(self) -> int:
        return self.gpus * self.pods


@dataclass(frozen=True)
class World:
    nodes: list[NodeFacts]
    due: dict[str, int]
    most: dict[str, int]
    kept: dict[str, int]
    deep: bool
    # Every gang is one GPU, but for the new one, which is several of these.
    plain: bool
    running: list[Job]
    new: Job

    def view(self) -> View:
        view = View()
        for name, due in self.due.items():
            view.set_queue(
                QueueFacts(
                    name,
                    parent=PARENTS.get(name, "") if self.deep else "",
                    deserved=((GPU, due),),
                    capability=((GPU, self.most[name]),) if name in self.most else (),
                    guarantee=((GPU, self.kept[name]),) if name in self.kept else (),
                )
            )
        for node in self.nodes:
            view.set_node(node)
        for job in [*self.running, self.new]:
            key = f"team/{job.name}"
            view.set_group(
                GroupFacts(
                    key,
                    key,
                    queue=job.queue,
                    priority=job.priority,
                    min_member=job.pods,
                    started=bool(job.on),
                    recreated=True,
                    began=-10.0 if job.on else None,
                )
            )
            for at, shape in enumerate(job.shapes):
                uid, seat = f"{job.name}-{at}", job.on[at] if job.on else None
                view.set_pod(PodFacts(uid, f"team/{uid}", shape, key, "w", seat))
        return view

    def fits(self, gone: Sequence[Job]) -> bool:
        used: dict[str, dict[str, int]] = {}
        for job in self.running:
            for node in job.on if job not in gone else ():
                taken = used.setdefault(node, {GPU: 0, "cpu": 0})
                taken[GPU] += job.gpus
                taken["cpu"] += 100
        after = self.use(gone)
        within = all(
            after[queue] + self.new.takes <= self.most.get(queue, 1 << 30)
            for queue in self.above(self.new.queue)
        )
        # What is guaranteed to others and not in use is kept free for them.
        free = sum(
            node.allocatable[GPU] - used.get(node.name, {}).get(GPU, 0) for node in self.nodes
        )
        unmet = sum(max(0, kept - after[queue]) for queue, kept in self.kept.items())
        within &= unmet == 0 or free - self.new.takes >= unmet
        return within and can_place(self.nodes, used, self.new.shapes)

    def above(self, queue: str) -> list[str]:
        return [queue, PARENTS[queue]] if self.deep else [queue]

    def use(self, gone: Sequence[Job]) -> dict[str, int]:
        use = dict.fromkeys(self.due, 0)
        for job in self.running:
            for queue in self.above(job.queue) if job not in gone else ():
                use[queue] += job.takes
        return use

    def branches(self, giver: str) -> tuple[list[str], list[str]]:
        mine, theirs = self.above(self.new.queue), self.above(giver)
        if mine[-1] == theirs[-1]:
            return mine[:1], theirs[:1]
        return mine, theirs

    def lawful(self, victims: Sequence[Job], insisting: bool = False) -> bool:
        """Whether in some order each of these may be ended; `insisting` on what is deserved, also
        where others are left poorer."""
        own = [job for job in victims if job.queue == self.new.queue]
        others = [job for job in victims if job.queue != self.new.queue]
        if any(job.priority >= self.new.priority for job in own):
            return False
        after = self.use(victims)
        for job in others:
            if any(after[q] + self.new.takes > self.due[q] for q in self.branches(job.queue)[0]):
                return False
        return any(self._bear([*own, *order], insisting) for order in permutations(others))

    def _bear(self, order: Sequence[Job], insisting: bool) -> bool:
        final = self.use(order)
        for at, job in enumerate(order):
            if job.queue == self.new.queue:
                continue
            mine, theirs = self.branches(job.queue)
            before, after = self.use(order[:at]), self.use(order[: at + 1])
            if any(before[queue] <= self.due[queue] for queue in theirs):
                return False
            if any(after[queue] < self.kept.get(queue, 0) for queue in theirs):
                return False
            has = final[mine[-1]] + self.new.takes
            poorer = after[theirs[-1]] * self.due[mine[-1]] < has * self.due[theirs[-1]]
            if poorer and not insisting:
                return False
        return True

    def makes_room(self, victims: Sequence[Job]) -> bool:
        """Whether it fits without these, and without none of them less: who ends only so that its
        queue has less than its due would be back at once."""
        return self.fits(victims) and not any(
            self.fits([job for job in victims if job is not one]) for one in victims
        )

    def ways(self, insisting: bool) -> Iterator[Sequence[Job]]:
        """Every set of victims that may end and makes room, the smallest first.

        Among gangs of all sizes only those that do alone are surely found: which of many to take,
        where not all may be, has no quick answer.
        """
        for number in range(5 if self.plain else 2):
            for victims in combinations(self.running, number):
                if self.lawful(victims, insisting) and self.makes_room(victims):
                    yield victims


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = [
        NodeFacts(f"node-{at}", {"cpu": 8000, GPU: draw(st.integers(1, 4)), "pods": 20})
        for at in range(draw(st.integers(1, 3)))
    ]
    room = {node.name: node.allocatable[GPU] for node in nodes}
    deep, plain = draw(st.booleans()), draw(st.booleans())
    due = {name: draw(st.integers(1, 4)) for name in PARENTS}
    if deep:
        due = {"left": due["a"] + due["b"], "right": due["c"], **due}
    running: list[Job] = []
    for number in range(draw(st.integers(1, 7))):
        gpus = 1 if plain else draw(st.integers(1, 2))
        on: list[str] = []
        for _ in range(1 if plain else draw(st.integers(1, 2))):
            free = [name for name, left in room.items() if left >= gpus]
            if free:
                on.append(draw(st.sampled_from(free)))
                room[on[-1]] -= gpus
        if on:
            queue, priority = draw(st.sampled_from("aabbc")), draw(st.integers(0, 2))
            running.append(Job(f"low-{number}", queue, priority, gpus, len(on), tuple(on)))
    size, pods = 1 if plain else draw(st.integers(1, 2)), draw(st.integers(1, 3))
    new = Job("new", "a", draw(st.integers(0, 3)), size, pods)
    most = {"a": draw(st.integers(2, 6))} if draw(st.integers(0, 3)) == 0 else {}
    kept = {"b": 1} if draw(st.integers(0, 3)) == 0 else {}
    return World(nodes, due, most, kept, deep, plain, running, new)


@examples(150)
@given(worlds())
def test_who_may_take_what_it_is_due_does_and_nobody_ends_in_vain(world: World) -> None:
    decisions = list(cycle(world.view(), Policy(backfill=False), 1.0))
    evicts = [d for d in decisions if isinstance(d, Evict)]
    if not evicts:
        if not any(isinstance(d, Start) for d in decisions):
            assert next(world.ways(insisting=True), None) is None
        return
    ended = {victim.gang.partition("/")[2] for victim in evicts[0].victims}
    victims = [job for job in world.running if job.name in ended]
    insisted = not world.lawful(victims)
    if insisted:
        assert world.lawful(victims, insisting=True)
        # Before it ends one of its own, which would come back and insist.
        own = any(job.queue == world.new.queue for job in victims)
        for way in world.ways(insisting=False):
            assert not own, "nobody had to be left poorer"
            assert any(job.queue == world.new.queue for job in way), "nor did others"
    assert world.makes_room(victims)
