"""A scheduler that starts on a large, busy cluster: how long until it first decides.

    python -m bench.peers.restart [--nodes 5000] [--pods 50000] [--rounds 3]

Nearly all pods have their nodes, in gangs of twenty; before every round a few gangs are added that
have not. The clock runs from the start of the program to its first bind, and to its last. It starts
under the identity of the one before, and so does not wait for a lease to run out.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec
import uvloop

from bench.peers import workload
from bench.peers.contenders import CONTENDERS, POSSE
from bench.peers.ground import Ground, each, ground
from bench.peers.measuring import Made, Sightings, Unmeasured, create, peak
from bench.peers.workload import Dialect, Gangs
from posse.objects.groups import PodGroup
from posse.objects.kinds import POD
from tests.kubernetes.building import Unavailable, build

_SIZE = 20
_NEW = Gangs(10, _SIZE)
_LIMIT = 300.0
_POSSE = CONTENDERS[POSSE]


class Round(msgspec.Struct, frozen=True):
    first: float
    last: float
    rss: int


class Loading:
    """Gangs that run already: groups, and pods that come with their node."""

    def __init__(self, ground: Ground, nodes: int, pods: int) -> None:
        self._ground = ground
        self._nodes = nodes
        self._gangs = Gangs(pods // _SIZE, _SIZE)
        self._made = 0
        self._began = time.monotonic()

    async def load(self) -> None:
        await each(self._gang, enumerate(self._gangs.names("old")))

    async def _gang(self, numbered: tuple[int, str]) -> None:
        number, name = numbered
        kind = Dialect.ANNOTATION.kind
        group = workload.group(name, _SIZE, Dialect.ANNOTATION)
        await self._ground.connection.create(kind, group, model=Made)
        for index in range(_SIZE):
            pod = workload.pod(name, index, _POSSE.scheduler, Dialect.ANNOTATION)
            pod["spec"]["nodeName"] = workload.node_name((number * _SIZE + index) % self._nodes)
            await self._ground.connection.create(POD, pod, model=Made)
            self._made += 1
            if self._made % 5000 == 0:
                say(f"{self._made:,} pods after {time.monotonic() - self._began:.0f} s")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


async def start(laid: Ground, number: int) -> Round:
    """One start, with new work waiting for it, and its end."""
    sightings = Sightings(laid)
    program = _POSSE.program(laid.plane, "--identity=posse-restarted")
    async with sightings.watching():
        sightings.forget()
        await create(laid, _POSSE, _NEW, f"new{number}")
        began = time.perf_counter()
        program.start()
        try:
            async with asyncio.timeout(_LIMIT):
                await sightings.until(sightings.bound, _NEW.pods, program)
            return Round(sightings.first - began, sightings.last - began, peak(program))
        except TimeoutError:
            raise Unmeasured(f"not within {_LIMIT:.0f} s:\n{program.tail()}") from None
        finally:
            program.stop()


async def settle(laid: Ground) -> None:
    """A first leader writes down how the gangs stand, as any has that was there before."""
    program = _POSSE.program(laid.plane, "--identity=posse-restarted")
    program.start()
    try:
        async with asyncio.timeout(_LIMIT):
            while await _unwritten(laid):  # noqa: ASYNC110 - a look now and then is enough
                await asyncio.sleep(2)
    except TimeoutError:
        raise Unmeasured(f"groups without a phase after {_LIMIT:.0f} s") from None
    finally:
        program.stop()


async def _unwritten(laid: Ground) -> bool:
    groups = await laid.connection.list(Dialect.ANNOTATION.kind, model=PodGroup, limit=1000)
    return any(group.status.phase != "Running" for group in groups.items)


async def measure(nodes: int, pods: int, rounds: int) -> list[Round]:
    with tempfile.TemporaryDirectory(prefix="posse-restart-") as directory:
        say(f"{nodes:,} nodes")
        async with ground(Path(directory), nodes) as laid:
            say(f"{pods:,} pods")
            await Loading(laid, nodes, pods).load()
            await settle(laid)
            measured = []
            for number in range(rounds):
                measured.append(await start(laid, number))
                took = measured[-1]
                say(f"round {number + 1}: first bind after {took.first:.2f} s")
            return measured


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.peers.restart", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    try:
        build()
        rounds = uvloop.run(measure(options.nodes, options.pods, options.rounds))
    except (Unavailable, Unmeasured) as why:
        sys.exit(f"bench-restart: {why}")
    print(f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}")
    print(
        f"posse scheduler on {options.nodes:,} nodes and {options.pods:,} bound pods,"
        f" {_NEW} waiting; median of {len(rounds)}:"
        f" first bind {median(r.first for r in rounds):.2f} s after its start,"
        f" all {_NEW.pods} bound after {median(r.last for r in rounds):.2f} s,"
        f" peak RSS {median(r.rss for r in rounds) / 2**20:.0f} MiB"
    )


if __name__ == "__main__":
    main()
