from __future__ import annotations

from typing import ClassVar

import click

from posse.cli.grammar import VerbGroup
from posse.cli.verbs.submit_mpi import mpi
from posse.cli.verbs.submit_tf import tf


class Kinds(VerbGroup):
    """Each kind under every name that people have for it."""

    aliases: ClassVar = {"mpi": "mpijob", "mj": "mpijob", "tf": "tfjob"}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, self.aliases.get(cmd_name, cmd_name))


@click.group("submit", cls=Kinds)
def submit() -> None:
    """Submit a training job."""


submit.add_command(mpi, "mpijob")
submit.add_command(tf, "tfjob")
