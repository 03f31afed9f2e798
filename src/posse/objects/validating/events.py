"""Events, of which there are two generations: one with an `eventTime` says more about its author.

An event about an object without a namespace is kept in `default`.
"""

from __future__ import annotations

from posse.objects import names
from posse.objects.raw import Raw, mapping, text
from posse.objects.validating.report import Report

_TYPES = ("Normal", "Warning")
_LONGEST = 128
_LONGEST_MESSAGE = 1024


def check_event(report: Report, event: Raw) -> None:
    _check_place(report, event)
    if event.get("eventTime") is not None:
        _check_author(report, event)


def _check_place(report: Report, event: Raw) -> None:
    namespace = text(mapping(event, "metadata"), "namespace")
    about = text(mapping(event, "involvedObject"), "namespace")
    if namespace != (about or "default"):
        report.invalid("involvedObject.namespace", about, "does not match event.namespace")


def _check_author(report: Report, event: Raw) -> None:
    component = text(event, "reportingComponent")
    if not component:
        report.required("reportingComponent")
    report.invalid("reportingComponent", component, *names.qualified_name_problems(component))
    for field in ("reportingInstance", "action", "reason"):
        value = text(event, field)
        if not value:
            report.required(field)
        elif len(value.encode()) > _LONGEST:
            report.too_long(field, _LONGEST)
    if len(text(event, "message").encode("utf-8", "surrogatepass")) > _LONGEST_MESSAGE:
        report.too_long("message", _LONGEST_MESSAGE)
    if text(event, "type") not in _TYPES:
        report.invalid("type", text(event, "type"), "has invalid value: " + text(event, "type"))
