"""Where a lost seat is made up for: the nearest rows first, and which ones at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posse.engine.columns import Rows
from posse.engine.fit.company import Company
from posse.engine.gangs import Gang, Member, Vacancy
from posse.engine.placement.nearing import confines, near
from posse.engine.policy import Policy
from posse.engine.view import View


class Search:
    def __init__(self, view: View, gang: Gang, policy: Policy) -> None:
        self._view = view
        self._gang = gang
        self._policy = policy
        self._tiers = policy.tiers
        self._levels = view.tiers.levels(policy.tiers)
        self._company: Company | None = None
        self._known: dict[tuple[str, ...], Rows] = {}
        self._look_around(view.rows_of(gang))

    def sit(self, rows: Rows) -> None:
        """Seats there are the gang's: one that has no other is to sit together with these."""
        if self._gang.bereft and not np.isin(rows, self._sits).all():
            self._look_around(np.union1d(self._sits, rows))

    def _look_around(self, sits: Rows) -> None:
        self._sits = sits
        self.within = confines(self._view, self._gang, sits, self._policy)
        self._own = near(self._view, sits, self._policy)

    def seat_for(self, vacancy: Vacancy, before: Sequence[int] = ()) -> int | None:
        """The same node; else in its domain, tier by tier; else near the gang; else anywhere.

        Of nodes that are equally near, one where a seat was kept `before`.
        """
        own = vacancy.seating.rows_of([vacancy.node])
        prefer = [*self._around(vacancy, own), *self._own]
        if vacancy.shunned:
            every = self._view.columns.by_name()
            prefer = [np.setdiff1d(rows, own) for rows in (*prefer, every)]
            own = []
        if before:
            kept = np.array(before, np.intp)
            prefer = [
                rows
                for tier in (*prefer, self._view.columns.by_name())
                for rows in (np.intersect1d(tier, kept), tier)
            ]
        return self._choose(vacancy.like, own, prefer)

    def seat_near(self, member: Member, at: list[int]) -> int | None:
        """One of these rows; else near the gang; else anywhere."""
        return self._choose(member, at, self._own)

    def _choose(self, like: Member, at: list[int], prefer: Sequence[Rows]) -> int | None:
        seating = like.seating
        if not seating.total(self.within):
            return None
        rows, company = self.within, None
        if self._view.neighbours.concern([like]):
            company = self._company = self._company or Company(self._view)
            rows = self._view.columns.by_name() if rows is None else rows
            rows = rows[company.left(like)[rows]]
            if not seating.total(rows):
                return None
        here = seating.seats()
        former = [row for row in at if here[row] and (rows is None or (rows == row).any())]
        row = former[0] if former else seating.choose(1, prefer, rows).each()[0]
        if company is not None:
            company.seat(like, row)
        return row

    def _around(self, vacancy: Vacancy, own: list[int]) -> list[Rows]:
        if own and self._view.columns.nodes[own[0]] is not None:
            row = np.array(own, np.intp)
            return [
                level.domain(int(at))
                for level in self._levels
                for at in np.flatnonzero(level.containing(row))[:1]
            ]
        # The node is gone: its labels tell who was near.
        said = [(key, vacancy.labels[key]) for key in self._tiers if key in vacancy.labels]
        return [self._labelled(said[at:]) for at in range(len(said))]

    def _labelled(self, path: list[tuple[str, str]]) -> Rows:
        """The rows with all these labels."""
        known = tuple(part for label in path for part in label)
        rows = self._known.get(known)
        if rows is None:
            labels = self._view.columns.labels
            rows = self._known[known] = np.array(
                [
                    row
                    for row in self._view.columns.by_name().tolist()
                    if all(labels[row].get(key) == value for key, value in path)
                ],
                np.intp,
            )
        return rows
