"""`status`: what runs, since when, and what is wrong."""

from __future__ import annotations

import msgspec

from posse.kube.errors import KubeError
from posse.local.node.processes.isolation.modes import LACKS
from posse.local.supervisor.connecting import connect
from posse.local.supervisor.home import Home
from posse.local.supervisor.options import Options
from posse.local.supervisor.overseer import LOCK
from posse.local.supervisor.readiness import missing
from posse.local.supervisor.states import Address, ServiceState, State
from posse.objects.keys import ISOLATION_LABEL
from posse.objects.kinds import NODE
from posse.objects.nodes import Node
from posse.version import __version__
from posse.world import World


class Report(msgspec.Struct, frozen=True, kw_only=True):
    running: bool
    ready: bool = False
    problem: str = ""
    home: str = ""
    server: str = ""
    pid: int = 0
    version: str = ""  # of the running cluster
    program: str = __version__  # of this program
    kubernetes: str = ""  # the version that the API server says it speaks
    nodes: int = 0
    nodes_ready: int = 0
    isolation: str = ""  # how pods are kept apart, where they are processes of this machine
    lacks: tuple[str, ...] = ()  # what does not work in that mode
    services: tuple[ServiceState, ...] = ()


async def status(home: Home, world: World) -> Report:
    where = str(home.path)
    if not home.held(LOCK):
        return Report(running=False, home=where)
    state = home.load(home.state, State)
    options = home.load(home.options, Options)
    if state is None or options is None:
        damaged = home.state if state is None else home.options
        pid = home.holder(LOCK) or 0
        return Report(running=True, home=where, pid=pid, problem=f"{damaged} cannot be read")
    base = Report(
        running=True,
        home=where,
        pid=state.pid,
        version=state.version,
        services=state.services,
        problem=state.problem,
    )
    address = home.load(home.address, Address)
    if address is None:
        return base
    names = options.names()
    connection = connect(home, address, "admin", world)
    try:
        lack = await missing(connection, world, identity=home.name(world), nodes=names)
        version = str((await connection.version()).get("gitVersion") or "")
        present = (await connection.list(NODE, model=Node)).items
    except KubeError as error:
        return msgspec.structs.replace(base, server=address.server, problem=str(error))
    finally:
        await connection.close()
    labels = {node.metadata.name: node.metadata.labels for node in present}
    mode = labels.get(options.machine, {}).get(ISOLATION_LABEL, "")
    return msgspec.structs.replace(
        base,
        server=address.server,
        ready=lack is None,
        problem="" if lack is None else lack.what,
        kubernetes=version,
        nodes=len(present),
        nodes_ready=sum(node.ready for node in present),
        isolation=mode,
        lacks=LACKS.get(mode, ()),
    )
