"""Parts of a gang that are gangs themselves: as many of one as it says start together, or nobody.

So a gang asks for more than a number of pods: for whole parts, and for so many of them. Who is to
be seated for that, and who could follow, is worked out here; whether there is room is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from posse.engine.gangs import Member

# Of the parts of one kind: how many members of each start together, how many parts a gang needs.
Rules = Mapping[str, tuple[int, int]]
# Who is in no such part.
_FREE = (0, 0)


def kind_of(part: str) -> str:
    """What is in front of the slash in its name."""
    return part.partition("/")[0]


@dataclass(frozen=True, slots=True)
class Stranded:
    waiting: int
    there: int
    size: int


@dataclass(slots=True)
class Squads:
    """Whom a gang with such parts lacks, and who may follow."""

    # Waiting members that sit down together for its minimum, and pods that do not exist for it.
    chosen: list[Member] = field(default_factory=list)
    missing: int = 0
    # Beyond that: those who begin a part, or make it whole, together; who may sit down alone, since
    # their part is whole; and who may then.
    blocks: list[list[Member]] = field(default_factory=list)
    singles: list[Member] = field(default_factory=list)
    later: list[Member] = field(default_factory=list)
    # Of each part whose members wait for fellows that do not exist: so many do, and so many of a
    # part start together.
    stranded: list[Stranded] = field(default_factory=list)

    @property
    def short(self) -> int:
        return len(self.chosen) + self.missing

    def waiting(self) -> list[Member]:
        """All that there can be a seat for: not members of parts that are not all there."""
        blocks = [member for block in self.blocks for member in block]
        return [*self.chosen, *blocks, *self.singles, *self.later]


def muster(
    rules: Rules,
    seated: Sequence[Member],
    waiting: Sequence[Member],
    least: int,
    lacking: Mapping[str, int],
    ended: Mapping[str, int],
) -> Squads:
    """`least`: seats missing to the gang's minimum; `lacking`: to that of each role; `ended`: how
    many of each part have ended well."""
    return _Roll(rules, seated, waiting, ended).call(least, dict(lacking))


class _Roll:
    def __init__(
        self,
        rules: Rules,
        seated: Sequence[Member],
        waiting: Sequence[Member],
        ended: Mapping[str, int],
    ) -> None:
        self._rules = rules
        # Or through with it: who has ended well needs no seat any more.
        self._seated = dict(ended)
        # By part, in the order in which they are served.
        self._waiting: dict[str, list[Member]] = {}
        for member in waiting:
            self._waiting.setdefault(member.facts.part, []).append(member)
        for member in seated:
            part = member.facts.part
            self._seated[part] = self._seated.get(part, 0) + 1
        self._squads = Squads()
        self._taken: set[int] = set()

    def call(self, least: int, lacking: dict[str, int]) -> Squads:
        squads, waiting = self._squads, [m for each in self._waiting.values() for m in each]
        waiting.sort(key=lambda member: member.order)
        for kind, (size, number) in self._rules.items():
            self._need_parts(kind, size, number)
        for member in squads.chosen:
            _less(lacking, member)
        for member in waiting:
            if lacking.get(member.facts.role, 0) and id(member) not in self._taken:
                for each in self._take_with_its_part(member):
                    _less(lacking, each)
        for member in waiting:
            if len(squads.chosen) >= least:
                break
            if id(member) not in self._taken:
                self._take_with_its_part(member)
        squads.missing = max(squads.missing, least - len(squads.chosen), sum(lacking.values()))
        for part, members in self._waiting.items():
            left = [member for member in members if id(member) not in self._taken]
            short = self._short(part)
            if not short:
                squads.singles += left
            elif len(left) >= short:
                squads.blocks.append(left[:short])
                squads.later += left[short:]
            elif left:
                there = self._seated.get(part, 0) + len(left)
                squads.stranded.append(Stranded(len(left), there, there - len(left) + short))
        squads.singles.sort(key=lambda member: member.order)
        return squads

    def _need_parts(self, kind: str, size: int, number: int) -> None:
        """Those that lack least come first: nobody begins another while one is not whole."""
        parts = [
            part
            for part in dict.fromkeys((*self._seated, *self._waiting))
            if part and kind_of(part) == kind
        ]
        number -= sum(not self._short(part) for part in parts)
        begun = sorted((part for part in parts if self._short(part)), key=self._short)
        there = [part for part in begun if self._absent(part) <= 0]
        for part in there[: max(0, number)]:
            self._take(part)
        number -= len(there)
        absent = sorted(self._absent(part) for part in begun if self._absent(part) > 0)
        for at in range(number):
            self._squads.missing += absent[at] if at < len(absent) else size

    def _short(self, part: str) -> int:
        """Seats that the part lacks to be whole."""
        size, _ = self._rules.get(kind_of(part), _FREE)
        return max(0, size - self._seated.get(part, 0))

    def _absent(self, part: str) -> int:
        """Pods that do not exist for that."""
        waiting = sum(id(member) not in self._taken for member in self._waiting.get(part, ()))
        return self._short(part) - waiting

    def _take_with_its_part(self, member: Member) -> list[Member]:
        part = member.facts.part
        if not self._short(part):
            return self._sit(part, [member])
        return self._take(part) if self._absent(part) <= 0 else []

    def _take(self, part: str) -> list[Member]:
        left = [each for each in self._waiting[part] if id(each) not in self._taken]
        return self._sit(part, left[: self._short(part)])

    def _sit(self, part: str, members: list[Member]) -> list[Member]:
        self._squads.chosen += members
        self._taken.update(map(id, members))
        self._seated[part] = self._seated.get(part, 0) + len(members)
        return members


def spare(
    rules: Rules,
    seated: Sequence[Member],
    most: int,
    may: Callable[[Sequence[Member]], bool],
    ended: Mapping[str, int],
) -> Iterator[list[Member]]:
    """Up to `most` members that others may have, in the pieces in which they may have them.

    First those beyond what makes their part whole, one by one; then whole parts that the gang does
    not need. `may` says whether these can go together with all that went before. The last in order
    are the first to go.
    """
    parts: dict[str, list[Member]] = {}
    for member in sorted(seated, key=lambda member: member.order):
        parts.setdefault(member.facts.part, []).append(member)
    whole: dict[str, int] = {}
    for part in dict.fromkeys((*parts, *ended)):
        kind = kind_of(part)
        there = len(parts.get(part, ())) + ended.get(part, 0)
        whole[kind] = whole.get(kind, 0) + (there >= rules.get(kind, _FREE)[0])
    for part, members in reversed(parts.items()):
        size = max(0, rules.get(kind_of(part), _FREE)[0] - ended.get(part, 0))
        for member in members[: size - 1 : -1] if size else members[::-1]:
            if most >= 1 and may([member]):
                most -= 1
                members.remove(member)
                yield [member]
    for part, members in reversed(parts.items()):
        kind = kind_of(part)
        size, number = rules.get(kind, _FREE)
        is_whole = len(members) + ended.get(part, 0) >= size
        needed = is_whole and whole[kind] <= number
        if size and members and not needed and len(members) <= most and may(members):
            whole[kind] -= is_whole
            most -= len(members)
            yield members


def _less(lacking: dict[str, int], member: Member) -> None:
    if lacking.get(member.facts.role, 0):
        lacking[member.facts.role] -= 1
