"""Seats for demands whose pods care about one another's company.

Pods that nobody tells apart are seated in one pass wherever that is sure to be right: where what
they ask of their company cannot change by seating them, or only means one on each node. Else they
are seated one after another, each looking at where the others are. The two ways agree.

Pods that must be near pods which are not there yet open a domain together: the smallest that has
room for all of them is tried first. What these attempts leave, a bounded search decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from posse.engine.columns import Rows
from posse.engine.facts import LARGEST
from posse.engine.fit.company import Company, Rule
from posse.engine.fit.seating import Seats
from posse.engine.gangs import Member
from posse.engine.placement import packing
from posse.engine.placement.demands import Demand
from posse.engine.placement.packing import Allowance
from posse.engine.placement.scouting import scout
from posse.engine.placement.searching import Found
from posse.engine.policy import Policy
from posse.engine.view import View

_MOST_OPENINGS = 32
# Pods of one gang that are seated by what they merely prefer: it takes a look at each.
_MOST_HEEDED = 500


def concern(view: View, demands: list[Demand]) -> bool:
    """Whether company can keep any of them off a node; each that heeds it is marked."""
    for demand in demands:
        demand.bound = view.neighbours.concern(demand.members)
        demand.related = demand.bound or demand.seating.related
    return any(demand.bound for demand in demands)


def _prefers(demand: Demand) -> bool:
    relations = demand.seating.shape.relations
    return relations is not None and bool(relations.prefers)


def has_room(demands: list[Demand], need: int) -> bool:
    """Whether there are seats enough, whoever is near them."""
    waiting = [demand for demand in demands if not demand.announced]
    return all(demand.total() >= demand.least for demand in demands) and need <= sum(
        min(demand.total(), demand.most) for demand in waiting
    )


def pack(
    view: View, demands: list[Demand], need: int, near: Sequence[Rows], policy: Policy
) -> tuple[Found | None, bool]:
    """As `packing.pack`, heeding company where it matters."""
    if not any(demand.related for demand in demands):
        return packing.pack(view, demands, need, near, policy)
    asked = [demand for demand in demands if demand.wanted or (need and demand.most)]
    elastic = sum(demand.wanted for demand in asked) < sum(demand.most for demand in asked)
    if not elastic and any(demand.total() < demand.wanted for demand in asked):
        return None, True
    heeds = any(_prefers(demand) for demand in asked) and need <= _MOST_HEEDED
    attempt = _Attempt(view, Company(view), near, policy, heeds)
    found = attempt.anywhere(asked, need, elastic)
    if found is None and not any(demand.bound for demand in asked):
        return packing.pack(view, demands, need, near, policy)
    if found is None and heeds:
        attempt.heeds = False
        found = attempt.anywhere(asked, need, elastic)
    if found is not None or (len(asked) == 1 and attempt.exact):
        return found, True
    return scout(view, asked, need, policy)


def pack_more(
    view: View,
    demands: list[Demand],
    found: Found,
    most: int,
    near: Sequence[Rows],
    policy: Policy,
    quota: Allowance | None = None,
) -> int:
    """As `packing.pack_more`, heeding company where it matters."""
    if not any(demand.related for demand in demands):
        return packing.pack_more(view, demands, found, most, near, policy, quota)
    attempt = _Attempt(view, Company(view), near, policy, most <= _MOST_HEEDED)
    for demand, rows in found.items():
        for member, row in zip(demand.members, rows, strict=False):
            attempt.company.seat(member, row)
    seated = 0
    for demand in demands:
        if not demand.announced:
            rows = found.setdefault(demand, [])
            number = min(demand.most - len(rows), most - seated)
            if quota is not None:
                number = min(number, quota.seats(demand))
            taken = attempt.fill(demand, number, len(rows))
            if quota is not None:
                quota.take(demand, len(taken))
            rows += taken
            seated += len(taken)
    return seated


def why_not(view: View, demand: Demand, number: int) -> tuple[int, list[tuple[int, str]]]:
    """How many of so many pods find a seat, and what keeps the next one off how many nodes."""
    attempt = _Attempt(view, Company(view), (), Policy(), heeds=False)
    with view.tentatively():
        seated = len(attempt.fill(demand, number, 0))
        if seated >= len(demand.members):
            return seated, []
        left = demand.rows(view.columns)
        left = left[demand.seating.seats()[left] > 0]
        reasons: list[tuple[int, str]] = []
        for rule in attempt.company.rules(demand.members[seated]):
            kept = rule.left[left]
            if not kept.all():
                reasons.append((int((~kept).sum()), rule.why))
            left = left[kept]
        return seated, reasons


@dataclass
class _Attempt:
    view: View
    company: Company
    near: Sequence[Rows]
    policy: Policy
    # Whether it goes by what pods merely prefer.
    heeds: bool
    # Everything so far was seated in a way that leaves nothing to luck.
    exact: bool = True

    # -- whole gangs -------------------------------------------------------------------------

    def anywhere(self, asked: list[Demand], need: int, elastic: bool) -> Found | None:
        """Role by role in some order, in a domain they open together where they must."""
        limits = [demand.within for demand in asked]
        found: Found | None = None
        for opened in self.openings(asked):
            self.exact = self.exact and not opened
            for order in packing.orders(self.view, asked):
                found = self.in_turn(order, {demand: demand.wanted for demand in order})
                if found is None and elastic:
                    found = self.as_fits(order, need)
                if found is not None:
                    break
            for demand, within in zip(asked, limits, strict=True):
                demand.within = within
            if found is not None:
                break
        return found

    def in_turn(self, demands: list[Demand], numbers: dict[Demand, int]) -> Found | None:
        found: Found = {demand: [] for demand in demands}
        mark = self.company.mark()
        with self.view.tentatively() as attempt:
            for demand in demands:
                found[demand] = self.fill(demand, numbers[demand], 0)
                if len(found[demand]) < numbers[demand]:
                    break
            else:
                attempt.keep()
                return found
        self.company.back_to(mark)
        return None

    def as_fits(self, demands: list[Demand], need: int) -> Found | None:
        """Any members of the roles that have room, where the oldest ones cannot all be seated."""
        found: Found = {}
        mark = self.company.mark()
        with self.view.tentatively() as attempt:
            for at, demand in enumerate(demands):
                number = demand.wanted
                if not demand.announced:
                    spare = need - sum(d.least for d in demands[at + 1 :] if not d.announced)
                    number = min(demand.most, spare)
                found[demand] = self.fill(demand, number, 0)
                if len(found[demand]) < demand.least:
                    break
                if not demand.announced:
                    need -= len(found[demand])
            else:
                if need == 0:
                    attempt.keep()
                    return found
        self.company.back_to(mark)
        return None

    def openings(self, demands: list[Demand]) -> Iterator[bool]:
        """Limits the demands, in turn, to each domain that they could open together."""
        for demand in demands:
            terms = self.company.unanchored(demand.members[0]) if demand.members else ()
            if not terms:
                continue
            sought = [
                each
                for each in demands
                if each.members and self.company.is_sought(each.members[0], terms)
            ]
            if not sought:
                break
            drawn = [demand, *(each for each in sought if each is not demand)]
            limits = [each.within for each in drawn]
            keys = tuple(term.key for term in terms)
            for rows in self._together(demand, keys):
                for each, within in zip(drawn, limits, strict=True):
                    each.within = rows if within is None else within[np.isin(within, rows)]
                yield True
            return
        yield False

    def _together(self, demand: Demand, keys: tuple[str, ...]) -> list[Rows]:
        """The rows of each domain of all these labels that has room, the smallest room first."""
        rows = demand.rows(self.view.columns)
        # One number for each combination of domains.
        ids = np.zeros(len(rows), np.int64)
        for key in keys:
            domains = self.view.neighbours.domains(key)
            own = domains.ids()[rows]
            ids = np.where((own < 0) | (ids < 0), -1, ids * (len(domains) + 1) + own)
        rows, ids = rows[ids >= 0], ids[ids >= 0]
        if not len(rows):
            return []
        _, first, which = np.unique(ids, return_index=True, return_inverse=True)
        seats = np.bincount(which, demand.seating.seats()[rows]).astype(np.int64)
        order = np.lexsort((first, seats))
        enough = [int(at) for at in order if seats[at] >= max(1, demand.least)]
        return [rows[which == at] for at in enough[:_MOST_OPENINGS]]

    # -- one demand --------------------------------------------------------------------------

    def fill(self, demand: Demand, number: int, first: int) -> list[int]:
        """Seats for up to `number` of its members from the `first` on; fewer where none is left."""
        taken: list[int] = []
        while len(taken) < number:
            seats = self._next(demand, number - len(taken), first + len(taken))
            if seats is None:
                break
            rows = packing.count(self.view, demand, seats)
            for member, row in zip(demand.members[first + len(taken) :], rows, strict=False):
                self.company.seat(member, row)
            taken += rows
        return taken

    def _next(self, demand: Demand, number: int, at: int) -> Seats | None:
        rows, most = demand.rows(self.view.columns), LARGEST
        drawn = None
        if demand.members:
            member = demand.members[at]
            rules = list(self.company.rules(member))
            if self.heeds:
                drawn = self.company.drawn(member)
            open_rows = rows[demand.seating.seats()[rows] > 0]
            if drawn is None and (spread := _even(rules, open_rows)) is not None:
                alike = self._alike(demand.members[at : at + number])
                others = [rule for rule in rules if rule is not spread]
                return self._evenly(demand, _left(rows, others), spread, alike)
            rows = _left(rows, rules)
            number, most = self._at_once(demand.members[at : at + number], rules)
        seats = demand.seating.seats()[rows]
        number = min(number, int(np.minimum(seats, most).sum()))
        if not number:
            return None
        prefer = [np.array([row for row in demand.held() if row in rows], np.intp)]
        apart = self.policy.spread
        if drawn is not None:
            best = rows[seats > 0]
            scores = drawn[0][best]
            prefer += [best[scores == score] for score in np.unique(scores)[::-1]]
            # Where its like change what it is drawn to, each has a look.
            number = 1 if drawn[1] else number
        elif demand.seating.asks_devices and not apart:
            prefer += self.near
        return demand.seating.choose(number, prefer, rows, spread=apart, most=most)

    def _evenly(self, demand: Demand, rows: Rows, spread: Rule, number: int) -> Seats | None:
        """Seats for pods whose only mutual rule is that they fill domains evenly."""
        assert spread.levels is not None
        seats = demand.seating.seats()
        rows = rows[(seats[rows] > 0) & (spread.tally.ids[rows] >= 0)]
        ids = spread.tally.ids[rows]
        found, first = np.unique(ids, return_index=True)
        order = found[np.argsort(first)].tolist()
        here = np.bincount(ids, seats[rows], minlength=len(spread.tally.counts)).astype(np.int64)
        share = spread.levels.share(here, order, number)
        if not share.any():
            return None
        if spread.tally.single:
            taken = share[ids]
            return Seats(rows[taken > 0], taken[taken > 0])
        chosen = [
            demand.seating.choose(int(share[domain]), self.near, rows[ids == domain])
            for domain in order
            if share[domain]
        ]
        return Seats(
            np.concatenate([each.rows for each in chosen]),
            np.concatenate([each.counts for each in chosen]),
        )

    def _at_once(self, members: list[Member], rules: list[Rule]) -> tuple[int, int]:
        """How many of these may be seated in one pass, and how many of them on one node."""
        binding = [rule for rule in rules if rule.binding]
        if not all(rule.alone and rule.tally.single for rule in binding):
            self.exact = False
            return 1, 1
        return self._alike(members), 1 if binding else LARGEST

    def _alike(self, members: list[Member]) -> int:
        """How many of these, from the first on, nobody tells apart."""
        alike = 1
        while alike < len(members) and self.company.like(members[0], members[alike]):
            alike += 1
        if alike < len(members):
            self.exact = False
        return alike


def _even(rules: list[Rule], rows: Rows) -> Rule | None:
    """The spread that is the only rule among like pods, where every row counts for it."""
    binding = [rule for rule in rules if rule.binding]
    if len(binding) != 1 or binding[0].levels is None:
        return None
    tally = binding[0].tally
    inside = rows[tally.ids[rows] >= 0]
    everywhere = tally.counted is None or bool(tally.counted[inside].all())
    return binding[0] if everywhere else None


def _left(rows: Rows, rules: list[Rule]) -> Rows:
    for rule in rules:
        rows = rows[rule.left[rows]]
    return rows
