"""Volumes, and where containers mount them."""

from __future__ import annotations

from typing import Any

from posse.objects import names
from posse.objects.quantity import QuantityError, parse
from posse.objects.raw import Raw, mapping, mappings, number, text
from posse.objects.validating.environment import check_field_reference, check_resource_reference
from posse.objects.validating.report import Report

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATHS = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate",
    "Socket",
)  # fmt: skip
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY = ("Disabled", "Enabled", "IfPossible")


def check_volumes(report: Report, spec: Raw, path: str) -> dict[str, Raw]:
    """The volumes that are right, by name: only those can be mounted."""
    good: dict[str, Raw] = {}
    for index, volume in enumerate(mappings(spec, "volumes")):
        field = f"{path}[{index}]"
        before = len(report.errors)
        _check_source(report, volume, field)
        name = text(volume, "name")
        if name:
            report.invalid(f"{field}.name", name, *names.dns_label_problems(name))
        else:
            report.required(f"{field}.name")
        if name in good:
            report.duplicate(f"{field}.name", name)
        if len(report.errors) == before:
            good[name] = volume
    return good


def check_mounts(report: Report, container: Raw, path: str, volumes: dict[str, Raw]) -> None:
    seen: dict[str, None] = {}
    devices = mappings(container, "volumeDevices")
    for index, mount in enumerate(mappings(container, "volumeMounts")):
        field = f"{path}[{index}]"
        name, target = text(mount, "name"), text(mount, "mountPath")
        if not name:
            report.required(f"{field}.name")
        if name not in volumes:
            report.not_found(f"{field}.name", name)
        if not target:
            report.required(f"{field}.mountPath")
        if target in seen:
            report.invalid(f"{field}.mountPath", target, "must be unique")
        seen[target] = None
        if any(text(device, "name") == name for device in devices):
            report.invalid(f"{field}.name", name, "must not already exist in volumeDevices")
        if any(text(device, "devicePath") == target for device in devices):
            detail = "must not already exist as a path in volumeDevices"
            report.invalid(f"{field}.mountPath", target, detail)
        _check_mount_options(report, container, mount, path, field)


