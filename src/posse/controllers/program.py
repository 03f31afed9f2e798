"""`posse controllers`: the reconcilers of every job kind, under one lease."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from posse.controllers.jobs.grouping import GangSettings
from posse.controllers.jobs.settings import Settings
from posse.controllers.mpi.controller import mpi_controller
from posse.controllers.runtime import Controller, Election, run_controllers
from posse.controllers.runtime.observing import Observer
from posse.controllers.tf.kind import tf_controller
from posse.kube.connection import Connection
from posse.world import World

LEASE_NAME = "posse-controllers"


class ControllersConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`kinds`: which job kinds are reconciled here; each has one controller in a cluster.

    `identity` names this replica in the lease, which lives in `namespace`; without an identity
    one is drawn. `cluster_domain` completes host names where a resolver does not.
    """

    kinds: tuple[str, ...] = ("MPIJob", "TFJob")
    enable_gang_scheduling: bool = True
    gang_scheduler_name: str = "posse"
    identity: str = ""
    namespace: str = "kube-system"
    cluster_domain: str = ""


_KINDS: dict[str, Callable[[Settings], Controller]] = {
    "MPIJob": mpi_controller,
    "TFJob": tf_controller,
}


def controllers_of(config: ControllersConfig) -> list[Controller]:
    """The controllers of the kinds asked for; ValueError names one that there is not."""
    settings = Settings(
        gang=GangSettings(config.enable_gang_scheduling, config.gang_scheduler_name),
        cluster_domain=config.cluster_domain,
    )
    unknown = [kind for kind in config.kinds if kind not in _KINDS]
    if unknown:
        raise ValueError(f"there is no controller for {unknown[0]!r}, only for {', '.join(_KINDS)}")
    return [_KINDS[kind](settings) for kind in config.kinds]


async def run(
    config: ControllersConfig,
    connection: Connection,
    world: World,
    *,
    observer: Observer | None = None,
) -> None:
    """Reconcile until cancelled; a second replica stands by until the lease is free."""
    identity = config.identity or f"{LEASE_NAME}-{world.suffix(8)}"
    await run_controllers(
        connection,
        world,
        controllers_of(config),
        election=Election(LEASE_NAME, config.namespace, identity),
        component=LEASE_NAME,
        observer=observer,
    )
