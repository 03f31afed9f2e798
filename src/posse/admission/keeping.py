"""Keeps the certificate good: in the Secret that all replicas share, in the API servers' trust.

Replicas agree through the Secret's resourceVersion: of two that renew at once one is told to read
again, and takes what the other wrote. The configurations are read before the Secret and patched
with the version that was read, so that nobody puts an older trust back over a newer one.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec

from posse.admission.certificates import Holding, held, renewed
from posse.admission.wire import Object
from posse.kube.connection import Connection, Patch
from posse.kube.errors import AlreadyExists, ConfigError, Conflict, Forbidden, KubeError, NotFound
from posse.objects.kinds import (
    MUTATING_WEBHOOK_CONFIGURATION,
    SECRET,
    VALIDATING_WEBHOOK_CONFIGURATION,
    Kind,
)
from posse.objects.raw import mapping, mappings, text
from posse.world import World

_log = logging.getLogger(__name__)

EVERY = 60.0
"""Seconds between looks: so long may one replica lag behind another."""
SPREADS_WITHIN = 10.0
"""Seconds in which API servers hear of a new authority, before its certificate is shown."""

_ATTEMPTS = 5
_RETRY = 2.0
_LONGEST_RETRY = 30.0
_CONFIGURATIONS = (MUTATING_WEBHOOK_CONFIGURATION, VALIDATING_WEBHOOK_CONFIGURATION)

T = TypeVar("T")
Adopt = Callable[[Holding], None]


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """`secret` in `namespace` holds the certificate, which is for `names` and `addresses`.

    `configuration` is the name of the two webhook configurations that are to trust it.
    """

    namespace: str
    secret: str
    configuration: str
    names: tuple[str, ...]
    addresses: tuple[str, ...] = ()


class Keeper:
    """`adopt` is told of every certificate that is to be shown from then on."""

    def __init__(
        self, keeping: Keeping, connection: Connection, world: World, adopt: Adopt
    ) -> None:
        self._keeping = keeping
        self._connection = connection
        self._world = world
        self._adopt = adopt
        self._shown: Holding | None = None

    async def run(self) -> None:
        """Forever; what cannot be done now is tried again, and the certificate shown stays."""
        failures = 0
        while True:
            try:
                await self.look()
                failures = 0
            except (KubeError, ConfigError, OSError, ValueError) as error:
                failures += 1
                _log.warning("certificates cannot be looked after: %s; trying again", error)
            pause = min(_LONGEST_RETRY, _RETRY * 2 ** min(failures, 5)) if failures else EVERY
            await asyncio.sleep(self._world.jitter(pause))

    async def look(self) -> None:
        """Once: renew what is due, have it trusted, show it."""
        holding = await self._until_agreed(self._trusted)
        shown = self._shown
        if shown is not None and shown.certificate == holding.certificate:
            return
        if shown is not None and _waits_for_trust(shown, holding):
            await asyncio.sleep(SPREADS_WITHIN)
        self._adopt(holding)
        self._shown = holding
        _log.info("a certificate for %s is shown", self._keeping.names[0])

    async def _until_agreed(self, attempt: Callable[[], Awaitable[T]]) -> T:
        for _ in range(_ATTEMPTS - 1):
            try:
                return await attempt()
            except (Conflict, AlreadyExists):
                await asyncio.sleep(self._world.jitter(0.1))
        return await attempt()

    async def _trusted(self) -> Holding:
        configurations = [(kind, await self._configuration(kind)) for kind in _CONFIGURATIONS]
        holding = await self._held()
        for kind, configuration in configurations:
            if configuration is not None:
                await self._trust(kind, configuration, holding)
        return holding

    async def _held(self) -> Holding:
        """What the Secret holds once it is good; Conflict where another replica was faster."""
        keeping = self._keeping
        try:
            secret: Object | None = await self._connection.get(
                SECRET, keeping.secret, keeping.namespace
            )
        except NotFound:
            secret = None
        found = held(secret)
        fresh = renewed(found, keeping.names, keeping.addresses, self._world)
        if fresh is found:
            return fresh
        if secret is None:
            await self._create(fresh)
        else:
            await self._connection.replace(SECRET, secret | {"data": fresh.data()})
        _log.info("certificates are renewed in secret %s/%s", keeping.namespace, keeping.secret)
        return fresh

    async def _create(self, fresh: Holding) -> None:
        keeping = self._keeping
        secret = {"metadata": {"name": keeping.secret}, "type": "Opaque", "data": fresh.data()}
        try:
            await self._connection.create(SECRET, secret, keeping.namespace)
        except Forbidden:
            # Whoever may create Secrets may have one made that holds another account's token.
            _log.error(
                "secret %s/%s is gone, and an installation makes it: run it again",
                keeping.namespace,
                keeping.secret,
            )
            raise

    async def _configuration(self, kind: Kind) -> Object | None:
        try:
            found: Object = await self._connection.get(kind, self._keeping.configuration)
        except NotFound:
            _log.debug("there is no %s %s", kind.kind, self._keeping.configuration)
            return None
        return found

    async def _trust(self, kind: Kind, configuration: Object, holding: Holding) -> None:
        bundle = base64.b64encode(holding.bundle).decode()
        stale = _stale(configuration, bundle)
        if not stale:
            return
        version = text(mapping(configuration, "metadata"), "resourceVersion")
        patch = {
            "metadata": {"resourceVersion": version},
            "webhooks": [{"name": name, "clientConfig": {"caBundle": bundle}} for name in stale],
        }
        await self._connection.patch(
            kind,
            self._keeping.configuration,
            patch,
            how=Patch.STRATEGIC,
            field_manager="posse-admission",
        )
        _log.info("%s %s trusts the webhook", kind.kind, self._keeping.configuration)


def _waits_for_trust(shown: Holding, holding: Holding) -> bool:
    """Whether what is shown is still good while the new authority becomes known; where everything
    was made anew it is not, and every second of it is a question without an answer."""
    return shown.authority != holding.authority and shown.authority in holding.bundle


def _stale(configuration: Object, bundle: str) -> Sequence[str]:
    """The webhooks that trust something else."""
    return [
        text(webhook, "name")
        for webhook in mappings(configuration, "webhooks")
        if text(webhook, "name") and text(mapping(webhook, "clientConfig"), "caBundle") != bundle
    ]
