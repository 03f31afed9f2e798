"""Rounds to one table. What was not measured has no row, and is said below it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median

import msgspec

from bench.peers.contenders import CONTENDERS, NATIVE, NULL, POSSE, VOLCANO
from bench.peers.measuring import Figures, Mode
from bench.peers.workload import Gangs

AGAINST = (NULL, NATIVE, VOLCANO)
_HEAD = (
    *("gangs", "mode", "scheduler", "rounds", "s", "pods/s", "first s", "p50 s", "p99 s"),
    *("CPU s", "RSS MiB"),
    *("x null", "x native", "x Volcano", "CPU x native"),
)
LEGEND = """\
online:  s is first create to last bind; the ratios compare times: less is better.
backlog: s is first bind to last; the ratios compare rates: more is better.
first s: to the first bind, online from the first create, in backlog from the start of the program.
p50, p99: of gangs, to a gang's last bind from its first create (online) or the start (backlog).
CPU s, RSS: of the scheduler's process, user and system, until 1.5 s after the last bind; its peak.
Every scheduler is alone with the API server, etcd and this program. Peers run unthrottled
(client QPS and burst raised until they do not bind), without leader election, else as released."""


class Row(msgspec.Struct, frozen=True):
    gangs: Gangs
    mode: Mode
    contender: str
    rounds: int
    figures: Figures

    @property
    def merit(self) -> float:
        """What is compared: a time online, a rate in backlog."""
        return self.figures.seconds if self.mode is Mode.ONLINE else self.figures.rate


class Goal(msgspec.Struct, frozen=True):
    mode: Mode
    against: str
    bound: float
    most: bool
    of: Callable[[Row], float] = lambda row: row.merit
    what: str = ""


_AT = Gangs(200, 20)
GOALS = (
    Goal(Mode.ONLINE, NULL, 1.15, True, what="time"),
    Goal(Mode.ONLINE, NATIVE, 1 / 3, True, what="time"),
    Goal(Mode.BACKLOG, NULL, 0.8, False, what="rate"),
    Goal(Mode.BACKLOG, NATIVE, 4.0, False, what="rate"),
    Goal(Mode.BACKLOG, VOLCANO, 1.5, False, what="rate"),
    Goal(Mode.ONLINE, NATIVE, 0.2, True, lambda row: row.figures.cpu, "CPU"),
    Goal(Mode.BACKLOG, NATIVE, 0.2, True, lambda row: row.figures.cpu, "CPU"),
)


class Results:
    def __init__(self) -> None:
        self._rounds: dict[tuple[Gangs, Mode, str], list[Figures]] = {}
        self._missing: dict[tuple[Gangs, Mode, str], list[str]] = {}

    def measured(self, gangs: Gangs, mode: Mode, contender: str, figures: Figures) -> None:
        self._rounds.setdefault((gangs, mode, contender), []).append(figures)

    def unmeasured(self, gangs: Gangs, mode: Mode, contender: str, why: str) -> None:
        self._missing.setdefault((gangs, mode, contender), []).append(why)

    def rows(self) -> list[Row]:
        ordered = sorted(
            self._rounds, key=lambda at: (at[0].pods, -at[0].count, at[1].value, _rank(at[2]))
        )
        return [Row(*at, len(self._rounds[at]), _median(self._rounds[at])) for at in ordered]

    def lines(self) -> Iterator[str]:
        rows = self.rows()
        cells = [_HEAD, *(_cells(row, rows) for row in rows)]
        widths = [max(len(line[at]) for line in cells) for at in range(len(_HEAD))]
        for line in cells:
            left = [cell.ljust(width) for cell, width in zip(line[:3], widths[:3], strict=True)]
            right = [cell.rjust(width) for cell, width in zip(line[3:], widths[3:], strict=True)]
            yield "  ".join([*left, *right]).rstrip()
        for (gangs, mode, contender), whys in self._missing.items():
            left_out = "some rounds" if (gangs, mode, contender) in self._rounds else "no row"
            title = CONTENDERS[contender].title
            yield f"not measured, {left_out}: {gangs} {mode.value}, {title}: {whys[-1]}"

    def goals(self) -> Iterator[str]:
        """Posse's ratios at 200x20, next to what they should be."""
        rows = {(row.mode, row.contender): row for row in self.rows() if row.gangs == _AT}
        for goal in GOALS:
            ours, theirs = rows.get((goal.mode, POSSE)), rows.get((goal.mode, goal.against))
            if ours is None or theirs is None:
                continue
            ratio = goal.of(ours) / goal.of(theirs)
            met = ratio <= goal.bound if goal.most else ratio >= goal.bound
            sign = "<=" if goal.most else ">="
            yield (
                f"{_AT} {goal.mode.value}: {goal.what} {ratio:.2f} x"
                f" {CONTENDERS[goal.against].title}'s"
                f" (goal {sign} {goal.bound:.2f}){'' if met else '  MISSED'}"
            )


def _cells(row: Row, rows: list[Row]) -> tuple[str, ...]:
    beside = {o.contender: o for o in rows if (o.gangs, o.mode) == (row.gangs, row.mode)}
    figures = row.figures
    ratios = [
        f"{row.merit / beside[other].merit:.2f}" if other in beside else "-" for other in AGAINST
    ]
    native = beside.get(NATIVE)
    return (
        str(row.gangs),
        row.mode.value,
        CONTENDERS[row.contender].title,
        str(row.rounds),
        f"{figures.seconds:.2f}",
        f"{figures.rate:,.0f}",
        f"{figures.first:.2f}",
        f"{figures.p50:.2f}",
        f"{figures.p99:.2f}",
        f"{figures.cpu:.2f}",
        f"{figures.rss / 2**20:.0f}",
        *ratios,
        "-" if native is None else f"{figures.cpu / native.figures.cpu:.2f}",
    )


def _median(rounds: list[Figures]) -> Figures:
    """Field by field."""
    return Figures(
        pods=rounds[0].pods,
        seconds=median(figures.seconds for figures in rounds),
        first=median(figures.first for figures in rounds),
        p50=median(figures.p50 for figures in rounds),
        p99=median(figures.p99 for figures in rounds),
        cpu=median(figures.cpu for figures in rounds),
        rss=int(median(figures.rss for figures in rounds)),
    )


def _rank(contender: str) -> int:
    return list(CONTENDERS).index(contender)
