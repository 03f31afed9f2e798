"""What belongs to the cluster as a whole: nodes, namespaces, priority classes, leases."""

from __future__ import annotations

from posse.objects import names
from posse.objects.raw import Raw, mapping, mappings, number, text, texts
from posse.objects.validating.metadata import check_standard_finalizer
from posse.objects.validating.placement import TAINT_EFFECTS
from posse.objects.validating.pods import PREEMPTION
from posse.objects.validating.report import Report
from posse.objects.validating.resources import check_quantity

_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = {
    "system-node-critical": 2 * _HIGHEST_PRIORITY + 1000,
    "system-cluster-critical": 2 * _HIGHEST_PRIORITY,
}


def check_node(report: Report, node: Raw) -> None:
    _check_taints(report, node)
    check_node_resources(report, node)


def check_node_update(report: Report, new: Raw, old: Raw) -> None:
    check_node_resources(report, new)
    _check_taints(report, new)
    after, before = mapping(new, "spec"), mapping(old, "spec")
    if (had := texts(before, "podCIDRs")) and texts(after, "podCIDRs") != had:
        detail = 'node updates may not change podCIDR except from "" to valid'
        report.forbidden("spec.podCIDRs", detail)
    if text(before, "providerID") and text(after, "providerID") != text(before, "providerID"):
        detail = 'node updates may not change providerID except from "" to valid'
        report.forbidden("spec.providerID", detail)


def _check_taints(report: Report, node: Raw) -> None:
    seen: dict[tuple[str, str], None] = {}
    for index, taint in enumerate(mappings(node, "spec", "taints")):
        field = f"metadata.taints[{index}]"
        key, value, effect = text(taint, "key"), text(taint, "value"), text(taint, "effect")
        report.invalid(f"{field}.key", key, *names.qualified_name_problems(key))
        if problems := names.label_value_problems(value):
            report.invalid(f"{field}.value", value, ";".join(problems))
        report.one_of(f"{field}.effect", effect, TAINT_EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": None}
            report.duplicate(field, shown, "taints must be unique by key and effect pair")
        seen[key, effect] = None


def check_node_resources(report: Report, node: Raw) -> None:
    for part in ("capacity", "allocatable"):
        for resource, amount in sorted(mapping(node, "status", part).items()):
            check_quantity(report, resource, amount, f"status.{part}.{resource}")


def check_namespace(report: Report, namespace: Raw) -> None:
    for finalizer in texts(mapping(namespace, "spec"), "finalizers"):
        problems = names.qualified_name_problems(finalizer)
        report.invalid("spec.finalizers", finalizer, *problems)
        check_standard_finalizer(report, finalizer, "spec.finalizers")


def check_priority_class(report: Report, priority_class: Raw) -> None:
    name = text(mapping(priority_class, "metadata"), "name")
    value = number(priority_class, "value") or 0
    if name.startswith("system-"):
        if _SYSTEM_CLASSES.get(name) != value:
            why = (
                f"value of {name} PriorityClass must be {_SYSTEM_CLASSES[name]}"
                if name in _SYSTEM_CLASSES
                else f"{name} is not a known system priority class"
            )
            detail = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {why}"
            )
            report.forbidden("metadata.name", detail)
    elif value > _HIGHEST_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        report.forbidden("value", detail)
    if priority_class.get("preemptionPolicy") is not None:
        policy = text(priority_class, "preemptionPolicy")
        report.one_of("preemptionPolicy", policy, PREEMPTION)


def check_priority_class_update(report: Report, new: Raw, old: Raw) -> None:
    if (number(new, "value") or 0) != (number(old, "value") or 0):
        report.forbidden("value", "may not be changed in an update.")
    report.unchanged("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def check_lease(report: Report, lease: Raw) -> None:
    spec = mapping(lease, "spec")
    duration, transitions = number(spec, "leaseDurationSeconds"), number(spec, "leaseTransitions")
    if duration is not None and duration <= 0:
        report.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    report.not_negative("spec.leaseTransitions", transitions)
    if text(spec, "preferredHolder") and not text(spec, "strategy"):
        detail = "may only be specified if `strategy` is defined"
        report.forbidden("spec.preferredHolder", detail)
