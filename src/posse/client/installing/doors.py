"""Webhooks of others that have a say about job kinds: an owner that has stopped leaves them behind.

As long as nobody answers such a webhook, an API server takes in no job of that kind.
"""

from __future__ import annotations

from typing import Any

import msgspec

from posse.client.installing.marking import is_marked
from posse.client.installing.roles import JOB_KINDS
from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.objects.kinds import (
    MUTATING_WEBHOOK_CONFIGURATION,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from posse.objects.raw import mapping, mappings, text


class Door(msgspec.Struct, frozen=True):
    """A webhook without whose answer no job of these kinds is made. `asked`: who answers it."""

    configuration: str
    webhook: str
    asked: str
    kinds: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.webhook} in {self.configuration}, answered by {self.asked}"


async def doors(connection: Connection) -> tuple[Door, ...]:
    found: list[Door] = []
    for kind in (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION):
        try:
            configurations = (await connection.list(kind)).items
        except NotFound:
            continue  # a server without webhooks asks nobody
        for configuration in configurations:
            found += doors_of(kind, configuration)
    return tuple(found)


def doors_of(kind: Kind, configuration: dict[str, Any]) -> list[Door]:
    if is_marked(configuration):
        return []
    name = f"{kind.singular}/{text(mapping(configuration, 'metadata'), 'name')}"
    found = []
    for webhook in mappings(configuration, "webhooks"):
        kinds = tuple(job.kind for job in JOB_KINDS if _has_a_say(webhook, job))
        if kinds and text(webhook, "failurePolicy") != "Ignore":
            found.append(Door(name, text(webhook, "name"), _asked(webhook), kinds))
    return found


def _has_a_say(webhook: dict[str, Any], job: Kind) -> bool:
    """Whether it names the kind. One that is asked about everything is nobody's controller's."""
    return any(
        job.group in (rule.get("apiGroups") or ())
        and {job.plural, "*"} & set(rule.get("resources") or ())
        and {"CREATE", "*"} & set(rule.get("operations") or ())
        for rule in mappings(webhook, "rules")
    )


def _asked(webhook: dict[str, Any]) -> str:
    service = mapping(webhook, "clientConfig", "service")
    if not service:
        return text(mapping(webhook, "clientConfig"), "url")
    return f"{text(service, 'namespace')}/{text(service, 'name')}"
