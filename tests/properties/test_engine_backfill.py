"""Backfill against time: whoever was first in line starts when it was told to, or before."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from posse.engine.cycle import cycle
from posse.engine.decisions import Start, Wait
from posse.engine.facts import Topology
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.engine_worlds import Cluster, clusters
from tests.properties.trying import examples
from tests.scenarios.language import Team, check_promises, gang, node, overfull, queue

POLICY = Policy(preemption=False, reclaim=False, reserve_after=1e9, most_overtakes=10**9)
EAGER = Policy(reserve_after=5.0, most_overtakes=1, release_after=5.0, search_steps=200)
HOPEFUL = Policy(preemption=False, reclaim=False, reserve_after=50.0, most_overtakes=5)


@dataclass(frozen=True)
class Job:
    arrives: int
    workers: int
    gpus: int
    cores: int
    lasts: int
    near: bool = False

    def team(self, number: int) -> Team:
        facts: dict[str, object] = {"runs_for": float(self.lasts), "created": float(self.arrives)}
        if self.near:
            facts["topology"] = Topology(tier=1)
        return gang(
            f"j{number}",
            workers=self.workers,
            gpus=self.gpus,
            cores=self.cores,
            facts=facts,
            queue="q",
        )


jobs = st.builds(
    Job,
    arrives=st.integers(0, 40),
    workers=st.integers(1, 5),
    gpus=st.integers(0, 3),
    cores=st.integers(1, 3),
    lasts=st.integers(1, 30),
    near=st.sampled_from([False, False, False, True]),
)
sizes = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 6), st.sampled_from("ab")), min_size=1, max_size=5
)


class Story:
    """The cluster from the first arrival to the last end, everybody ending as they said."""

    def __init__(
        self, nodes: list[tuple[int, int, str]], work: list[Job], policy: Policy, quota: int | None
    ) -> None:
        self.view = View()
        self.policy = policy
        self.work = dict(enumerate(work))
        self.view.set_queue(queue("q", gpus=quota))
        for at, (gpus, cores, rack) in enumerate(nodes):
            labels = {"posse.dev/rack": rack}
            self.view.set_node(node(f"node-{at}", gpus=gpus, cores=cores, labels=labels))
        self.ends: dict[int, int] = {}
        self.started: dict[str, float] = {}
        self.promised: dict[str, float] = {}

    def run(self) -> None:
        dates = {job.arrives for job in self.work.values()}
        while dates:
            now = min(dates)
            dates.discard(now)
            for number in [each for each, date in self.ends.items() if date <= now]:
                self._end(number)
            for number, job in self.work.items():
                if job.arrives == now:
                    team = job.team(number)
                    self.view.set_group(team.group)
                    for pod in team.pods:
                        self.view.set_pod(pod)
            self._decide(now)
            dates |= {date for date in self.ends.values() if date > now}

    def _end(self, number: int) -> None:
        del self.ends[number]
        for pod in self.work[number].team(number).pods:
            self.view.remove_pod(pod.uid)
        self.view.remove_group(f"team/j{number}")

    def _decide(self, now: int) -> None:
        full = overfull(self.view)
        for decision in cycle(self.view, self.policy, float(now)):
            check_promises(self.view, decision, full)
            if isinstance(decision, Start):
                self._start(decision, now)
            elif isinstance(decision, Wait) and decision.verdict.position == 1:
                date = decision.verdict.starts_at or float("inf")
                before = self.promised.get(decision.gang, float("inf"))
                assert date <= before, f"{decision.gang} was to start at {before}, now at {date}"
                self.promised[decision.gang] = date
        self.view.validate()
        assert list(cycle(self.view, self.policy, float(now))) == []

    def _start(self, start: Start, now: int) -> None:
        promised = self.promised.get(start.gang, float("inf"))
        assert now <= promised, f"{start.gang} was to start at {promised} and does at {now}"
        self.started[start.gang] = float(now)
        number = int(start.gang.removeprefix("team/j"))
        team = self.work[number].team(number)
        seats = {seat.uid: seat.node for seat in start.seats}
        for pod in team.pods:
            self.view.set_pod(replace(pod, node=seats[pod.uid], running=True))
        self.view.set_group(replace(team.group, began=float(now), started=True))
        self.ends[number] = now + self.work[number].lasts


quotas = st.sampled_from([None, None, 4])


@examples(200)
@given(sizes, st.lists(jobs, min_size=2, max_size=9), quotas)
def test_nobody_starts_later_than_it_was_told_when_all_end_as_they_said(
    nodes: list[tuple[int, int, str]], work: list[Job], quota: int | None
) -> None:
    Story(nodes, work, POLICY, quota).run()


@examples(100)
@given(sizes, st.lists(jobs, min_size=2, max_size=9))
def test_whoever_fits_on_empty_nodes_has_started_in_the_end(
    nodes: list[tuple[int, int, str]], work: list[Job]
) -> None:
    story = Story(nodes, work, HOPEFUL, None)
    story.run()
    for number, job in story.work.items():
        alone = Story(nodes, [replace_arrival(job)], HOPEFUL, None)
        alone.run()
        assert bool(alone.started) == (f"team/j{number}" in story.started)


def replace_arrival(job: Job) -> Job:
    return Job(0, job.workers, job.gpus, job.cores, job.lasts, job.near)


@examples(150)
@given(clusters(), st.data())
def test_promises_hold_with_reservations_while_the_cluster_changes(
    cluster: Cluster, data: st.DataObject
) -> None:
    """Some say how long they run, some do not; nodes, pods and groups come and go."""
    groups = [
        replace(
            group,
            runs_for=data.draw(st.sampled_from([None, 5.0, 20.0, 1e12])),
            began=data.draw(st.sampled_from([None, -3.0])),
            queue=data.draw(st.sampled_from(["a", "b"])),
        )
        for group in cluster.groups
    ]
    view = Cluster(cluster.nodes, groups, cluster.pods).view()
    view.set_queue(queue("a", gpus=data.draw(st.sampled_from([None, 3]))))
    view.set_queue(queue("b"))
    for turn in range(data.draw(st.integers(1, 6), label="turns")):
        now = turn * 4.0
        full = overfull(view)
        for decision in cycle(view, EAGER, now):
            view.validate()
            check_promises(view, decision, full)
        match data.draw(st.integers(0, 5), label="what happens"):
            case 0:
                view.remove_pod(data.draw(st.sampled_from(cluster.pods)).uid)
            case 1 if cluster.nodes:
                view.remove_node(data.draw(st.sampled_from(cluster.nodes)).name)
            case 2 if cluster.nodes:
                view.set_node(data.draw(st.sampled_from(cluster.nodes)))
            case 3:
                view.remove_group(data.draw(st.sampled_from(groups)).key)
            case 4:
                view.refute(data.draw(st.sampled_from(cluster.pods)).uid)
            case _:
                view.set_group(data.draw(st.sampled_from(groups)))
        view.validate()
