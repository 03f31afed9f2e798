"""What a cluster was asked to be."""

from __future__ import annotations

from pathlib import Path
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
from posse.objects.kinds import NODE
from posse.objects.schemas.core import core_schema
from posse.objects.validating import validate_create
from posse.version import __version__

MOST_NODES = 65_536


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Written whole: a default left out would be that of whichever version reads it.

    `nodes` are Node manifests, `simulate` is a number of equal ones; where neither is given, this
    machine is the only node, under the name `machine`."""

    simulate: int = 0
    gpus: int = 0
    cpus: str = DEFAULT_CPUS
    memory: str = DEFAULT_MEMORY
    nodes: tuple[dict[str, Any], ...] = ()
    machine: str = ""
    isolation: str = ""  # the mode that was asked for; empty: the best that works
    allow_host_paths: tuple[str, ...] = ()
    private: tuple[str, ...] = ()  # files of the user that no pod may see
    port: int = 0  # 0: any free port
    metrics_port: int = 0  # of the scheduler, on loopback; the controllers' is the next; 0: none
    version: str = __version__

    def check(self) -> None:
        """Raises ClusterError where no cluster can be made of these options."""
        if not self.nodes and not self.simulate and not self.machine:
            raise ClusterError("name the nodes: --simulate N, or --nodes FILE")
        if self.nodes and self.simulate:
            raise ClusterError("--simulate and --nodes exclude each other")
        if not 0 <= self.simulate <= MOST_NODES:
            raise ClusterError(f"--simulate must be between 1 and {MOST_NODES}")
        if self.gpus < 0:
            raise ClusterError(f"--gpus must be 0 or more, not {self.gpus}")
        if not 0 <= self.port <= 65535:
            raise ClusterError(f"--port must be between 0 and 65535, not {self.port}")
        if not 0 <= self.metrics_port < 65535:
            raise ClusterError(
                f"--metrics-port must be between 0 and 65534, not {self.metrics_port}"
            )
        if self.machine:
            self._check_machine()
        self.manifests()

    def _check_machine(self) -> None:
        for name, default in (("gpus", 0), ("cpus", DEFAULT_CPUS), ("memory", DEFAULT_MEMORY)):
            if getattr(self, name) != default:
                raise ClusterError(
                    f"--{name} is for simulated nodes (--simulate N); this machine has what it has"
                )
        if self.isolation not in ("", "namespaces", "none"):
            raise ClusterError(f"POSSE_ISOLATION is namespaces or none, not {self.isolation}")
        for path in self.allow_host_paths:
            if not Path(path).is_absolute() or not Path(path).is_dir():
                raise ClusterError(f"--allow-host-path {path} is not the path of a directory")

    def names(self) -> list[str]:
        """The names of the nodes."""
        if self.machine:
            return [self.machine]
        return [str(node["metadata"]["name"]) for node in self.manifests()]

    def manifests(self) -> list[dict[str, Any]]:
        """The simulated nodes; this machine announces itself."""
        if self.machine:
            return []
        try:
            if not self.nodes:
                return simulated_nodes(self.simulate, self.gpus, self.cpus, self.memory)
            made = [simulated(node) for node in self.nodes]
        except NodeError as error:
            raise ClusterError(str(error)) from error
        names: dict[str, None] = {}
        for node in made:
            name = node["metadata"]["name"]
            problems = core_schema(NODE).validate(node) or validate_create(NODE, node)
            if problems:
                raise ClusterError(f"node {name!r}: {problems[0].field}: {problems[0].message}")
            if name in names:
                raise ClusterError(f"there are two nodes named {name}")
            names[name] = None
        return made

    def _source(self) -> str:
        """By which flag one gets such nodes."""
        return "the nodes of a file (--nodes)" if self.nodes else f"--simulate {self.simulate}"

    def difference(self, running: Options, port: int) -> str | None:
        """In which way a running cluster, listening on `port`, is not what these options ask."""
        if bool(self.machine) != bool(running.machine):
            kinds = {True: "this machine as its node", False: "simulated nodes"}
            return f"it runs with {kinds[bool(running.machine)]}, not {kinds[bool(self.machine)]}"
        if self.isolation and self.isolation != running.isolation:
            return f"it runs with POSSE_ISOLATION={running.isolation}, not {self.isolation}"
        if self.allow_host_paths != running.allow_host_paths:
            return "it runs with other --allow-host-path"
        if bool(self.nodes) != bool(running.nodes):
            return f"it runs with {running._source()}, not {self._source()}"
        for name in ("simulate", "gpus", "cpus", "memory"):
            asked, has = getattr(self, name), getattr(running, name)
            if asked != has:
                return f"it runs with --{name} {has}, not {asked}"
        if self.metrics_port not in (0, running.metrics_port):
            return f"it runs with --metrics-port {running.metrics_port}, not {self.metrics_port}"
        if self.nodes != running.nodes:
            return "it runs with other --nodes"
        if self.port not in (0, port):
            return f"it listens on port {port}, not {self.port}"
        if self.version != running.version:
            return f"it runs version {running.version}, this is {self.version}"
        return None
