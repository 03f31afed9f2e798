"""TensorBoard beside a job: a Service and a Deployment that read the job's log directory."""

from __future__ import annotations

from typing import Any

from posse.client.submitting.template import JobRequest, config_map, storage_for_logs

PORT = 6006
_PORT_NAME = "http"


def tensorboard_name(job: str) -> str:
    return f"{job}-tensorboard"


def tensorboard_selector(job: str) -> dict[str, str]:
    return {"app": "tensorboard", "release": job, "role": "tensorboard"}


def companions(request: JobRequest) -> list[dict[str, Any]]:
    """What belongs to a job and goes with it: its files, and its TensorBoard."""
    files = config_map(request)
    return [*([files] if files else []), *(tensorboard(request) if request.tensorboard else [])]


def tensorboard(request: JobRequest) -> list[dict[str, Any]]:
    """The Service comes first: the port that it is given may be the one to listen on."""
    name = tensorboard_name(request.name)
    labels = tensorboard_selector(request.name)
    volumes, mounts = storage_for_logs(request)
    container = {
        "name": "tensorboard",
        "image": request.tensorboard_image,
        "command": ["tensorboard", f"--logdir={request.logdir}"],
        "volumeMounts": mounts,
    }
    deployment = {
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
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "type": "NodePort",
            "selector": labels,
            "ports": [{"name": _PORT_NAME, "port": PORT, "targetPort": _PORT_NAME}],
        },
    }
    return [service, listening(deployment, "0.0.0.0", PORT)]


def listening(deployment: dict[str, Any], host: str, port: int) -> dict[str, Any]:
    """The Deployment with its program on that address.

    On a node that is this machine there is nobody between a browser and the program, so it
    listens on the port that its Service was given.
    """
    template = deployment["spec"]["template"]
    container = template["spec"]["containers"][0]
    opened: dict[str, Any] = {"name": _PORT_NAME, "containerPort": port}
    if port != PORT:
        opened["hostPort"] = port
    told = {
        **container,
        "command": [*container["command"][:2], f"--host={host}", f"--port={port}"],
        "ports": [opened],
    }
    pod_spec = {**template["spec"], "containers": [told]}
    spec = {**deployment["spec"], "template": {**template, "spec": pod_spec}}
    return {**deployment, "spec": spec}
