"""What a gang asks for: so many seats of each shape, for pods that wait or are announced."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from posse.engine.columns import Columns, Rows
from posse.engine.fit.seating import Seating
from posse.engine.gangs import Gang, Member, by_role

# What makes two gangs ask the same, so that one fails if the other does.
Signature = tuple[object, ...]


@dataclass(slots=True, eq=False)
class Demand:
    """Seats for one role and shape.

    `wanted` of them at first; where other roles have more room than this one, fewer will do, but
    not fewer than `least`; and never more than `most`.
    """

    role: str
    seating: Seating
    least: int
    wanted: int
    most: int
    # Who will sit there, in the order they are served; nobody yet for announced members.
    members: list[Member] = field(default_factory=list)
    announced: bool = False
    # Rows held for this role.
    at: list[int] = field(default_factory=list)
    # All the rows it may use, in the order they are preferred in; None: any.
    within: Rows | None = None
    # The part of the gang that sits nearer to each other.
    part: str = ""
    # Its pods care about their company, or it about them; and so that it can keep them off a node.
    related: bool = False
    bound: bool = False

    def total(self) -> int:
        """Seats there are for it."""
        return self.seating.total(self.within)

    def rows(self, columns: Columns) -> Rows:
        """Those it may use, in the order they are preferred in."""
        return columns.by_name() if self.within is None else self.within

    def held(self) -> list[int]:
        """Rows held for it that it may use."""
        if self.within is None or not self.at:
            return self.at
        allowed = np.isin(self.at, self.within).tolist()
        return [row for row, may in zip(self.at, allowed, strict=True) if may]


def demands_of(gang: Gang, need: int, who: list[Member] | None = None) -> list[Demand]:
    """Seats for `need` waiting members, or of these, and for every absent one.

    Pods that were announced, then those their role must have, then the oldest, are the first to be
    wanted; seats that a lost member had, or that are kept for its successor, the first to be taken.
    """
    waiting = gang.muster.waiting if who is None else who
    roles = gang.muster.roles() if who is None else by_role(who)
    must = {id(member) for member in gang.needed()}
    if must:
        waiting = sorted(waiting, key=lambda member: id(member) not in must)
        roles = by_role(waiting)
    if gang.facts is not None and gang.facts.nearer:
        # One part after the other: half of each is no use to anybody.
        turns: dict[str, int] = {}
        for member in waiting:
            turns.setdefault(member.facts.part, len(turns))
        waiting = sorted(
            waiting, key=lambda member: (id(member) not in must, turns[member.facts.part])
        )
        roles = by_role(waiting)
    everyone = need >= len(waiting)
    first = None if everyone else {id(member) for member in waiting[:need]}
    held: dict[str, list[int]] = {}
    for hold in gang.holds:
        held.setdefault(hold.role, []).append(hold.row)
    demands = [
        Demand(
            role.name,
            role.seating,
            least=sum(1 for member in role.members if id(member) in must) if must else 0,
            wanted=len(role.members)
            if first is None
            else sum(1 for member in role.members if id(member) in first),
            most=len(role.members),
            members=role.members,
            at=held.get(role.name, []) + gang.former_seats(role.name, role.seating),
            part=role.part,
        )
        for role in roles
    ]
    demands += [
        Demand(
            absent.role,
            absent.seating,
            least=absent.count,
            wanted=absent.count,
            most=absent.count,
            announced=True,
            at=held.get(absent.role, []),
        )
        for absent in gang.muster.absent
    ]
    return demands


def signature_of(gang: Gang, demands: list[Demand], need: int, beyond: int) -> Signature:
    """Gangs of one queue that have nothing yet and ask the same have one signature."""
    assert gang.facts is not None
    asked = tuple((d.role, id(d.seating), d.wanted, d.most, d.announced) for d in demands)
    own = gang.muster.seated or gang.holds or any(d.bound for d in demands)
    whose = gang.key if own else ""
    return (
        gang.facts.queue,
        whose,
        need,
        beyond,
        asked,
        gang.facts.topology,
        gang.facts.nearer,
        gang.facts.min_resources,
    )
