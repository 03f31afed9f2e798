from __future__ import annotations

from typing import ClassVar

import click

from posse.cli.grammar import VerbGroup
from posse.cli.verbs.submit_mpi import mpi


class Kinds(VerbGroup):
    """`mpi`, `mpijob` and `mj` are one command."""

    aliases: ClassVar = {"mpi": "mpijob", "mj": "mpijob"}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, self.aliases.get(cmd_name, cmd_name))


@click.group("submit", cls=Kinds)
def submit() -> None:
    """Submit a training job."""


submit.add_command(mpi, "mpijob")
