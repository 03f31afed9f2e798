"""What comes before what: PriorityClasses for pods, FlowSchemas for requests."""

from __future__ import annotations

from typing import Any

from posse.client.installing.inventory import FLOW_SCHEMA
from posse.client.installing.marking import metadata
from posse.client.installing.options import Options

CRITICAL = "posse-critical"


def priority_classes() -> list[dict[str, Any]]:
    """One for Posse's own programs, and two for jobs; without one a job has priority 0."""
    return [
        _class(CRITICAL, 1_000_000_000, "Posse's own programs: above every job."),
        _class("posse-high", 1_000, "Jobs that go before others."),
        _class("posse-low", -1_000, "Jobs that let others go first.", preempts=False),
    ]


def flow_schemas(options: Options, accounts: list[str]) -> list[dict[str, Any]]:
    """Requests of Posse wait in no queue with everybody's; renewals of leases wait for nothing.

    A leader that cannot renew in time stops, and with it every gang that is about to start.
    """
    subjects = [
        {"kind": "ServiceAccount", "serviceAccount": {"name": name, "namespace": options.namespace}}
        for name in accounts
    ]
    leases = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "create", "update"],
        "namespaces": [options.namespace],
    }
    everything = {
        "apiGroups": ["*"],
        "resources": ["*"],
        "verbs": ["*"],
        "namespaces": ["*"],
        "clusterScope": True,
    }
    return [
        _flow("posse-leases", "leader-election", 200, subjects, leases),
        _flow("posse", "workload-high", 900, subjects, everything),
    ]


def _class(name: str, value: int, words: str, *, preempts: bool = True) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata(name),
        "value": value,
        "description": words,
        "preemptionPolicy": "PreemptLowerPriority" if preempts else "Never",
    }


def _flow(
    name: str, level: str, precedence: int, subjects: list[Any], matches: dict[str, Any]
) -> dict[str, Any]:
    return {
        "apiVersion": FLOW_SCHEMA.api_version,
        "kind": FLOW_SCHEMA.kind,
        "metadata": metadata(name),
        "spec": {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": subjects, "resourceRules": [matches]}],
        },
    }
