"""Is the cluster what its clients were promised?"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from bench.ordeal.ledger import Broken
from bench.ordeal.submitting import Gang, Submitter
from bench.ordeal.writing import LABEL, NAMESPACE, Writer, known
from posse.kube import Connection
from posse.kube.errors import KubeError
from posse.objects import keys
from posse.objects.kinds import CONFIG_MAP, JOB, MPI_JOB, NODE, POD, POD_GROUP
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.objects.quantity import base_units
from posse.objects.requests import pod_requests

GPU = "nvidia.com/gpu"


async def nothing_lost(connection: Connection, writers: Sequence[Writer]) -> None:
    """Every acknowledged write is there, with its revision, and nothing else is."""
    listed = await connection.list(CONFIG_MAP, NAMESPACE, labels=LABEL)
    found = {obj["metadata"]["name"]: known(obj) for obj in listed.items}
    wanted = {
        name: known
        for writer in writers
        for name, known in writer.ledger.objects.items()
        if known is not None
    }
    if found != wanted:
        wrong = [n for n in sorted({*found, *wanted}) if found.get(n) != wanted.get(n)]
        raise Broken(f"{wrong[0]}: found {found.get(wrong[0])}, acknowledged {wanted[wrong[0]]}")


async def settled(look: Callable[[], Awaitable[list[str]]], within: float) -> None:
    """Everything comes to be as it should, and soon; `look` says what is not yet so."""
    problems = ["nobody has looked yet"]
    try:
        async with asyncio.timeout(within):
            while problems:
                try:
                    problems = await look()
                except KubeError as error:
                    problems = [str(error)]
                if problems:
                    await asyncio.sleep(0.25)
    except TimeoutError:
        raise Broken(f"after {within:g} s still: " + "; ".join(problems)) from None


async def wrongs(connection: Connection, submitters: Sequence[Submitter]) -> list[str]:
    """Gangs and pods that are not what their clients were told."""
    gangs = [gang for submitter in submitters for gang in submitter.gangs.values()]
    jobs = (await connection.list(MPI_JOB, NAMESPACE)).items
    pods = (await connection.list(POD, NAMESPACE, model=Pod)).items
    nodes = (await connection.list(NODE, model=Node)).items
    groups = (await connection.list(POD_GROUP, NAMESPACE)).items
    launching = (await connection.list(JOB, NAMESPACE)).items
    # A launcher belongs to a Job, and that to the training job.
    owner = {job["metadata"]["uid"]: _controller(job["metadata"]) for job in launching}
    owner_of = {pod.metadata.uid: owner.get(_owner(pod), _owner(pod)) for pod in pods}
    uids = {job["metadata"]["name"]: job["metadata"]["uid"] for job in jobs}
    found = [
        f"job {name} is there as {uids.get(name)}, acknowledged as {uid}"
        for name, uid in {**uids, **{g.name: g.uid for g in gangs}}.items()
        if uids.get(name) != {g.name: g.uid for g in gangs}.get(name)
    ]
    owned = {gang.uid: gang for gang in gangs}
    found += [
        f"pod {pod.metadata.name} belongs to no job"
        for pod in pods
        if owner_of[pod.metadata.uid] not in owned
    ]
    found += [
        f"group {group['metadata']['name']} belongs to no job"
        for group in groups
        if not any(o["uid"] in owned for o in group["metadata"].get("ownerReferences") or ())
    ]
    free = _free(nodes, pods)
    found += [f"{-left} GPUs too many on {node}" for node, left in free.items() if left < 0]
    waiting = []
    for gang in gangs:
        mine = [pod for pod in pods if owner_of[pod.metadata.uid] == gang.uid]
        found += _of_gang(gang, mine)
        if not any(pod.spec.node_name for pod in mine):
            waiting.append(gang.workers)
    room = sum(left for left in free.values() if left > 0)
    if waiting and max(waiting) <= room:
        found.append(f"all {len(waiting)} waiting gangs would fit into {room} free GPUs")
    return found


def _of_gang(gang: Gang, pods: Sequence[Pod]) -> list[str]:
    roles = Counter(pod.metadata.labels.get(keys.JOB_ROLE_LABEL, "worker") for pod in pods)
    workers, launchers = roles["worker"], roles["launcher"]
    seated = [pod for pod in pods if pod.spec.node_name]
    found = []
    if workers != gang.workers:
        found.append(f"{gang.name} has {workers} workers, not {gang.workers}")
    if not seated and not launchers:
        return found
    if launchers != 1:
        found.append(f"{gang.name} has {launchers} launchers")
    idle = [p.metadata.name for p in pods if p.status.phase != "Running" or not p.spec.node_name]
    found += [f"{name} of a started gang does not run" for name in idle]
    return found


def _free(nodes: Sequence[Node], pods: Sequence[Pod]) -> dict[str, int]:
    free = {
        node.metadata.name: base_units(GPU, node.status.allocatable.get(GPU, "0"), GPU)
        for node in nodes
    }
    for pod in pods:
        if pod.spec.node_name and not pod.terminal:
            free[pod.spec.node_name] -= pod_requests(pod.spec).get(GPU, 0)
    return free


def _controller(metadata: dict[str, Any]) -> str:
    references = metadata.get("ownerReferences") or ()
    return next((str(one["uid"]) for one in references if one.get("controller")), "")


def _owner(pod: Pod) -> str:
    for reference in pod.metadata.owner_references:
        if reference.controller:
            return reference.uid
    return ""
