"""The words in which scenarios are written: a cluster in, decisions out.

A scenario is data. Its first turn is the cluster as first seen; each further `Turn` is what
happened next, and what the engine must answer to it. Expectations match the decisions of a turn
one by one, in order, and none may be left over. After every decision the view is recounted and the
promises that hold in every scenario are checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from posse.engine.cycle import cycle, wake_at
from posse.engine.decisions import (
    Decision,
    Evict,
    Keep,
    Reason,
    Release,
    Start,
    Verdict,
    Victim,
    Wait,
)
from posse.engine.facts import (
    BudgetFacts,
    Constraints,
    Expected,
    GroupFacts,
    NodeFacts,
    PodFacts,
    QueueFacts,
    Shape,
    Taint,
    Toleration,
    requests_of,
)
from posse.engine.fit.hypernodes import HyperNodeFacts
from posse.engine.fit.terms import Choice, Preference, Relations
from posse.engine.gangs import NOWHERE
from posse.engine.policy import Policy
from posse.engine.view import View

GPU = "nvidia.com/gpu"
GI = 1 << 30


# -- the cluster -------------------------------------------------------------------------------


def node(
    name: str,
    *,
    gpus: int = 0,
    cores: float = 16,
    gib: int = 64,
    pods: int = 110,
    labels: dict[str, str] | None = None,
    taints: Sequence[Taint] = (),
    ready: bool = True,
    cordoned: bool = False,
    closed: str = "",
    extra: dict[str, int] | None = None,
) -> NodeFacts:
    room = {"cpu": int(cores * 1000), "memory": gib * GI, "pods": pods, **(extra or {})}
    if gpus:
        room[GPU] = gpus
    return NodeFacts(name, room, labels or {}, tuple(taints), ready, not cordoned, closed)


def nodes(number: int, *, prefix: str = "node", **room: object) -> list[NodeFacts]:
    return [node(f"{prefix}-{at}", **room) for at in range(number)]  # type: ignore[arg-type]


def shape(
    *,
    gpus: int = 0,
    cores: float = 1,
    gib: int = 0,
    selector: dict[str, str] | None = None,
    tolerations: Sequence[Toleration] = (),
    choices: Sequence[Choice] = (),
    prefers: Sequence[Preference] = (),
    relations: Relations | None = None,
    extra: dict[str, int] | None = None,
) -> Shape:
    asked = {GPU: gpus, "cpu": int(cores * 1000), "memory": gib * GI, **(extra or {})}
    pairs = tuple(sorted((selector or {}).items()))
    where = Constraints(pairs, tuple(tolerations), tuple(choices), tuple(prefers))
    return Shape(requests_of(asked), where, relations)


@dataclass(frozen=True)
class Team:
    """A group and its pods."""

    group: GroupFacts
    pods: list[PodFacts]


def gang(
    name: str,
    *,
    workers: int = 0,
    least: int | None = None,
    exist: int | None = None,
    on: Sequence[str] = (),
    roles: dict[str, tuple[int, Shape]] | None = None,
    launcher: Shape | None = None,
    launcher_on: str | None = None,
    launcher_exists: bool = False,
    started: bool | None = None,
    recreated: bool = True,
    priority: int = 0,
    age: float = 0.0,
    queue: str = "default",
    holds: Sequence[tuple[str, str]] = (),
    deleting: int = 0,
    facts: Mapping[str, object] | None = None,
    **asks: object,
) -> Team:
    """`workers` like pods, or several `roles`; the first ones sit `on` nodes, the others wait.

    `exist`: how many of the workers have a pod; `launcher`: announced; `deleting`: how many of the
    seated ones are on their way out; `age`: seconds older than the others; `facts`: what else is
    known of the group.
    """
    kinds = roles or {"worker": (workers, shape(**asks))}  # type: ignore[arg-type]
    total = sum(number for number, _ in kinds.values())
    pods: list[PodFacts] = []
    for role, (number, each) in kinds.items():
        for at in range(number):
            seat = on[len(pods)] if len(pods) < len(on) else None
            pods.append(_pod(name, f"{role}-{at}", role, each, seat, len(pods) < deleting))
    pods = pods[: total if exist is None else exist]
    if launcher_on or launcher_exists:
        assert launcher is not None
        last = _pod(name, "launcher", "launcher", launcher, launcher_on, False)
        pods.append(replace(last, created=1.0))
    group = GroupFacts(
        key=f"team/{name}",
        uid=name,
        queue=queue,
        priority=priority,
        created=-age,
        min_member=total if least is None else least,
        started=(len(on) >= total) if started is None else started,
        expects=() if launcher is None else (Expected("launcher", 1, launcher),),
        holds=tuple(holds),
        recreated=recreated,
    )
    return Team(replace(group, **(facts or {})), pods)


def but(team: Team, *names: str, **facts: object) -> Team:
    """The same, but these members are like that: `but(old, "worker-0", preemptable=False)`."""
    uids = [f"{team.group.uid}-{name}" for name in names]
    assert {pod.uid for pod in team.pods}.issuperset(uids), f"{names} are no members"
    pods = [replace(pod, **facts) if pod.uid in uids else pod for pod in team.pods]
    return Team(team.group, pods)


def queue(
    name: str,
    *,
    gpus: int | None = None,
    guarantee: int = 0,
    deserved: int | None = None,
    **says: object,
) -> QueueFacts:
    """`gpus` is the most it may use; `guarantee` and `deserved` are GPUs too."""
    return QueueFacts(
        name,
        capability=() if gpus is None else ((GPU, gpus),),
        guarantee=((GPU, guarantee),) if guarantee else (),
        deserved=() if deserved is None else ((GPU, deserved),),
        **says,  # type: ignore[arg-type]
    )


def member(team: str, name: str, *, role: str = "worker", **asks: object) -> PodFacts:
    """One more pod of a gang, or the same again: it waits, under a uid of its own."""
    each = shape(**asks)  # type: ignore[arg-type]
    return PodFacts(f"{team}-{name}-again", f"team/{team}-{name}", each, f"team/{team}", role)


def pod(name: str, *, on: str | None = None, **asks: object) -> PodFacts:
    """A pod that is not ours: it only takes room."""
    return PodFacts(name, f"other/{name}", shape(**asks), node=on)  # type: ignore[arg-type]


def _pod(
    team: str, name: str, role: str, each: Shape, seat: str | None, deleting: bool
) -> PodFacts:
    full = f"{team}-{name}"
    return PodFacts(full, f"team/{full}", each, f"team/{team}", role, seat, deleting=deleting)


# -- what happens ------------------------------------------------------------------------------

Happening = Callable[[View], None]


def arrives(
    *things: NodeFacts | HyperNodeFacts | Team | PodFacts | QueueFacts | BudgetFacts,
) -> Happening:
    """It is there now, or as it is now."""

    def happen(view: View) -> None:
        for thing in things:
            match thing:
                case NodeFacts():
                    view.set_node(thing)
                case HyperNodeFacts():
                    view.set_hypernode(thing)
                case QueueFacts():
                    view.set_queue(thing)
                case BudgetFacts():
                    view.set_budget(thing)
                case PodFacts():
                    view.set_pod(thing)
                case Team():
                    view.set_group(thing.group)
                    for each in thing.pods:
                        view.set_pod(each)

    return happen


def again(name: str, **like: object) -> Happening:
    """The group is deleted and created under the same name, with new pods."""
    team = gang(name, **like)  # type: ignore[arg-type]
    group = replace(team.group, uid=f"{name}-again")
    pods = [replace(each, uid=f"{each.uid}-again") for each in team.pods]
    return arrives(Team(group, pods))


def ends(*pods: str, shunned: bool = False) -> Happening:
    """These pods are gone; `shunned`: their nodes would not have them."""

    def happen(view: View) -> None:
        for uid in pods:
            view.remove_pod(uid, shunned=shunned)

    return happen


def goes(*pods: str, grace: float = 0.0) -> Happening:
    """These pods are being deleted: they still take their room, for so many seconds."""

    def happen(view: View) -> None:
        for uid in pods:
            member = view.members[uid]
            where = view.columns.names[member.row] if member.row != NOWHERE else None
            view.set_pod(replace(member.facts, deleting=True, grace=grace, node=where))

    return happen


def asks_only(name: str, least: int) -> Happening:
    """The group's minimum is another one now: members ended well, or are not wanted any more."""

    def happen(view: View) -> None:
        facts = view.gangs[f"team/{name}"].facts
        assert facts is not None
        view.set_group(replace(facts, min_member=least))

    return happen


