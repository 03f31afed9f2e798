"""Why a gang waits: one sentence, built from the numbers its placement was decided by.

The simplest reason that is true is told: first what can never fit on today's nodes, then what
does not fit now. A gang is looked at again when something that could help has changed; whenever it
is told anything, the numbers are those of that moment. Of gangs that ask the same the first is told
new numbers at every look, the others when the kind of reason changes: one pod's end is not news to
a thousand gangs. A place in line is told to the first few of each queue, in the words they were
told last.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice

import numpy as np
from msgspec.structs import replace

from posse.engine.columns import Ints
from posse.engine.decisions import Cause, Reason, Shortage, Verdict, Wait
from posse.engine.facts import NodeFacts
from posse.engine.fit.eligibility import Bar
from posse.engine.fit.seating import Seating
from posse.engine.fit.surveying import Survey
from posse.engine.gangs import Gang, Muster
from posse.engine.placement.relating import why_not
from posse.engine.placement.shortfalls import Quota, Shortfall
from posse.engine.policy import Policy
from posse.engine.preemption.making import waits_for_room
from posse.engine.queues.quotas import beyond_ceiling, in_todays_numbers
from posse.engine.reservation.heads import fixed
from posse.engine.reservation.outlooks import outlook, place_of, waits_behind
from posse.engine.resources import amount, count, gravity, words
from posse.engine.verdicts.apart import Apart
from posse.engine.verdicts.lacking import Lack
from posse.engine.verdicts.wording import (
    ITS,
    Ask,
    Told,
    all_of,
    are,
    by_gravity,
    each,
    offered_instead,
    out,
    remedy,
    selector,
    sum_of,
    whole,
    with_number,
    without_a_node,
)
from posse.engine.view import View

# Where the end of others would help, if anything did.
_FOR_WANT_OF_ROOM = (Cause.BUSY, Cause.FRAGMENTED, Cause.APART)


def explain(view: View, policy: Policy) -> Iterator[Wait]:
    """Tell each waiting gang its verdict, unless it was the last thing it was told."""
    untold = view.shortfalls.untold
    worded: dict[int, Verdict] = {}
    survey = Survey(view.columns)
    for key in list(untold):
        blocked, view.in_turn = untold.get(key), key
        if isinstance(blocked, Shortfall) and id(blocked) not in worded:
            verdict = worded[id(blocked)] = verdict_of(view, blocked, policy, survey)
            kind = (verdict.reason, verdict.cause)
            if blocked.told not in (None, kind):
                for other in blocked.gangs:
                    untold.setdefault(other, blocked)
                    view.shortfalls.lines.leave(other)
            blocked.told = kind
    view.shortfalls.lines.give_places()
    for key in list(untold):
        blocked = untold.pop(key, None)
        gang = view.gangs.get(key)
        if blocked is None or gang is None:
            continue
        if isinstance(blocked, Verdict):
            verdict = blocked
        elif id(blocked) in worded:
            verdict = worded[id(blocked)]
        else:
            untold[key] = blocked
            continue
        verdict = outlook(view, gang, verdict, policy)
        if _news(gang, verdict):
            gang.verdict = verdict
            yield Wait(key, verdict)
    yield from _move_up(view)


def _news(gang: Gang, verdict: Verdict) -> bool:
    told = gang.verdict
    return told is None or (told.reason, told.sentence, told.surplus, told.position) != (
        verdict.reason,
        verdict.sentence,
        verdict.surplus,
        verdict.position,
    )


def _move_up(view: View) -> Iterator[Wait]:
    """Tell those whose place in line alone is another one."""
    lines = view.shortfalls.lines
    for key in list(lines.untold):
        lines.untold.pop(key, None)
        gang = view.gangs.get(key)
        if gang is None or gang.verdict is None or view.shortfalls.of(gang) is None:
            continue
        place = place_of(view, gang, gang.verdict)
        if gang.verdict.position != place:
            gang.verdict = replace(gang.verdict, position=place)
            yield Wait(key, gang.verdict)


def verdict_of(
    view: View, shortfall: Shortfall, policy: Policy, survey: Survey | None = None
) -> Verdict:
    for gang in islice(shortfall.gangs.values(), 0 if shortfall.surplus else 1):
        if gang.holds and (waits := waits_for_room(view, gang)) is not None:
            return waits
    behind = waits_behind(view, shortfall)
    if behind is not None:
        return behind
    quota = in_todays_numbers(view, shortfall)
    if quota is not None and (quota.never or shortfall.surplus):
        return quota.verdict
    nodes = (view.columns.last_altered, view.tiers.redrawn, policy.tiers)
    if quota is not None and shortfall.never == (nodes, False):
        return quota.verdict
    if quota is None and shortfall.verdict is not None:
        return shortfall.verdict
    with view.tentatively():
        # A gang that holds something shares its shortfall with nobody; and the seats held for
        # itself are no reason for it to wait.
        for gang in islice(shortfall.gangs.values(), 0 if shortfall.surplus else 1):
            view.let_go(gang.holds)
        story = _Story(view, shortfall, policy, survey or Survey(view.columns))
        if quota is None:
            verdict, first = story.verdict(), shortfall.first()
            if first is None or shortfall.surplus or verdict.cause not in _FOR_WANT_OF_ROOM:
                return verdict
            return beyond_ceiling(view, first, shortfall.demands) or verdict
        never = story.never()
        shortfall.never = (nodes, never is not None)
        return quota.verdict if never is None else _besides(quota, never)


def _besides(quota: Quota, never: Told) -> Verdict:
    """A quota stands against it now, but today's nodes do for good."""
    cause, sentence, _ = never
    allowed, _, _ = quota.verdict.sentence.partition("; it can start when ")
    allowed = allowed.partition(", ")[2].removeprefix("but ")  # what it needs is told already
    return replace(quota.verdict, sentence=f"{sentence}; besides, {allowed}", cause=cause)


