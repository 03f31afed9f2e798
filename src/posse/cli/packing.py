"""What goes into `status --bundle`: of a cluster, and of this machine where it is the cluster."""

from __future__ import annotations

import msgspec

from posse.client.bundling import Bundle, gather, log_files
from posse.client.overview import look
from posse.kube import connect
from posse.kube.config import Settings
from posse.kube.errors import KubeError
from posse.local.supervisor.connecting import settings_for
from posse.local.supervisor.home import TOKENS, Home
from posse.local.supervisor.overseer import SERVICES
from posse.local.supervisor.reporting import status
from posse.local.supervisor.states import Address
from posse.version import __version__
from posse.world import World


def secrets_of(home: Home, there: Settings | None) -> list[str]:
    """What we ourselves sign in with: it must not be in a log either."""
    if there is not None:
        files = [there.token_file] if there.token_file is not None else []
        found = [secret for secret in (there.token, there.password) if secret]
    else:
        files, found = [home.token(user) for user in TOKENS], []
    for file in files:
        try:
            found.append(file.read_text(encoding="utf-8").strip())
        except OSError:
            continue  # it was never made
    return found


async def fill(
    bundle: Bundle, home: Home, there: Settings | None, namespace: str | None, world: World
) -> None:
    """A cluster that does not answer leaves a bundle with what lies on this machine."""
    bundle.document("versions.json", {"program": __version__, "written": world.now()})
    settings = there
    if there is None:
        bundle.document("services.json", await status(home, world))
        address = home.load(home.address, Address)
        settings = settings_for(home, address, "admin") if address is not None else None
        if settings is None:
            bundle.missing["the cluster"] = f"no cluster is running in {home.path}"
    if settings is not None:
        await _reach(bundle, settings, namespace or settings.namespace, world)
    if there is None:
        log_files(bundle, {name: home.log(name) for name in ("supervisor", *SERVICES)})


async def _reach(bundle: Bundle, settings: Settings, namespace: str, world: World) -> None:
    connection = connect(settings, world)
    try:
        await connection.version()  # a cluster that is away is asked once, not for each kind
        await gather(bundle, connection, namespace)
        overview = await look(connection, namespace)
        bundle.document(
            "status.json",
            msgspec.structs.replace(overview, context=settings.context, server=settings.server),
        )
    except KubeError as error:
        bundle.missing["status.json"] = str(error)
    finally:
        await connection.close()
