"""ConfigMaps and Secrets. What a secret holds never appears in an error."""

from __future__ import annotations

import base64
import json
from typing import Any

from posse.objects import names
from posse.objects.raw import Raw, mapping, strings, text
from posse.objects.validating.report import Report, same

SIZE_LIMIT = 1024 * 1024

_REDACTED = "<secret contents redacted>"
_FROZEN = "field is immutable when `immutable` is set"
_NEEDED = {
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_JSON = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}
_ACCOUNT = "kubernetes.io/service-account.name"


def check_config_map(report: Report, config_map: Raw) -> None:
    plain, binary = mapping(config_map, "data"), mapping(config_map, "binaryData")
    size = 0
    for key, value in sorted(plain.items()):
        report.invalid(f"data[{key}]", key, *names.config_key_problems(key))
        if key in binary:
            report.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else 0
    for key, value in sorted(binary.items()):
        report.invalid(f"binaryData[{key}]", key, *names.config_key_problems(key))
        size += len(_decoded(value))
    if size > SIZE_LIMIT:
        report.too_long("[]", SIZE_LIMIT)


def check_config_map_update(report: Report, new: Raw, old: Raw) -> None:
    _check_frozen(report, new, old, ("data", "binaryData"))


def check_secret(report: Report, secret: Raw) -> None:
    data = mapping(secret, "data")
    for key in sorted(data):
        report.invalid(f"data[{key}]", key, *names.config_key_problems(key))
    if sum(len(_decoded(value)) for value in data.values()) > SIZE_LIMIT:
        report.too_long("data", SIZE_LIMIT)
    kind = text(secret, "type")
    if kind == "kubernetes.io/service-account-token":
        if not strings(secret, "metadata", "annotations").get(_ACCOUNT):
            report.required(f"metadata.annotations[{_ACCOUNT}]")
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            report.required("data[username]")
            report.required("data[password]")
    elif kind in _JSON:
        _check_json(report, data, _JSON[kind])
    for key in _NEEDED.get(kind, ()):
        if key not in data:
            report.required(f"data[{key}]")


def check_secret_update(report: Report, new: Raw, old: Raw) -> None:
    report.unchanged("type", new.get("type"), old.get("type"))
    _check_frozen(report, new, old, ("data",))


def _check_frozen(report: Report, new: Raw, old: Raw, parts: tuple[str, ...]) -> None:
    if old.get("immutable") is not True:
        return
    if new.get("immutable") is not True:
        report.forbidden("immutable", _FROZEN)
    for part in parts:
        if not same(new.get(part), old.get(part)):
            report.forbidden(part, _FROZEN)


def _check_json(report: Report, data: Raw, key: str) -> None:
    if key not in data:
        report.required(f"data[{key}]")
        return
    try:
        holds_object = isinstance(json.loads(_decoded(data[key])), dict)
    except ValueError:
        holds_object = False
    if not holds_object:
        report.invalid(f"data[{key}]", _REDACTED, "must be a JSON object")


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(value) if isinstance(value, str) else b""
    except ValueError:
        return b""
