"""Why a gang waits: one sentence, built from the numbers its placement was decided by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from posse.engine.columns import Ints, Rows
from posse.engine.decisions import Reason, Shortage, Verdict, Wait
from posse.engine.eligibility import Bar, untolerated
from posse.engine.facts import Taint
from posse.engine.resources import amount, count, gravity, words
from posse.engine.seating import Seating
from posse.engine.shortfalls import Demand, Shortfall
from posse.engine.view import View


def explain(view: View) -> Iterator[Wait]:
    """Tell each waiting gang its verdict, unless it was the last thing it was told."""
    worded: dict[int, Verdict] = {}
    untold = view.shortfalls.untold
    for key in list(untold):
        blocked = untold.pop(key, None)
        gang = view.gangs.get(key)
        if blocked is None or gang is None:
            continue
        if isinstance(blocked, Verdict):
            verdict = blocked
        else:
            if id(blocked) not in worded:
                worded[id(blocked)] = verdict_of(view, blocked)
            verdict = worded[id(blocked)]
        if gang.verdict is None or _said(gang.verdict) != _said(verdict):
            gang.verdict = verdict
            yield Wait(key, verdict)


def _said(verdict: Verdict) -> tuple[Reason, str, bool]:
    return verdict.reason, verdict.sentence, verdict.surplus


def verdict_of(view: View, shortfall: Shortfall) -> Verdict:
    with view.tentatively():
        # Seats held for the gang itself are no reason for it to wait.
        for gang in shortfall.gangs.values():
            view.let_go(gang.holds)
        asks = [
            Ask(demand, demand.most if shortfall.surplus else demand.wanted)
            for demand in shortfall.demands
        ]
        story = _Story(view, [ask for ask in asks if ask.number], shortfall)
        sentence, short = story.tell()
    return Verdict(Reason.UNSCHEDULABLE, sentence, short, surplus=shortfall.surplus)


@dataclass(frozen=True, slots=True)
class Ask:
    """So many pods of one demand."""

    demand: Demand
    number: int

    @property
    def seating(self) -> Seating:
        return self.demand.seating

    @property
    def who(self) -> str:
        """`each pod`, `each worker`: a role by its name only where there are several."""
        return self.demand.role or "pod"


class _Story:
    """Looks for the simplest reason that is true: from what can never fit to what does not now."""

    def __init__(self, view: View, asks: list[Ask], shortfall: Shortfall) -> None:
        self.view = view
        self.asks = asks
        self.shortfall = shortfall
        self.usable = {id(ask): _usable(ask.seating) for ask in asks}

    def tell(self) -> tuple[str, tuple[Shortage, ...]]:
        text, short = (
            self._barred()
            or self._too_large_for_any_node()
            or self._more_than_there_is()
            or self._in_pieces_even_if_empty()
            or self._busy()
            or self._in_pieces()
            or self._not_together()
        )
        if self.shortfall.surplus:
            beyond = sum(ask.number for ask in self.asks if not ask.demand.announced)
            text = f"{count(beyond, 'pod')} beyond its minimum: {text}"
        return text, short

    # -- never on today's nodes --------------------------------------------------------------

    def _barred(self) -> tuple[str, tuple[Shortage, ...]] | None:
        if not len(self.view.columns.by_name()):
            return "the cluster has no nodes; add some", ()
        for ask in self.asks:
            if len(self.usable[id(ask)]):
                continue
            bars = _bars(self.view, ask.seating)
            selector = ask.seating.shape.constraints.node_selector
            if list(bars) == [Bar.SELECTOR]:
                return f"no node matches selector {_labels(selector)}", ()
            return f"no node may take {self._its(ask)}: {_outs(self.view, ask, bars)}", ()
        return None

    def _too_large_for_any_node(self) -> tuple[str, tuple[Shortage, ...]] | None:
        for ask in self.asks:
            rows = self.usable[id(ask)]
            offered = self.view.columns.allocatable[rows[:, None], ask.seating.columns]
            if (offered // ask.seating.amounts).min(axis=1).any():
                continue
            for resource, one in _by_gravity(ask.seating):
                most = int(offered[:, list(ask.seating.asked).index(resource)].max())
                if most < one:
                    text = (
                        f"{self._each(ask)} needs {words(resource, one)} on one node;"
                        f" the largest of today's nodes has {amount(resource, most)}"
                    )
                    return text + self._out(ask), (self._shortage(resource),)
            return (
                f"{self._each(ask)} needs {_all_of(ask.seating)} on one node,"
                f" and none of today's nodes has all of it{self._out(ask)}"
            ), ()
        return None

    def _more_than_there_is(self) -> tuple[str, tuple[Shortage, ...]] | None:
        short = [each for each in self._shortages() if each.asked > each.total]
        if not short:
            return None
        worst = short[0]
        ask = self._asking(worst.resource)[0]
        missing = amount(worst.resource, worst.asked - worst.total)
        text = (
            f"asks {words(worst.resource, worst.asked)}{self._sum(worst.resource)},"
            f" {self._whose_nodes(ask)} {amount(worst.resource, worst.total)} on today's nodes"
        )
        fewer = self._seats_if_empty(ask)
        if self._alone(ask) and 0 < fewer < ask.number:
            text += f"; add {missing} or ask for {count(fewer, 'pod')}"
        else:
            text += f"; {missing} must be added"
        return text + self._out(ask), tuple(short)

    def _in_pieces_even_if_empty(self) -> tuple[str, tuple[Shortage, ...]] | None:
        for ask in self.asks:
            seats = self._seats_if_empty(ask)
            if seats < ask.number:
                resource, one = _by_gravity(ask.seating)[0]
                return (
                    f"{self._each(ask)} needs {words(resource, one)} on one node;"
                    f" today's nodes, even empty, seat {seats} of {ask.number}{self._out(ask)}"
                ), (self._shortage(resource),)
        return None

    # -- not now -----------------------------------------------------------------------------

    def _busy(self) -> tuple[str, tuple[Shortage, ...]] | None:
        short = [each for each in self._shortages() if each.asked > each.free]
        if not short:
            return None
        worst = short[0]
        ask = self._asking(worst.resource)[0]
        missing = worst.asked - worst.free
        text = (
            f"needs {words(worst.resource, worst.asked)}{self._sum(worst.resource)},"
            f" {amount(worst.resource, worst.free)} {_are(worst.resource, worst.free)} free"
            f" of {amount(worst.resource, worst.total)}{self._held(worst.resource)};"
            f" it can start when {amount(worst.resource, missing)} more"
            f" {_are(worst.resource, missing)} free"
        )
        others = [words(each.resource, each.asked - each.free) for each in short[1:]]
        if others:
            text += f", and {' and '.join(others)}"
        return text + self._out(ask), tuple(short)

    def _in_pieces(self) -> tuple[str, tuple[Shortage, ...]] | None:
        for ask in self.asks:
            seats = ask.seating.total()
            if seats >= ask.number:
                continue
            free = np.maximum(
                self.view.columns.free_at(self.usable[id(ask)], ask.seating.columns), 0
            )
            for resource, one in _by_gravity(ask.seating):
                here = free[:, list(ask.seating.asked).index(resource)]
                if int((here // one).sum()) >= ask.number:
                    continue
                text = f"{self._each(ask)} needs {words(resource, one)} on one node;"
                if int(here.max()) < one:
                    text += f" the largest free block is {amount(resource, int(here.max()))}"
                else:
                    text += f" the free blocks seat {seats} of {ask.number}"
                text += f" ({amount(resource, int(here.sum()))} free in all)"
                shortage = (self._shortage(resource),)
                return text + self._held(resource) + self._out(ask), shortage
            return (
                f"{self._each(ask)} needs {_all_of(ask.seating)} on one node;"
                f" the nodes seat {seats} of {ask.number} now{self._out(ask)}"
            ), ()
        return None

    def _not_together(self) -> tuple[str, tuple[Shortage, ...]]:
        roles = " and ".join(
            f"{ask.number} {ask.who} x {_all_of(ask.seating)}" for ask in self.asks
        )
        if self.shortfall.proven:
            return f"{roles} fit one by one but not together; more room must come free", ()
        return f"no placement found for {roles} together; it is tried again as room comes", ()

    # -- numbers -----------------------------------------------------------------------------

    def _shortages(self) -> list[Shortage]:
        """All resources asked for, the one to speak of first in front."""
        resources = {resource for ask in self.asks for resource in ask.seating.asked}
        return [self._shortage(resource) for resource in sorted(resources, key=gravity)]

    def _shortage(self, resource: str) -> Shortage:
        asking = self._asking(resource)
        columns = self.view.columns
        at = columns.column[resource]
        rows = np.unique(np.concatenate([self.usable[id(ask)] for ask in asking]))
        total: Ints = columns.allocatable[rows, at]
        free = total - columns.used[rows, at] - columns.held[rows, at]
        return Shortage(
            resource,
            asked=sum(ask.number * ask.seating.asked[resource] for ask in asking),
            free=int(np.maximum(free, 0).sum()),
            total=int(total.sum()),
        )

    def _asking(self, resource: str) -> list[Ask]:
        return [ask for ask in self.asks if resource in ask.seating.asked]

    def _seats_if_empty(self, ask: Ask) -> int:
        rows = self.usable[id(ask)]
        offered = self.view.columns.allocatable[rows[:, None], ask.seating.columns]
        return int((offered // ask.seating.amounts).min(axis=1).sum())

    # -- words -------------------------------------------------------------------------------

    def _alone(self, ask: Ask) -> bool:
        return [each for each in self.asks if not each.demand.announced] == [ask]

    def _each(self, ask: Ask) -> str:
        return (
            f"each {ask.who if len(self.asks) > 1 else 'pod'}"
            if ask.number > 1
            else (f"the {ask.who}" if len(self.asks) > 1 else "the pod")
        )

    def _its(self, ask: Ask) -> str:
        if len(self.asks) == 1:
            return "its pods" if ask.number > 1 else "its pod"
        return f"its {count(ask.number, ask.who)}"

    def _sum(self, resource: str) -> str:
        """`(5 pods x 2 each and a seat for 1 launcher)`: how the number comes about."""
        asking = self._asking(resource)
        waiting = [ask for ask in asking if not ask.demand.announced]
        announced = [ask for ask in asking if ask.demand.announced]
        if len(waiting) == 1:
            only = waiting[0]
            parts = [f"{count(only.number, 'pod')} x {_one(only, resource)}"]
            if only.number > 1:
                parts[0] += " each"
            elif not announced:
                return ""
        else:
            parts = [f"{ask.number} {ask.who} x {_one(ask, resource)}" for ask in waiting]
        parts += [f"a seat for {ask.number} {ask.who}" for ask in announced]
        return f" ({' and '.join(parts)})"

    def _whose_nodes(self, ask: Ask) -> str:
        usable = len(self.usable[id(ask)])
        if usable == len(self.view.columns.by_name()):
            return "the cluster has"
        return f"the {count(usable, 'node')} it may use {'has' if usable == 1 else 'have'}"

    def _held(self, resource: str) -> str:
        """Who keeps some of it, if anyone does."""
        keeping = [
            gang.key
            for gang in self.view.gangs.values()
            if gang.key not in self.shortfall.gangs
            and any(resource in hold.seating.asked for hold in gang.holds)
        ]
        if not keeping:
            return ""
        at = self.view.columns.column[resource]
        held = int(self.view.columns.held[:, at].sum())
        return f", {amount(resource, held)} held for {', '.join(sorted(keeping)[:3])}"

    def _out(self, ask: Ask) -> str:
        bars = _bars(self.view, ask.seating)
        return f" ({_outs(self.view, ask, bars)})" if bars else ""


def _usable(seating: Seating) -> Rows:
    return np.flatnonzero(seating.eligibility.bars() == Bar.NONE)


def _bars(view: View, seating: Seating) -> dict[Bar, list[int]]:
    """The rows each bar keeps the pods off; nodes that do not exist keep nobody off."""
    bars = seating.eligibility.bars()
    known = view.columns.by_name()
    return {
        each: known[bars[known] == each].tolist()
        for each in Bar
        if each not in (Bar.NONE, Bar.UNKNOWN) and (bars[known] == each).any()
    }


def _outs(view: View, ask: Ask, bars: dict[Bar, list[int]]) -> str:
    constraints = ask.seating.shape.constraints
    parts: list[str] = []
    for each, rows in bars.items():
        one = len(rows) == 1
        match each:
            case Bar.SELECTOR:
                verb = "does" if one else "do"
                what = f"{verb} not match selector {_labels(constraints.node_selector)}"
            case Bar.NOT_READY:
                what = "is not ready" if one else "are not ready"
            case Bar.LEAVING:
                what = "is being removed" if one else "are being removed"
            case Bar.CORDON:
                what = "is cordoned" if one else "are cordoned"
            case _:
                taints: dict[str, None] = {}
                for row in rows:
                    node = view.columns.nodes[row]
                    taint = None if node is None else untolerated(node, constraints)
                    if taint is not None:
                        taints[_taint(taint)] = None
                verb = "has" if one else "have"
                what = f"{verb} a taint it does not tolerate: {', '.join(sorted(taints)[:3])}"
        parts.append(f"{count(len(rows), 'node')} {what}")
    return ", ".join(parts)


def _labels(selector: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f"{key}={value}" for key, value in selector)


def _taint(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _by_gravity(seating: Seating) -> list[tuple[str, int]]:
    return sorted(seating.asked.items(), key=lambda item: gravity(item[0]))


def _all_of(seating: Seating) -> str:
    asked = [words(r, one) for r, one in _by_gravity(seating) if r != "pods"]
    return ", ".join(asked[:-1]) + " and " + asked[-1] if len(asked) > 1 else "".join(asked)


def _one(ask: Ask, resource: str) -> str:
    return amount(resource, ask.seating.asked[resource])


def _are(resource: str, number: int) -> str:
    return "is" if amount(resource, number) == "1" else "are"
