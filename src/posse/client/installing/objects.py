"""Everything that an installation consists of, as data and in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from posse.admission.naming import ACCOUNT
from posse.client.installing.inventory import in_order
from posse.client.installing.marking import labels, metadata
from posse.client.installing.options import Options
from posse.client.installing.precedence import flow_schemas, priority_classes
from posse.client.installing.programs import POLICY, POLICY_FILE, programs, running
from posse.client.installing.roles import JOB_KINDS, roles
from posse.client.installing.webhook import webhook
from posse.objects.crds import definitions
from posse.objects.kinds import QUEUE

Part = Callable[[Options], list[dict[str, Any]]]
"""Objects of the kinds in the inventory, marked as all others are."""

_PODS_ARE_RESTRICTED = {
    f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")
}


def objects(options: Options) -> list[dict[str, Any]]:
    """The whole installation; fresh for the caller."""
    made: list[dict[str, Any]] = []
    for part in _PARTS:
        made += part(options)
    return in_order(made)


def marked_definitions(options: Options) -> list[dict[str, Any]]:
    """The CRDs, marked as ours; a job kind that nobody would reconcile is not defined."""
    left_out = {kind.qualified for kind in JOB_KINDS if kind.kind not in options.kinds}
    made = [d for d in definitions() if d["metadata"]["name"] not in left_out]
    for definition in made:
        found = definition["metadata"]
        found["labels"] = {**(found.get("labels") or {}), **labels()}
    return made


def _namespace(options: Options) -> list[dict[str, Any]]:
    made = metadata(options.namespace)
    made["labels"] |= _PODS_ARE_RESTRICTED
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": made}]


def _priority_classes(_: Options) -> list[dict[str, Any]]:
    return priority_classes()


def _default_queue(_: Options) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": QUEUE.api_version,
            "kind": QUEUE.kind,
            "metadata": metadata("default"),
            "spec": {"weight": 1, "reclaimable": True},
        }
    ]


def _policy(options: Options) -> list[dict[str, Any]]:
    """The scheduler's policy, for people to edit; the scheduler follows it."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata(POLICY, component="scheduler", namespace=options.namespace),
            "data": {POLICY_FILE: "frozen: false\n"},
        }
    ]


def _flow_schemas(options: Options) -> list[dict[str, Any]]:
    accounts = [*(program.name for program in programs(options)), ACCOUNT]
    return flow_schemas(options, accounts)


_PARTS: tuple[Part, ...] = (
    marked_definitions,
    _namespace,
    _priority_classes,
    _default_queue,
    _policy,
    _flow_schemas,
    roles,
    running,
    webhook,
)
