from __future__ import annotations

import asyncio

from posse.cli.grammar import switch
from posse.cli.options import App, verb
from posse.local.supervisor.home import Home
from posse.local.supervisor.stopping import down as stop


@verb("down")
@switch("--purge", help="Also delete what the cluster kept.")
def down(app: App, purge: bool) -> None:
    """Stop the cluster on this machine.

    What it kept stays for the next `up`, unless --purge says otherwise.
    """
    home = Home.find()
    stopped = asyncio.run(stop(home, purge=purge))
    app.say("The cluster has stopped" if stopped.was_running else "No cluster was running")
    if stopped.purged:
        stays = f"; what is yours stays there: {', '.join(stopped.left)}" if stopped.left else ""
        app.say(f"What it kept in {home.path} is deleted{stays}")
