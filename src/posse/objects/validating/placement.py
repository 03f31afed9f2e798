"""Where a pod may run: tolerations, affinities, spreading, gates, selectors."""

from __future__ import annotations

from posse.objects import names
from posse.objects.raw import Raw, mapping, mappings, number, strings, text, texts
from posse.objects.validating.metadata import check_labels
from posse.objects.validating.report import Report

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_NOT_AN_OPERATOR = "not a valid selector operator"
_NEEDS_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
_TAKES_NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check_tolerations(report: Report, spec: Raw, path: str) -> None:
    for index, toleration in enumerate(mappings(spec, "tolerations")):
        field = f"{path}[{index}]"
        key, operator = text(toleration, "key"), text(toleration, "operator")
        value, effect = text(toleration, "value"), text(toleration, "effect")
        if key:
            report.invalid(f"{field}.key", key, *names.qualified_name_problems(key))
        elif operator != "Exists":
            report.invalid(
                f"{field}.operator",
                operator,
                'operator must be Exists when `key` is empty, which means "match all values and '
                'all keys"',
            )
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            report.invalid(f"{field}.effect", effect, detail)
        if operator in ("", "Equal"):
            if problems := names.label_value_problems(value):
                report.invalid(f"{field}.operator", value, ";".join(problems))
        elif operator == "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                report.invalid(f"{field}.operator", value, detail)
        else:
            known = ("Equal", "Exists")
            supported = (*known, "Lt", "Gt") if operator in ("Lt", "Gt") else known
            report.unsupported(f"{field}.operator", operator, supported)
        if effect and effect not in TAINT_EFFECTS:
            report.unsupported(f"{field}.effect", effect, TAINT_EFFECTS)


def check_gates(report: Report, spec: Raw, path: str) -> None:
    seen: dict[str, None] = {}
    for index, gate in enumerate(mappings(spec, "schedulingGates")):
        name = text(gate, "name")
        report.invalid(f"{path}[{index}]", name, *names.qualified_name_problems(name))
        if name in seen:
            report.duplicate(f"{path}[{index}]", name)
        seen[name] = None


def check_affinity(report: Report, spec: Raw, path: str) -> None:
    affinity = mapping(spec, "affinity")
    nodes = mapping(affinity, "nodeAffinity")
    field = f"{path}.nodeAffinity"
    if isinstance(nodes.get(_REQUIRED), dict):
        _check_node_terms(report, nodes[_REQUIRED], f"{field}.{_REQUIRED}.nodeSelectorTerms")
    for index, preferred in enumerate(mappings(nodes, _PREFERRED)):
        _check_weight(report, preferred, f"{field}.{_PREFERRED}[{index}].weight")
        preference = mapping(preferred, "preference")
        where = f"{field}.{_PREFERRED}[{index}].preference"
        _check_node_term(report, preference, where, values=False)
    for name in ("podAffinity", "podAntiAffinity"):
        pods = mapping(affinity, name)
        for index, term in enumerate(mappings(pods, _REQUIRED)):
            _check_pod_term(report, term, f"{path}.{name}.{_REQUIRED}[{index}]")
        for index, weighted in enumerate(mappings(pods, _PREFERRED)):
            field = f"{path}.{name}.{_PREFERRED}[{index}]"
            _check_weight(report, weighted, f"{field}.weight")
            _check_pod_term(
                report, mapping(weighted, "podAffinityTerm"), f"{field}.podAffinityTerm"
            )


