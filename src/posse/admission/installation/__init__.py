"""The objects that put the webhook at the door of a cluster, as data."""

from __future__ import annotations

from posse.admission.installation.hooks import configurations
from posse.admission.installation.options import Manifest, WebhookOptions
from posse.admission.installation.programs import budget, deployment, secret, service
from posse.admission.installation.roles import account, roles

__all__ = ["WebhookOptions", "configurations", "webhook_objects"]


def webhook_objects(options: WebhookOptions) -> list[Manifest]:
    """All of them, in the order in which they are to be made."""
    return [
        account(options),
        *roles(options),
        secret(options),
        service(options),
        budget(options),
        deployment(options),
        *configurations(options),
    ]
