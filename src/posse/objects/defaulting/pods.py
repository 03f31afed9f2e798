"""Pods, and the pod templates inside jobs and deployments."""

from __future__ import annotations

import msgspec

from posse.objects.defaulting.containers import default_container
from posse.objects.defaulting.filling import fill, part, tidy_quantities
from posse.objects.defaulting.qos import qos_class
from posse.objects.defaulting.volumes import default_volume
from posse.objects.meta import from_raw
from posse.objects.pods import PodSpec
from posse.objects.quantity import format_base_units
from posse.objects.raw import Raw, listing, mapping, mappings
from posse.objects.requests import container_requests, is_pod_level

_CONTAINER_LISTS = ("containers", "initContainers", "ephemeralContainers")
_AGENT_GONE = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_PATIENCE_SECONDS = 300
_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


def default_pod(pod: Raw) -> None:
    spec = part(pod, "spec")
    default_pod_spec(spec)
    _requests_from_limits(spec)
    _pod_level_requests(spec)
    fill(spec, "enableServiceLinks", True)
    if spec.get("hostNetwork") is True:
        _ports_are_host_ports(spec)
    _tolerate_a_silent_agent(spec)
    status = part(pod, "status")
    fill(status, "phase", "Pending")
    fill(status, "qosClass", qos_class(spec))
    if listing(spec, "schedulingGates") and not listing(status, "conditions"):
        status["conditions"] = [dict(_GATED)]


def default_template(template: Raw) -> None:
    """A template gets what every pod spec gets; requests are derived once it is a pod."""
    part(template, "metadata")
    default_pod_spec(part(template, "spec"))


def default_pod_spec(spec: Raw) -> None:
    fill(spec, "restartPolicy", "Always")
    fill(spec, "dnsPolicy", "ClusterFirst")
    fill(spec, "schedulerName", "default-scheduler")
    fill(spec, "terminationGracePeriodSeconds", 30)
    part(spec, "securityContext")
    _one_service_account(spec)
    for name in _CONTAINER_LISTS:
        for container in mappings(spec, name):
            default_container(container)
    for volume in mappings(spec, "volumes"):
        default_volume(volume)
    tidy_quantities(spec.get("overhead"))
    for kind in ("requests", "limits"):
        tidy_quantities(mapping(spec, "resources").get(kind))


def _one_service_account(spec: Raw) -> None:
    """`serviceAccount` is the old name of `serviceAccountName`; both are shown."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _requests_from_limits(spec: Raw) -> None:
    for container in mappings(spec, "containers") + mappings(spec, "initContainers"):
        resources = mapping(container, "resources")
        if limits := mapping(resources, "limits"):
            requests = part(resources, "requests")
            for resource, amount in limits.items():
                requests.setdefault(resource, amount)


def _pod_level_requests(spec: Raw) -> None:
    """A pod-level limit brings a request: what its containers ask for, else the limit itself."""
    resources = mapping(spec, "resources")
    limits = mapping(resources, "limits")
    if not any(is_pod_level(resource) for resource in limits):
        return
    try:
        asked = container_requests(from_raw(spec, PodSpec))
    except (ValueError, msgspec.ValidationError):
        return
    requests = part(resources, "requests")
    for resource, amount in asked.items():
        if is_pod_level(resource) and not resource.startswith("hugepages-"):
            requests.setdefault(resource, format_base_units(resource, amount))
    for resource, amount in limits.items():
        if is_pod_level(resource):
            requests.setdefault(resource, amount)


def _ports_are_host_ports(spec: Raw) -> None:
    for container in mappings(spec, "containers") + mappings(spec, "initContainers"):
        for port in mappings(container, "ports"):
            if not port.get("hostPort") and port.get("containerPort"):
                port["hostPort"] = port["containerPort"]


def _tolerate_a_silent_agent(spec: Raw) -> None:
    """Stay five minutes on a node whose agent is silent, unless the pod says otherwise."""
    given = listing(spec, "tolerations")
    added = [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": _PATIENCE_SECONDS,
        }
        for key in _AGENT_GONE
        if not any(_covers(toleration, key) for toleration in given if isinstance(toleration, dict))
    ]
    if added:
        spec["tolerations"] = [*given, *added]


def _covers(toleration: Raw, key: str) -> bool:
    return (toleration.get("key") or key) == key and (
        toleration.get("effect") or "NoExecute"
    ) == "NoExecute"
