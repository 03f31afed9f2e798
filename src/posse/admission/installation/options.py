"""What an installation of the webhook is told, and what all its objects have."""

from __future__ import annotations

from typing import Any

import msgspec

from posse.admission.naming import SYSTEM
from posse.objects.kinds import MPI_JOB, TF_JOB

Manifest = dict[str, Any]

PORT = 9443
METRICS_PORT = 8080


class WebhookOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`kinds`: the job kinds whose controllers are ours; of others the webhook says nothing.

    `claims`: the schedulerNames whose pods are ours. `labels` are on everything, and `selector`,
    a part of them, tells the webhook's pods from others. `url`: where the API server finds the
    webhook, where that is not the Service.
    """

    image: str
    namespace: str = SYSTEM
    replicas: int = 2
    kinds: tuple[str, ...] = (MPI_JOB.kind, TF_JOB.kind)
    claims: tuple[str, ...] = ("posse",)
    labels: dict[str, str] = {}
    selector: dict[str, str] = msgspec.field(
        default_factory=lambda: {"app.kubernetes.io/component": "admission"}
    )
    priority_class: str = ""
    url: str = ""


def metadata(name: str, options: WebhookOptions, *, namespaced: bool = True) -> Manifest:
    place = {"namespace": options.namespace} if namespaced else {}
    return {"name": name, **place, "labels": {**options.labels, **options.selector}}
