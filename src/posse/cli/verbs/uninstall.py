from __future__ import annotations

import asyncio

from posse.cli.grammar import switch
from posse.cli.options import App, verb
from posse.cli.verbs.install import cluster
from posse.client.installing.rehearsing import rehearse_removal
from posse.client.installing.removing import leavings
from posse.client.installing.removing import uninstall as remove
from posse.kube import connect
from posse.world import World


@verb("uninstall")
@switch(
    "--purge-crds",
    help="Also remove the definitions that Posse brought, and with them every job, PodGroup and"
    " Queue of theirs.",
)
@switch("--dry-run", help="Print what would be removed, and change nothing.")
def uninstall(app: App, purge_crds: bool, dry_run: bool) -> None:
    """Remove Posse's programs, roles and webhooks from the cluster of the kubeconfig.

    Definitions (CRDs), Queues, PodGroups and jobs stay, unless --purge-crds says otherwise;
    definitions that are not Posse's always do.
    """
    asyncio.run(_uninstall(app, purge=purge_crds, dry_run=dry_run))


async def _uninstall(app: App, *, purge: bool, dry_run: bool) -> None:
    connection = connect(cluster(app), World.real())
    try:
        found = await leavings(connection, purge=purge)
        if dry_run:
            for one in found:
                app.show(str(one))
            return
        if (obstacle := await rehearse_removal(connection, found)) is not None:
            raise type(obstacle)(f"nothing was removed: {obstacle}")
        await remove(connection, found, app.show)
        app.say("Posse is uninstalled" if found else "There was nothing of Posse to remove")
    finally:
        await connection.close()
