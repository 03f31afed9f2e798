"""Kill -9 of any service, over and over, under load: `python -m bench.soak --seconds 600`.

Clients write, submit and delete while services and the supervisor itself are killed at random
moments. In the end every acknowledged write has to be there, every gang whole or wholly waiting,
no pod and no process left over; with `--machine`, every pod's process the one that was started
first. Exits 0 only then; the seed of a run that failed is printed first.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import socket
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from bench.ordeal.judging import nothing_lost, settled, wrongs
from bench.ordeal.killing import Killer, processes_of
from bench.ordeal.ledger import Broken
from bench.ordeal.running import Runner, misfits, processes_marked
from bench.ordeal.submitting import Submitter
from bench.ordeal.writing import Writer
from posse.kube import connect
from posse.kube.config import load_kubeconfig
from posse.local.node.naming import node_name
from posse.local.supervisor.home import Home
from posse.local.supervisor.options import Options
from posse.local.supervisor.stopping import down
from posse.world import World


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    seed: int
    seconds: float
    machine: bool = False  # pods are processes of this machine; else nodes are simulated
    nodes: int = 8
    gpus: int = 4
    writers: int = 4
    submitters: int = 2
    gangs: int = 8  # names of each submitter
    workers: int = 6  # at most, of each gang
    pause: float = 0.5  # between kills, on average
    supervisors: float = 0.1  # of all kills
    look_every: float = 60.0  # seconds of killing between two audits
    patience: float = 120.0  # until everything has settled


class Outcome(msgspec.Struct, frozen=True):
    kills: dict[str, int]
    acknowledged: int
    uncertain: int
    submitted: int
    deleted: int


async def endure(plan: Plan, directory: Path, *, say: bool = False) -> Outcome:
    """Raises Broken where a promise was not kept; leaves no process behind either way."""
    chance = random.Random(plan.seed)
    home, kubeconfig = Home(directory / "home"), directory / "kubeconfig"
    if plan.machine:
        isolation = os.environ.get("POSSE_ISOLATION", "")
        options = Options(machine=node_name(), isolation=isolation, port=_free_port())
    else:
        options = Options(simulate=plan.nodes, gpus=plan.gpus, port=_free_port())
    killer = Killer(
        home,
        options,
        kubeconfig,
        random.Random(chance.random()),
        pause=plan.pause,
        supervisors=plan.supervisors,
    )
    await killer.start()
    connection = connect(load_kubeconfig([kubeconfig], "posse"), World.real())
    writers = [
        Writer(connection, f"w{n}", random.Random(chance.random())) for n in range(plan.writers)
    ]
    submitters = [
        Submitter(
            connection,
            f"s{n}",
            random.Random(chance.random()),
            most=plan.gangs,
            workers=plan.workers,
        )
        for n in range(0 if plan.machine else plan.submitters)
    ]
    runners = [
        Runner(connection, f"r{n}", random.Random(chance.random()))
        for n in range(plan.submitters if plan.machine else 0)
    ]

    async def look() -> list[str]:
        if plan.machine:
            return await misfits(connection, runners)
        return await wrongs(connection, submitters)

    try:
        left = plan.seconds
        while left > 0:
            await _storm([*writers, *submitters, *runners, killer], min(left, plan.look_every))
            left -= plan.look_every
            await settled(look, plan.patience)
            await nothing_lost(connection, writers)
            if say:
                kills = " ".join(f"{name} {n}" for name, n in sorted(killer.kills.items()))
                print(f"{killer.kills.total()} kills ({kills}): all as acknowledged", flush=True)
    finally:
        await connection.close()
        await down(home, purge=True)
    if lingering := processes_of(home):
        raise Broken(f"processes {lingering} outlived the cluster")
    if orphans := processes_marked([mark for runner in runners for mark in runner.marks]):
        raise Broken(f"processes of pods outlived the cluster: {orphans}")
    clients: list[Submitter | Runner] = [*submitters, *runners]
    return Outcome(
        dict(sorted(killer.kills.items())),
        sum(writer.ledger.acknowledged for writer in writers),
        sum(writer.ledger.uncertain for writer in writers),
        sum(client.submitted for client in clients),
        sum(client.deleted for client in clients),
    )


async def _storm(actors: list[Writer | Submitter | Runner | Killer], seconds: float) -> None:
    """All at once; the first that fails ends the storm and tells why."""
    stop = asyncio.Event()
    running = [asyncio.create_task(actor.run(stop)) for actor in actors]
    await asyncio.wait(running, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    stop.set()
    for ended in await asyncio.gather(*running, return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=600.0, help="how long services die")
    arguments.add_argument("--machine", action="store_true", help="pods are real processes")
    arguments.add_argument("--seed", type=int, default=None, help="of a run to repeat")
    arguments.add_argument("--pause", type=float, default=0.5, help="between kills, on average")
    options = arguments.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"soak: seed {seed}, {options.seconds:g} s", flush=True)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="posse-soak-") as directory:
        plan = Plan(
            seed=seed, seconds=options.seconds, pause=options.pause, machine=options.machine
        )
        try:
            outcome = asyncio.run(endure(plan, Path(directory), say=True))
        except Broken as broken:
            print(f"seed {seed}: {broken}")
            sys.exit(1)
    print(
        f"{sum(outcome.kills.values())} kills, {outcome.acknowledged} acknowledged writes"
        f" ({outcome.uncertain} with a lost answer), {outcome.submitted} gangs or pods submitted,"
        f" {outcome.deleted} deleted in {time.perf_counter() - began:.0f} s: nothing lost"
    )


if __name__ == "__main__":
    main()
