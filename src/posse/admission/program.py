"""`posse admission`: the webhook, until cancelled. Any number of replicas answer at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from posse.admission.app import Webhook
from posse.admission.certificates import Holding
from posse.admission.keeping import Keeper, Keeping
from posse.admission.live import LiveAuthorizer, LiveReader
from posse.admission.naming import CONFIGURATION, KEPT_IN, SERVICE, SYSTEM
from posse.admission.observing import Observer
from posse.admission.serving import Shown, serve
from posse.kube.connection import Connection
from posse.kube.serving import EVERYWHERE, Address, listen
from posse.world import World


class AdmissionConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The Service `service` in `namespace` leads here, and so do `addresses`."""

    namespace: str = SYSTEM
    service: str = SERVICE
    secret: str = KEPT_IN
    configuration: str = CONFIGURATION
    address: Address = Address(EVERYWHERE, 9443)
    addresses: tuple[str, ...] = ()
    on_ready: Callable[[int], None] | None = None
    """Told the port as soon as there is a certificate to show there."""

    @property
    def names(self) -> tuple[str, ...]:
        place = f"{self.service}.{self.namespace}"
        return (f"{place}.svc", f"{place}.svc.cluster.local", place)


async def run(
    config: AdmissionConfig,
    connection: Connection,
    world: World,
    *,
    observer: Observer | None = None,
) -> None:
    """OSError when the port cannot be had. Nobody is answered before there is a certificate."""
    observer = observer or Observer()
    connection = Connection(
        observer.measured(connection.transport), world, namespace=connection.namespace
    )
    shown = Shown()

    def adopt(holding: Holding) -> None:
        shown.show(holding.certificate, holding.key)
        observer.certified(holding.certificate, holding.authority)

    keeping = Keeping(
        namespace=config.namespace,
        secret=config.secret,
        configuration=config.configuration,
        names=config.names,
        addresses=config.addresses,
    )
    keeper = Keeper(keeping, connection, world, adopt)
    webhook = Webhook(LiveReader(connection), LiveAuthorizer(connection), world, observer)
    bound = listen(config.address)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(keeper.run(), name="certificates")
            await shown.loaded()
            observer.works()
            if config.on_ready is not None:
                config.on_ready(bound.getsockname()[1])
            await serve(webhook, bound, shown)
    finally:
        bound.close()
