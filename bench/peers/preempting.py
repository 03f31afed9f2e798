"""One gang of 500 that preempts on a full cluster: Posse and Volcano's gangpreempt in one run.

    python -m bench.peers.preempting [--rounds N] [--contenders posse,volcano]

Gangs of twenty fill the cluster and run; nobody else is on it. Then one gang of a higher priority
asks for half of it. The clock runs from the first request that creates something of it to its last
bind. Pods end at once when they are told to: what is measured is who schedules, not who shuts down.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import uvloop
import yaml

from bench.peers import workload
from bench.peers.contenders import CONTENDERS, POSSE, VOLCANO, Contender, definitions
from bench.peers.ground import Ground, each, ground
from bench.peers.measuring import Made, Sightings, Unmeasured, cpu_of
from bench.peers.workload import NAMESPACE, PODS_PER_NODE, Dialect, Gangs
from posse.kube import Change
from posse.objects.kinds import POD, PRIORITY_CLASS
from tests.kubernetes.building import Unavailable, build
from tests.kubernetes.programs import Program

_NODES = 64
_VICTIMS = Gangs(_NODES * PODS_PER_NODE // 20, 20)
_PREEMPTOR = Gangs(1, 500)
_PRIORITIES = {"low": 10, "high": 1000}
# What the program has to write after its last bind, and to read before the first.
_CALM = 3.0

_VOLCANO = {
    "actions": "enqueue, allocate, gangpreempt, backfill",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang"}, {"name": "conformance"}]},
        {
            "plugins": [
                {"name": "drf", "enablePreemptable": False},
                {"name": "predicates"},
                {"name": "proportion"},
                {"name": "nodeorder"},
                {"name": "binpack"},
            ]
        },
    ],
}


class Figures(msgspec.Struct, frozen=True):
    seconds: float
    """From the first create to the last bind."""
    first: float
    """To the first pod that was ended."""
    ended: int
    """Pods."""
    maimed: int
    """Gangs that lost some of their pods and not all."""
    cpu: float


class Endings(Sightings):
    """Also tells which pods went, and when."""

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        self.gone: dict[str, float] = {}

    def _see(self, change: Change[Any]) -> None:
        if change.new is None and change.old is not None:
            self.gone[change.old.metadata.name] = time.perf_counter()
        super()._see(change)


class Trial:
    def __init__(self, laid: Ground, contender: Contender, limit: float) -> None:
        words = [f"--scheduler-conf={_conf(laid)}"] if contender.name == VOLCANO else []
        self._ground = laid
        self._contender = contender
        self._limit = limit
        self._program: Program = contender.program(laid.plane, *words)
        self._seen = Endings(laid)

    async def run(self) -> Figures:
        """Unmeasured says why there are no figures."""
        try:
            await self._ground.define(self._contender.groups())
            async with self._seen.watching():
                self._program.start()
                await self._fill()
                return await self._preempt()
        finally:
            self._program.stop()
            await self._ground.clear()

    async def _fill(self) -> None:
        await self._create(_VICTIMS, "victim", "low")
        await self._bound(_VICTIMS.pods)
        await each(self._runs, list(self._seen.bound))
        await asyncio.sleep(_CALM)

    async def _preempt(self) -> Figures:
        seen = self._seen
        cpu, began = cpu_of(self._program), time.perf_counter()
        await self._create(_PREEMPTOR, "preemptor", "high")
        await self._bound(_VICTIMS.pods + _PREEMPTOR.pods)
        ended = list(seen.gone)
        await asyncio.sleep(_CALM)
        lost = Counter(map(workload.gang_of, ended))
        return Figures(
            seconds=seen.last - began,
            first=min(seen.gone.values()) - began,
            ended=len(ended),
            maimed=sum(1 for members in lost.values() if members < _VICTIMS.size),
            cpu=cpu_of(self._program) - cpu,
        )

    async def _create(self, gangs: Gangs, prefix: str, priority: str) -> None:
        connection, scheduler = self._ground.connection, self._contender.scheduler

        async def pod(at: tuple[str, int]) -> None:
            made = workload.pod(*at, scheduler, Dialect.ANNOTATION)
            made["metadata"]["annotations"]["volcano.sh/preemptable"] = "true"
            made["metadata"]["ownerReferences"] = [_owner(at[0])]
            made["spec"] |= {"priorityClassName": priority, "terminationGracePeriodSeconds": 0}
            await connection.create(POD, made, model=Made)

        for gang in gangs.names(prefix):
            group = workload.group(gang, gangs.size, Dialect.ANNOTATION)
            group["spec"]["priorityClassName"] = priority
            await connection.create(Dialect.ANNOTATION.kind, group, model=Made)
            await each(pod, [(gang, index) for index in range(gangs.size)])

    async def _bound(self, pods: int) -> None:
        """Until so many have ever been."""
        bound = self._seen.bound
        try:
            async with asyncio.timeout(self._limit):
                await self._seen.until(bound, pods, self._program)
        except TimeoutError:
            raise Unmeasured(
                f"{len(bound):,} of {pods:,} pods bound after {self._limit:.0f} s,"
                f" {len(self._seen.gone):,} ended"
            ) from None

    async def _runs(self, name: str) -> None:
        """Says of a pod what its kubelet would."""
        conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
        running = {"status": {"phase": "Running", "conditions": conditions}}
        await self._ground.connection.patch(POD, name, running, NAMESPACE, subresource="status")


def _owner(gang: str) -> dict[str, Any]:
    """Somebody would make the pod anew; here nobody does, so that nobody takes the room back."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": gang,
        "uid": f"00000000-0000-4000-8000-{gang.rpartition('-')[2]:0>12}",
        "controller": True,
    }


