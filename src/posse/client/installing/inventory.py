"""Which kinds an installation consists of, in the order in which they come.

They go in the opposite order. What is not in this list is never looked at, let alone removed.
"""

from __future__ import annotations

from typing import Any

from posse.objects.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    MUTATING_WEBHOOK_CONFIGURATION,
    NAMESPACE,
    PRIORITY_CLASS,
    QUEUE,
    ROLE,
    ROLE_BINDING,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)

POD_DISRUPTION_BUDGET = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
FLOW_SCHEMA = Kind("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", False)
SERVICE_MONITOR = Kind("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors")

INVENTORY: tuple[Kind, ...] = (
    CUSTOM_RESOURCE_DEFINITION,
    NAMESPACE,
    PRIORITY_CLASS,
    QUEUE,
    FLOW_SCHEMA,
    SERVICE_ACCOUNT,
    CONFIG_MAP,
    SECRET,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
    SERVICE,
    POD_DISRUPTION_BUDGET,
    DEPLOYMENT,
    SERVICE_MONITOR,
    # Last to come and first to go: a webhook that nobody answers would refuse what it guards.
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
)

ONCE = (QUEUE, CONFIG_MAP)
"""Made where they are not, and from then on their owner's: no upgrade changes them."""

OPTIONAL = (FLOW_SCHEMA, SERVICE_MONITOR)
"""What not every cluster serves, and Posse can do without."""


def kind_of(obj: dict[str, Any]) -> Kind:
    """The kind of an object of an installation; KeyError when it is not in the inventory."""
    return _BY_NAME[obj["apiVersion"], obj["kind"]]


def in_order(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """As the inventory says, and otherwise as they came."""
    places = {kind: place for place, kind in enumerate(INVENTORY)}
    return sorted(objects, key=lambda obj: places[kind_of(obj)])


def served(objects: list[dict[str, Any]], unserved: tuple[str, ...]) -> list[dict[str, Any]]:
    """Without the kinds of these qualified names."""
    return [obj for obj in objects if kind_of(obj).qualified not in unserved]


_BY_NAME = {(kind.api_version, kind.kind): kind for kind in INVENTORY}
