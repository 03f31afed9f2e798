"""Jobs, Deployments and ReplicaSets."""

from __future__ import annotations

from posse.objects import names
from posse.objects.raw import Raw, mapping, mappings, number, strings, text
from posse.objects.validating.placement import check_selector, selects
from posse.objects.validating.pods import check_template
from posse.objects.validating.report import Report, same
from posse.objects.validating.shares import amount, check_at_most_all, check_count_or_percent

_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
    "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_FIXED = (
    "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy",
)  # fmt: skip
_INDEXED_LIMIT = 100_000
_MISMATCH = "`selector` does not match template `labels`"


def check_job(report: Report, job: Raw) -> None:
    """A Job whose selector the server has already generated."""
    spec = mapping(job, "spec")
    _check_own_selector(report, job)
    check_job_spec(report, spec)
    completions = number(spec, "completions")
    if spec.get("completionMode") == "Indexed" and completions:
        name = text(mapping(job, "metadata"), "name")
        longest = f"{name}-{completions - 1}"
        if names.dns_label_problems(longest):
            detail = f"will not able to create pod with invalid DNS label: {longest}"
            report.invalid("metadata.name", name, detail)


def check_job_spec(report: Report, spec: Raw) -> None:
    for name in _COUNTS:
        report.not_negative(f"spec.{name}", number(spec, name))
    per_index, failed = number(spec, "backoffLimitPerIndex"), number(spec, "maxFailedIndexes")
    if failed is not None and per_index is None:
        report.required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    _check_completion_mode(report, spec)
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        by_policy = isinstance(spec.get("podFailurePolicy"), dict)
        supported = ("Failed",) if by_policy else ("Failed", "TerminatingOrFailed")
        if replacement not in supported:
            report.unsupported("spec.podReplacementPolicy", replacement, supported)
    template = mapping(spec, "template")
    check_template(report, template, "spec.template")
    restart = text(mapping(template, "spec"), "restartPolicy")
    field = "spec.template.spec.restartPolicy"
    if restart in ("", "Always"):
        report.required(field, 'valid values: "OnFailure", "Never"')
    elif restart not in ("OnFailure", "Never"):
        report.unsupported(field, restart, ("OnFailure", "Never"))
    elif restart != "Never" and isinstance(spec.get("podFailurePolicy"), dict):
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        report.invalid(field, restart, detail)
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        report.required("spec.selector")
        return
    check_selector(report, selector, "spec.selector")
    labels = strings(template, "metadata", "labels")
    if not selects(selector, labels):
        report.invalid("spec.template.metadata.labels", labels or None, _MISMATCH)


