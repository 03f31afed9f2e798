from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import click

from posse.cli.grammar import switch
from posse.cli.options import App, verb
from posse.local.apiserver.goyaml import YamlError, load_all
from posse.local.node.manifests import DEFAULT_CPUS, DEFAULT_MEMORY
from posse.local.node.naming import node_name
from posse.local.supervisor import lifeline
from posse.local.supervisor.errors import ClusterError
from posse.local.supervisor.home import Home
from posse.local.supervisor.options import Options
from posse.local.supervisor.starting import Started, foreground
from posse.local.supervisor.starting import up as start
from posse.world import World

DEEPEST = 100


@verb("up")
@click.option("--simulate", type=int, default=None, metavar="N", help="N nodes that run nothing.")
@click.option("--gpus", type=int, default=0, metavar="G", help="GPUs of each node.")
@click.option("--cpus", default=DEFAULT_CPUS, metavar="C", help="CPUs of each node.")
@click.option("--memory", default=DEFAULT_MEMORY, metavar="M", help="Memory of each node.")
@click.option("--nodes", "nodes_file", default=None, metavar="FILE", help="Node manifests instead.")
@click.option(
    "--allow-host-path",
    "host_paths",
    multiple=True,
    metavar="DIR",
    help="A directory of this machine that pods may mount. May be repeated.",
)
@click.option("--port", type=int, default=0, help="The API server's port; 0 is any free one.")
@click.option(
    "--metrics-port",
    type=int,
    default=0,
    metavar="PORT",
    help="Serve /metrics on loopback: the scheduler's here, the controllers' on the next port.",
)
@switch("--foreground", "in_front", help="Stay, and stop the cluster when interrupted.")
@switch("--no-select", help="Do not select the context `posse` in the kubeconfig.")
def up(
    app: App,
    simulate: int | None,
    gpus: int,
    cpus: str,
    memory: str,
    nodes_file: str | None,
    host_paths: tuple[str, ...],
    port: int,
    metrics_port: int,
    in_front: bool,
    no_select: bool,
) -> None:
    """Start a cluster on this machine.

    Returns when it is ready. Run again, it finds the cluster running.

    \b
    posse up                           this machine as the only node: pods are its processes
    posse up --simulate 4 --gpus 2     four nodes of two GPUs each that run nothing
    """
    kubeconfig = Path(app.options.kubeconfig) if app.options.kubeconfig else None
    if simulate is not None and simulate < 1:
        raise click.UsageError(f"--simulate must be 1 or more, not {simulate}")
    here = not simulate and not nodes_file
    options = Options(
        simulate=simulate or 0,
        gpus=gpus,
        cpus=cpus,
        memory=memory,
        nodes=_manifests(nodes_file) if nodes_file else (),
        machine=node_name() if here else "",
        isolation=os.environ.get("POSSE_ISOLATION", "") if here else "",
        allow_host_paths=tuple(str(Path(path).absolute()) for path in host_paths),
        private=_private(kubeconfig) if here else (),
        port=port,
        metrics_port=metrics_port,
    )
    try:
        options.check()
    except ClusterError as error:
        raise click.UsageError(str(error)) from error
    home, world = Home.find(), World.real()
    if in_front:
        asyncio.run(
            lifeline.hold(
                foreground(
                    home,
                    options,
                    world,
                    select=not no_select,
                    kubeconfig=kubeconfig,
                    on_ready=lambda started: _tell(app, started, not no_select),
                )
            )
        )
        return
    started = asyncio.run(start(home, options, world, select=not no_select, kubeconfig=kubeconfig))
    _tell(app, started, not no_select)


def _tell(app: App, started: Started, selected: bool) -> None:
    state = "is already running" if started.already else "is ready"
    nodes = f"{started.nodes} node{'' if started.nodes == 1 else 's'}"
    app.say(f"The cluster {state}: {nodes}, API server at {started.server}")
    how = "selected" if selected else "not selected; use --context posse"
    app.say(f"kubeconfig context `posse` in {started.kubeconfig} ({how})")


def _private(kubeconfig: Path | None) -> tuple[str, ...]:
    """The user's kubeconfig files, wherever they lie: pods must not see them."""
    named = os.environ.get("KUBECONFIG", "").split(os.pathsep)
    files = [*([str(kubeconfig)] if kubeconfig else []), *named]
    return tuple(str(Path(file).expanduser().absolute()) for file in files if file)


def _manifests(name: str) -> tuple[dict[str, Any], ...]:
    try:
        documents = load_all(Path(name).read_text(encoding="utf-8"), DEEPEST)
    except OSError as error:
        raise click.UsageError(f"--nodes: {name}: {error.strerror}") from error
    except (UnicodeDecodeError, YamlError) as error:
        raise click.UsageError(f"--nodes: {name} is not YAML: {error}") from error
    found: list[Any] = []
    for document in documents:
        value = document.value
        items = value.get("items") if isinstance(value, dict) and "items" in value else [value]
        found += (
            [item for item in items if item is not None] if isinstance(items, list) else [items]
        )
    if not found:
        raise click.UsageError(f"--nodes: {name} holds no Node")
    for item in found:
        if not isinstance(item, dict) or item.get("kind") != "Node":
            raise click.UsageError(f"--nodes: {name} holds something that is not a Node")
    return tuple(found)
