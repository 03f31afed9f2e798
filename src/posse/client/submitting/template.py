"""The pod template every job kind starts from: image, resources, environment, mounts, code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import msgspec

from posse.client.errors import PosseError
from posse.objects import keys
from posse.objects.quantity import QuantityError, base_units

GPU = "nvidia.com/gpu"
_GIT_IMAGE = "alpine/git:v2.49.1"
_RSYNC_IMAGE = "instrumentisto/rsync-ssh:alpine"
# Git asks this for a password; the values stay in the environment, never in an argument.
_GIT_CREDENTIALS = (
    '!f() { echo "username=$GIT_SYNC_USERNAME"; echo "password=$GIT_SYNC_PASSWORD"; }; f'
)


class Toleration(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class JobRequest(msgspec.Struct, kw_only=True):
    """What is common to every kind of job, in the user's words."""

    name: str
    command: str = ""
    image: str = ""
    workers: int = 1
    gpus: int = 0
    cpu: str = ""
    memory: str = ""
    devices: dict[str, str] = {}
    env: dict[str, str] = {}
    working_dir: str = "/root"
    shell: str = "sh"
    retry: int = 0
    data: dict[str, str] = {}  # claim -> path
    data_dirs: dict[str, str] = {}  # path on the host -> path in the container
    config_files: dict[str, tuple[str, str]] = {}  # path in the container -> (file name, content)
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    selectors: dict[str, str] = {}
    tolerations: list[Toleration] = []
    image_pull_policy: str = "Always"
    image_pull_secrets: list[str] = []
    priority: str = ""
    queue: str = ""
    gang: bool | None = None
    scheduler: str = ""
    rdma: bool = False
    host_network: bool = False
    host_ipc: bool = False
    host_pid: bool = False
    sync_mode: str = ""
    sync_source: str = ""
    sync_image: str = ""
    tensorboard: bool = False
    tensorboard_image: str = "tensorflow/tensorflow:2.16.1"
    logdir: str = "/training_logs"
    log_directory: str = ""  # of the node, where the cluster offers one for logs


def check(request: JobRequest, *, fewest_workers: int = 1) -> None:
    """Refuse what could never run, before anything is created."""
    for what, number, least in (
        ("--gpus", request.gpus, 0),
        ("--workers", request.workers, fewest_workers),
        ("--retry", request.retry, 0),
    ):
        if number < least:
            raise PosseError(f"{what} must be {least} or more, not {number}")
    check_amounts(
        [
            ("--cpu", "cpu", request.cpu),
            ("--memory", "memory", request.memory),
            *(("--device", device, amount) for device, amount in request.devices.items()),
        ]
    )
    if request.sync_mode not in ("", "git", "rsync"):
        raise PosseError(f"--sync-mode must be git or rsync, not {request.sync_mode!r}")
    if request.sync_mode and not request.sync_source:
        raise PosseError(f"--sync-mode={request.sync_mode} needs --sync-source")
    if not request.command:
        raise PosseError("not found command args")


def check_amounts(amounts: Sequence[tuple[str, str, str]]) -> None:
    """Flags, the resources that they are about, and what they say; "" says nothing."""
    for flag, resource, amount in amounts:
        if amount:
            try:
                if base_units(resource, amount, flag) < 0:
                    raise PosseError(f"{flag} must not be negative, not {amount}")
            except QuantityError as error:
                raise PosseError(str(error)) from error


def job_metadata(request: JobRequest, app: str) -> dict[str, Any]:
    return {
        "name": request.name,
        "labels": {"app": app, "release": request.name, **request.labels},
        "annotations": _annotations(request),
    }


def scheduling(request: JobRequest) -> dict[str, Any]:
    policy = {"queue": request.queue, "priorityClass": request.priority}
    return {field: value for field, value in policy.items() if value}


def resources(request: JobRequest) -> dict[str, Any]:
    amounts: dict[str, str] = {}
    if request.cpu:
        amounts["cpu"] = request.cpu
    if request.memory:
        amounts["memory"] = request.memory
    if request.gpus:
        amounts[GPU] = str(request.gpus)
    if request.rdma:
        amounts["rdma/hca"] = "1"
    amounts.update(request.devices)
    return {"requests": dict(amounts), "limits": dict(amounts)} if amounts else {}


def environment(request: JobRequest) -> list[dict[str, Any]]:
    env = dict(request.env)
    if not request.gpus:
        env.setdefault("NVIDIA_VISIBLE_DEVICES", "void")
    return [{"name": name, "value": value} for name, value in env.items()]


