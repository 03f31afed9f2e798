"""A job that can never run is told so: once, with every reason, and in the API's own words."""

from __future__ import annotations

from collections.abc import Sequence

from posse.controllers.jobs import conditions
from posse.controllers.jobs.actions import NOTHING, Decision, Say
from posse.controllers.jobs.drafting import StatusDraft
from posse.controllers.runtime import Manifest


def refuse(
    job: Manifest, now: float, wrong: Sequence[str], *, condition: str, event: str
) -> Decision:
    """`condition` and `event`: the reasons under which the condition and the event say it."""
    message = "; ".join(wrong)
    draft = StatusDraft(job, now)
    complaint = (Say(event, message, warning=True),)
    if draft.start_time is not None:
        # It was sound when it began. What runs is left running until the spec is mended.
        return Decision(says=complaint)
    if not draft.set(conditions.FAILED, True, condition, message, quiet=True):
        return NOTHING
    return Decision(status=draft.result(), says=complaint)


def forgive(draft: StatusDraft, condition: str) -> None:
    """An invalid spec that has been mended is forgotten."""
    refused = conditions.find(draft.conditions, conditions.FAILED)
    if refused is not None and refused.get("reason") == condition:
        draft.drop(conditions.FAILED)
