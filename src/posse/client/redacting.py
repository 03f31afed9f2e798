"""What of an object may leave the cluster in a bundle: what is listed here, and nothing else.

Values of environment variables, commands and their arguments, annotations of strangers and the
last words of containers may hold anything, secrets too. They are not in the lists. What is written
as prose (events, logs) is also searched for what looks like a credential.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from posse.objects.raw import Raw, mapping, mappings, strings, text

LEFT_OUT = "<left out>"
_SHORTEST_SECRET = 8

_METADATA = (
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "ownerReferences",
    "finalizers",
)
_OWN_ANNOTATIONS = (
    "posse.dev/",
    "scheduling.k8s.io/",
    "scheduling.volcano.sh/",
    "volcano.sh/",
    "training.kubeflow.org/",
)
_POD_SPEC = (
    "nodeName",
    "schedulerName",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "restartPolicy",
    "overhead",
    "resources",
    "resourceClaims",
    "schedulingGates",
    "runtimeClassName",
    "serviceAccountName",
    "hostNetwork",
    "hostname",
    "subdomain",
    "terminationGracePeriodSeconds",
    "activeDeadlineSeconds",
)
_CONTAINER = ("name", "image", "imagePullPolicy", "resources", "ports", "restartPolicy")
_MOUNT = ("name", "mountPath", "subPath", "readOnly")
_POD_STATUS = (
    "phase",
    "reason",
    "message",
    "conditions",
    "hostIP",
    "podIP",
    "startTime",
    "qosClass",
    "nominatedNodeName",
)
_CONTAINER_STATUS = ("name", "ready", "started", "restartCount", "image")
_NODE_SPEC = ("unschedulable", "taints", "podCIDR", "providerID")
_NODE_STATUS = ("capacity", "allocatable", "conditions", "addresses", "nodeInfo")
_EVENT = (
    "involvedObject",
    "reason",
    "message",
    "type",
    "count",
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "source",
    "reportingComponent",
)


def pod(obj: Raw) -> Raw:
    spec, status = mapping(obj, "spec"), mapping(obj, "status")
    kept = _kept(spec, _POD_SPEC)
    for field in ("initContainers", "containers"):
        if field in spec:
            kept[field] = [_container(one) for one in mappings(spec, field)]
    if "volumes" in spec:
        kept["volumes"] = [_volume(one) for one in mappings(spec, "volumes")]
    said = _kept(status, _POD_STATUS)
    for field in ("initContainerStatuses", "containerStatuses"):
        if field in status:
            said[field] = [_container_status(one) for one in mappings(status, field)]
    return {"metadata": metadata(obj), "spec": kept, "status": said}


def node(obj: Raw) -> Raw:
    return {
        "metadata": metadata(obj),
        "spec": _kept(mapping(obj, "spec"), _NODE_SPEC),
        "status": _kept(mapping(obj, "status"), _NODE_STATUS),
    }


def plain(obj: Raw) -> Raw:
    """An object whose spec and status hold no place for a secret: groups, queues, leases."""
    kept: Raw = {"metadata": metadata(obj)}
    return kept | {field: obj[field] for field in ("spec", "status") if field in obj}


def deployment(obj: Raw) -> Raw:
    spec = mapping(obj, "spec")
    template = mapping(spec, "template")
    kept = _kept(spec, ("replicas", "selector", "strategy"))
    kept["template"] = {name: pod(template)[name] for name in ("metadata", "spec")}
    return {"metadata": metadata(obj), "spec": kept, "status": mapping(obj, "status")}


def event(obj: Raw) -> Raw:
    return {"metadata": metadata(obj), **_kept(obj, _EVENT)}


def metadata(obj: Raw) -> Raw:
    meta = mapping(obj, "metadata")
    kept = _kept(meta, _METADATA)
    annotations = strings(meta, "annotations")
    if annotations:
        kept["annotations"] = {
            key: value if key.startswith(_OWN_ANNOTATIONS) else LEFT_OUT
            for key, value in annotations.items()
        }
    return kept


def environment_values(obj: Raw) -> list[str]:
    """The values of a pod's environment, which must be found nowhere else either."""
    spec = mapping(obj, "spec")
    return [
        value
        for field in ("initContainers", "containers", "ephemeralContainers")
        for container in mappings(spec, field)
        for variable in mappings(container, "env")
        if (value := text(variable, "value"))
    ]


