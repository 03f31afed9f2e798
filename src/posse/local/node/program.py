"""The node agent as a service: one coroutine that runs until cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from posse.kube.connection import Connection
from posse.kube.events import Recorder
from posse.local.node.agent import Agent
from posse.local.node.heartbeats import Heartbeats
from posse.local.node.kubelet import KubeletApi
from posse.local.node.registering import Registrar
from posse.local.node.runtime import PodRuntime
from posse.local.node.serving import listen, serve
from posse.local.node.simulation import SimulatedRuntime
from posse.world import World


class NodeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`nodes` as `manifests.simulated_nodes` or `processes.machine.machine_node` make them."""

    nodes: tuple[dict[str, Any], ...]
    token: str = ""  # shared with the API server, which alone may ask for logs
    serve: bool = False  # listen on a socket; without it the API is reached in process
    kubelet_port: int = 0  # 0: any free port
    certificate: Path = Path()
    key: Path = Path()
    heartbeat_every: float = 10.0
    lease_lasting: int = 40
    status_every: float = 300.0


async def run(
    config: NodeConfig,
    connection: Connection,
    world: World,
    *,
    runtime: PodRuntime | None = None,
    on_api: Callable[[KubeletApi], None] | None = None,
) -> None:
    """Without a `runtime` pods are simulated. `on_api` gets the kubelet's API once it answers."""
    bound = listen(config.kubelet_port) if config.serve else None
    try:
        port = bound.getsockname()[1] if bound is not None else config.kubelet_port
        registrar = Registrar(connection, world, config.nodes, port=port, every=config.status_every)
        recorder = Recorder(connection, world, "kubelet")
        running = runtime or SimulatedRuntime(world)
        agent = Agent(connection, world, config.nodes, running, registrar.cache, recorder)
        heartbeats = Heartbeats(
            connection,
            world,
            [node["metadata"]["name"] for node in config.nodes],
            registrar.present,
            every=config.heartbeat_every,
            lasting=config.lease_lasting,
        )
        api = KubeletApi(agent, world, token=config.token)
        if on_api is not None:
            on_api(api)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(recorder.run())
            tasks.create_task(running.run())
            if bound is not None:
                tasks.create_task(serve(api, bound, certificate=config.certificate, key=config.key))
            await registrar.register()
            tasks.create_task(registrar.run())
            await registrar.cache.synced()
            tasks.create_task(heartbeats.run())
            tasks.create_task(agent.run())
    finally:
        if bound is not None:
            bound.close()
