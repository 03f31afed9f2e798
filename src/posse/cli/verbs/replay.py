from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from posse.cli.options import App, verb
from posse.engine.resources import count
from posse.objects.times import rfc3339
from posse.scheduler.choices import PolicyError, changes
from posse.scheduler.policies import load_policy
from posse.scheduler.replaying import Difference, Replay, ReplayError
from posse.scheduler.replaying import replay as decide_again


@verb("replay")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="Decide by this policy instead of the recorded one.",
)
@click.option(
    "--most",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    metavar="N",
    help="How many differing cycles to show; all of them are counted.",
)
@click.option("-o", "--output", type=click.Choice(["json"]), default=None, help="As JSON.")
def replay(app: App, file: Path, policy: Path | None, most: int, output: str | None) -> int:
    """Decide again what a scheduler recorded with --capture, and show what differs.

    The engine's decisions follow from what it was told alone, so that a record gives the same
    decisions again; with --policy it shows where another policy would part from them.

    Exits 0 when nothing differs, and 1 when something does.
    """
    try:
        rules = None if policy is None else load_policy(policy)
        result = decide_again(file, rules, most=most)
    except PolicyError as error:
        raise click.ClickException(f"--policy: {error}") from error
    except ReplayError as error:
        raise click.ClickException(f"{file}: {error}") from error
    except OSError as error:
        raise click.ClickException(f"{file}: {error.strerror}") from error
    if output == "json":
        app.show(msgspec.json.format(msgspec.json.encode(result)).decode())
        return 1 if result.differing else 0
    for difference in result.first:
        for line in _lines(difference):
            app.show(line)
    app.say(_summary(result))
    if rules is not None and rules != result.header.policy:
        app.say(f"policy: {changes(result.header.policy, rules)}")
    return 1 if result.differing else 0


def _summary(result: Replay) -> str:
    decisions, cycles = count(result.decisions, "decision"), count(result.cycles, "cycle")
    made = f"{decisions} in {cycles} of {result.header.version}"
    cut = "; the record breaks off in its last line" if result.cut else ""
    if not result.differing:
        return f"the same again: {made}{cut}"
    more = result.differing - len(result.first)
    hidden = f", {more} of them not shown" if more else ""
    differ = "1 cycle differs" if result.differing == 1 else f"{result.differing} cycles differ"
    return f"{differ}{hidden}; {made}{cut}"


def _lines(difference: Difference) -> list[str]:
    lines = [f"cycle {difference.cycle} at {rfc3339(difference.now)}"]
    lines += [f"  - {_words(*one)}" for one in difference.recorded]
    lines += [f"  + {_words(*one)}" for one in difference.decided]
    return lines


def _words(kind: str, decision: dict[str, Any]) -> str:
    gang = decision.get("gang", "")
    match kind:
        case "Start":
            seats = ", ".join(f"{seat['pod']} to {seat['node']}" for seat in decision["seats"])
            holds = [f"{held['role']} on {held['node']}" for held in decision.get("holds", ())]
            kept = f"; a seat is kept for {', '.join(holds)}" if holds else ""
            return f"{gang} starts: {seats or 'held seats alone'}{kept}"
        case "Release":
            return f"{gang} is let go: {decision['why']}"
        case "Evict":
            ends = ", ".join(victim["gang"] for victim in decision["victims"])
            return f"{gang} ends {ends}"
        case "Wait":
            return f"{gang} waits: {decision['verdict']['sentence']}"
        case _:
            rest = {key: value for key, value in decision.items() if key != "gang"}
            return f"{gang}: {kind} {msgspec.json.encode(rest).decode()}"
