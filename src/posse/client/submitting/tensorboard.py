"""TensorBoard beside a job: a Deployment and a Service that read the job's log directory."""

from __future__ import annotations

from typing import Any

from posse.client.submitting.template import JobRequest, storage_for_logs

PORT = 6006


def tensorboard_name(job: str) -> str:
    return f"{job}-tensorboard"


def tensorboard(request: JobRequest) -> list[dict[str, Any]]:
    name = tensorboard_name(request.name)
    labels = {"app": "tensorboard", "release": request.name, "role": "tensorboard"}
    volumes, mounts = storage_for_logs(request)
    container = {
        "name": "tensorboard",
        "image": request.tensorboard_image,
        "command": ["tensorboard", f"--logdir={request.logdir}", "--host=0.0.0.0"],
        "ports": [{"name": "http", "containerPort": PORT}],
        "volumeMounts": mounts,
    }
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [container], "volumes": volumes},
                },
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "type": "NodePort",
                "selector": labels,
                "ports": [{"name": "http", "port": PORT, "targetPort": PORT}],
            },
        },
    ]
