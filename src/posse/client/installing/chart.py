"""The Helm chart, made from the same objects as every other installation.

A template here is an object with values put in place of those that an installer chooses; around
some, and around some webhooks, stands one condition: that a kind is wanted, or that the cluster has
what it needs. No logic is written by hand.
"""

from __future__ import annotations

import json
import math
from typing import Any

from posse.client.installing.documents import document
from posse.client.installing.inventory import ONCE, SERVICE_MONITOR, kind_of
from posse.client.installing.objects import objects
from posse.client.installing.options import (
    KINDS,
    NAMESPACE,
    REPLICAS,
    SCHEDULER_NAME,
    Options,
    default_image,
)
from posse.client.installing.removing import outlives
from posse.objects.kinds import CUSTOM_RESOURCE_DEFINITION
from posse.objects.kinds import NAMESPACE as NAMESPACE_KIND
from posse.version import __version__

# A number that no object has, to be found again in the text.
_REPLICAS = 8_675_309
_IMAGE = "{{ .Values.image }}"
_PLACE = "{{ .Values.namespace }}"
_CHOICES = {
    f"--kinds={','.join(KINDS)}": '--kinds={{ join "," .Values.kinds }}',
    f"--claim={SCHEDULER_NAME}": '--claim={{ join "," .Values.claims }}',
    f"schedulerName in {json.dumps([SCHEDULER_NAME])}": (
        "schedulerName in {{ toJson .Values.claims }}"
    ),
}
"""What is said for the defaults, and for any choice. It ends what it stands in."""

VALUES: dict[str, Any] = {
    "image": default_image(),
    "replicas": REPLICAS,
    "namespace": NAMESPACE,
    "kinds": list(KINDS),
    "claims": [SCHEDULER_NAME],
}
_WORDS = {
    "image": "The image of Posse's programs.",
    "replicas": "How many of each program; one leads, the others stand by.",
    "namespace": "Where Posse's programs live.",
    "kinds": "The job kinds whose one controller Posse is here.",
    "claims": "The schedulerNames whose one scheduler Posse is here.",
}


def chart(header: str) -> dict[str, str]:
    """File names and their texts."""
    made = objects(
        Options(image=_IMAGE, replicas=_REPLICAS, namespace=_PLACE, kinds=KINDS, monitored=True)
    )
    files = {
        "Chart.yaml": header + document(_about()),
        "values.yaml": header + _values(),
        "values.schema.json": json.dumps(_schema(), indent=2) + "\n",
    }
    for obj in made:
        name = obj["metadata"]["name"]
        if kind_of(obj) == CUSTOM_RESOURCE_DEFINITION:
            files[f"crds/{name}.yaml"] = header + document(obj)
            continue
        file = f"templates/{_file_name(obj)}.yaml"
        files[file] = header + _guarded(_condition(obj), _template(obj))
    return files


def _about() -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": "posse",
        "description": "Gang scheduling for distributed training: all members of a job start, or"
        " none does.",
        "type": "application",
        "version": __version__,
        "appVersion": __version__,
        "kubeVersion": ">=1.29.0-0",
    }


def _values() -> str:
    parts = [f"# {_WORDS[key]}\n{document({key: value})}" for key, value in VALUES.items()]
    return "\n".join(parts)


def _schema() -> dict[str, Any]:
    """What Helm refuses before anything is sent."""
    names = {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}}
    return {
        "type": "object",
        "required": list(VALUES),
        "properties": {
            "image": {"type": "string", "minLength": 1},
            "replicas": {"type": "integer", "minimum": 1},
            "namespace": {"type": "string", "minLength": 1},
            "kinds": names | {"items": {"enum": list(KINDS)}},
            "claims": names,
        },
    }


def _template(obj: dict[str, Any]) -> str:
    if outlives(obj) or kind_of(obj) in ONCE:
        obj["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    chosen = _chosen(obj)
    webhooks = chosen.pop("webhooks", None)
    text = _text(chosen)
    if webhooks is not None:
        text += "webhooks:\n" + "".join(
            _guarded(_needed_by(obj, webhook["name"]), _text([webhook])) for webhook in webhooks
        )
    return text


def _text(value: Any) -> str:
    """Never folded: a line break would fall into a template's words."""
    return document(value, width=math.inf).replace(str(_REPLICAS), "{{ .Values.replicas }}")


def _chosen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _chosen(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_chosen(inner) for inner in value]
    if isinstance(value, str):
        for default, chosen in _CHOICES.items():
            if value.endswith(default):
                return value.removesuffix(default) + chosen
    return value


def _guarded(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text


def _condition(obj: dict[str, Any]) -> str:
    kind = kind_of(obj)
    if kind == SERVICE_MONITOR:
        return f'.Capabilities.APIVersions.Has "{kind.api_version}/{kind.kind}"'
    if kind == NAMESPACE_KIND:
        return "ne .Release.Namespace .Values.namespace"
    if kind in ONCE or outlives(obj):
        # Somebody may have made it, and Helm takes nothing over.
        place = ".Values.namespace" if kind.namespaced else '""'
        name = obj["metadata"]["name"]
        return f'not (lookup "{kind.api_version}" "{kind.kind}" {place} "{name}")'
    return _needed_by(obj)


def _needed_by(obj: dict[str, Any], webhook: str = "") -> str:
    """That the one kind is wanted without which an installation has no such object, or none with
    this webhook; "" where no one kind decides."""
    needing = []
    for name in KINDS:
        without = objects(Options(kinds=tuple(kind for kind in KINDS if kind != name)))
        alike = [other for other in without if _file_name(other) == _file_name(obj)]
        if not any(not webhook or webhook in _webhooks(other) for other in alike):
            needing.append(name)
    return f'has "{needing[0]}" .Values.kinds' if len(needing) == 1 else ""


def _webhooks(obj: dict[str, Any]) -> list[str]:
    return [webhook["name"] for webhook in obj["webhooks"]]


def _file_name(obj: dict[str, Any]) -> str:
    name = obj["metadata"]["name"]
    return f"{kind_of(obj).singular}-{'posse' if name.startswith('{{') else name}"