class _Story:
    def __init__(self, view: View, shortfall: Shortfall, policy: Policy, survey: Survey) -> None:
        self.view = view
        self.survey = survey
        self.columns = view.columns
        self.shortfall = shortfall
        if shortfall.surplus:
            # They start as room comes, one by one or part by part: what the next one lacks is what
            # they wait for.
            more = [d for d in shortfall.demands if not d.announced and d.most]
            self.beyond = sum(demand.most for demand in more)
            asks = [Ask(d, d.wanted) for d in shortfall.upcoming if d.wanted]
            asks = asks or [Ask(demand, 1) for demand in more[:1]]
        else:
            asks = [Ask(d, d.wanted) for d in shortfall.demands if d.wanted]
        self.asks = whole(asks)
        self.apart = Apart(view, shortfall, asks, policy)
        self.usable = {id(ask): survey.usable(ask.seating) for ask in self.asks}
        # What each node would seat if it were empty.
        self.if_empty = {id(ask): survey.if_empty(ask.seating) for ask in self.asks}
        # All resources asked for, the one to speak of first in front.
        resources = {resource for ask in self.asks for resource in ask.seating.asked}
        self.numbers = [self._shortage(resource) for resource in sorted(resources, key=gravity)]

    @cached_property
    def hopeless(self) -> bool:
        """Whether it was ruled out, as nodes are today, that it starts once all others ended."""
        first = self.shortfall.first() if self.shortfall.proven else None
        return first is not None and self.shortfall.hopeless == fixed(self.view, first)

    def verdict(self) -> Verdict:
        cause, sentence, short = (
            self.never()
            or self.apart.now()
            or self._busy()
            or self._in_pieces()
            or self._in_company()
            or self._not_together()
        )
        if self.hopeless and cause in _FOR_WANT_OF_ROOM:
            sentence += "; on today's nodes the end of all other jobs would not be enough"
        if self.shortfall.surplus:
            loose = any(gang.facts and gang.facts.loose for gang in self.shortfall.gangs.values())
            which = "without a node" if loose else "beyond its minimum"
            if sentence.startswith(ITS):
                sentence = f"{self._next()} {sentence}"
            sentence = f"{count(self.beyond, 'pod')} {which}: {sentence}"
        elif (muster := self._begun()) is not None:
            needed = sum(ask.number for ask in self.asks if not ask.demand.announced)
            missing = max(needed, len(muster.waiting))
            if needed:  # or else only seats for announced ones are missing
                sentence = without_a_node(missing, needed, muster.there, sentence)
        return Verdict(Reason.UNSCHEDULABLE, sentence, cause, short, surplus=self.shortfall.surplus)

    def _next(self) -> str:
        """Of those beyond the minimum, whom the numbers are of."""
        if self.beyond == 1:
            return "it"
        return "the next" if sum(ask.number for ask in self.asks) == 1 else "the next part"

    def _begun(self) -> Muster | None:
        """Who is there of the gang, if some have their nodes."""
        gangs = list(islice(self.shortfall.gangs.values(), 2))
        if len(gangs) != 1 or not gangs[0].muster.seated:
            return None
        return gangs[0].muster

    # -- never on today's nodes --------------------------------------------------------------

    def never(self) -> Told | None:
        return (
            self._barred()
            or self._too_large()
            or self._too_many()
            or self._in_pieces_even_if_empty()
            or self.apart.never()
        )

    def _barred(self) -> Told | None:
        if not len(self.columns.by_name()):
            return Cause.BARRED, "the cluster has no nodes; add some", ()
        for ask in self.asks:
            if len(self.usable[id(ask)]):
                continue
            bars = self._bars(ask)
            if list(bars) == [Bar.SELECTOR]:
                what = f"no node matches {selector(ask.seating)}"
                what += offered_instead(ask.seating, bars[Bar.SELECTOR])
            else:
                its = "pods" if len(self.asks) == 1 else count(ask.number, ask.role)
                what = f"no node may take its {its}: {out(ask.seating, bars)}"
            return Cause.BARRED, what + remedy(ask.seating, bars), ()
        return None

    def _too_large(self) -> Told | None:
        for ask in self.asks:
            if self.if_empty[id(ask)].any():
                continue
            offered = self.survey.offered(ask.seating)
            for resource, one in by_gravity(ask.seating):
                most = int(_of(ask.seating, offered, resource).max())
                if most < one:
                    # As it was asked for, though no column could bear it.
                    asked = dict(ask.seating.shape.requests).get(resource, one)
                    what = f"{each(self.asks, ask)} needs {words(resource, asked)}"
                    if most:
                        has = amount(resource, most)
                        what += f" on one node; the largest of today's nodes has {has}"
                        what += f"{self._out(ask)}; ask for {has} at most, or add a larger node"
                    else:
                        what += "; none of today's nodes that it may use has any"
                        what += f"{self._out(ask)}; add a node that has"
                    return Cause.TOO_LARGE, what, (self._shortage(resource),)
            what = (
                f"{each(self.asks, ask)} needs {all_of(ask.seating)} on one node; none of today's"
                f" nodes has all of it{self._out(ask)}; ask for less, or add a larger node"
            )
            return Cause.TOO_LARGE, what, ()
        return None

    def _too_many(self) -> Told | None:
        short = tuple(each for each in self.numbers if each.asked > each.total)
        if not short:
            return None
        worst = short[0]
        asking = self._asking(worst.resource)
        ask = asking[0]
        usable = len(self.usable[id(ask)])
        total = amount(worst.resource, worst.total)
        has = f"the cluster has {total} on today's nodes"
        if usable == 1 < len(self.columns.by_name()):
            has = f"the only one of today's nodes that it may use has {total}"
        elif usable < len(self.columns.by_name()):
            has = f"the {usable} of today's nodes that it may use have {total}"
        missing = amount(worst.resource, worst.asked - worst.total)
        what = (
            f"asks for {words(worst.resource, worst.asked)}{self._sum_of(worst.resource)},"
            f" but {has}; add {missing}"
        )
        what += self._or_fewer(ask, int(self.if_empty[id(ask)].sum()))
        return Cause.TOO_MANY, what + self._out(ask), short

    def _in_pieces_even_if_empty(self) -> Told | None:
        for ask in self.asks:
            seats = int(self.if_empty[id(ask)].sum())
            if seats < ask.number:
                resource, one = by_gravity(ask.seating)[0]
                what = (
                    f"{each(self.asks, ask)} needs {words(resource, one)} on one node; today's"
                    f" nodes, even empty, have room for {seats} of {ask.number}; add nodes"
                )
                what += self._or_fewer(ask, seats)
                return Cause.TOO_MANY, what + self._out(ask), (self._shortage(resource),)
        return None

    def _or_fewer(self, ask: Ask, seats: int) -> str:
        """What else would help, where nobody but these asks for anything."""
        alone = [each for each in self.asks if not each.demand.announced] == [ask]
        return f" or ask for {count(seats, 'pod')}" if alone and 0 < seats < ask.number else ""

    # -- not now -----------------------------------------------------------------------------

    def _busy(self) -> Told | None:
        short = tuple(each for each in self.numbers if each.asked > each.free)
        if not short:
            return None
        worst = short[0]
        resource, asking = worst.resource, self._asking(worst.resource)
        missing = worst.asked - worst.free
        pieces, when = "", f"{amount(resource, missing)} more {are(resource, missing)} free"
        if len(asking) == 1:
            lack = self._lack(asking[0], resource)
            pieces, when = lack.pieces, lack.when
        what = (
            f"needs {words(resource, worst.asked)}{self._sum_of(resource)},"
            f" {amount(resource, worst.free)} of {amount(resource, worst.total)}"
            f" {are(resource, worst.free)} free{pieces}{self._held(resource)};"
            f" it can start when {when}"
        )
        others = [words(each.resource, each.asked - each.free) for each in short[1:]]
        if others:
            what += f", and {' and '.join(others)}"
        return Cause.BUSY, what + self._out(asking[0]), short

    def _in_pieces(self) -> Told | None:
        for ask in self.asks:
            seats = ask.seating.total()
            if seats >= ask.number:
                continue
            free = np.maximum(self.columns.free_at(self.usable[id(ask)], ask.seating.columns), 0)
            for resource, one in by_gravity(ask.seating):
                here = _of(ask.seating, free, resource)
                if int((here // one).sum()) >= ask.number:
                    continue
                what = f"{each(self.asks, ask)} needs {words(resource, one)} on one node; "
                most, free_in_all = int(here.max()), amount(resource, int(here.sum()))
                if most < one:
                    what += f"at most {amount(resource, most)} {are(resource, most)} free on any"
                    what += f" node ({free_in_all} in all)"
                else:
                    what += f"there is room for {seats} of {ask.number}"
                    what += f" ({free_in_all} free in all)"
                what += self._held(resource)
                lack = self._lack(ask, resource)
                what += f"; it can start when {lack.when}" if lack.least else ""
                return Cause.FRAGMENTED, what + self._out(ask), (self._shortage(resource),)
            what = f"{each(self.asks, ask)} needs {all_of(ask.seating)} on one node; "
            if ask.number == 1:
                what += "no node has all of that free at once"
            else:
                what += f"there is room for {seats} of {ask.number}"
            return Cause.FRAGMENTED, what + self._out(ask), ()
        return None

    def _in_company(self) -> Told | None:
        for ask in self.asks:
            if not ask.demand.related:
                continue
            seated, reasons = why_not(self.view, ask.demand, ask.number)
            if seated < ask.number and reasons:
                noun = "pod" if len(self.asks) == 1 else f"{ask.role} pod"
                told = "; ".join(
                    f"{count(number, 'node')} {with_number(why, number)}" for number, why in reasons
                )
                found = _found(seated, ask.number, noun)
                what = f"{'finds no node' if self.shortfall.surplus else found}: {told}"
                if self.hopeless and not self.shortfall.surplus:
                    what = f"on today's nodes {what}"
                    if fewer := self._or_fewer(ask, seated):
                        relations = ask.seating.shape.relations
                        claims = relations is not None and relations.claims
                        what += (
                            f"; {fewer.removeprefix(' or ')}" if claims else f"; add nodes{fewer}"
                        )
                return Cause.COMPANY, what + self._out(ask), ()
        return None

    def _not_together(self) -> Told:
        roles = " and ".join(f"{a.number} {a.role} x {all_of(a.seating)}" for a in self.asks)
        if self.hopeless:
            what = f"{roles} do not fit together on today's nodes, even if all other jobs ended"
        elif self.shortfall.proven:
            what = f"{roles} fit one by one but not together; more room must come free"
        else:
            what = f"no placement found for {roles} together; it is tried again as room comes"
        return Cause.NOT_TOGETHER, what, ()

    # -- numbers -----------------------------------------------------------------------------

    def _shortage(self, resource: str) -> Shortage:
        asking = self._asking(resource)
        free, total = self.survey.free_and_total([ask.seating for ask in asking], resource)
        asked = sum(ask.number * ask.seating.asked[resource] for ask in asking)
        return Shortage(resource, asked, free=free, total=total)

    def _lack(self, ask: Ask, resource: str) -> Lack:
        pieces = self.survey.pieces(ask.seating, resource)
        return Lack(resource, ask.seating.asked[resource], ask.number, pieces)

    def _sum_of(self, resource: str) -> str:
        several = sum(not ask.demand.announced for ask in self.asks) > 1
        return sum_of(self._asking(resource), resource, several)

    def _asking(self, resource: str) -> list[Ask]:
        return [ask for ask in self.asks if resource in ask.seating.asked]

    def _bars(self, ask: Ask) -> dict[Bar, list[NodeFacts]]:
        """The nodes each bar keeps the pods off."""
        bars = ask.seating.eligibility.bars()
        nodes: dict[Bar, list[NodeFacts]] = {}
        for row in np.flatnonzero(bars != Bar.NONE).tolist():
            node = self.columns.nodes[row]
            if node is not None:
                nodes.setdefault(Bar(int(bars[row])), []).append(node)
        return dict(sorted(nodes.items()))

    # -- who else ----------------------------------------------------------------------------

    def _held(self, resource: str) -> str:
        """Who keeps some of it back, if anyone does."""
        keeping = {
            gang.key: sum(hold.seating.asked.get(resource, 0) for hold in gang.holds)
            for gang in self.view.holding.values()
            if gang.key not in self.shortfall.gangs
        }
        for member in self.view.neighbours.nominees.values():
            keeping[member.facts.name] = member.seating.asked.get(resource, 0)
        names = sorted(key for key, kept in keeping.items() if kept)
        if not names:
            return ""
        others = f" and {len(names) - 2} more" if len(names) > 2 else ""
        held = amount(resource, sum(keeping.values()))
        return f", {held} held for {', '.join(names[:2])}{others}"

    def _out(self, ask: Ask) -> str:
        bars = self._bars(ask)
        return f" ({out(ask.seating, bars)})" if bars else ""


def _found(seated: int, number: int, noun: str) -> str:
    """`only 4 of its 5 pods find a node`."""
    if number == 1:
        return f"its {noun} finds no node"
    if not seated:
        return f"none of its {number} {noun}s finds a node"
    return f"only {seated} of its {number} {noun}s {'finds' if seated == 1 else 'find'} a node"


def _of(seating: Seating, amounts: Ints, resource: str) -> Ints:
    column: Ints = amounts[:, list(seating.asked).index(resource)]
    return column
