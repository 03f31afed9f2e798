"""What a control plane needs before stories ride on it: our kinds, our queue, our accounts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from posse.local.supervisor.preparing import DEFAULT_QUEUE
from tests.kubernetes.plane import ACCOUNTS, SYSTEM, Plane

DEPLOY = Path(__file__).parents[2] / "deploy"


def prepare(plane: Plane) -> None:
    plane.kubectl("apply", "--server-side", "-f", str(DEPLOY / "crds"))
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
    for manifest in (namespace(), *permissions(), DEFAULT_QUEUE):
        plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(manifest))


def namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}


def permissions() -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": account},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM}],
        }
        for account in ACCOUNTS
    ]
