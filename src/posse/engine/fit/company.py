"""Which nodes a pod may use for the company it would have there: kube-scheduler's answers.

A `Company` is who sits where, and whom a trial has seated on top of that. Each thing asked about
(a port, a term, a spread) is one tally of pods per domain, counted once and kept up as the trial
goes on; the nodes left to a pod are then a few operations on whole columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

import numpy as np

from posse.engine.columns import Ints, Rows
from posse.engine.fit.neighbours import Mask, Neighbours
from posse.engine.fit.terms import HostPort, PodTerm, Relations, Spread
from posse.engine.gangs import Member
from posse.engine.view import View

Speaks = Callable[[Member], bool]

_NOTHING = Relations()


class Tally:
    """How many of the pods that are spoken of sit in each domain."""

    def __init__(
        self, ids: Rows, number: int, speaks: Speaks, counted: Mask | None, *, single: bool
    ) -> None:
        # The domain of each row; -1 for none, which is where the last place of `counts` is.
        self.ids = ids
        # Every domain is one node.
        self.single = single
        self.speaks = speaks
        self.counts: Ints = np.zeros(number + 1, np.int64)
        # Rows whose pods count at all; None: every row.
        self.counted = counted

    def shift(self, row: int, by: int) -> None:
        at = self.ids[row]
        if at >= 0 and (self.counted is None or self.counted[row]):
            self.counts[at] += by

    def here(self) -> Ints:
        """For each row, how many there are in its domain; none where it is in no domain."""
        found: Ints = self.counts[self.ids]
        return found

    def domains(self) -> Rows:
        """The domains that count."""
        ids = self.ids if self.counted is None else self.ids[self.counted]
        return np.unique(ids[ids >= 0])


@dataclass(frozen=True, slots=True)
class Levels:
    """Domains that fill evenly: none gets ahead of the emptiest by more than the skew."""

    tally: Tally
    domains: Rows
    max_skew: int
    # There are too few domains: the emptiest is one that does not exist.
    at_zero: bool

    def share(self, seats: Ints, order: list[int], number: int) -> Ints:
        """How many of so many pods go to each domain: the emptiest first, else in this order.

        `seats`: what each domain has. Since the emptiest only ever catches up, this seats as many
        as any way of taking turns.
        """
        counts = self.tally.counts
        taken: Ints = np.zeros_like(counts)
        at = dict(Counter(counts[self.domains].tolist()))
        least = 0 if self.at_zero else min(at)
        heap = [(int(counts[domain]), rank, domain) for rank, domain in enumerate(order)]
        heapify(heap)
        while heap and number:
            count, rank, domain = heap[0]
            if count + 1 - least > self.max_skew:
                break
            taken[domain] += 1
            number -= 1
            if taken[domain] < seats[domain]:
                heapreplace(heap, (count + 1, rank, domain))
            else:
                heappop(heap)
            at[count] -= 1
            at[count + 1] = at.get(count + 1, 0) + 1
            while not self.at_zero and not at.get(least):
                least += 1
        return taken


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing a pod asks of its company, or its company of it; rows that meet it are left."""

    why: str
    tally: Tally
    left: Mask
    # Another pod like this one, once seated, may take rows from the next, or give it some.
    binding: bool
    # It takes exactly the rows of its own domain.
    alone: bool = True
    # Where the rule is that domains fill evenly, how they do.
    levels: Levels | None = None


