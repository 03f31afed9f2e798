"""Who the webhook is, and what it may do."""

from __future__ import annotations

from posse.admission.installation.options import Manifest, WebhookOptions, metadata
from posse.admission.naming import ACCOUNT, CONFIGURATION, KEPT_IN
from posse.objects.kinds import (
    MUTATING_WEBHOOK_CONFIGURATION,
    QUEUE,
    SUBJECT_ACCESS_REVIEW,
    VALIDATING_WEBHOOK_CONFIGURATION,
)

_RBAC = "rbac.authorization.k8s.io"


def account(options: WebhookOptions) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(ACCOUNT, options),
        "automountServiceAccountToken": False,
    }


def roles(options: WebhookOptions) -> list[Manifest]:
    """Reads what a review asks for; its own Secret and its own configurations, by name."""
    hooks = MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION
    rules = [
        _grant("", ["namespaces"], ["get"]),
        _grant(QUEUE.group, [QUEUE.plural], ["get", "list"]),
        _grant(SUBJECT_ACCESS_REVIEW.group, [SUBJECT_ACCESS_REVIEW.plural], ["create"]),
        _grant(hooks[0].group, [one.plural for one in hooks], ["get", "patch"], [CONFIGURATION]),
    ]
    own = [_grant("", ["secrets"], ["get", "update"], [KEPT_IN])]
    made = []
    for prefix, granted in (("ClusterRole", rules), ("Role", own)):
        place = metadata(ACCOUNT, options, namespaced=prefix == "Role")
        made += [
            {"apiVersion": f"{_RBAC}/v1", "kind": prefix, "metadata": place, "rules": granted},
            {
                "apiVersion": f"{_RBAC}/v1",
                "kind": f"{prefix}Binding",
                "metadata": place,
                "roleRef": {"apiGroup": _RBAC, "kind": prefix, "name": ACCOUNT},
                "subjects": [
                    {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": options.namespace}
                ],
            },
        ]
    return made


def _grant(
    group: str, resources: list[str], verbs: list[str], names: list[str] | None = None
) -> Manifest:
    named = {"resourceNames": names} if names else {}
    return {"apiGroups": [group], "resources": resources, **named, "verbs": verbs}
