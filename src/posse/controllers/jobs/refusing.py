"""A job that can never run is told so: once, with every reason, and in the API's own words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from posse.controllers.jobs import cleaning, conditions
from posse.controllers.jobs.actions import NOTHING, Decision, Say
from posse.controllers.jobs.drafting import StatusDraft
from posse.controllers.jobs.grouping import requests_of
from posse.controllers.jobs.shapes import check_template
from posse.controllers.runtime import Manifest
from posse.objects.errors import INVALID, NOT_SUPPORTED, REQUIRED, FieldError
from posse.objects.quantity import QuantityError
from posse.objects.trainingjobs import RunPolicy


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


def run_policy_problems(run: RunPolicy, clean_pod_policy: str) -> Iterable[FieldError]:
    path = "spec.runPolicy"
    yield from one_of(f"{path}.cleanPodPolicy", clean_pod_policy, cleaning.POLICIES)
    yield from non_negative(f"{path}.ttlSecondsAfterFinished", run.ttl_seconds_after_finished)
    yield from non_negative(f"{path}.activeDeadlineSeconds", run.active_deadline_seconds)
    yield from non_negative(f"{path}.backoffLimit", run.backoff_limit)
    if run.scheduling_policy is not None:
        least = run.scheduling_policy.min_available
        yield from non_negative(f"{path}.schedulingPolicy.minAvailable", least)


def template_problems(template: Manifest, path: str) -> Iterable[FieldError]:
    """Whether a pod can be made of it, as far as controllers add to it or read it."""
    spec = template.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not containers:
        yield required(f"{path}.spec.containers", "must define at least one container")
        return
    try:
        check_template(template)
        requests_of(template)
    except QuantityError as error:
        yield FieldError(f"{path}.{error.field}", INVALID, f"Invalid value: {error}")
    except msgspec.ValidationError as error:
        yield FieldError(path, INVALID, f"Invalid value: {error}")


def non_negative(field: str, value: int | None) -> Iterable[FieldError]:
    if value is not None and value < 0:
        yield invalid(field, value, "must be greater than or equal to 0")


def one_of(field: str, value: str, supported: Sequence[str]) -> Iterable[FieldError]:
    if value not in supported:
        known = ", ".join(f'"{item}"' for item in supported)
        yield FieldError(
            field, NOT_SUPPORTED, f'Unsupported value: "{value}": supported values: {known}'
        )


def required(field: str, why: str) -> FieldError:
    return FieldError(field, REQUIRED, f"Required value: {why}")


def invalid(field: str, value: object, why: str) -> FieldError:
    shown = f'"{value}"' if isinstance(value, str) else value
    return FieldError(field, INVALID, f"Invalid value: {shown}: {why}")