class Company:
    def __init__(self, view: View) -> None:
        self._columns = view.columns
        self._neighbours: Neighbours = view.neighbours
        self._tallies: dict[Hashable, Tally] = {}
        self._seated: list[tuple[Member, int]] = []
        # Anti-affinity terms of pods that the trial has seated, and by how many.
        self._avoided: dict[PodTerm, int] = {}
        self._rows = len(view.columns.names)
        self._nodes: Rows = np.arange(self._rows, dtype=np.intp)

    # -- a trial -----------------------------------------------------------------------------

    def seat(self, member: Member, row: int) -> None:
        self._seated.append((member, row))
        self._shift(member, row, 1)

    def mark(self) -> int:
        return len(self._seated)

    def back_to(self, mark: int) -> None:
        while len(self._seated) > mark:
            member, row = self._seated.pop()
            self._shift(member, row, -1)

    def _shift(self, member: Member, row: int, by: int) -> None:
        for tally in self._tallies.values():
            if tally.speaks(member):
                tally.shift(row, by)
        for term in _relations(member).avoids:
            self._avoided[term] = self._avoided.get(term, 0) + by

    # -- questions ---------------------------------------------------------------------------

    def left(self, member: Member) -> Mask:
        """The rows this pod may use now, whatever room they have."""
        left: Mask = np.ones(self._rows, bool)
        for rule in self.rules(member):
            left &= rule.left
        return left

    def rules(self, member: Member) -> Iterator[Rule]:
        relations = _relations(member)
        for claim in relations.claims:
            yield self._claim(claim)
        for port in relations.ports:
            yield self._port(port)
        yield from self._joined(member, relations.joins)
        for term in relations.avoids:
            yield self._avoid(member, term)
        for term in dict.fromkeys((*self._neighbours.avoiding(member.facts), *self._avoided)):
            if self._neighbours.matches(term, member.facts):
                yield self._repelled(member, term)
        yield from self._spread(member, relations.spreads)

    def drawn(self, member: Member) -> tuple[Ints, bool] | None:
        """How much this pod is drawn to each row; and whether its like, once seated, change that.

        None where it is drawn to nothing.
        """
        prefers = _relations(member).prefers
        if not prefers:
            return None
        drawn: Ints = np.zeros(self._rows, np.int64)
        stirs = False
        for attraction in prefers:
            near = self._near(attraction.term)
            drawn += attraction.weight * near.here()
            stirs = stirs or near.speaks(member)
        return drawn, stirs

    def like(self, one: Member, other: Member) -> bool:
        """Whether nobody here tells these two pods of one shape apart."""
        return all(
            tally.speaks(one) == tally.speaks(other) for tally in self._tallies.values()
        ) and list(self._neighbours.avoiding(one.facts)) == list(
            self._neighbours.avoiding(other.facts)
        )

    def kind(self, row: int) -> tuple[object, ...]:
        """What tells this row from others: its domains, and who is counted in each."""
        return tuple(
            (
                -1 if tally.single else int(tally.ids[row]),
                int(tally.counts[tally.ids[row]]),
                tally.counted is None or bool(tally.counted[row]),
            )
            if tally.ids[row] >= 0
            else ()
            for tally in self._tallies.values()
        )

    def unanchored(self, member: Member) -> tuple[PodTerm, ...]:
        """The affinity terms of a pod that nobody in the cluster meets yet."""
        joins = _relations(member).joins
        tallies = [self._companions(term, joins) for term in joins]
        return () if any(tally.counts.any() for tally in tallies) else joins

    def is_sought(self, member: Member, terms: tuple[PodTerm, ...]) -> bool:
        return all(self._neighbours.matches(term, member.facts) for term in terms)

    # -- rules -------------------------------------------------------------------------------

    def _claim(self, claim: str) -> Rule:
        def speaks(other: Member) -> bool:
            return claim in _relations(other).claims

        def tally() -> Tally:
            everywhere = np.zeros(self._rows, np.intp)
            users = self._neighbours.claiming(claim)
            return self._count(everywhere, 1, speaks, users, single=False)

        users = self._tally(("claim", claim), tally)
        return Rule(f"are out because another pod uses {claim}", users, ~_any(users), True)

    def _port(self, port: HostPort) -> Rule:
        def speaks(other: Member) -> bool:
            return any(port.clashes(each) for each in _relations(other).ports)

        def tally() -> Tally:
            users = filter(speaks, self._neighbours.on_port(port))
            return self._count(self._nodes, self._rows, speaks, users, single=True)

        users = self._tally(("port", port), tally)
        return Rule(f"have host port {port} in use", users, ~_any(users), True)

    def _avoid(self, member: Member, term: PodTerm) -> Rule:
        near = self._near(term)
        why = f"have a pod in the same {term.key} that its anti-affinity avoids"
        return Rule(why, near, ~_any(near), near.speaks(member))

    def _repelled(self, member: Member, term: PodTerm) -> Rule:
        def speaks(other: Member) -> bool:
            return term in _relations(other).avoids

        def tally() -> Tally:
            return self._over(term.key, speaks, self._neighbours.owners(term))

        owners = self._tally(("owns", term), tally)
        why = f"have a pod in the same {term.key} whose anti-affinity avoids it"
        return Rule(why, owners, ~_any(owners), owners.speaks(member))

    def _joined(self, member: Member, joins: tuple[PodTerm, ...]) -> Iterator[Rule]:
        """Pods that meet all terms, in the domain of each; or the first of such a kind."""
        tallies = [self._companions(term, joins) for term in joins]
        first = not any(tally.counts.any() for tally in tallies) and self.is_sought(member, joins)
        for term, tally in zip(joins, tallies, strict=True):
            inside = tally.ids >= 0
            left = inside if first else inside & (tally.here() > 0)
            why = f"have no pod in the same {term.key} that its affinity asks for"
            yield Rule(why, tally, left, first, alone=False)

    def _spread(self, member: Member, spreads: tuple[Spread, ...]) -> Iterator[Rule]:
        if not spreads:
            return
        for spread in spreads:
            tally = self._alike(member, spread, spreads)
            domains = tally.domains()
            at_zero = len(domains) < max(1, spread.min_domains)
            least = 0 if at_zero else int(tally.counts[domains].min())
            itself = int(
                spread.selector is not None and spread.selector.matches(member.facts.labels)
            )
            left = (tally.ids >= 0) & (tally.here() + itself - least <= spread.max_skew)
            why = f"have too many such pods for its spread over {spread.key}"
            levels = Levels(tally, domains, spread.max_skew, at_zero)
            yield Rule(why, tally, left, tally.speaks(member), alone=False, levels=levels)

    # -- tallies -----------------------------------------------------------------------------

    def _near(self, term: PodTerm) -> Tally:
        def speaks(other: Member) -> bool:
            return self._neighbours.matches(term, other.facts)

        def tally() -> Tally:
            return self._over(term.key, speaks, self._speaking((term,), speaks))

        return self._tally(("near", term), tally)

    def _companions(self, term: PodTerm, joins: tuple[PodTerm, ...]) -> Tally:
        def speaks(other: Member) -> bool:
            return all(self._neighbours.matches(each, other.facts) for each in joins)

        def tally() -> Tally:
            return self._over(term.key, speaks, self._speaking(joins, speaks))

        return self._tally(("joins", term.key, joins), tally)

    def _alike(self, member: Member, spread: Spread, spreads: tuple[Spread, ...]) -> Tally:
        namespace = member.facts.namespace
        selector = spread.selector

        def speaks(other: Member) -> bool:
            return (
                selector is not None
                and bool(selector.requirements)
                and not other.facts.deleting
                and other.facts.namespace == namespace
                and selector.matches(other.facts.labels)
            )

        def tally() -> Tally:
            keys = tuple(each.key for each in spreads)
            counted = self._neighbours.counted(
                keys, member.seating.shape.constraints, spread.by_affinity, spread.by_taints
            )
            found = () if selector is None else self._neighbours.labelled(selector)
            return self._over(spread.key, speaks, filter(speaks, found), counted)

        constraints = member.seating.shape.constraints
        return self._tally(("spread", spread, spreads, namespace, constraints), tally)

    def _speaking(self, terms: tuple[PodTerm, ...], speaks: Speaks) -> Iterator[Member]:
        selector = terms[0].selector
        return filter(speaks, () if selector is None else self._neighbours.labelled(selector))

    def _over(
        self, key: str, speaks: Speaks, members: Iterable[Member], counted: Mask | None = None
    ) -> Tally:
        domains = self._neighbours.domains(key)
        ids, single = domains.ids(), domains.single
        return self._count(ids, len(domains), speaks, members, counted, single=single)

    def _count(
        self,
        ids: Rows,
        number: int,
        speaks: Speaks,
        members: Iterable[Member],
        counted: Mask | None = None,
        *,
        single: bool,
    ) -> Tally:
        tally = Tally(ids, number, speaks, counted, single=single)
        for member in members:
            tally.shift(member.row, 1)
        for member, row in self._seated:
            if speaks(member):
                tally.shift(row, 1)
        return tally

    def _tally(self, key: Hashable, make: Callable[[], Tally]) -> Tally:
        tally = self._tallies.get(key)
        if tally is None:
            tally = self._tallies[key] = make()
        return tally


def _any(tally: Tally) -> Mask:
    return tally.here() > 0


def _relations(member: Member) -> Relations:
    return member.seating.shape.relations or _NOTHING
