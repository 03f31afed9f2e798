"""Which cluster is meant: the one on this machine, or the one of the kubeconfig."""

from __future__ import annotations

from urllib.parse import urlsplit

from posse.cli.options import App
from posse.kube.config import NothingSelected, Settings, selected
from posse.local.supervisor.contexts import CONTEXT
from posse.local.supervisor.home import Home
from posse.local.supervisor.overseer import LOCK
from posse.local.supervisor.states import Address


def elsewhere(app: App, home: Home) -> Settings | None:
    """How to reach the cluster that is meant; None when it is the one of `home`.

    Where nothing is said and nothing is selected, it is the one on this machine.
    """
    named, context = app.options.kubeconfig, app.options.context
    try:
        settings = selected(named, context)
    except NothingSelected:
        if named or context:
            raise
        return None
    return None if _is_of(home, settings) else settings


def _is_of(home: Home, settings: Settings) -> bool:
    address = home.load(home.address, Address)
    if address is not None and settings.server == address.server:
        return True
    # Our context may have outlived a cluster that was killed: that one is not elsewhere either.
    loopback = urlsplit(settings.server).hostname == "127.0.0.1"
    return settings.context == CONTEXT and loopback and not home.held(LOCK)
