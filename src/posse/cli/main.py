"""The program `posse`, also installed as `arena`."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from pathlib import PurePath
from typing import NoReturn

import click

from posse.cli.exits import exit_code_of, sentence_of
from posse.cli.grammar import VerbGroup
from posse.cli.options import Globals, global_options

# One module per verb, loaded when it is asked for: `--help` stays quick. The words are shown by
# `posse --help`, in this order.
VERBS: dict[str, tuple[str, str]] = {
    "up": ("up", "Start a cluster on this machine."),
    "down": ("down", "Stop the cluster on this machine."),
    "status": ("status", "Show the cluster, its services and what waits."),
    "demo": ("demo", "See gang scheduling happen on a cluster of its own."),
    "submit": ("submit", "Submit a training job."),
    "list": ("list", "List training jobs."),
    "get": ("get", "Show a training job and its instances."),
    "why": ("why", "Say why a job waits, and what would help."),
    "wait": ("wait", "Wait until a job runs, or has ended."),
    "logs": ("logs", "Print the logs of a job."),
    "delete": ("delete", "Delete training jobs."),
    "top": ("top", "Show how the GPUs are used."),
    "install": ("install", "Install Posse on a cluster, or upgrade it in place."),
    "uninstall": ("uninstall", "Remove Posse from a cluster; jobs and their kinds stay."),
    "replay": ("replay", "Decide again what a scheduler recorded, and show what differs."),
    "version": ("version", "Print the version."),
    "apiserver": ("services", "Run the API server of an embedded cluster."),
    "scheduler": ("services", "Run the scheduler."),
    "controllers": ("services", "Run the job controllers."),
    "admission": ("services", "Run the admission webhook beside a cluster."),
    "core": ("services", "Run what kube-controller-manager does, for an embedded cluster."),
    "node": ("services", "Run the node agent of an embedded cluster."),
    "supervise": ("services", "Run and watch the services of an embedded cluster."),
}
ALIASES = {"ls": "list", "log": "logs", "del": "delete"}
_SERVICES = ("apiserver", "scheduler", "controllers", "admission", "core", "node", "supervise")


class Program(VerbGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in VERBS:
            return None
        module = importlib.import_module(f"posse.cli.verbs.{VERBS[name][0]}")
        command = getattr(module, name if name != "list" else "list_")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None:
            raise click.UsageError(
                f"unknown command {name!r}; `{ctx.info_name} --help` lists the commands"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, wanted in (("Commands", False), ("Services", True)):
            rows = [
                (name, words) for name, (_, words) in VERBS.items() if (name in _SERVICES) is wanted
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@global_options
@click.pass_context
def program(ctx: click.Context, /, **options: object) -> None:
    """Gang scheduling for distributed training: every member of a job starts together, or none.

    \b
    Try it:  posse demo
    Or:      posse up --simulate 4 --gpus 2
             posse submit mpi --name=first --workers=4 --gpus=2 --image=any "mpirun train"
             posse get first
    """
    ctx.obj = Globals.of(options)


def main(words: list[str] | None = None) -> NoReturn:
    """Run one command line; every ending is an exit code and at most one line on stderr."""
    name = PurePath(sys.argv[0]).name if words is None else "posse"
    name = name if name in ("posse", "arena") else "posse"
    try:
        result = program.main(args=words, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`posse list | head`): nothing is left to say, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise
        if logging.getLogger("posse").isEnabledFor(logging.DEBUG):
            logging.getLogger("posse").debug("%s failed", name, exc_info=error)
        line = sentence_of(error)
        if line:
            click.echo(f"{name}: {line}", err=True)
        sys.exit(exit_code_of(error))
    sys.exit(result if isinstance(result, int) else 0)