def leaves(*names: str) -> Happening:
    """These nodes are deleted."""

    def happen(view: View) -> None:
        for name in names:
            view.remove_node(name)

    return happen


def vanishes(name: str) -> Happening:
    """The group and its pods are deleted."""

    def happen(view: View) -> None:
        view.remove_group(f"team/{name}")
        for uid, member in list(view.members.items()):
            if member.facts.gang == f"team/{name}":
                view.remove_pod(uid)

    return happen


def refused(*pods: str) -> Happening:
    """The binds of these pods failed."""

    def happen(view: View) -> None:
        for uid in pods:
            view.refute(uid)

    return happen


# -- what is expected --------------------------------------------------------------------------


@dataclass(frozen=True)
class Expectation:
    what: str
    check: Callable[[Decision], bool]


def starts(
    name: str,
    pods: int | None = None,
    *,
    on: dict[str, int] | None = None,
    who: Sequence[str] | None = None,
    holding: Sequence[tuple[str, str]] | None = None,
) -> Expectation:
    """`on`: pods per node; `who`: exactly these pods; `holding`: exactly these seats held."""

    def check(decision: Decision) -> bool:
        return (
            isinstance(decision, Start)
            and decision.gang == f"team/{name}"
            and (pods is None or len(decision.seats) == pods)
            and (on is None or Counter(seat.node for seat in decision.seats) == on)
            and (who is None or sorted(seat.uid for seat in decision.seats) == sorted(who))
            and (holding is None or [(h.role, h.node) for h in decision.holds] == list(holding))
        )

    return Expectation(f"starts({name}, {pods}, on={on}, who={who}, holding={holding})", check)


