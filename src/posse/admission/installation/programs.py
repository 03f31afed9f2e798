"""The webhook's pods, and the way to them."""

from __future__ import annotations

from posse.admission.installation.options import (
    METRICS_PORT,
    PORT,
    Manifest,
    WebhookOptions,
    metadata,
)
from posse.admission.naming import ACCOUNT, KEPT_IN, SERVICE

_NOBODY = 65532


def secret(options: WebhookOptions) -> Manifest:
    """Empty, and filled by the webhook: it may read and change this Secret, and make none."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(KEPT_IN, options),
        "type": "Opaque",
    }


def service(options: WebhookOptions) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(SERVICE, options),
        "spec": {
            "selector": options.selector,
            "ports": [
                {"name": "webhook", "port": 443, "targetPort": "webhook"},
                {"name": "metrics", "port": METRICS_PORT, "targetPort": "metrics"},
            ],
        },
    }


def budget(options: WebhookOptions) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(SERVICE, options),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": options.selector}},
    }


def deployment(options: WebhookOptions) -> Manifest:
    """All replicas answer. A node that goes takes one along, where there are more nodes."""
    spec: Manifest = {
        "serviceAccountName": ACCOUNT,
        "automountServiceAccountToken": True,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": options.selector},
            }
        ],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(options)],
        # A key lies there for the moment in which it is loaded, and never on a disk.
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    if options.priority_class:
        spec["priorityClassName"] = options.priority_class
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(SERVICE, options),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": options.selector},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {
                "metadata": {"labels": {**options.labels, **options.selector}},
                "spec": spec,
            },
        },
    }


def _container(options: WebhookOptions) -> Manifest:
    return {
        "name": "admission",
        "image": options.image,
        "args": [
            "admission",
            f"--system-namespace={options.namespace}",
            f"--port={PORT}",
            f"--metrics-port={METRICS_PORT}",
        ],
        "env": [{"name": "HOME", "value": "/tmp"}],
        "ports": [
            {"name": "webhook", "containerPort": PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "livenessProbe": _probe("/healthz", period=10, failures=6),
        "readinessProbe": _probe("/readyz", period=5, failures=3),
        "resources": {
            "requests": {"cpu": "50m", "memory": "128Mi"},
            "limits": {"memory": "1Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }


def _probe(path: str, *, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "metrics"},
        "periodSeconds": period,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }
