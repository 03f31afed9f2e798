"""Whose time to come to run is over: the lines agree with a look at everybody."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from posse.engine.facts import GroupFacts
from posse.engine.gangs import Gang
from posse.engine.repair.starting import Starting

NAMES = tuple("abcd")
DATES = st.sampled_from([0.0, 0.1, 0.3, 1.0, 7.0])
TIMEOUTS = st.sampled_from([None, 0.0, 0.2, 1.0, 5.0])
# Who; since when it sits, or None where it does not; what it says; whether it was told already.
STEPS = st.tuples(st.sampled_from(NAMES), st.none() | DATES, TIMEOUTS, st.booleans())


def due(gang: Gang, timeout: float) -> float:
    assert gang.facts is not None and gang.seated_since is not None
    said = gang.facts.start_timeout
    limit = timeout if said is None else said
    return gang.seated_since + limit if limit > 0 else float("inf")


@given(st.lists(STEPS, max_size=60), st.sampled_from([0.0, 0.2, 5.0]))
def test_lines_agree_with_a_look_at_everybody(
    steps: list[tuple[str, float | None, float | None, bool]], timeout: float
) -> None:
    starting = Starting()
    gangs: dict[str, Gang] = {}
    for name, since, says, overdue in steps:
        gang = gangs.get(name)
        if since is None:
            if gang is not None:
                starting.remove(gangs.pop(name))
            continue
        if gang is None:
            gang = gangs[name] = Gang(name, seated_since=since)
        gang.facts = GroupFacts(name, name, start_timeout=says)
        gang.overdue = gang.overdue or overdue
        starting.add(gang)
        starting.validate(())
        waiting = {key: due(each, timeout) for key, each in gangs.items() if not each.overdue}
        ends = [date for date in waiting.values() if date < float("inf")]
        assert starting.next_date(timeout) == min(ends, default=None)
        for now in (0.3, 1.0, 5.1, 100.0):
            late = sorted(gang.key for gang in starting.late(timeout, now))
            assert late == sorted(key for key, date in waiting.items() if date <= now)
