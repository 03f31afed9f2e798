"""The embedded cluster, as real processes on this machine: from submission to the last bind.

`python -m bench.cluster` starts a cluster of simulated nodes in a temporary directory and submits
gangs one after the other, the way a controller does (a PodGroup, then its pods), and the way a user
does (an MPIJob). The clock runs from the first request to the event of the last bind.
"""

from __future__ import annotations

import argparse
import asyncio
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from posse.client.submitting.mpi import MPIJob
from posse.kube import Cache, Change, Connection, connect
from posse.kube.config import load_kubeconfig
from posse.local.supervisor.home import Home
from posse.local.supervisor.options import Options
from posse.local.supervisor.starting import up
from posse.local.supervisor.stopping import down
from posse.objects import keys, kinds
from posse.objects.pods import Pod
from posse.world import World

NODES, GPUS_PER_NODE, PODS = 16, 8, 8


class Binds:
    """Watches pods and says when so many of one name prefix have a node."""

    def __init__(self, connection: Connection) -> None:
        self._bound: dict[str, set[str]] = {}
        self._awaited: dict[str, tuple[int, asyncio.Future[float]]] = {}
        self.cache = Cache(connection, kinds.POD, Pod, namespace="default", on_change=self._see)

    def expect(self, prefix: str, count: int) -> asyncio.Future[float]:
        future = asyncio.get_running_loop().create_future()
        self._awaited[prefix] = (count, future)
        return future

    def _see(self, change: Change[Pod]) -> None:
        pod = change.new
        if pod is None or not pod.spec.node_name:
            return
        prefix = pod.metadata.name.rpartition("-worker-")[0]
        bound = self._bound.setdefault(prefix, set())
        bound.add(pod.metadata.uid)
        count, future = self._awaited.get(prefix, (0, None))
        if future is not None and len(bound) == count and not future.done():
            future.set_result(time.perf_counter())


async def submit_group(connection: Connection, name: str) -> None:
    group = {
        "apiVersion": kinds.POD_GROUP.api_version,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": PODS},
    }
    await connection.create(kinds.POD_GROUP, group, "default")
    await asyncio.gather(
        *(connection.create(kinds.POD, _pod(name, i), "default") for i in range(PODS))
    )


def _pod(group: str, index: int) -> dict[str, Any]:
    gpu = {"nvidia.com/gpu": "1"}
    return {
        "metadata": {"name": f"{group}-worker-{index}", "annotations": {keys.GROUP_NAME: group}},
        "spec": {
            "containers": [{"name": "c", "image": "none", "resources": {"limits": gpu}}],
            "terminationGracePeriodSeconds": 0,
        },
    }


async def submit_job(connection: Connection, name: str) -> None:
    job = MPIJob(name=name, image="none", workers=PODS, gpus=1, command="mpirun train")
    await connection.create(kinds.MPI_JOB, job.manifest(), "default")


async def remove(connection: Connection, kind: kinds.Kind, name: str) -> None:
    await connection.delete(kind, name, "default", propagation="Background")
    if kind is kinds.POD_GROUP:
        await asyncio.gather(
            *(connection.delete(kinds.POD, f"{name}-worker-{i}", "default") for i in range(PODS))
        )


async def rounds(connection: Connection, binds: Binds, how: str, count: int) -> list[float]:
    submit, kind = {
        "PodGroup and pods": (submit_group, kinds.POD_GROUP),
        "MPIJob": (submit_job, kinds.MPI_JOB),
    }[how]
    taken = []
    for index in range(count):
        name = f"{'g' if kind is kinds.POD_GROUP else 'j'}{index}"
        bound = binds.expect(name, PODS)
        began = time.perf_counter()
        await submit(connection, name)
        async with asyncio.timeout(60):
            taken.append(await bound - began)
        await remove(connection, kind, name)
    return taken


async def measure(count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="posse-bench-") as directory:
        home, kubeconfig = Home(Path(directory, "home")), Path(directory, "kubeconfig")
        world = World.real()
        began = time.perf_counter()
        await up(home, Options(simulate=NODES, gpus=GPUS_PER_NODE), world, kubeconfig=kubeconfig)
        print(f"up: {NODES} nodes ready in {time.perf_counter() - began:.1f} s")
        connection = connect(load_kubeconfig([kubeconfig], "posse"), world)
        binds = Binds(connection)
        watching = asyncio.create_task(binds.cache.run())
        try:
            await binds.cache.synced()
            print(f"{'submitted as':20}  {'gangs':>5}  {'p50 ms':>7}  {'p90 ms':>7}  {'max ms':>7}")
            for how in ("PodGroup and pods", "MPIJob"):
                taken = sorted(t * 1000 for t in await rounds(connection, binds, how, count))
                p90 = taken[int(len(taken) * 0.9)]
                print(
                    f"{how:20}  {len(taken):5}  {statistics.median(taken):7.1f}"
                    f"  {p90:7.1f}  {taken[-1]:7.1f}"
                )
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await connection.close()
            await down(home, purge=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--gangs", type=int, default=60, help="how many of each")
    options = arguments.parse_args()
    print(f"\nembedded cluster, a gang of {PODS} pods from submission to the last bind")
    print(f"{platform.platform()}, Python {platform.python_version()}")
    asyncio.run(measure(options.gangs))


if __name__ == "__main__":
    main()
