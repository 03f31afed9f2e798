"""Probes and lifecycle hooks: exactly one handler, sensible numbers."""

from __future__ import annotations

import re
from typing import Any

from posse.objects import names
from posse.objects.raw import Raw, listing, mapping, mappings, number, text
from posse.objects.validating.report import Report

_COUNTS = (
    "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
    "failureThreshold",
)  # fmt: skip
_HEADER = re.compile("[-A-Za-z0-9]+")


def check_probes(report: Report, container: Raw, path: str, grace: int | None) -> None:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if not isinstance(probe, dict):
            continue
        field = f"{path}.{name}"
        _check_handler(report, probe, field, ("exec", "httpGet", "tcpSocket", "grpc"), grace)
        for count in _COUNTS:
            report.not_negative(f"{field}.{count}", number(probe, count))
        own_grace = number(probe, "terminationGracePeriodSeconds")
        if own_grace is not None and own_grace <= 0:
            detail = "must be greater than 0"
            report.invalid(f"{field}.terminationGracePeriodSeconds", own_grace, detail)
        if name == "readinessProbe":
            if own_grace is not None:
                detail = "must not be set for readinessProbes"
                report.invalid(f"{field}.terminationGracePeriodSeconds", own_grace, detail)
        elif number(probe, "successThreshold") not in (None, 1):
            report.invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1")


def check_lifecycle(report: Report, lifecycle: Raw, path: str, grace: int | None) -> None:
    for name in ("postStart", "preStop"):
        if isinstance(lifecycle.get(name), dict):
            handlers = ("exec", "httpGet", "tcpSocket", "sleep")
            _check_handler(report, lifecycle[name], f"{path}.{name}", handlers, grace)


def check_port(report: Report, port: Any, field: str) -> None:
    """A number, or the name of a port."""
    if isinstance(port, str):
        report.invalid(field, port, *names.port_name_problems(port))
    else:
        value = port if isinstance(port, int) and not isinstance(port, bool) else 0
        report.invalid(field, value, *names.port_number_problems(value))


def _check_handler(
    report: Report, handler: Raw, path: str, kinds: tuple[str, ...], grace: int | None
) -> None:
    given = [kind for kind in kinds if isinstance(handler.get(kind), dict)]
    for position, kind in enumerate(given):
        field = f"{path}.{kind}"
        if position:
            report.forbidden(field, "may not specify more than 1 handler type")
        elif kind == "exec":
            if not listing(handler, "exec", "command"):
                report.required(f"{field}.command")
        elif kind == "sleep":
            seconds = number(handler["sleep"], "seconds") or 0
            if grace is not None and not 0 <= seconds <= grace:
                bound = f"terminationGracePeriodSeconds ({grace})"
                report.invalid(field, seconds, f"must be non-negative and less than {bound}")
        else:
            if kind == "httpGet":
                _check_http_get(report, handler["httpGet"], field)
            else:
                check_port(report, handler[kind].get("port"), f"{field}.port")
    if not given:
        report.required(path, "must specify a handler type")


def _check_http_get(report: Report, action: Raw, path: str) -> None:
    if not text(action, "path"):
        report.required(f"{path}.path")
    check_port(report, action.get("port"), f"{path}.port")
    if text(action, "scheme") not in ("HTTP", "HTTPS"):
        report.unsupported(f"{path}.scheme", text(action, "scheme"), ("HTTP", "HTTPS"))
    for header in mappings(mapping(action), "httpHeaders"):
        name = text(header, "name")
        if not _HEADER.fullmatch(name):
            report.invalid(
                f"{path}.httpHeaders",
                name,
                "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
                "'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
            )
