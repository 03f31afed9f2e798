"""When an API server asks the webhook, and what it does when no answer comes.

Which answer an API server takes for granted when the webhook gives none (`failurePolicy`):

- Ignore, wherever somebody else finds the same mistakes later: jobs (their controllers), groups and
  pods (the scheduler), and what a queue says of itself. A day without the webhook loses nothing.
- Fail, where a Queue is deleted: nobody else would notice, and it cannot be undone.

Pods are asked about only when they were written by hand, for one of our schedulers, with a queue of
their own; then they are warned of, never refused. What Posse's own programs write is not asked
about at all, and neither is anything in kube-system or in Posse's namespace.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from posse.admission.installation.options import Manifest, WebhookOptions, metadata
from posse.admission.naming import CONFIGURATION, SERVICE
from posse.admission.wire import CREATE, DELETE, UPDATE
from posse.objects.jobs.tf.versions import V1, V1BETA1, V1BETA2
from posse.objects.keys import OPERATOR_NAME_LABEL, QUEUE_NAME
from posse.objects.kinds import (
    MPI_JOB,
    MUTATING_WEBHOOK_CONFIGURATION,
    POD,
    POD_GROUPS,
    QUEUE,
    TF_JOB,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)

_SECONDS = 5
_SECONDS_FOR_A_POD = 2
_VERSIONS: dict[Kind, tuple[str, ...]] = {
    MPI_JOB: (MPI_JOB.version,),
    TF_JOB: (V1, V1BETA2, V1BETA1),
}


def configurations(options: WebhookOptions) -> list[Manifest]:
    """Without a caBundle: the webhook puts in its own, and an upgrade leaves that alone."""
    return [
        {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": metadata(CONFIGURATION, options, namespaced=False),
            "webhooks": webhooks,
        }
        for kind, webhooks in (
            (MUTATING_WEBHOOK_CONFIGURATION, _mutating(options)),
            (VALIDATING_WEBHOOK_CONFIGURATION, _validating(options)),
        )
    ]


def _mutating(options: WebhookOptions) -> list[Manifest]:
    made = []
    for kind in _job_kinds(options):
        operations = (CREATE, UPDATE) if len(_VERSIONS[kind]) > 1 else (CREATE,)
        rule = _rule(kind, _VERSIONS[kind], operations)
        made.append(_webhook(options, "mutate", kind.plural, [rule]))
    groups = [_rule(kind, (kind.version,), (CREATE,)) for kind in POD_GROUPS]
    made.append(_webhook(options, "mutate", "podgroups", groups))
    return [webhook | {"reinvocationPolicy": "Never"} for webhook in made]


def _validating(options: WebhookOptions) -> list[Manifest]:
    written = (CREATE, UPDATE)
    made = [
        _webhook(options, "validate", kind.plural, [_rule(kind, _VERSIONS[kind], written)])
        for kind in _job_kinds(options)
    ]
    groups = [_rule(kind, (kind.version,), written) for kind in POD_GROUPS]
    queues, gone = (_rule(QUEUE, (QUEUE.version,), one) for one in (written, (DELETE,)))
    return [
        *made,
        _webhook(options, "validate", "podgroups", groups),
        _webhook(options, "validate", "queues", [queues]),
        _webhook(options, "validate", "queue-deletions", [gone]) | {"failurePolicy": "Fail"},
        _webhook(options, "validate", "pods", [_rule(POD, (POD.version,), (CREATE,))])
        | {
            "timeoutSeconds": _SECONDS_FOR_A_POD,
            "objectSelector": {
                "matchExpressions": [{"key": OPERATOR_NAME_LABEL, "operator": "DoesNotExist"}]
            },
            "matchConditions": [_by_others(options), *_pods_of_ours(options)],
        },
    ]


def _webhook(options: WebhookOptions, path: str, name: str, rules: list[Manifest]) -> Manifest:
    return {
        "name": f"{name}.{path}.posse.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(options, f"/{path}"),
        "rules": rules,
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": _SECONDS,
        "namespaceSelector": {
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": ["kube-system", options.namespace],
                }
            ]
        },
        "objectSelector": {},
        "matchConditions": [_by_others(options)],
    }


def _client(options: WebhookOptions, path: str) -> Manifest:
    if options.url:
        return {"url": f"{options.url}{path}"}
    place = {"namespace": options.namespace, "name": SERVICE, "path": path, "port": 443}
    return {"service": place}


def _rule(kind: Kind, versions: Sequence[str], operations: Sequence[str]) -> Manifest:
    return {
        "apiGroups": [kind.group],
        "apiVersions": list(versions),
        "resources": [kind.plural],
        "operations": list(operations),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
    }


def _by_others(options: WebhookOptions) -> Manifest:
    group = f"system:serviceaccounts:{options.namespace}"
    return {
        "name": "written-by-others",
        "expression": f"!has(request.userInfo.groups) || !({group!r} in request.userInfo.groups)",
    }


def _pods_of_ours(options: WebhookOptions) -> list[Manifest]:
    claims = msgspec.json.encode(options.claims).decode()
    scheduler = "object.spec.schedulerName"
    return [
        {
            "name": "for-our-scheduler",
            "expression": f"has({scheduler}) && {scheduler} in {claims}",
        },
        {
            "name": "names-a-queue",
            "expression": "has(object.metadata.annotations) && "
            f"{QUEUE_NAME!r} in object.metadata.annotations",
        },
    ]


def _job_kinds(options: WebhookOptions) -> list[Kind]:
    return [kind for kind in _VERSIONS if kind.kind in options.kinds]
