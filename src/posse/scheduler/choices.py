"""Every key of the policy file, declared once: what it may be and what it means.

`docs/policy.md` is made from this module: `python -m posse.scheduler.choices` writes it, and
`python -m posse.scheduler.choices --check` fails where the two differ.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from posse.engine.policy import Policy
from posse.engine.resources import lasting
from posse.objects.names import dns_subdomain_problems, qualified_name_problems
from posse.objects.times import parse_duration

_MOST = 10**9


class PolicyError(ValueError):
    """One line: which file, which key, and what it should be."""


class Choice(msgspec.Struct, frozen=True):
    """`field` of Policy under the name that people write; `read` takes the key and its value."""

    key: str
    field: str
    read: Callable[[str, Any], Any]
    default: str
    meaning: str


def _switch(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(f"{key} must be true or false, not {value!r}")
    return value


def _duration(key: str, value: Any) -> float:
    """Seconds, from which a date that can be written is reckoned; NaN for what is none."""
    seconds = _as_written(value)
    if seconds > _MOST:
        raise PolicyError(f"{key} must be {_MOST} seconds at most, not {value!r}")
    return float(seconds)


def _as_written(value: Any) -> float:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError:
            return math.nan
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return math.nan


def _seconds(key: str, value: Any) -> float:
    seconds = _duration(key, value)
    if not seconds > 0:
        raise PolicyError(f"{key} must be seconds or a duration such as 30s, not {value!r}")
    return seconds


def _seconds_or_none(key: str, value: Any) -> float:
    seconds = _duration(key, value)
    if not seconds >= 0:
        raise PolicyError(f"{key} must be 0, seconds or a duration such as 30s, not {value!r}")
    return seconds


def _whole(least: int) -> Callable[[str, Any], int]:
    def read(key: str, value: Any) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value <= _MOST:
            raise PolicyError(
                f"{key} must be a whole number from {least} to {_MOST}, not {value!r}"
            )
        return int(value)

    return read


def _placement(key: str, value: Any) -> bool:
    """Whether members are spread."""
    if value not in ("pack", "spread"):
        raise PolicyError(f"{key} must be pack or spread, not {value!r}")
    return bool(value == "spread")


def _names(key: str, value: Any) -> tuple[str, ...]:
    """Names of schedulers, or keys of labels: each once."""
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise PolicyError(f"{key} must be a list of names, not {value!r}")
    twice = [one for at, one in enumerate(value) if one in value[:at]]
    if twice:
        raise PolicyError(f"{key} has {twice[0]} twice")
    return tuple(value)


def _claims(key: str, value: Any) -> tuple[str, ...]:
    names = _names(key, value)
    if not names:
        raise PolicyError(f"{key} must name a scheduler at least")
    for name in names:
        if wrongs := dns_subdomain_problems(name):
            raise PolicyError(f"{key} has {name!r}, which is no scheduler's name: {wrongs[0]}")
    return names


def _tiers(key: str, value: Any) -> tuple[str, ...]:
    names = _names(key, value)
    for name in names:
        if qualified_name_problems(name):
            raise PolicyError(f"{key} has {name!r}, which is no key of a label")
    return names


def _weights(key: str, value: Any) -> tuple[tuple[str, int], ...]:
    """Thousandths by resource."""
    if not isinstance(value, dict):
        raise PolicyError(f"{key} must be numbers by resource, not {value!r}")
    weights: list[tuple[str, int]] = []
    for resource, weight in value.items():
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not isinstance(resource, str) or not number or not 0 <= weight <= 1000:
            raise PolicyError(
                f"{key} must be numbers from 0 to 1000 by resource, not {resource!r}: {weight!r}"
            )
        weights.append((resource, round(weight * 1000)))
    return tuple(sorted(weights))


CHOICES: tuple[Choice, ...] = (
    Choice(
        "frozen",
        "frozen",
        _switch,
        "false",
        "Decide and log, and write nothing but the lease",
    ),
    Choice(
        "claims",
        "claims",
        _claims,
        "those of `--claim`",
        "The `schedulerName`s whose pods Posse schedules",
    ),
    Choice(
        "placement",
        "spread",
        _placement,
        "pack",
        "`pack` members onto few nodes, or `spread` them over many",
    ),
    Choice(
        "tiers",
        "tiers",
        _tiers,
        "[posse.dev/rack, posse.dev/block, topology.kubernetes.io/zone]",
        "Node labels that make topology domains, the nearest first; unused where the cluster has "
        "HyperNodes",
    ),
    Choice(
        "shareWeights",
        "share_weights",
        _weights,
        "{}",
        "How much each resource counts in a queue's dominant share, 1 where it is not named: "
        "`{cpu: 0}` shares by everything but cores",
    ),
    Choice(
        "preemption",
        "preemption",
        _switch,
        "true",
        "A gang may end others of its queue that have a lower priority",
    ),
    Choice(
        "reclaim",
        "reclaim",
        _switch,
        "true",
        "A queue below its share may have it back from those above theirs",
    ),
    Choice(
        "minRuntime",
        "min_runtime",
        _seconds_or_none,
        "0",
        "Nobody is ended for others before it ran this long; `posse.dev/min-runtime` of a gang "
        "comes first",
    ),
    Choice(
        "mostEvictions",
        "most_evictions",
        _whole(1),
        "3",
        "A gang that was ended for others so often is spared",
    ),
    Choice(
        "preemptionHold",
        "preemption_hold",
        _seconds,
        "5m",
        "How long the room of ended gangs is kept for whom it was freed, beyond the grace period "
        "of their pods",
    ),
    Choice(
        "backfill",
        "backfill",
        _switch,
        "true",
        "A blocked gang gets a reservation, and others start around it",
    ),
    Choice(
        "reserveAfter",
        "reserve_after",
        _seconds_or_none,
        "5m",
        "How long a gang whose start nobody can foretell waits before room is gathered for it",
    ),
    Choice(
        "mostOvertakes",
        "most_overtakes",
        _whole(0),
        "20",
        "How many gangs behind it in order may start before it until then",
    ),
    Choice(
        "repairHold",
        "repair_hold",
        _seconds,
        "10m",
        "How long the seats of lost members, one or all, are kept for their replacements before the"
        " gang is let go",
    ),
    Choice(
        "startTimeout",
        "start_timeout",
        _seconds_or_none,
        "30m",
        "How long a gang may take from having its nodes to running whole before it is let go; 0: "
        "for ever; `posse.dev/start-timeout` of a gang comes first",
    ),
    Choice(
        "releaseAfter",
        "release_after",
        _seconds,
        "30s",
        "How long a half-bound gang that never ran may take to be completed before it is let go",
    ),
    Choice(
        "searchSteps",
        "search_steps",
        _whole(1),
        "2000",
        "Steps that the search for a gang of several roles may take",
    ),
)
BY_KEY = {choice.key: choice for choice in CHOICES}
BY_FIELD = {choice.field: choice for choice in CHOICES}


def changes(old: Policy, new: Policy) -> str:
    """Which keys differ, in words."""
    before, after = msgspec.structs.asdict(old), msgspec.structs.asdict(new)
    return ", ".join(
        f"{choice.key} is {_written(field, after[field])}, was {_written(field, before[field])}"
        for field, choice in BY_FIELD.items()
        if before[field] != after[field]
    )


def _written(field: str, value: Any) -> str:
    """As one would write it into the file."""
    if field == "spread":
        return "spread" if value else "pack"
    if field == "share_weights":
        return "{" + ", ".join(f"{name}: {weight / 1000:g}" for name, weight in value) + "}"
    match value:
        case bool():
            return str(value).lower()
        case float():
            return lasting(value)
        case tuple():
            return f"[{', '.join(value)}]"
    return str(value)


def rendered() -> str:
    rows = "\n".join(f"| `{c.key}` | {_shown(c.default)} | {c.meaning} |" for c in CHOICES)
    return f"""# The policy file

Made from `src/posse/scheduler/choices.py`. How the file is given and followed:
[operations.md](operations.md#policy).

| key | default | meaning |
|---|---|---|
{rows}

Durations are numbers of seconds or Go durations such as `90s`, `1h30m`, of {_MOST} seconds at most.

`{{}}`, or a file that is empty when the scheduler starts, is all defaults. One that becomes empty
while the scheduler runs is bad, and the last good one stays in force.
"""


def _shown(default: str) -> str:
    return default if default.startswith("those") else f"`{default}`"


def main(arguments: list[str]) -> int:
    path = Path("docs/policy.md")
    if "--check" not in arguments:
        path.write_text(rendered(), encoding="utf-8")
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == rendered():
        return 0
    print(f"{path} is not what the policy is; run python -m posse.scheduler.choices")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
