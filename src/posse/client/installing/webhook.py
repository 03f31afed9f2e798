"""The admission webhook as a part of an installation: marked and placed as the programs are."""

from __future__ import annotations

from typing import Any

from posse.admission.installation import WebhookOptions, webhook_objects
from posse.client.installing.marking import labels, part_labels
from posse.client.installing.options import Options
from posse.client.installing.precedence import CRITICAL
from posse.client.installing.programs import monitor

COMPONENT = "admission"


def webhook(options: Options) -> list[dict[str, Any]]:
    made = webhook_objects(
        WebhookOptions(
            image=options.image,
            namespace=options.namespace,
            replicas=options.replicas,
            kinds=options.kinds,
            claims=options.claims,
            labels=labels(COMPONENT),
            selector=part_labels(COMPONENT),
            priority_class=CRITICAL,
        )
    )
    return [*made, monitor(COMPONENT, options)] if options.monitored else made
