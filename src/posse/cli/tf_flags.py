"""The flags of a TensorFlow job: those of each role, and those of the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from posse.cli.grammar import switch
from posse.cli.job_flags import many, pairs
from posse.client.submitting.tf import ROLES, TFRole

F = TypeVar("F", bound=Callable[..., Any])

_NAMES = {
    "Worker": "each worker",
    "PS": "each parameter server",
    "Chief": "the chief",
    "Evaluator": "the evaluator",
}
_IMAGES = ("Worker", "PS")
_PORTS = ("Worker", "PS", "Chief")
_AFFINITIES = ("Worker", "PS")
_QUANTITIES = {
    "cpu": "CPUs of {}, such as 4 or 500m.",
    "cpu_limit": "The most CPUs of {}.",
    "memory": "Memory of {}, such as 16Gi.",
    "memory_limit": "The most memory of {}.",
}

RENAMED = {
    "--workerImage": "--worker-image",
    "--psImage": "--ps-image",
    "--workerPort": "--worker-port",
    "--psPort": "--ps-port",
    "--chiefPort": "--chief-port",
    "--cleanTaskPolicy": "--clean-task-policy",
    **{
        f"--{spelled}{resource.title()}": f"--{role}-{resource}"
        for spelled, role in (
            ("worker", "worker"),
            ("ps", "ps"),
            ("chief", "chief"),
            ("Chief", "chief"),
            ("evaluator", "evaluator"),
        )
        for resource in ("cpu", "memory")
    },
}


def tf_flags(function: F) -> F:
    for decorate in reversed((*_job_options(), *_role_options())):
        function = decorate(function)
    return function


def roles_of(flags: dict[str, Any]) -> tuple[dict[str, Any], dict[str, TFRole]]:
    """The flags of the whole job, and what those of each role come to."""
    whole, roles = dict(flags), {}
    for type_ in ROLES:
        prefix = f"{type_.lower()}_"
        said = {
            field: whole.pop(prefix + field)
            for field in TFRole.__struct_fields__
            if prefix + field in whole
        }
        said["selectors"] = pairs(f"--{type_.lower()}-selector", said["selectors"])
        roles[type_] = TFRole(**said)
    return whole, roles


def _job_options() -> list[Callable[[Any], Any]]:
    return [
        click.option("--ps", type=int, default=0, help="How many parameter servers.", metavar="N"),
        click.option(
            "--ps-gpus", type=int, default=0, help="GPUs of each parameter server.", metavar="N"
        ),
        switch("--chief", help="A chief beside the workers."),
        switch("--evaluator", help="An evaluator beside the workers."),
        click.option(
            "--success-policy",
            default="ChiefWorker",
            help="Whose success is the job's: ChiefWorker (the chief, else the first worker) or"
            " AllWorkers.",
        ),
        click.option(
            "--clean-task-policy",
            default="Running",
            help="Which pods to delete when the job ends: Running, None or All.",
        ),
        click.option(
            "--role-sequence",
            default="",
            help="The order in which pods are created, such as Worker,PS,Chief,Evaluator.",
        ),
        click.option(
            "--running-timeout", default="", help="How long the job may run, such as 2h30m."
        ),
        click.option("--starting-timeout", default="", help="How long the job may wait to start."),
        click.option(
            "--ttl-after-finished", default="", help="How long to keep the job after its end."
        ),
        click.option(
            "--share-memory", default="2Gi", help="The size of /dev/shm in each container."
        ),
    ]


def _role_options() -> list[Callable[[Any], Any]]:
    options: list[Callable[[Any], Any]] = []
    for type_ in ROLES:
        flag, whose = f"--{type_.lower()}", _NAMES[type_]
        if type_ in _IMAGES:
            options.append(click.option(f"{flag}-image", default="", help=f"The image of {whose}."))
        if type_ in _PORTS:
            options.append(
                click.option(
                    f"{flag}-port", type=int, default=0, help=f"The port of {whose}.", metavar="N"
                )
            )
        options += [
            click.option(f"{flag}-{field.replace('_', '-')}", default="", help=text.format(whose))
            for field, text in _QUANTITIES.items()
        ]
        options.append(
            many(
                f"{flag}-selector",
                f"{type_.lower()}_selectors",
                help=f"A node label that {whose} needs, instead of --selector's.",
            )
        )
        if type_ in _AFFINITIES:
            options += [
                click.option(
                    f"{flag}-affinity-policy",
                    default="none",
                    help=f"Where {whose} goes: none, spread or binpack over nodes.",
                ),
                click.option(
                    f"{flag}-affinity-constraint",
                    default="preferred",
                    help="Whether that is preferred or required.",
                ),
            ]
    return options
