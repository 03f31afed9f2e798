"""What a control plane needs before stories ride on it: our kinds, our queue, our accounts."""

from __future__ import annotations

import json
from typing import Any

from posse.client.installing import Options, objects
from tests.kubernetes.plane import SYSTEM, Plane

_PROGRAMS = ("Deployment", "PodDisruptionBudget", "Service")
# Where nobody answers for the webhook, no Queue could be deleted.
_DOORS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def prepare(plane: Plane) -> None:
    """As installed, with the roles that an installation has; our services run in the tests, and
    those about the webhook put it at the door themselves."""
    made = installation()
    definitions = [obj for obj in made if obj["kind"] == "CustomResourceDefinition"]
    _apply(plane, definitions)
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
    _apply(plane, [obj for obj in made if obj not in definitions])


def installation() -> list[dict[str, Any]]:
    made = objects(Options(namespace=SYSTEM))
    return [obj for obj in made if obj["kind"] not in (*_PROGRAMS, *_DOORS)]


def _apply(plane: Plane, objects: list[dict[str, Any]]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))
