"""The table of bench-peers: medians, ratios, and what is not measured."""

from __future__ import annotations

import pytest

from bench.peers.contenders import NATIVE, NULL, POSSE
from bench.peers.measuring import Figures, Mode, quantile
from bench.peers.table import Results
from bench.peers.workload import Gangs

AT = Gangs(200, 20)


def figures(seconds: float, cpu: float = 1.0) -> Figures:
    return Figures(AT.pods, seconds, 0.1, 0.2, 0.3, cpu, 64 << 20)


def row_of(results: Results, title: str) -> list[str]:
    (line,) = [line for line in results.lines() if f"  {title}  " in line]
    return line.split()


@pytest.mark.parametrize(
    ("text", "pods"), [("200x20", 4000), ("1x10000", 10000), ("20x500", 10000)]
)
def test_gangs_are_a_number_of_gangs_and_their_size(text: str, pods: int) -> None:
    assert Gangs.parse(text).pods == pods


@pytest.mark.parametrize("text", ["", "200", "0x20", "20x0", "200x20x2", "axb", "-1x2"])
def test_what_is_no_workload_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="COUNTxSIZE"):
        Gangs.parse(text)


def test_a_row_has_the_median_of_its_rounds() -> None:
    results = Results()
    for seconds in (9.0, 1.0, 2.0):
        results.measured(AT, Mode.ONLINE, POSSE, figures(seconds))
    (row,) = results.rows()
    assert (row.rounds, row.figures.seconds) == (3, 2.0)


def test_online_compares_times_and_backlog_rates() -> None:
    results = Results()
    for mode in Mode:
        results.measured(AT, mode, NULL, figures(4.0))
        results.measured(AT, mode, POSSE, figures(5.0))
    online, backlog = (
        next(line for line in results.lines() if mode.value in line and "Posse" in line)
        for mode in (Mode.ONLINE, Mode.BACKLOG)
    )
    assert "1.25" in online
    assert "0.80" in backlog


def test_what_was_not_measured_has_no_row_and_no_ratio_but_a_reason() -> None:
    results = Results()
    results.measured(AT, Mode.ONLINE, POSSE, figures(5.0))
    results.unmeasured(AT, Mode.ONLINE, NATIVE, "Go is not installed")
    assert [row.contender for row in results.rows()] == [POSSE]
    assert row_of(results, "Posse")[-4:] == ["-", "-", "-", "-"]
    assert list(results.lines())[-1] == (
        "not measured, no row: 200x20 online, kube-scheduler, native gangs: Go is not installed"
    )
    assert list(results.goals()) == []


@pytest.mark.parametrize(("seconds", "missed"), [(1.15, False), (1.16, True)])
def test_a_goal_that_is_missed_says_so(seconds: float, missed: bool) -> None:
    results = Results()
    results.measured(AT, Mode.ONLINE, NULL, figures(1.0))
    results.measured(AT, Mode.ONLINE, POSSE, figures(seconds))
    (said,) = results.goals()
    assert said.endswith("MISSED") == missed


@pytest.mark.parametrize(
    ("share", "found"), [(0.5, 2.0), (0.99, 4.0), (0.0, 1.0), (0.25, 1.0), (1.0, 4.0)]
)
def test_quantiles_are_values_that_were_measured(share: float, found: float) -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], share) == found