def _container(one: Raw) -> Raw:
    kept = _kept(one, _CONTAINER)
    if "env" in one:
        kept["env"] = [_kept(variable, ("name", "valueFrom")) for variable in mappings(one, "env")]
    if "envFrom" in one:
        kept["envFrom"] = one["envFrom"]
    if "volumeMounts" in one:
        kept["volumeMounts"] = [_kept(mount, _MOUNT) for mount in mappings(one, "volumeMounts")]
    return kept


def _volume(one: Raw) -> Raw:
    """Its name, and what kind of volume it is; of whom only the claim is told."""
    kept: Raw = {}
    for field, value in one.items():
        if field == "name":
            kept[field] = value
        elif field == "persistentVolumeClaim":
            kept[field] = _kept(mapping(one, field), ("claimName", "readOnly"))
        else:
            kept[field] = {}
    return kept


def _container_status(one: Raw) -> Raw:
    kept = _kept(one, _CONTAINER_STATUS)
    for field in ("state", "lastState"):
        if state := mapping(one, field):
            kept[field] = {
                "running": _kept(mapping(state, "running"), ("startedAt",)),
                "waiting": _kept(mapping(state, "waiting"), ("reason", "message")),
                "terminated": _kept(
                    mapping(state, "terminated"),
                    ("exitCode", "signal", "reason", "startedAt", "finishedAt"),
                ),
            }
            kept[field] = {name: value for name, value in kept[field].items() if value}
    return kept


def _kept(obj: Raw, fields: Iterable[str]) -> Raw:
    return {field: obj[field] for field in fields if field in obj}


_CREDENTIALS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"eyJ[\w-]{6,}\.[\w-]{6,}(\.[\w-]*)?"), LEFT_OUT),
    (re.compile(r"\b(bearer|basic)(\s+)[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1\2{LEFT_OUT}"),
    (
        re.compile(
            r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?(-----END \1PRIVATE KEY-----|\Z)", re.S
        ),
        LEFT_OUT,
    ),
    (re.compile(r"(?<=://)[^/\s:@\"]*:[^/\s@\"]+(?=@)"), LEFT_OUT),
    (
        re.compile(
            r"\b((?:password|passwd|secret|token|api[_-]?key)[\"']?\s*[=:]\s*[\"']?)"
            rf"(?!{LEFT_OUT})[^\s,;\"']+",
            re.I,
        ),
        rf"\1{LEFT_OUT}",
    ),
)


def scrub(prose: str, secrets: Iterable[str]) -> str:
    """Prose without these secrets, and without what looks like one."""
    for secret in sorted({one for one in secrets if len(one) >= _SHORTEST_SECRET}, key=_longest):
        prose = prose.replace(secret, LEFT_OUT)
    for pattern, instead in _CREDENTIALS:
        prose = pattern.sub(instead, prose)
    return prose


def _longest(secret: str) -> tuple[int, str]:
    return (-len(secret), secret)


def reworded(value: Any, clean: Callable[[str], str]) -> Any:
    """The same with every `message` cleaned, however deep: whoever wrote it may have quoted
    anything, such as the environment that a container could not be started with."""
    if isinstance(value, dict):
        return {
            key: clean(item)
            if key == "message" and isinstance(item, str)
            else reworded(item, clean)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [reworded(item, clean) for item in value]
    return value


def scrubbed(value: Any, secrets: tuple[str, ...]) -> Any:
    """Every text in the value, scrubbed."""
    if isinstance(value, str):
        return scrub(value, secrets)
    if isinstance(value, dict):
        return {key: scrubbed(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(item, secrets) for item in value]
    return value
