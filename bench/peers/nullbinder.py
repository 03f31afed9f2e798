"""Binds every waiting pod to the next node, without a thought: the limit for anybody on our client.

    python -m bench.peers.nullbinder --kubeconfig FILE --claim NAME

It has the scheduler's connections and as many requests open as the scheduler's default, and asks
nothing of the API server but a watch and the binds.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from pathlib import Path

import msgspec
import uvloop

from posse.kube import Connection, connect
from posse.kube.config import load_kubeconfig
from posse.kube.errors import KubeError
from posse.objects.kinds import NODE, POD
from posse.objects.meta import ObjectMeta
from posse.scheduler.config import SchedulerConfig
from posse.world import World

_log = logging.getLogger(__name__)


class Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""
    scheduler_name: str = ""


class Pod(msgspec.Struct, gc=False):
    metadata: ObjectMeta
    spec: Spec


async def bind_all(connection: Connection, claim: str) -> None:
    nodes = [node["metadata"]["name"] for node in (await connection.list(NODE)).items]
    waiting: asyncio.Queue[Pod] = asyncio.Queue()
    async with asyncio.TaskGroup() as tasks:
        for number in range(SchedulerConfig().binds_in_flight):
            tasks.create_task(_bind(connection, waiting, nodes[number:] + nodes[:number]))
        found = await connection.list(POD, model=Pod, limit=500)
        for pod in found.items:
            _take(pod, claim, waiting)
        version = found.resource_version
        while True:
            async for batch in connection.watch_batches(POD, resource_version=version, model=Pod):
                for event in batch:
                    version = event.resource_version or version
                    if event.type == "ADDED" and event.object is not None:
                        _take(event.object, claim, waiting)


def _take(pod: Pod, claim: str, waiting: asyncio.Queue[Pod]) -> None:
    if pod.spec.scheduler_name == claim and not pod.spec.node_name:
        waiting.put_nowait(pod)


async def _bind(connection: Connection, waiting: asyncio.Queue[Pod], nodes: list[str]) -> None:
    turn = 0
    while True:
        pod = await waiting.get()
        meta = pod.metadata
        try:
            await connection.bind(
                meta.name,
                meta.namespace,
                nodes[turn],
                uid=meta.uid,
                resource_version=meta.resource_version,
            )
        except KubeError as error:
            _log.warning("%s: %s", meta.name, error)
        turn = (turn + SchedulerConfig().binds_in_flight) % len(nodes)


async def _run(kubeconfig: Path, claim: str) -> None:
    connection = connect(load_kubeconfig([kubeconfig], None), World.real())
    try:
        await bind_all(connection, claim)
    finally:
        await connection.close()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kubeconfig", type=Path, required=True)
    arguments.add_argument("--claim", required=True)
    options = arguments.parse_args()
    uvloop.run(_run(options.kubeconfig, options.claim))
