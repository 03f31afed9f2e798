"""Containers of every sort: what each must have, and what only some may have."""

from __future__ import annotations

from posse.objects import names
from posse.objects.raw import Raw, listing, mapping, mappings, number, text
from posse.objects.validating.environment import check_environment
from posse.objects.validating.probes import check_lifecycle, check_probes
from posse.objects.validating.report import Report
from posse.objects.validating.resources import check_resources
from posse.objects.validating.security import check_container_security
from posse.objects.validating.volumes import check_devices, check_mounts

PROTOCOLS = ("SCTP", "TCP", "UDP")

_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"
_RESTART_POLICIES = ("Always", "Never", "OnFailure")


class Surroundings:
    """What a container's fields refer to in the rest of its pod."""

    def __init__(self, spec: Raw, volumes: dict[str, Raw]) -> None:
        self.volumes = volumes
        claims = (text(claim, "name") for claim in mappings(spec, "resourceClaims"))
        self.claims = list(dict.fromkeys(name for name in claims if name))
        self.grace = number(spec, "terminationGracePeriodSeconds")


def check_containers(report: Report, spec: Raw, path: str, around: Surroundings) -> None:
    containers = mappings(spec, "containers")
    if not containers:
        report.required(path)
        return
    seen: dict[str, None] = {}
    for index, container in enumerate(containers):
        field = f"{path}[{index}]"
        _check_container(report, container, field, around)
        name = text(container, "name")
        if name in seen:
            report.duplicate(f"{field}.name", name)
        seen[name] = None
        check_lifecycle(report, mapping(container, "lifecycle"), f"{field}.lifecycle", around.grace)
        check_probes(report, container, field, around.grace)
        _check_restart_policy(report, container, field)
    _check_host_ports(report, containers, path)


def check_init_containers(report: Report, spec: Raw, path: str, around: Surroundings) -> None:
    seen = {text(container, "name"): None for container in mappings(spec, "containers")}
    for index, container in enumerate(mappings(spec, "initContainers")):
        field = f"{path}[{index}]"
        _check_container(report, container, field, around)
        _check_restart_policy(report, container, field)
        name = text(container, "name")
        if name in seen:
            report.duplicate(f"{field}.name", name)
        elif name:
            seen[name] = None
        _check_host_ports(report, [container], path)
        if container.get("restartPolicy") == "Always":
            lifecycle = mapping(container, "lifecycle")
            check_lifecycle(report, lifecycle, f"{field}.lifecycle", around.grace)
            check_probes(report, container, field, around.grace)
        else:
            for part in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(part) is not None:
                    report.forbidden(f"{field}.{part}", _ONLY_SIDECARS)


def check_only_in_pods(report: Report, spec: Raw, path: str) -> None:
    """An image name may be padded in a template, where it may be a mark to be replaced."""
    for part in ("containers", "initContainers"):
        for index, container in enumerate(mappings(spec, part)):
            image = text(container, "image")
            if image.strip() != image:
                detail = "must not have leading or trailing whitespace"
                report.invalid(f"{path}.{part}[{index}].image", image, detail)


def _check_container(report: Report, container: Raw, path: str, around: Surroundings) -> None:
    name = text(container, "name")
    if name:
        report.invalid(f"{path}.name", name, *names.dns_label_problems(name))
    else:
        report.required(f"{path}.name")
    if not text(container, "image"):
        report.required(f"{path}.image")
    report.one_of(
        f"{path}.terminationMessagePolicy",
        text(container, "terminationMessagePolicy"),
        ("File", "FallbackToLogsOnError"),
    )
    _check_ports(report, container, f"{path}.ports")
    check_environment(report, container, path)
    check_mounts(report, container, f"{path}.volumeMounts", around.volumes)
    check_devices(report, container, f"{path}.volumeDevices", around.volumes)
    report.one_of(
        f"{path}.imagePullPolicy",
        text(container, "imagePullPolicy"),
        ("Always", "IfNotPresent", "Never"),
    )
    resources = mapping(container, "resources")
    check_resources(report, resources, f"{path}.resources", claims=around.claims)
    check_container_security(report, container, f"{path}.securityContext")


def _check_ports(report: Report, container: Raw, path: str) -> None:
    seen: dict[str, None] = {}
    for index, port in enumerate(mappings(container, "ports")):
        field = f"{path}[{index}]"
        if name := text(port, "name"):
            problems = names.port_name_problems(name)
            report.invalid(f"{field}.name", name, *problems)
            if not problems and name in seen:
                report.duplicate(f"{field}.name", name)
            seen[name] = None
        if inside := number(port, "containerPort"):
            problems = names.port_number_problems(inside)
            report.invalid(f"{field}.containerPort", inside, *problems)
        else:
            report.required(f"{field}.containerPort")
        if outside := number(port, "hostPort"):
            problems = names.port_number_problems(outside)
            report.invalid(f"{field}.hostPort", outside, *problems)
        report.one_of(f"{field}.protocol", text(port, "protocol"), PROTOCOLS)


def _check_host_ports(report: Report, containers: list[Raw], path: str) -> None:
    seen: dict[str, None] = {}
    for index, container in enumerate(containers):
        for position, port in enumerate(mappings(container, "ports")):
            if outside := number(port, "hostPort"):
                key = f"{text(port, 'protocol')}/{text(port, 'hostIP')}/{outside}"
                if key in seen:
                    report.duplicate(f"{path}[{index}].ports[{position}].hostPort", key)
                seen[key] = None


def _check_restart_policy(report: Report, container: Raw, path: str) -> None:
    policy, rules = container.get("restartPolicy"), mappings(container, "restartPolicyRules")
    if policy is None:
        if rules:
            detail = "must specify restartPolicy when restart rules are used"
            report.required(f"{path}.restartPolicy", detail)
    elif policy not in _RESTART_POLICIES:
        report.unsupported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > 20:
        report.too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for index, rule in enumerate(rules):
        field = f"{path}.restartPolicyRules[{index}]"
        if rule.get("action") != "Restart":
            report.unsupported(f"{field}.action", text(rule, "action"), ("Restart",))
        codes = rule.get("exitCodes")
        if not isinstance(codes, dict):
            report.required(f"{field}.exitCodes", "must be specified")
        elif codes.get("operator") not in ("In", "NotIn"):
            operator = text(codes, "operator")
            report.unsupported(f"{field}.exitCodes.operator", operator, ("In", "NotIn"))
        elif len(listing(codes, "values")) > 255:
            report.too_many(f"{field}.exitCodes.values", len(listing(codes, "values")), 255)


def check_host_network(report: Report, spec: Raw, path: str, *, in_pod: bool) -> None:
    """On the host's network a container's port is the host's port."""
    if spec.get("hostNetwork") is not True:
        return
    for index, container in enumerate(mappings(spec, "containers")):
        for position, port in enumerate(mappings(container, "ports")):
            outside = number(port, "hostPort") or 0
            if (in_pod or outside) and outside != number(port, "containerPort"):
                report.invalid(
                    f"{path}.containers[{index}].ports[{position}].hostPort",
                    outside,
                    "must match `containerPort` when `hostNetwork` is true",
                )


def check_ephemeral_forbidden(report: Report, spec: Raw, path: str, why: str) -> None:
    if mappings(spec, "ephemeralContainers"):
        report.forbidden(f"{path}.ephemeralContainers", why)
