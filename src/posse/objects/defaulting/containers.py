"""Containers: pull policy, ports, environment, probes."""

from __future__ import annotations

from posse.objects.defaulting.filling import fill, fill_zero, part, tidy_quantities
from posse.objects.quantity import QuantityError, canonical
from posse.objects.raw import Raw, mapping, mappings, text

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")


def default_container(container: Raw) -> None:
    fill(container, "imagePullPolicy", pull_policy(text(container, "image")))
    fill(container, "terminationMessagePath", "/dev/termination-log")
    fill(container, "terminationMessagePolicy", "File")
    resources = part(container, "resources")
    tidy_quantities(resources.get("requests"))
    tidy_quantities(resources.get("limits"))
    for port in mappings(container, "ports"):
        fill(port, "protocol", "TCP")
    for variable in mappings(container, "env"):
        default_references(mapping(variable, "valueFrom"))
    for name in _PROBES:
        if isinstance(container.get(name), dict):
            _default_probe(container[name])
    for name in _HOOKS:
        _default_http_get(mapping(container, "lifecycle", name))


def pull_policy(image: str) -> str:
    """Always for `latest`, which a name without tag and digest means; else IfNotPresent."""
    name, at, _ = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    if tag == "latest" or (not tag and not at):
        return "Always"
    return "IfNotPresent"


def default_references(source: Raw) -> None:
    """A fieldRef names the version of the API, a resourceFieldRef its divisor."""
    if isinstance(source.get("fieldRef"), dict):
        fill(source["fieldRef"], "apiVersion", "v1")
    if isinstance(source.get("resourceFieldRef"), dict):
        reference = source["resourceFieldRef"]
        fill(reference, "divisor", "0")
        try:
            reference["divisor"] = canonical(reference["divisor"])
        except QuantityError:
            return


def _default_probe(probe: Raw) -> None:
    fill_zero(probe, "timeoutSeconds", 1)
    fill_zero(probe, "periodSeconds", 10)
    fill_zero(probe, "successThreshold", 1)
    fill_zero(probe, "failureThreshold", 3)
    _default_http_get(probe)
    if isinstance(probe.get("grpc"), dict):
        probe["grpc"].setdefault("service", "")


def _default_http_get(handler: Raw) -> None:
    if isinstance(handler.get("httpGet"), dict):
        fill(handler["httpGet"], "path", "/")
        fill(handler["httpGet"], "scheme", "HTTP")
