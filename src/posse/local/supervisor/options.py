"""What a cluster was asked to be."""

from __future__ import annotations

from typing import Any

import msgspec

from posse.local.node.manifests import (
    DEFAULT_CPUS,
    DEFAULT_MEMORY,
    NodeError,
    simulated,
    simulated_nodes,
)
from posse.local.supervisor.errors import ClusterError
from posse.version import __version__

MOST_NODES = 65_536


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Written whole: a default left out would be that of whichever version reads it.

    `nodes` are Node manifests; without them, `simulate` equal nodes are made."""

    simulate: int = 0
    gpus: int = 0
    cpus: str = DEFAULT_CPUS
    memory: str = DEFAULT_MEMORY
    nodes: tuple[dict[str, Any], ...] = ()
    port: int = 0  # 0: any free port
    version: str = __version__

    def check(self) -> None:
        """Raises ClusterError where no cluster can be made of these options."""
        if not self.nodes and not self.simulate:
            raise ClusterError("name the nodes: --simulate N, or --nodes FILE")
        if self.nodes and self.simulate:
            raise ClusterError("--simulate and --nodes exclude each other")
        if not 0 <= self.simulate <= MOST_NODES:
            raise ClusterError(f"--simulate must be between 1 and {MOST_NODES}")
        if self.gpus < 0:
            raise ClusterError(f"--gpus must be 0 or more, not {self.gpus}")
        if not 0 <= self.port <= 65535:
            raise ClusterError(f"--port must be between 0 and 65535, not {self.port}")
        self.manifests()

    def manifests(self) -> list[dict[str, Any]]:
        try:
            if not self.nodes:
                return simulated_nodes(self.simulate, self.gpus, self.cpus, self.memory)
            made = [simulated(node) for node in self.nodes]
        except NodeError as error:
            raise ClusterError(str(error)) from error
        names: dict[str, None] = {}
        for node in made:
            name = node["metadata"]["name"]
            if name in names:
                raise ClusterError(f"there are two nodes named {name}")
            names[name] = None
        return made

    def difference(self, running: Options, port: int) -> str | None:
        """In which way a running cluster, listening on `port`, is not what these options ask."""
        for name in ("simulate", "gpus", "cpus", "memory"):
            asked, has = getattr(self, name), getattr(running, name)
            if asked != has:
                return f"it runs with --{name} {has}, not {asked}"
        if self.nodes != running.nodes:
            return "it runs with other --nodes"
        if self.port not in (0, port):
            return f"it listens on port {port}, not {self.port}"
        if self.version != running.version:
            return f"it runs version {running.version}, this is {self.version}"
        return None
