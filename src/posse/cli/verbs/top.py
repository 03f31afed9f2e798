from __future__ import annotations

import click

from posse.cli.formats import output_option
from posse.cli.grammar import VerbGroup
from posse.cli.layout import columns, document
from posse.cli.options import App, verb
from posse.client.errors import PosseError
from posse.client.nodes import NodeUse


@click.group("top", cls=VerbGroup)
def top() -> None:
    """Show how the GPUs are used."""


@verb("node")
@click.argument("names", nargs=-1, metavar="[NODE...]")
@output_option
def node(app: App, names: tuple[str, ...], output: str) -> None:
    """Show nodes and their GPUs."""
    with app.client() as client:
        nodes = client.nodes()
    known = {n.name for n in nodes}
    if unknown := [name for name in names if name not in known]:
        raise PosseError(f"there is no node {', '.join(unknown)}")
    chosen = [n for n in nodes if not names or n.name in names]
    if output in ("json", "yaml"):
        app.show(document(chosen, output))
    elif output == "name":
        for one in chosen:
            app.show(one.name)
    else:
        app.show(_table(chosen))


def _table(nodes: list[NodeUse]) -> str:
    rows: list[tuple[object, ...]] = [
        ("NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)")
    ]
    rows += [(n.name, n.address, n.role, n.status, n.gpus, n.allocated) for n in nodes]
    total, taken = sum(n.gpus for n in nodes), sum(n.allocated for n in nodes)
    share = 100 * taken / total if total else 0.0
    return (
        f"{columns(rows)}\n{'-' * 99}\nAllocated/Total GPUs In Cluster:\n"
        f"{taken}/{total} ({share:.1f}%)"
    )


top.add_command(node)