def waits(
    name: str,
    *,
    because: str = "",
    reason: Reason = Reason.UNSCHEDULABLE,
    place: int | None = None,
) -> Expectation:
    """`because` is part of the sentence; `place`: in the line of its queue, 0 for none."""

    def check(decision: Decision) -> bool:
        return (
            isinstance(decision, Wait)
            and decision.gang == f"team/{name}"
            and because in decision.verdict.sentence
            and decision.verdict.reason is reason
            and place in (None, decision.verdict.position)
        )

    return Expectation(f"waits({name}, because={because!r}, {reason}, place={place})", check)


def keeps(name: str, *seats: tuple[str, str], until: float | None = None) -> Expectation:
    """From now on these (role, node) are kept for the gang's repair; without any: none is."""

    def check(decision: Decision) -> bool:
        if not isinstance(decision, Keep) or decision.gang != f"team/{name}":
            return False
        if decision.keeps is None:
            return not seats
        right_date = until is None or decision.keeps.until == until
        return right_date and decision.keeps.seats == tuple(sorted(seats))

    return Expectation(f"keeps({name}, {seats}, until={until})", check)


def evicts(
    name: str, victims: Mapping[str, int | Sequence[str]], *, on: dict[str, int] | None = None
) -> Expectation:
    """Who ends for it: so many pods of each gang, or these; `on`: seats kept per node."""

    def matches(victim: Victim, expected: int | Sequence[str]) -> bool:
        uids = [uid for uid, _ in victim.pods]
        if isinstance(expected, int):
            return len(uids) == expected
        return sorted(uids) == sorted(expected)

    def check(decision: Decision) -> bool:
        return (
            isinstance(decision, Evict)
            and decision.gang == f"team/{name}"
            and [v.gang for v in decision.victims] == [f"team/{each}" for each in sorted(victims)]
            and all(
                matches(victim, victims[victim.gang.partition("/")[2]])
                for victim in decision.victims
            )
            and (on is None or Counter(seat for _, seat in decision.keeps.seats) == on)
        )

    return Expectation(f"evicts({name}, {dict(victims)}, on={on})", check)


def releases(name: str, *pods: str) -> Expectation:
    def check(decision: Decision) -> bool:
        return (
            isinstance(decision, Release)
            and decision.gang == f"team/{name}"
            and [uid for uid, _ in decision.pods] == list(pods)
        )

    return Expectation(f"releases({name}, {pods})", check)