def check_spreading(report: Report, spec: Raw, path: str) -> None:
    constraints = mappings(spec, "topologySpreadConstraints")
    for index, constraint in enumerate(constraints):
        field = f"{path}[{index}]"
        skew, key = number(constraint, "maxSkew") or 0, text(constraint, "topologyKey")
        action = text(constraint, "whenUnsatisfiable")
        if skew <= 0:
            report.invalid(f"{field}.maxSkew", skew, "must be greater than zero")
        if not key:
            report.required(f"{field}.topologyKey", "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            supported = ("DoNotSchedule", "ScheduleAnyway")
            report.unsupported(f"{field}.whenUnsatisfiable", action, supported)
        rest = constraints[index + 1 :]
        if any(
            (text(c, "topologyKey"), text(c, "whenUnsatisfiable")) == (key, action) for c in rest
        ):
            report.duplicate(f"{field}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        domains = number(constraint, "minDomains")
        if domains is not None:
            if domains <= 0:
                report.invalid(f"{field}.minDomains", domains, "must be greater than zero")
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                report.invalid(f"{field}.minDomains", domains, detail)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            given = constraint.get(policy)
            if given is not None and given not in ("Honor", "Ignore"):
                report.unsupported(f"{field}.{policy}", given, ("Honor", "Ignore"))
        check_selector(report, mapping(constraint, "labelSelector"), f"{field}.labelSelector")


def check_selector(report: Report, selector: Raw, path: str) -> None:
    """A label selector; whether it may be empty is for its owner to say."""
    check_labels(report, strings(selector, "matchLabels"), f"{path}.matchLabels")
    for index, wanted in enumerate(mappings(selector, "matchExpressions")):
        field = f"{path}.matchExpressions[{index}]"
        operator, values = text(wanted, "operator"), texts(wanted, "values")
        if operator in ("In", "NotIn"):
            if not values:
                report.required(f"{field}.values", _NEEDS_VALUES)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                report.forbidden(f"{field}.values", _TAKES_NO_VALUES)
        else:
            report.invalid(f"{field}.operator", operator, _NOT_AN_OPERATOR)
        _check_key(report, wanted, field)
        _check_values(report, values, field)


def selects(selector: Raw, labels: dict[str, str]) -> bool:
    """Whether a selector matches the labels; one that is malformed matches nothing."""
    for key, value in mapping(selector, "matchLabels").items():
        if labels.get(key) != value:
            return False
    for wanted in mappings(selector, "matchExpressions"):
        key, values = text(wanted, "key"), texts(wanted, "values")
        match text(wanted, "operator"):
            case "In":
                held = key in labels and labels[key] in values
            case "NotIn":
                held = key not in labels or labels[key] not in values
            case "Exists":
                held = key in labels
            case "DoesNotExist":
                held = key not in labels
            case _:
                held = False
        if not held:
            return False
    return True


def _check_node_terms(report: Report, selector: Raw, path: str) -> None:
    terms = mappings(selector, "nodeSelectorTerms")
    if not terms:
        report.required(path, "must have at least one node selector term")
    for index, term in enumerate(terms):
        _check_node_term(report, term, f"{path}[{index}]", values=True)


def _check_node_term(report: Report, term: Raw, path: str, *, values: bool) -> None:
    for index, wanted in enumerate(mappings(term, "matchExpressions")):
        field = f"{path}.matchExpressions[{index}]"
        operator, given = text(wanted, "operator"), texts(wanted, "values")
        if operator in ("In", "NotIn"):
            if not given:
                report.required(f"{field}.values", _NEEDS_VALUES)
        elif operator in ("Exists", "DoesNotExist"):
            if given:
                report.forbidden(f"{field}.values", _TAKES_NO_VALUES)
        elif operator in ("Gt", "Lt"):
            if len(given) != 1:
                detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                report.required(f"{field}.values", detail)
        else:
            report.invalid(f"{field}.operator", operator, _NOT_AN_OPERATOR)
        _check_key(report, wanted, field)
        if values:
            _check_values(report, given, field)
    for index, wanted in enumerate(mappings(term, "matchFields")):
        _check_node_field(report, wanted, f"{path}.matchFields[{index}]")


def _check_node_field(report: Report, wanted: Raw, field: str) -> None:
    operator, given, key = text(wanted, "operator"), texts(wanted, "values"), text(wanted, "key")
    if operator not in ("In", "NotIn"):
        report.invalid(f"{field}.operator", operator, _NOT_AN_OPERATOR)
    elif len(given) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        report.required(f"{field}.values", detail)
    if key != "metadata.name":
        report.invalid(f"{field}.key", key, "not a valid field selector key")
        return
    for position, name in enumerate(given):
        problems = names.dns_subdomain_problems(name)
        report.invalid(f"{field}.values[{position}]", name, *problems)


def _check_pod_term(report: Report, term: Raw, path: str) -> None:
    check_selector(report, mapping(term, "labelSelector"), f"{path}.labelSelector")
    check_selector(report, mapping(term, "namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in texts(term, "namespaces"):
        report.invalid(f"{path}.namespace", namespace, *names.dns_label_problems(namespace))
    key = text(term, "topologyKey")
    if not key:
        report.required(f"{path}.topologyKey", "can not be empty")
    report.invalid(f"{path}.topologyKey", key, *names.qualified_name_problems(key))


def _check_weight(report: Report, term: Raw, field: str) -> None:
    weight = number(term, "weight") or 0
    if not 1 <= weight <= 100:
        report.invalid(field, weight, "must be in the range 1-100")


def _check_key(report: Report, wanted: Raw, field: str) -> None:
    key = text(wanted, "key")
    report.invalid(f"{field}.key", key, *names.qualified_name_problems(key))


def _check_values(report: Report, values: list[str], field: str) -> None:
    for index, value in enumerate(values):
        report.invalid(f"{field}.values[{index}]", value, *names.label_value_problems(value))
