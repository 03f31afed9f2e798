"""How the services of a home, and its user, reach its API server."""

from __future__ import annotations

from posse.kube import connect as open_connection
from posse.kube.config import Settings
from posse.kube.connection import Connection
from posse.local.supervisor.home import Home
from posse.local.supervisor.states import Address
from posse.world import World


def settings_for(home: Home, address: Address, user: str) -> Settings:
    return Settings(server=address.server, ca_file=home.authority, token_file=home.token(user))


def connect(home: Home, address: Address, user: str, world: World) -> Connection:
    return open_connection(settings_for(home, address, user), world)