def _check_completion_mode(report: Report, spec: Raw) -> None:
    mode = spec.get("completionMode")
    completions, parallelism = number(spec, "completions"), number(spec, "parallelism")
    per_index, failed = number(spec, "backoffLimitPerIndex"), number(spec, "maxFailedIndexes")
    if mode is not None and mode not in ("NonIndexed", "Indexed"):
        report.unsupported("spec.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed":
        if completions is None:
            report.required("spec.completions", "when completion mode is Indexed")
        bound = f"must be less than or equal to {_INDEXED_LIMIT}"
        if parallelism is not None and parallelism > _INDEXED_LIMIT:
            detail = f"{bound} when completion mode is Indexed"
            report.invalid("spec.parallelism", parallelism, detail)
        if failed is not None and completions is not None and failed > completions:
            detail = "must be less than or equal to completions"
            report.invalid("spec.maxFailedIndexes", failed, detail)
        if failed is not None and failed > _INDEXED_LIMIT:
            report.invalid("spec.maxFailedIndexes", failed, bound)
    elif mode in (None, "NonIndexed"):
        for name, value in (("backoffLimitPerIndex", per_index), ("maxFailedIndexes", failed)):
            if value is not None:
                report.invalid(f"spec.{name}", value, "requires indexed completion mode")


def _check_own_selector(report: Report, job: Raw) -> None:
    spec, meta = mapping(job, "spec"), mapping(job, "metadata")
    selector = spec.get("selector")
    if spec.get("manualSelector") is True or not isinstance(selector, dict):
        return
    uid, name = text(meta, "uid"), text(meta, "name")
    if not uid:
        report.required("metadata.uid")
    own = {
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    }
    labels = strings(spec, "template", "metadata", "labels")
    for key, value in own.items():
        if key not in labels:
            report.required(f"spec.template.metadata.labels[{key}]", f"must be '{value}'")
        elif labels[key] != value:
            field = f"spec.template.metadata.labels[{key}]"
            report.invalid(field, labels, f"must be '{value}'")
    if not selects(selector, own):
        report.invalid("spec.selector", selector, "`selector` not auto-generated")


def check_job_update(report: Report, new: Raw, old: Raw) -> None:
    after, before = mapping(new, "spec"), mapping(old, "spec")
    if after.get("completionMode") != "Indexed":
        report.unchanged("spec.completions", after.get("completions"), before.get("completions"))
    elif not same(after.get("completions"), before.get("completions")) and after.get(
        "completions"
    ) != after.get("parallelism"):
        detail = "can only be modified in tandem with spec.parallelism"
        report.invalid("spec.completions", after.get("completions"), detail)
    report.unchanged("spec.selector", after.get("selector"), before.get("selector"))
    template, was = mapping(after, "template"), mapping(before, "template")
    report.unchanged("spec.template", template, _schedulable_as(was, template, before, old))
    for name in _FIXED:
        report.unchanged(f"spec.{name}", after.get(name), before.get(name))


def _schedulable_as(was: Raw, template: Raw, spec: Raw, job: Raw) -> Raw:
    """The old template, with the new one's choice of nodes where a Job has not begun yet."""
    not_begun = mapping(job, "status").get("startTime") is None
    if spec.get("suspend") is not True or not not_begun:
        return was
    meta, pod = mapping(template, "metadata"), mapping(template, "spec")
    free = {name: pod.get(name) for name in ("nodeSelector", "tolerations", "schedulingGates")}
    affinity = {
        **mapping(was, "spec", "affinity"),
        "nodeAffinity": mapping(pod, "affinity").get("nodeAffinity"),
    }
    return {
        "metadata": {
            **mapping(was, "metadata"),
            "labels": meta.get("labels"),
            "annotations": meta.get("annotations"),
        },
        "spec": {**mapping(was, "spec"), **free, "affinity": affinity},
    }


def check_deployment(report: Report, deployment: Raw) -> None:
    spec = mapping(deployment, "spec")
    report.not_negative("spec.replicas", number(spec, "replicas"))
    _check_selected_template(report, spec)
    _check_strategy(report, mapping(spec, "strategy"))
    for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        report.not_negative(f"spec.{name}", number(spec, name))
    deadline = number(spec, "progressDeadlineSeconds")
    if deadline is not None and deadline <= (number(spec, "minReadySeconds") or 0):
        detail = "must be greater than minReadySeconds"
        report.invalid("spec.progressDeadlineSeconds", deadline, detail)


def check_replica_set(report: Report, replica_set: Raw) -> None:
    spec = mapping(replica_set, "spec")
    report.not_negative("spec.replicas", number(spec, "replicas"))
    report.not_negative("spec.minReadySeconds", number(spec, "minReadySeconds"))
    _check_selected_template(report, spec)


def check_selector_update(report: Report, new: Raw, old: Raw) -> None:
    after, before = mapping(new, "spec").get("selector"), mapping(old, "spec").get("selector")
    report.unchanged("spec.selector", after, before)


def _check_selected_template(report: Report, spec: Raw) -> None:
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        report.required("spec.selector")
        selector = {}
    else:
        check_selector(report, selector, "spec.selector")
        if not mapping(selector, "matchLabels") and not mappings(selector, "matchExpressions"):
            detail = "empty selector is invalid for deployment"
            report.invalid("spec.selector", selector, detail)
    template = mapping(spec, "template")
    labels = strings(template, "metadata", "labels")
    if not isinstance(spec.get("selector"), dict) or not selects(selector, labels):
        report.invalid("spec.template.metadata.labels", labels or None, _MISMATCH)
    check_template(report, template, "spec.template")
    pod = mapping(template, "spec")
    if pod.get("restartPolicy") != "Always":
        restart = text(pod, "restartPolicy")
        report.unsupported("spec.template.spec.restartPolicy", restart, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        report.forbidden("spec.template.spec.activeDeadlineSeconds", detail)


def _check_strategy(report: Report, strategy: Raw) -> None:
    kind, rolling = text(strategy, "type"), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            detail = "may not be specified when strategy `type` is 'Recreate'"
            report.forbidden("spec.strategy.rollingUpdate", detail)
    elif kind == "RollingUpdate":
        surge, unavailable = (
            mapping(rolling).get("maxSurge"),
            mapping(rolling).get("maxUnavailable"),
        )
        field = "spec.strategy.rollingUpdate"
        check_count_or_percent(report, unavailable, f"{field}.maxUnavailable")
        check_count_or_percent(report, surge, f"{field}.maxSurge")
        if amount(unavailable) == 0 and amount(surge) == 0:
            detail = "may not be 0 when `maxSurge` is 0"
            report.invalid(f"{field}.maxUnavailable", unavailable, detail)
        check_at_most_all(report, unavailable, f"{field}.maxUnavailable")
    else:
        shown = {"Type": kind, "RollingUpdate": rolling}
        report.unsupported("spec.strategy", shown, ("Recreate", "RollingUpdate"))
