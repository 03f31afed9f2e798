"""Figures, how they are taken, and the table that they are printed in."""

from __future__ import annotations

import argparse
import gc
import platform
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """Seconds, or mebibytes where it says so."""

    what: str
    value: float
    pods: int = 0
    limit: float | None = None
    memory: bool = False

    @property
    def met(self) -> bool:
        return self.limit is None or self.value <= self.limit

    def row(self) -> tuple[str, str, str, str]:
        rate = f"{self.pods / self.value:,.0f} pods/s" if self.pods else ""
        limit = "" if self.limit is None else self._shown(self.limit, "g")
        mark = "" if self.met else "  MISSED"
        return (
            self.what,
            self._shown(self.value, ".0f" if self.memory else ".2f"),
            rate,
            limit + mark,
        )

    def _shown(self, value: float, form: str) -> str:
        return f"{value:{form}} MiB" if self.memory else f"{value * 1000:{form}} ms"


def timed(work: Callable[[], object], *, tidy: bool = True) -> float:
    """CPU seconds: on a busy machine the wall clock tells of its other work.

    `tidy`: garbage of what went before is collected first, and with it go the machine's caches.
    """
    if tidy:
        gc.collect()
    before = time.process_time()
    work()
    return time.process_time() - before


def pace() -> float:
    """What a fixed piece of plain Python costs: the same work, wherever and whenever it is done."""

    def work() -> None:
        table: dict[int, int] = {}
        for number in range(50_000):
            table[number & 1023] = number + table.get(number * 7 & 1023, 0) % 97

    return timed(work, tidy=False)


def present(title: str, about: str | None, measure: Callable[[], Iterable[Figure]]) -> None:
    """Print the table; with --check exit 1 if a figure that has a limit misses it."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--check", action="store_true", help="fail if a limit is missed")
    check: bool = parser.parse_args().check
    # As the services have it.
    gc.set_threshold(50_000, 20, 20)
    measured: list[Figure] = []
    paces = [pace()]
    for figure in measure():
        measured.append(figure)
        paces += [pace() for _ in range(3)]
    machine = f"{platform.machine()} {platform.system()}, Python {platform.python_version()}"
    print(f"{title}, CPU time of one core, the best of several: {machine}")
    # Where others use the machine, too, all that follows is slower by as much.
    quickest, usual = min(paces) * 1000, median(paces) * 1000
    print(f"a fixed loop took {quickest:.1f} ms at best, {usual:.1f} ms mostly")
    rows = [("what", "cost", "rate", "limit"), *(figure.row() for figure in measured)]
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    if check and not all(figure.met for figure in measured):
        sys.exit(1)
