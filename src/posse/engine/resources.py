"""Resources in people's words, and which of them are devices worth keeping together."""

from __future__ import annotations

from typing import Final

from posse.engine.facts import PODS

CPU: Final = "cpu"
_BYTES: Final = ("memory", "ephemeral-storage")
_DEVICES: Final = {"nvidia.com/gpu": "GPU"}
_UNITS: Final = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def is_device(resource: str) -> bool:
    """Kubernetes' own resources have no domain; what a vendor adds to a node has one."""
    return "/" in resource


def amount(resource: str, base_units: int) -> str:
    """The bare number, as in `the cluster has 8`."""
    if resource == CPU:
        return f"{base_units / 1000:.3f}".rstrip("0").rstrip(".")
    if resource in _BYTES or resource.startswith("hugepages-"):
        return _bytes(base_units)
    return str(base_units)


def words(resource: str, base_units: int) -> str:
    """The number with its noun: `8 GPUs`, `1.5 cores`, `16Gi memory`."""
    number = amount(resource, base_units)
    if resource == CPU:
        return f"{number} {'core' if base_units == 1000 else 'cores'}"
    if resource == PODS:
        return f"{number} pod {'slot' if base_units == 1 else 'slots'}"
    noun = _DEVICES.get(resource)
    if noun is None:
        return f"{number} {resource}"
    return f"{number} {noun if base_units == 1 else noun + 's'}"


def gravity(resource: str) -> tuple[int, str]:
    """Which shortage people should hear of first: devices, then cores, memory and the rest."""
    if resource in _DEVICES:
        return 0, resource
    if is_device(resource):
        return 1, resource
    return {CPU: 2, "memory": 3, PODS: 5}.get(resource, 4), resource


def count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"


def lasting(seconds: float) -> str:
    """A duration as people write it: `90s` is `1m30s`."""
    if seconds < 60:
        return f"{seconds:g}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def _bytes(number: int) -> str:
    """Rounded to a tenth in the largest unit that leaves at least one of it."""
    value = float(number)
    unit = ""
    for larger in _UNITS:
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.1f}".removesuffix(".0") + unit