# -- running one -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """`after` so many seconds this happens, and the engine answers that."""

    happens: Sequence[Happening] = ()
    expect: Sequence[Expectation] = ()
    after: float = 1.0


@dataclass(frozen=True)
class Scenario:
    name: str
    nodes: Sequence[NodeFacts] = ()
    others: Sequence[PodFacts] = ()
    gangs: Sequence[Team] = ()
    queues: Sequence[QueueFacts] = ()
    hypernodes: Sequence[HyperNodeFacts] = ()
    budgets: Sequence[BudgetFacts] = ()
    expect: Sequence[Expectation] = ()
    then: Sequence[Turn] = ()
    policy: Policy = field(default_factory=Policy)
    # Whether it is about places in line: otherwise nobody looks at who only moved up.
    places: bool = False

    def play(self) -> None:
        view = View()
        told: dict[str, Verdict] = {}
        there = [
            arrives(*self.queues, *self.budgets),
            arrives(*self.nodes, *self.hypernodes),
            arrives(*self.others, *self.gangs),
        ]
        first = Turn(there, self.expect)
        now = 0.0
        for number, turn in enumerate([first, *self.then], start=1):
            now += turn.after
            for happen in turn.happens:
                happen(view)
                view.validate()
            full = overfull(view)
            decisions: list[Decision] = []
            for decision in cycle(view, self.policy, now):
                if self.places or not _moved_up(decision, told):
                    decisions.append(decision)
                view.validate()
                check_promises(view, decision, full)
            _compare(number, turn.expect, decisions)
            assert list(cycle(view, self.policy, now)) == [], "an idle cycle decides nothing"
            date = wake_at(view, self.policy)
            assert date is None or date > now, "nothing is left to do, and it is due at once"


def _moved_up(decision: Decision, told: dict[str, Verdict]) -> bool:
    """Whether a gang is told what it was told before, but for its place in line."""
    if isinstance(decision, Wait):
        before, now = told.get(decision.gang), decision.verdict
        told[decision.gang] = now
        return before is not None and before != now == replace(before, position=now.position)
    if isinstance(decision, Start | Release):
        told.pop(decision.gang, None)
    return False


def overfull(view: View) -> dict[tuple[str, str], int]:
    """How much each node is short of each resource, by no fault of the engine's."""
    columns = view.columns
    here = columns.allocatable - columns.used
    # A seat may be held on what is on its way out.
    room = np.minimum(here, here - columns.held + columns.leaving)
    return {
        (name, resource): int(room[row, at])
        for row, name in enumerate(columns.names)
        for resource, at in columns.column.items()
        if room[row, at] < 0
    }


def check_promises(
    view: View, decision: Decision, before: dict[tuple[str, str], int] | None = None
) -> None:
    """What must be true after any decision whatever."""
    for where, room in overfull(view).items():
        assert room >= (before or {}).get(where, 0), f"{where} is overcommitted by {-room}"
    if isinstance(decision, Start):
        gang = view.gangs[decision.gang]
        assert gang.facts is not None
        seated = [m for m in gang.members.values() if m.row != NOWHERE and not m.going]
        assert len(seated) >= gang.facts.min_member or not decision.seats, "a partial gang"
        announced = [expected.role for expected in gang.facts.expects]
        for role, least in gang.facts.role_minimums:
            there = sum(member.facts.role == role for member in seated)
            whole = there >= least or role in announced
            assert whole or not decision.seats, f"too few of role {role}"
        parts = Counter(member.facts.part for member in seated)
        for part in {gang.members[seat.uid].facts.part for seat in decision.seats}:
            size, _ = gang.squads.get(part.partition("/")[0], (0, 0))
            assert parts[part] >= size, f"half of part {part}"


def _compare(number: int, expect: Sequence[Expectation], decisions: list[Decision]) -> None:
    story = f"turn {number}\n  expected:\n"
    story += "".join(f"    {each.what}\n" for each in expect)
    story += "  decided:\n" + "".join(f"    {each}\n" for each in decisions)
    assert len(expect) == len(decisions), story
    for expectation, decision in zip(expect, decisions, strict=True):
        assert expectation.check(decision), f"{expectation.what} is not {decision}\n{story}"
