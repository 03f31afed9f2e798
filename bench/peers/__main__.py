"""Posse and its peers at the same work, on the same real API server, in one run.

    python -m bench.peers [--gangs 200x20,...] [--modes online,backlog] [--rounds N]
                          [--contenders null,posse,native,volcano] [--nodes N]

The rounds of all contenders alternate; the table has their medians.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from bench.peers.contenders import CONTENDERS, VOLCANO, Contender, definitions
from bench.peers.ground import Ground, ground
from bench.peers.measuring import Mode, Trial, Unmeasured
from bench.peers.table import LEGEND, Results
from bench.peers.workload import Gangs
from tests.kubernetes.building import Unavailable, build

GANGS = "200x20,500x20,20x500,1x10000"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Run:
    def __init__(self, options: argparse.Namespace) -> None:
        self._gangs = [Gangs.parse(word) for word in options.gangs.split(",")]
        self._modes = [Mode(word) for word in options.modes.split(",")]
        self._contenders = [CONTENDERS[word] for word in options.contenders.split(",")]
        self._rounds: int = options.rounds
        self._nodes: int = options.nodes
        self._limit: float = options.limit
        self._absent: dict[str, str] = {}
        self.results = Results()

    async def go(self) -> None:
        for gangs in self._gangs:
            with tempfile.TemporaryDirectory(prefix="posse-peers-") as directory:
                async with ground(Path(directory), self._nodes) as laid:
                    self._muster(laid)
                    await self._measure(laid, gangs)

    def _muster(self, laid: Ground) -> None:
        """Builds whom it can before the first round; who cannot be had is left out by name."""
        for contender in self._contenders:
            try:
                contender.program(laid.plane)
                if contender.name == VOLCANO:
                    for place in definitions():
                        laid.plane.kubectl("apply", "--server-side", "-f", str(place))
            except Unavailable as why:
                self._absent[contender.name] = str(why)

    async def _measure(self, laid: Ground, gangs: Gangs) -> None:
        for number in range(self._rounds):
            # Nobody is always first.
            turn = number % len(self._contenders)
            for mode in self._modes:
                for contender in self._contenders[turn:] + self._contenders[:turn]:
                    await self._try(laid, contender, gangs, mode, number)

    async def _try(
        self, laid: Ground, contender: Contender, gangs: Gangs, mode: Mode, number: int
    ) -> None:
        said = f"{gangs} {mode.value}, round {number + 1}: {contender.title}"
        try:
            if contender.name in self._absent:
                raise Unmeasured(self._absent[contender.name])
            figures = await Trial(laid, contender, gangs, self._limit).run(mode)
        except Unmeasured as why:
            self.results.unmeasured(gangs, mode, contender.name, str(why))
            _say(f"{said}: not measured: {why}")
        else:
            self.results.measured(gangs, mode, contender.name, figures)
            _say(
                f"{said}: {figures.seconds:.2f} s, {figures.rate:,.0f} pods/s,"
                f" CPU {figures.cpu:.2f} s, RSS {figures.rss / 2**20:.0f} MiB"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench.peers", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--gangs", default=GANGS, help=f"COUNTxSIZE,...; {GANGS}")
    parser.add_argument("--modes", default="online,backlog")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=600, help="seconds for one measurement")
    options = parser.parse_args()
    began = time.monotonic()
    try:
        build()
        run = Run(options)
        uvloop.run(run.go())
    except (Unavailable, ValueError, KeyError) as why:
        sys.exit(f"bench-peers: {why}")
    print(
        f"{options.nodes:,} nodes, {os.cpu_count()} cores, {platform.platform()},"
        f" Python {platform.python_version()}; {time.monotonic() - began:.0f} s in all"
    )
    for line in (*run.results.lines(), "", LEGEND, "", *run.results.goals()):
        print(line)


if __name__ == "__main__":
    main()
