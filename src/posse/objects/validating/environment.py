"""Environment variables and where their values come from."""

from __future__ import annotations

import re

from posse.objects import names
from posse.objects.quantity import QuantityError, canonical, parse
from posse.objects.raw import Raw, mapping, mappings, text
from posse.objects.validating.report import Report

_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS_IN_VARIABLES = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_FIELDS_IN_FILES = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
    "metadata.uid",
)  # fmt: skip
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory",
)  # fmt: skip
_KNOWN_FIELDS = {*_FIELDS_IN_VARIABLES, *_FIELDS_IN_FILES}
_HUGE_PAGES = ("requests.hugepages-", "limits.hugepages-")
_SUBSCRIPTED = re.compile(r"(metadata\.(?:annotations|labels))\['(.+)'\]")
_SIZES = (
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
)  # fmt: skip


def check_environment(report: Report, container: Raw, path: str) -> None:
    for index, variable in enumerate(mappings(container, "env")):
        field = f"{path}.env[{index}]"
        name = text(variable, "name")
        if name:
            report.invalid(f"{field}.name", name, *names.environment_name_problems(name))
        else:
            report.required(f"{field}.name")
        if isinstance(variable.get("valueFrom"), dict):
            _check_source(report, variable, f"{field}.valueFrom")
    _check_whole_sources(report, container, f"{path}.envFrom")


def _check_source(report: Report, variable: Raw, path: str) -> None:
    source = mapping(variable, "valueFrom")
    given = [name for name in _SOURCES if isinstance(source.get(name), dict)]
    for name in given:
        field, reference = f"{path}.{name}", source[name]
        if name == "fieldRef":
            check_field_reference(report, reference, field, _FIELDS_IN_VARIABLES)
        elif name == "resourceFieldRef":
            check_resource_reference(report, reference, field, in_file=False)
        elif name == "fileKeyRef":
            _check_file_reference(report, reference, field)
        else:
            problems = names.dns_subdomain_problems(text(reference, "name"))
            report.invalid(f"{field}.name", text(reference, "name"), *problems)
            _check_key(report, reference, f"{field}.key")
    if not given:
        choice = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        report.invalid(path, "", f"must specify one of: {choice}")
    elif text(variable, "value"):
        report.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        report.invalid(path, "", "may not have more than one field specified at a time")


def check_field_reference(
    report: Report, reference: Raw, path: str, supported: tuple[str, ...] = _FIELDS_IN_FILES
) -> None:
    version, wanted = text(reference, "apiVersion"), text(reference, "fieldPath")
    if not version or not wanted:
        report.required(f"{path}.{'fieldPath' if version else 'apiVersion'}")
        return
    if match := _SUBSCRIPTED.fullmatch(wanted):
        key = match[2].lower() if match[1].endswith("annotations") else match[2]
        report.invalid(path, key, *names.qualified_name_problems(key))
    elif wanted not in _KNOWN_FIELDS and wanted != "spec.restartPolicy":
        detail = f"error converting fieldPath: field label not supported: {wanted}"
        report.invalid(f"{path}.fieldPath", wanted, detail)
    elif wanted not in supported:
        report.unsupported(f"{path}.fieldPath", wanted, supported)


def check_resource_reference(report: Report, reference: Raw, path: str, *, in_file: bool) -> None:
    resource = text(reference, "resource")
    if in_file and not text(reference, "containerName"):
        report.required(f"{path}.containerName")
    elif not resource:
        report.required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        report.unsupported(f"{path}.resource", resource, _RESOURCES)
    _check_divisor(report, resource, reference.get("divisor") or "0", f"{path}.divisor")


def _check_divisor(report: Report, resource: str, divisor: object, field: str) -> None:
    try:
        if not isinstance(divisor, str | int | float) or parse(divisor).nano == 0:
            return
        given = canonical(divisor)
    except QuantityError as error:
        report.invalid(field, divisor, error.why)
        return
    if resource.endswith(".cpu"):
        if given not in ("1m", "1"):
            detail = "only divisor's values 1m and 1 are supported with the cpu resource"
            report.invalid(field, resource, detail)
        return
    kinds = {".memory": "memory", ".ephemeral-storage": "local ephemeral storage"}
    kind = next((word for end, word in kinds.items() if resource.endswith(end)), "")
    kind = "hugepages" if resource.startswith(_HUGE_PAGES) else kind
    if kind and given not in _SIZES:
        detail = f"only divisor's values {', '.join(_SIZES)} are supported with the {kind} resource"
        report.invalid(field, resource, detail)


def _check_file_reference(report: Report, reference: Raw, path: str) -> None:
    key, volume = text(reference, "key"), text(reference, "volumeName")
    if key:
        report.invalid(f"{path}.key", key, *names.environment_name_problems(key))
    else:
        report.required(f"{path}.key")
    if volume:
        report.invalid(f"{path}.volumeName", volume, *names.dns_label_problems(volume))
    else:
        report.required(f"{path}.volumeName")
    if not text(reference, "path"):
        report.required(f"{path}.path")


def _check_key(report: Report, reference: Raw, field: str) -> None:
    if key := text(reference, "key"):
        report.invalid(field, key, *names.config_key_problems(key))
    else:
        report.required(field)


def _check_whole_sources(report: Report, container: Raw, path: str) -> None:
    for index, source in enumerate(mappings(container, "envFrom")):
        field = f"{path}[{index}]"
        if prefix := text(source, "prefix"):
            problems = names.environment_name_problems(prefix)
            report.invalid(f"{field}.prefix", prefix, *problems)
        given = [n for n in ("configMapRef", "secretRef") if isinstance(source.get(n), dict)]
        for name in given:
            if referred := text(source[name], "name"):
                problems = names.generated_name_problems(names.dns_subdomain_problems, referred)
                report.invalid(f"{field}.{name}.name", referred, *problems)
            else:
                report.required(f"{field}.{name}.name")
        if not given:
            report.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            report.invalid(path, "", "may not have more than one field specified at a time")
