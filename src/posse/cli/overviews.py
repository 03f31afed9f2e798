"""What `status` shows of a cluster: the page of one that is not on this machine; who waits."""

from __future__ import annotations

from posse.cli.layout import columns, short_age
from posse.client.overview import Deployed, Overview
from posse.objects.times import parse_time

_MOST = 20


def page(overview: Overview, now: float) -> str:
    problems = "; ".join(overview.problems)
    served = [name for name, is_served in overview.kinds.items() if is_served]
    absent = [name for name, is_served in overview.kinds.items() if not is_served]
    facts: list[tuple[str, str]] = [
        ("Cluster:", "ready" if overview.ready else f"not ready: {problems}"),
        ("Context:", overview.context or "-"),
        ("API server:", overview.server),
        ("Kubernetes:", overview.kubernetes or "unknown"),
        ("Program:", overview.program),
        ("Nodes:", f"{overview.nodes_ready} of {overview.nodes} ready"),
        ("GPUs:", f"{overview.gpus_allocated} of {overview.gpus} allocated"),
        ("Served:", ", ".join(served) or "none of Posse's kinds"),
    ]
    if absent:
        facts.append(("Not served:", ", ".join(absent)))
    if overview.hidden:
        facts.append(("Not allowed:", ", ".join(overview.hidden)))
    parts = [columns(facts), *_tables(overview, now)]
    return "\n\n".join(parts)


def _tables(overview: Overview, now: float) -> list[str]:
    tables: list[str] = []
    if overview.leaders:
        rows: list[tuple[object, ...]] = [("LEADER OF", "LEASE", "HOLDER", "RENEWED", "ALIVE")]
        rows += [
            (one.service, one.lease, one.holder or "-", _ago(one.renewed, now), _word(one.alive))
            for one in overview.leaders
        ]
        tables.append(columns(rows))
    if overview.deployments:
        rows = [("DEPLOYMENT", "READY", "VERSION", "IMAGE")]
        rows += [
            (_full(one), f"{one.ready}/{one.wanted}", one.version or "-", one.image or "-")
            for one in overview.deployments
        ]
        tables.append(columns(rows))
    if overview.waiting:
        tables.append(who_waits(overview, now))
    return tables


def who_waits(overview: Overview, now: float, hint: str = " (-o json)") -> str:
    """The first of them; the hint says where the others are."""
    rows: list[tuple[object, ...]] = [("NAMESPACE", "WAITS", "AGE", "REASON", "WHY")]
    rows += [
        (one.namespace, one.name, _age(one.since, now), one.reason, one.sentence)
        for one in overview.waiting[:_MOST]
    ]
    left = len(overview.waiting) - _MOST
    return columns(rows) + (f"\n... and {left} more{hint}" if left > 0 else "")


def _full(one: Deployed) -> str:
    return f"{one.namespace}/{one.name}"


def _word(yes: bool) -> str:
    return "yes" if yes else "no"


def _ago(when: str, now: float) -> str:
    age = _age(when, now)
    return age if age == "-" else f"{age} ago"


def _age(when: str, now: float) -> str:
    try:
        return short_age(now - parse_time(when))
    except ValueError:
        return "-"
