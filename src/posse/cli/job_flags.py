"""The flags that every kind of job takes, and how they become a request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from posse.cli.grammar import Bare, switch
from posse.cli.options import App
from posse.client.submitting.template import Toleration
from posse.objects.names import dns_label_problems

F = TypeVar("F", bound=Callable[..., Any])

_LARGEST_FILE = 1 << 20

RENAMED = {
    "--workingDir": "--working-dir",
    "--dataDir": "--data-dir",
    "--syncMode": "--sync-mode",
    "--syncSource": "--sync-source",
    "--syncImage": "--sync-image",
    "--tensorboardImage": "--tensorboard-image",
}


def many(*names: str, help: str, metavar: str = "KEY=VALUE") -> Callable[[F], F]:
    return click.option(*names, multiple=True, help=f"{help} May be repeated.", metavar=metavar)


def job_flags(function: F) -> F:
    for decorate in reversed(
        (
            click.option("--name", default="", help="The job's name.", metavar="NAME"),
            click.option("--image", default="", help="The container image."),
            click.option("--workers", type=int, default=1, help="How many workers.", metavar="N"),
            click.option("--gpus", type=int, default=0, help="GPUs of each worker.", metavar="N"),
            click.option("--cpu", default="", help="CPUs of each pod, such as 4 or 500m."),
            click.option("--memory", default="", help="Memory of each pod, such as 16Gi."),
            many("--device", "devices", help="Another extended resource of each worker."),
            many("-e", "--env", "env", help="An environment variable."),
            click.option("--working-dir", default="/root", help="Where the command runs."),
            click.option("--shell", default="sh", help="The shell that runs the command."),
            click.option("--retry", type=int, default=0, help="How often to retry.", metavar="N"),
            many("-d", "--data", "data", help="A claim to mount.", metavar="CLAIM:PATH"),
            many(
                "--data-dir",
                "data_dirs",
                help="A directory of the node to mount.",
                metavar="HOST[:PATH]",
            ),
            many(
                "--config-file",
                "config_files",
                help="A local file to mount.",
                metavar="FILE[:PATH]",
            ),
            many("-a", "--annotation", "annotations", help="An annotation of job and pods."),
            many("-l", "--label", "labels", help="A label of job and pods."),
            many("--selector", "selectors", help="A node label the pods need."),
            many(
                "--toleration",
                "tolerations",
                help="A taint to tolerate, or `all`.",
                metavar="KEY=VALUE:EFFECT,OPERATOR",
            ),
            switch(
                "--gang", default=None, help="All members start together (on for several pods)."
            ),
            click.option(
                "--queue", cls=Bare, default="", help="The queue: --queue=NAME.", metavar="[=NAME]"
            ),
            click.option("-p", "--priority", default="", help="A priority class that exists."),
            click.option("--scheduler", default="", help="The scheduler's name."),
            click.option(
                "--image-pull-policy",
                type=click.Choice(("Always", "IfNotPresent", "Never")),
                default="Always",
                help="Always, IfNotPresent or Never.",
            ),
            many(
                "--image-pull-secret",
                "--image-pull-secrets",
                "image_pull_secrets",
                help="A secret to pull images with.",
                metavar="NAME",
            ),
            switch("--rdma", help="Ask for an RDMA device."),
            switch("--hostNetwork", "host_network", help="Use the node's network."),
            switch("--hostIPC", "host_ipc", help="Use the node's IPC namespace."),
            switch("--hostPID", "host_pid", help="Use the node's process namespace."),
            click.option("--sync-mode", default="", help="Bring code with git or rsync."),
            click.option("--sync-source", default="", help="Where the code is."),
            click.option("--sync-image", default="", help="The image that fetches the code."),
            switch("--tensorboard", help="A TensorBoard beside the job."),
            click.option("--tensorboard-image", default="", help="The image of the TensorBoard."),
            click.option("--logdir", default="/training_logs", help="Where the logs are written."),
        )
    ):
        function = decorate(function)
    return function


def request_of(app: App, flags: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """The fields of a JobRequest; a flag that makes no sense is a usage error that names it."""
    request = dict(flags)
    if not request["name"]:
        raise click.UsageError("--name must be set")
    if problems := dns_label_problems(request["name"]):
        raise click.UsageError(f"--name: {request['name']!r} is not a job name: {problems[0]}")
    for flag, field in (
        ("--device", "devices"),
        ("--env", "env"),
        ("--annotation", "annotations"),
        ("--label", "labels"),
        ("--selector", "selectors"),
    ):
        request[field] = pairs(flag, request[field])
    request["data"] = dict(_mount("--data", text, "") for text in request["data"])
    request["data_dirs"] = dict(_mount("--data-dir", t, t) for t in request["data_dirs"])
    request["config_files"] = dict(_config_file(text) for text in request["config_files"])
    request["tolerations"] = [_toleration(text) for text in request["tolerations"]]
    request["image_pull_secrets"] = list(request["image_pull_secrets"])
    request["command"] = _unquoted(" ".join(words))
    if request["queue"] in ("true", "false", ""):
        request["queue"] = app.configuration.get("queue", "")
    if request["gang"] is None and "enableGangScheduler" in app.configuration:
        request["gang"] = app.configuration["enableGangScheduler"].lower() == "true"
    request["scheduler"] = request["scheduler"] or app.configuration.get("scheduler", "")
    if not request["tensorboard_image"]:
        del request["tensorboard_image"]
    return request


def pairs(flag: str, texts: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise click.UsageError(f"{flag} takes KEY=VALUE, not {text!r}")
        pairs[key] = value
    return pairs


def _mount(flag: str, text: str, default: str) -> tuple[str, str]:
    source, colon, path = text.partition(":")
    path = path if colon else default
    if not source or not path.startswith("/"):
        raise click.UsageError(f"{flag} takes NAME:/PATH, not {text!r}")
    return source, path


def _config_file(text: str) -> tuple[str, tuple[str, str]]:
    source, colon, path = text.partition(":")
    file = Path(source).expanduser()
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST_FILE + 1).decode("utf-8")
    except OSError as error:
        raise click.UsageError(f"--config-file: {source!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"--config-file: {source!r} is not UTF-8 text") from error
    if len(content) > _LARGEST_FILE:
        raise click.UsageError(f"--config-file: {source!r} is larger than 1 MiB")
    target = path if colon else str(file.absolute())
    if not target.startswith("/"):
        raise click.UsageError(f"--config-file: {target!r} is not an absolute path")
    return target, (file.name, content)


def _toleration(text: str) -> Toleration:
    """`all`, or key=value:effect,operator as Arena reads it."""
    if text == "all":
        return Toleration(operator="Exists")
    taint, _, operator = text.partition(",")
    pair, _, effect = taint.partition(":")
    key, equals, value = pair.partition("=")
    operator = operator or ("Equal" if equals else "Exists")
    problem = (
        not key
        or effect not in ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
        or operator not in ("Equal", "Exists")
    )
    if problem:
        raise click.UsageError(f"--toleration takes KEY=VALUE:EFFECT,OPERATOR or all, not {text!r}")
    return Toleration(
        key=key,
        operator=operator,
        value=value if operator == "Equal" else None,
        effect=effect or None,
    )


def _unquoted(command: str) -> str:
    """Documents write "'python train.py'": one outer pair of quotes is not the job's."""
    quoted = len(command) > 1 and command[0] == command[-1] and command[0] in "'\""
    return command[1:-1] if quoted else command
