"""The core controllers as a service: one coroutine that runs until cancelled."""

from __future__ import annotations

import asyncio

import msgspec

from posse.controllers.runtime import run_controllers
from posse.kube.connection import Connection
from posse.kube.events import Recorder
from posse.local.core.budgets import budget_controller
from posse.local.core.claims import claim_controller, volume_controller
from posse.local.core.collecting import Collector
from posse.local.core.deployments import deployment_controller
from posse.local.core.disruptions import disruption_controller
from posse.local.core.endpoints import endpoints_controller
from posse.local.core.jobs import job_controller
from posse.local.core.namespaces import namespace_controller
from posse.local.core.nodes import NodeMonitor
from posse.local.core.replica_sets import replica_set_controller
from posse.local.core.serving import ServedKinds
from posse.world import World

COMPONENT = "posse-core"


class CoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    node_grace: float = 40.0  # a node that is silent for longer is Unknown
    orphan_grace: float = 40.0  # how long a pod outlives its node's object
    monitor_every: float = 1.0


async def run(config: CoreConfig, connection: Connection, world: World) -> None:
    served = ServedKinds(connection, world)
    recorder = Recorder(connection, world, COMPONENT)
    collector = Collector(connection, world, served)
    monitor = NodeMonitor(
        connection,
        world,
        recorder,
        grace=config.node_grace,
        orphan_grace=config.orphan_grace,
        every=config.monitor_every,
    )
    controllers = (
        namespace_controller(served),
        job_controller(),
        replica_set_controller(),
        deployment_controller(),
        endpoints_controller(),
        budget_controller(served),
        disruption_controller(),
        claim_controller(),
        volume_controller(),
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(recorder.run())
        tasks.create_task(served.run())
        tasks.create_task(collector.run())
        tasks.create_task(monitor.run())
        tasks.create_task(run_controllers(connection, world, controllers, component=COMPONENT))
