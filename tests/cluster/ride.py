"""One fixed story on virtual time; prints a digest of every write the API server made.

Run as a program under different hash seeds: the digests must be equal.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys

import looptime

from tests.cluster.backends import VirtualBackend, VirtualRide
from tests.cluster.riding import cluster, mpi, tf, training, wait_for_status


async def story(seed: int) -> str:
    async with cluster(4, gpus=2, on=VirtualBackend(seed)) as running:
        await training(running).submit(mpi("large", workers=5, tensorboard=True))
        await training(running).submit(mpi("fits", workers=3))
        await training(running).submit(tf("servers", workers=2, ps=1, gpus=0))
        await wait_for_status(running, "fits", "RUNNING")
        await wait_for_status(running, "servers", "RUNNING")
        await running.stop("scheduler")
        await training(running).submit(mpi("loose", workers=2, gpus=1, gang=False))
        await asyncio.sleep(30)
        running.start("scheduler")
        await wait_for_status(running, "loose", "RUNNING")
        await training(running).delete("fits")
        await asyncio.sleep(60)
        assert isinstance(running, VirtualRide)
        return digest(running)


def digest(running: VirtualRide) -> str:
    whole = hashlib.sha256()
    for record in running.journal.records:
        whole.update(repr(record).encode())
    return f"{len(running.journal.records)} writes {whole.hexdigest()}"


def main(seed: int) -> str:
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop()) as runner:
        return runner.run(story(seed))


if __name__ == "__main__":
    print(main(int(sys.argv[1])))