def _check_mount_options(report: Report, container: Raw, mount: Raw, path: str, field: str) -> None:
    inside, expression = text(mount, "subPath"), text(mount, "subPathExpr")
    if inside:
        _check_descending(report, inside, f"{path}.subPath")
    if expression:
        if inside:
            detail = "subPathExpr and subPath are mutually exclusive"
            report.invalid(f"{field}.subPathExpr", expression, detail)
        _check_descending(report, expression, f"{path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        if propagation not in _PROPAGATIONS:
            report.unsupported(f"{path}.mountPropagation", propagation, _PROPAGATIONS)
        privileged = mapping(container, "securityContext").get("privileged") is True
        if propagation == "Bidirectional" and not privileged:
            detail = "Bidirectional mount propagation is available only to privileged containers"
            report.forbidden(f"{path}.mountPropagation", detail)
    read_only = mount.get("recursiveReadOnly")
    if read_only is not None:
        if read_only not in _READ_ONLY:
            report.unsupported(f"{path}.recursiveReadOnly", read_only, _READ_ONLY)
        elif read_only != "Disabled" and mount.get("readOnly") is not True:
            detail = "may only be specified when readOnly is true"
            report.forbidden(f"{path}.recursiveReadOnly", detail)


def check_devices(report: Report, container: Raw, path: str, volumes: dict[str, Raw]) -> None:
    names_seen: dict[str, None] = {}
    paths_seen: dict[str, None] = {}
    for index, device in enumerate(mappings(container, "volumeDevices")):
        field = f"{path}[{index}]"
        name, target = text(device, "name"), text(device, "devicePath")
        if not name:
            report.required(f"{field}.name")
        if name in names_seen:
            report.invalid(f"{field}.name", name, "must be unique")
        if name not in volumes:
            report.not_found(f"{field}.name", name)
        elif not any(volumes[name].get(s) for s in ("persistentVolumeClaim", "ephemeral")):
            report.invalid(
                f"{field}.name",
                name,
                "can only use volume source type of PersistentVolumeClaim or Ephemeral for block "
                "mode",
            )
        if not target:
            report.required(f"{field}.devicePath")
        if target in paths_seen:
            report.invalid(f"{field}.devicePath", target, "must be unique")
        if ".." in target.split("/"):
            report.invalid(f"{field}.devicePath", target, "can not contain backsteps ('..')")
        names_seen[name] = None
        paths_seen[target] = None


def _check_source(report: Report, volume: Raw, path: str) -> None:
    given = [n for n, source in volume.items() if n != "name" and isinstance(source, dict)]
    if not given:
        report.required(path, "must specify a volume type")
    for position, name in enumerate(sorted(given)):
        field, source = f"{path}.{name}", volume[name]
        if position:
            report.forbidden(field, "may not specify more than 1 volume type")
        elif name == "emptyDir":
            _check_size(report, source.get("sizeLimit"), f"{field}.sizeLimit")
        elif name == "hostPath":
            check_host_path(report, source, field)
        elif name == "nfs":
            _check_nfs(report, source, field)
        elif name == "persistentVolumeClaim":
            if not text(source, "claimName"):
                report.required(f"{field}.claimName")
        elif name in ("secret", "configMap"):
            _check_files(report, source, field, "secretName" if name == "secret" else "name")
        elif name == "downwardAPI":
            _check_mode(report, source, f"{field}.defaultMode", "defaultMode")
            for item in mappings(source, "items"):
                _check_described_file(report, item, field)
        elif name == "projected":
            _check_projected(report, source, field)


def _check_files(report: Report, source: Raw, path: str, name: str) -> None:
    if not text(source, name):
        report.required(f"{path}.{name}")
    _check_mode(report, source, f"{path}.defaultMode", "defaultMode")
    _check_items(report, source, path)


def _check_items(report: Report, source: Raw, path: str) -> None:
    for index, item in enumerate(mappings(source, "items")):
        field = f"{path}.items[{index}]"
        if not text(item, "key"):
            report.required(f"{field}.key")
        _check_file_path(report, text(item, "path"), f"{field}.path")
        _check_mode(report, item, f"{field}.mode", "mode")


def _check_projected(report: Report, source: Raw, path: str) -> None:
    _check_mode(report, source, f"{path}.defaultMode", "defaultMode")
    for index, part in enumerate(mappings(source, "sources")):
        field = f"{path}.sources[{index}]"
        for name in [name for name, value in part.items() if isinstance(value, dict)]:
            if name in ("secret", "configMap"):
                if not text(part[name], "name"):
                    report.required(f"{field}.{name}.name")
                _check_items(report, part[name], f"{field}.{name}")
            elif name == "downwardAPI":
                for item in mappings(part[name], "items"):
                    _check_described_file(report, item, f"{field}.{name}")
            elif name == "serviceAccountToken":
                _check_token(report, part[name], f"{field}.{name}", path)


def _check_token(report: Report, token: Raw, path: str, volume: str) -> None:
    seconds = number(token, "expirationSeconds")
    if seconds is not None and seconds < 600:
        detail = "may not specify a duration less than 10 minutes"
        report.invalid(f"{path}.expirationSeconds", seconds, detail)
    if seconds is not None and seconds > 1 << 32:
        detail = "may not specify a duration larger than 2^32 seconds"
        report.invalid(f"{path}.expirationSeconds", seconds, detail)
    if not text(token, "path"):
        report.required(f"{volume}.path")
    else:
        _check_file_path(report, text(token, "path"), f"{volume}.path")


def _check_described_file(report: Report, item: Raw, path: str) -> None:
    _check_file_path(report, text(item, "path"), f"{path}.path")
    if isinstance(item.get("fieldRef"), dict):
        check_field_reference(report, item["fieldRef"], f"{path}.fieldRef")
        if isinstance(item.get("resourceFieldRef"), dict):
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            report.invalid(path, "resource", detail)
    elif isinstance(item.get("resourceFieldRef"), dict):
        field = f"{path}.resourceFieldRef"
        check_resource_reference(report, item["resourceFieldRef"], field, in_file=True)
    else:
        report.required(path, "one of fieldRef and resourceFieldRef is required")
    _check_mode(report, item, f"{path}.mode", "mode")


def check_host_path(report: Report, source: Raw, path: str) -> None:
    where = text(source, "path")
    if not where:
        report.required(f"{path}.path")
        return
    _check_no_backsteps(report, where, f"{path}.path")
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATHS:
        report.unsupported(f"{path}.type", kind, _HOST_PATHS)


def _check_nfs(report: Report, source: Raw, path: str) -> None:
    where = text(source, "path")
    if not text(source, "server"):
        report.required(f"{path}.server")
    if not where:
        report.required(f"{path}.path")
    if not where.startswith("/"):
        report.invalid(f"{path}.path", where, "must be an absolute path")


def _check_size(report: Report, size: Any, field: str) -> None:
    if size is None:
        return
    try:
        negative = parse(size).nano < 0
    except QuantityError as error:
        report.invalid(field, size, error.why)
        return
    if negative:
        report.forbidden(field, "SizeLimit field must be a valid resource quantity")


def _check_mode(report: Report, source: Raw, field: str, name: str) -> None:
    mode = number(source, name)
    if mode is not None and not 0 <= mode <= 0o777:
        report.invalid(field, mode, _MODE)


def _check_file_path(report: Report, where: str, field: str) -> None:
    if not where:
        report.required(field)
    _check_descending(report, where, field)
    if where.startswith("..") and not where.startswith("../"):
        report.invalid(field, where, "must not start with '..'")


def _check_descending(report: Report, where: str, field: str) -> None:
    if where.startswith("/"):
        report.invalid(field, where, "must be a relative path")
    _check_no_backsteps(report, where, field)


def _check_no_backsteps(report: Report, where: str, field: str) -> None:
    if ".." in where.split("/"):
        report.invalid(field, where, "must not contain '..'")
