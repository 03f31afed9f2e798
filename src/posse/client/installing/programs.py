"""The programs of an installation: each with its account, its pods, its budget and its Service.

Two replicas of each: one leads, the other takes over. They run as nobody in particular, on a root
that cannot be written, with nothing but their own service account.
"""

from __future__ import annotations

from typing import Any

import msgspec

from posse.client.installing.inventory import SERVICE_MONITOR
from posse.client.installing.marking import labels, metadata, part_labels
from posse.client.installing.options import METRICS_PORT, Options
from posse.client.installing.precedence import CRITICAL

POLICY = "posse-policy"
POLICY_FILE = "policy.yaml"
_POLICY_AT = "/etc/posse"
_NOBODY = 65532
_PORT = "metrics"


class Program(msgspec.Struct, frozen=True):
    """One Deployment. `arguments` are those that no other program has."""

    component: str
    arguments: tuple[str, ...]
    memory: tuple[str, str]
    """Asked for, and at most. Processors have no limit: a throttled leader loses its lease."""

    reads: str = ""
    """The ConfigMap that it finds under /etc/posse."""

    @property
    def name(self) -> str:
        return f"posse-{self.component}"


def programs(options: Options) -> list[Program]:
    scheduler = Program(
        "scheduler",
        (f"--claim={','.join(options.claims)}", f"--policy={_POLICY_AT}/{POLICY_FILE}"),
        ("512Mi", "4Gi"),
        reads=POLICY,
    )
    controllers = Program("controllers", (f"--kinds={','.join(options.kinds)}",), ("256Mi", "2Gi"))
    return [scheduler, controllers] if options.kinds else [scheduler]


def running(options: Options) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for program in programs(options):
        made += [
            account(program, options),
            deployment(program, options),
            _budget(program, options),
            _service(program, options),
        ]
        if options.monitored:
            made.append(monitor(program.component, options))
    return made


def account(program: Program, options: Options) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _metadata(program.component, options),
        "automountServiceAccountToken": False,
    }


def deployment(program: Program, options: Options) -> dict[str, Any]:
    component = program.component
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(program.component, options),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": part_labels(component)},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {
                "metadata": {"labels": labels(component)},
                "spec": {
                    "serviceAccountName": program.name,
                    "automountServiceAccountToken": True,
                    "priorityClassName": CRITICAL,
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "topologySpreadConstraints": [_apart(component)],
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": _NOBODY,
                        "runAsGroup": _NOBODY,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_container(program, options)],
                    "volumes": [
                        {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
                        *_read(program, {"configMap": {"name": program.reads}}),
                    ],
                },
            },
        },
    }


def _container(program: Program, options: Options) -> dict[str, Any]:
    least, most = program.memory
    return {
        "name": program.component,
        "image": options.image,
        "args": [
            program.component,
            # Of two containers of this name the first has ended before the second begins.
            "--identity=$(POD_NAME)",
            f"--lease-namespace={options.namespace}",
            f"--metrics-port={METRICS_PORT}",
            *program.arguments,
        ],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "HOME", "value": "/tmp"},
        ],
        "ports": [{"name": _PORT, "containerPort": METRICS_PORT}],
        "livenessProbe": _probe("/healthz", period=10, failures=6),
        "readinessProbe": _probe("/readyz", period=5, failures=3),
        "resources": {
            "requests": {"cpu": "100m", "memory": least},
            "limits": {"memory": most},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            *_read(program, {"mountPath": _POLICY_AT, "readOnly": True}),
        ],
    }


def _read(program: Program, how: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": "settings", **how}] if program.reads else []


def _probe(path: str, *, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": _PORT},
        "periodSeconds": period,
        "timeoutSeconds": 3,
        "failureThreshold": failures,
    }


def _apart(component: str) -> dict[str, Any]:
    """One node that goes takes one replica along, where there are more nodes than one."""
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": part_labels(component)},
    }


def _budget(program: Program, options: Options) -> dict[str, Any]:
    """At most one at a time; a budget of one that must stay would block the drain of a node
    wherever there is a single replica."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(program.component, options),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": part_labels(program.component)},
        },
    }


def _service(program: Program, options: Options) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(program.component, options),
        "spec": {
            "clusterIP": "None",
            "selector": part_labels(program.component),
            "ports": [{"name": _PORT, "port": METRICS_PORT, "targetPort": _PORT}],
        },
    }


def monitor(component: str, options: Options) -> dict[str, Any]:
    return {
        "apiVersion": SERVICE_MONITOR.api_version,
        "kind": SERVICE_MONITOR.kind,
        "metadata": _metadata(component, options),
        "spec": {
            "selector": {"matchLabels": part_labels(component)},
            "endpoints": [{"port": _PORT, "interval": "30s"}],
        },
    }


def _metadata(component: str, options: Options) -> dict[str, Any]:
    return metadata(f"posse-{component}", component=component, namespace=options.namespace)