def _conf(laid: Ground) -> Path:
    place = laid.directory / "gangpreempt.conf"
    place.write_text(yaml.safe_dump(_VOLCANO, sort_keys=False))
    return place


async def _go(names: list[str], rounds: int, limit: float) -> dict[str, list[Figures]]:
    found: dict[str, list[Figures]] = {}
    with tempfile.TemporaryDirectory(prefix="posse-peers-") as directory:
        async with ground(Path(directory), _NODES) as laid:
            for name, value in _PRIORITIES.items():
                made = {"metadata": {"name": name}, "value": value}
                await laid.connection.create(PRIORITY_CLASS, made)
            if VOLCANO in names:
                for place in definitions():
                    laid.plane.kubectl("apply", "--server-side", "-f", str(place))
            for number in range(rounds):
                turn = number % len(names)
                for name in names[turn:] + names[:turn]:
                    said = f"round {number + 1}: {CONTENDERS[name].title}"
                    try:
                        figures = await Trial(laid, CONTENDERS[name], limit).run()
                    except Unmeasured as why:
                        print(f"{said}: not measured: {why}", file=sys.stderr, flush=True)
                        continue
                    found.setdefault(name, []).append(figures)
                    print(f"{said}: {figures.seconds:.2f} s", file=sys.stderr, flush=True)
    return found


def _lines(found: dict[str, list[Figures]]) -> list[str]:
    """Medians; who was not measured has no line."""
    lines = [
        f"{'scheduler':<12} {'rounds':>6} {'s':>7} {'first s':>8} {'ended':>6} {'maimed':>7}"
        f" {'CPU s':>6}"
    ]
    for name, rounds in found.items():
        lines.append(
            f"{CONTENDERS[name].title:<12} {len(rounds):>6}"
            f" {median(f.seconds for f in rounds):>7.2f} {median(f.first for f in rounds):>8.2f}"
            f" {median(f.ended for f in rounds):>6.0f} {median(f.maimed for f in rounds):>7.0f}"
            f" {median(f.cpu for f in rounds):>6.2f}"
        )
    if {POSSE, VOLCANO} <= found.keys():
        ours, theirs = (median(f.seconds for f in found[name]) for name in (POSSE, VOLCANO))
        lines.append(f"Posse takes {ours / theirs:.2f} x Volcano's time")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench.peers.preempting",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contenders", default=f"{POSSE},{VOLCANO}")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one measurement")
    options = parser.parse_args()
    try:
        build()
        names = options.contenders.split(",")
        found = uvloop.run(_go(names, options.rounds, options.limit))
    except (Unavailable, KeyError) as why:
        sys.exit(f"bench.peers.preempting: {why}")
    print(
        f"{_VICTIMS} pods run on {_NODES} nodes with {PODS_PER_NODE} seats each;"
        f" one gang of {_PREEMPTOR.size} preempts. {os.cpu_count()} cores,"
        f" {platform.platform()}, Python {platform.python_version()}"
    )
    for line in _lines(found):
        print(line)
    print("s: first create to last bind. first s: to the first pod that was ended.")
    print("ended: pods. maimed: gangs that lost some of their pods and not all.")


if __name__ == "__main__":
    main()