def pod_template(
    request: JobRequest, container: str, *, command: bool, devices: bool
) -> dict[str, Any]:
    """One role's template. `devices` says whether this role gets the GPUs and other devices."""
    role = request if devices else msgspec.structs.replace(request, gpus=0, devices={}, rdma=False)
    volumes, mounts = _storage(request)
    main: dict[str, Any] = {
        "name": container,
        "image": request.image,
        "imagePullPolicy": request.image_pull_policy,
        "workingDir": request.working_dir,
        "env": environment(role),
        "resources": resources(role),
        "volumeMounts": mounts,
    }
    if command:
        main["command"] = [request.shell, "-c", request.command]
    if role.rdma:
        main["securityContext"] = {"capabilities": {"add": ["IPC_LOCK"]}}
    spec: dict[str, Any] = {"containers": [main], "volumes": volumes}
    if request.sync_mode:
        spec["initContainers"] = [_code_sync(request)]
        spec["volumes"] = [*volumes, {"name": "code-sync", "emptyDir": {}}]
        main["volumeMounts"] = [
            *mounts,
            {"name": "code-sync", "mountPath": f"{request.working_dir.rstrip('/')}/code"},
        ]
    for field, value in (
        ("nodeSelector", request.selectors),
        ("tolerations", msgspec.to_builtins(request.tolerations)),
        ("imagePullSecrets", [{"name": name} for name in request.image_pull_secrets]),
        ("priorityClassName", request.priority),
        ("schedulerName", request.scheduler),
        ("hostNetwork", request.host_network),
        ("hostIPC", request.host_ipc),
        ("hostPID", request.host_pid),
    ):
        if value:
            spec[field] = value
    return {
        "metadata": {
            "labels": {"app": container, "release": request.name, **request.labels},
            "annotations": _annotations(request),
        },
        "spec": spec,
    }


def _annotations(request: JobRequest) -> dict[str, str]:
    return {**request.annotations, **({keys.GANG: "false"} if request.gang is False else {})}


def _storage(request: JobRequest) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    for index, (claim, path) in enumerate(request.data.items()):
        name = f"data-{index}"
        volumes.append({"name": name, "persistentVolumeClaim": {"claimName": claim}})
        mounts.append({"name": name, "mountPath": path})
    for index, (host, path) in enumerate(request.data_dirs.items()):
        name = f"data-dir-{index}"
        volumes.append({"name": name, "hostPath": {"path": host}})
        mounts.append({"name": name, "mountPath": path})
    for index, (path, (file, _)) in enumerate(request.config_files.items()):
        name = f"config-{index}"
        volumes.append({"name": name, "configMap": {"name": config_map_name(request)}})
        mounts.append({"name": name, "mountPath": path, "subPath": f"{index}-{file}"})
    if request.tensorboard and not _covered(request.logdir, mounts):
        shared = {"path": request.log_directory, "type": "DirectoryOrCreate"}
        volume = {"hostPath": shared} if request.log_directory else {"emptyDir": {}}
        volumes.append({"name": "training-logs", **volume})
        mounts.append({"name": "training-logs", "mountPath": request.logdir})
    return volumes, mounts


def _covered(path: str, mounts: list[dict[str, Any]]) -> bool:
    return any(PurePosixPath(path).is_relative_to(mount["mountPath"]) for mount in mounts)


def storage_for_logs(request: JobRequest) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The volumes a reader of the logs needs, mounted where the job mounts them."""
    volumes, mounts = _storage(request)
    wanted = [m for m in mounts if _covered(request.logdir, [m])]
    names = {mount["name"] for mount in wanted}
    return [v for v in volumes if v["name"] in names], wanted


def config_map_name(request: JobRequest) -> str:
    return f"{request.name}-files"


def config_map(request: JobRequest) -> dict[str, Any] | None:
    if not request.config_files:
        return None
    data = {
        f"{index}-{file}": content
        for index, (file, content) in enumerate(request.config_files.values())
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": config_map_name(request), "labels": {"release": request.name}},
        "data": data,
    }


def _code_sync(request: JobRequest) -> dict[str, Any]:
    """An init container that brings the code to /code/<repository>."""
    if request.sync_mode == "rsync":
        return {
            "name": "init-code",
            "image": request.sync_image or _RSYNC_IMAGE,
            "command": ["rsync", "-avP", request.sync_source, "/code"],
            "volumeMounts": [{"name": "code-sync", "mountPath": "/code"}],
        }
    repository = PurePosixPath(urlsplit(request.sync_source).path).name.removesuffix(".git")
    destination = repository or "repository"
    settings = {
        "GIT_SYNC_REPO": request.sync_source,
        "GIT_SYNC_DEST": destination,
        "GIT_SYNC_ROOT": "/code",
        "GIT_SYNC_ONE_TIME": "true",
        **{name: value for name, value in request.env.items() if name.startswith("GIT_SYNC_")},
    }
    step: dict[str, Any] = {
        "name": "init-code",
        "image": request.sync_image or _GIT_IMAGE,
        "volumeMounts": [{"name": "code-sync", "mountPath": "/code"}],
    }
    if not request.sync_image:
        branch = request.env.get("GIT_SYNC_BRANCH")
        where = ["--branch", branch] if branch else []
        source = ["--", request.sync_source, f"/code/{destination}"]
        step["command"] = ["git", "clone", "--depth=1", *where, *source]
        if "GIT_SYNC_USERNAME" in request.env:
            settings["GIT_CONFIG_COUNT"] = "1"
            settings["GIT_CONFIG_KEY_0"] = "credential.helper"
            settings["GIT_CONFIG_VALUE_0"] = _GIT_CREDENTIALS
    step["env"] = [{"name": name, "value": value} for name, value in settings.items()]
    return step
