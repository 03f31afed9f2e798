"""What may change in a pod that exists: next to nothing."""

from __future__ import annotations

from typing import Any

from posse.objects import names
from posse.objects.raw import Raw, listing, mapping, mappings, number, text
from posse.objects.validating.placement import check_tolerations
from posse.objects.validating.report import Report, same

_MAY_CHANGE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_LARGEST = 2**31 - 1
_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def check_pod_update(report: Report, new: Raw, old: Raw) -> None:
    after, before = mapping(new, "spec"), mapping(old, "spec")
    for part in ("containers", "initContainers"):
        if len(listing(after, part)) != len(listing(before, part)):
            detail = "pod updates may not add or remove containers"
            report.forbidden(f"spec.{part}", detail)
            return
    if not _deadline_may_change(report, after, before):
        return
    _check_added_tolerations(report, after, before)
    _check_removed_gates(report, after, before)
    if same(after, before):
        return
    allowed = _with_allowed_changes_undone(report, after, before)
    if not same(allowed, before):
        changed = "\n".join(f"  {path}" for path in _changed(allowed, before, "spec"))
        detail = f"pod updates may not change fields other than {_MAY_CHANGE}\n{changed}\n"
        report.forbidden("spec", detail)


def _deadline_may_change(report: Report, after: Raw, before: Raw) -> bool:
    """Set once, and then only shortened."""
    new, old = number(after, "activeDeadlineSeconds"), number(before, "activeDeadlineSeconds")
    field = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            report.invalid(field, None, "must not update from a positive integer to nil value")
        return True
    if problems := names.range_problems(new, 0, _LARGEST):
        report.invalid(field, new, *problems)
        return False
    if old is not None and old < new:
        report.invalid(field, new, "must be less than or equal to previous value")
        return False
    return True


def _check_added_tolerations(report: Report, after: Raw, before: Raw) -> None:
    kept = [_without_seconds(toleration) for toleration in mappings(after, "tolerations")]
    for toleration in mappings(before, "tolerations"):
        if not any(same(_without_seconds(toleration), other) for other in kept):
            detail = "existing toleration can not be modified except its tolerationSeconds"
            report.forbidden("spec.tolerations", detail)
            return
    check_tolerations(report, after, "spec.tolerations")


def _without_seconds(toleration: Raw) -> Raw:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _check_removed_gates(report: Report, after: Raw, before: Raw) -> None:
    known = [text(gate, "name") for gate in mappings(before, "schedulingGates")]
    for index, gate in enumerate(mappings(after, "schedulingGates")):
        name = text(gate, "name")
        if name not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{name}'"
            report.forbidden(f"spec.schedulingGates[{index}].name", detail)


def _with_allowed_changes_undone(report: Report, after: Raw, before: Raw) -> Raw:
    spec = dict(after)
    for part in ("containers", "initContainers"):
        if part in after:
            spec[part] = [
                {**new, "image": old.get("image")}
                for new, old in zip(mappings(after, part), mappings(before, part), strict=True)
            ]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        spec[name] = before.get(name)
    grace = number(before, "terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        spec["terminationGracePeriodSeconds"] = grace
    if listing(before, "schedulingGates"):
        _undo_narrowing(report, spec, before)
    return spec


def _undo_narrowing(report: Report, spec: Raw, before: Raw) -> None:
    """A gated pod's choice of nodes may be narrowed while it waits at the gate."""
    if not same(spec.get("nodeSelector"), before.get("nodeSelector")):
        new = mapping(spec, "nodeSelector")
        if any(new.get(key) != value for key, value in mapping(before, "nodeSelector").items()):
            detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            report.invalid("spec.nodeSelector", new, detail)
        spec["nodeSelector"] = before.get("nodeSelector")
    new, old = mapping(spec, "affinity"), mapping(before, "affinity")
    if not same(new.get("nodeAffinity"), old.get("nodeAffinity")):
        _check_narrowed_affinity(report, new, old)
        spec["affinity"] = {**new, "nodeAffinity": old.get("nodeAffinity")}
        if same(spec["affinity"], before.get("affinity")):
            spec["affinity"] = before.get("affinity")


def _check_narrowed_affinity(report: Report, new: Raw, old: Raw) -> None:
    after = mappings(new, "nodeAffinity", _TERMS, "nodeSelectorTerms")
    before = mappings(old, "nodeAffinity", _TERMS, "nodeSelectorTerms")
    field = f"spec.affinity.nodeAffinity.{_TERMS}.nodeSelectorTerms"
    if not before:
        return
    if len(after) != len(before):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        report.invalid(field, after, detail)
        return
    for index, (term, was) in enumerate(zip(after, before, strict=True)):
        kept = all(
            same(listing(term, part)[: len(listing(was, part))], listing(was, part))
            for part in ("matchExpressions", "matchFields")
        )
        was_empty = not listing(was, "matchExpressions") and not listing(was, "matchFields")
        if not kept or (was_empty and not same(term, was)):
            detail = "only additions are allowed (no mutations or deletions)"
            report.invalid(f"{field}[{index}]", term, detail)


def _changed(new: Any, old: Any, path: str) -> list[str]:
    """Where two values differ, as deep as it can be said."""
    if same(new, old):
        return []
    if isinstance(new, dict) and isinstance(old, dict):
        members = sorted({**new, **old})
        return [p for m in members for p in _changed(new.get(m), old.get(m), f"{path}.{m}")]
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        pairs = enumerate(zip(new, old, strict=True))
        return [p for i, (a, b) in pairs for p in _changed(a, b, f"{path}[{i}]")]
    return [path]
