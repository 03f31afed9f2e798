"""A random contest: jobs of several priorities and two queues want the same few nodes.

As in a storm services die and nodes go; besides, some jobs end others, quotas bind, budgets guard,
pods are gated, and queues and priority classes change. After it everything is mended, and then
every job must end or say why it cannot, nobody was ended too often, and what is told is true.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from posse.engine.policy import Policy
from posse.objects import keys, kinds
from posse.virtual.cluster import VirtualCluster
from tests.cluster.manifests import GPU, NAMESPACE, pod, pod_group, queue
from tests.cluster.storm import Storm, aftermath
from tests.cluster.witness import Witness, open_cluster

STEPS = 30
CLASSES = {"low": -10, "high": 10, "higher": 20}
GATE = {"schedulingGates": [{"name": "later"}]}


class Contest(Storm):
    pauses = (0.0, 0.3, 2.0, 5.0, 10.0)
    seconds = (30, 120, 400)
    # Half of a job that is no gang may sit there for ever, and keep others out.
    loners = 0.0

    def __init__(
        self, running: VirtualCluster, witness: Witness, chance: random.Random, quota: int
    ) -> None:
        super().__init__(running, witness, chance)
        self.quota = quota

    def _acts(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            *[self.submit_job, self.submit_tf_job, self.submit_gang] * 5,
            self.delete_job, self.submit_again, self.scale_job, self.delete_pod, self.delete_pod,
            self.cordon, self.taint, self.delete_node, self.kill_service, self.start_service,
            self.kill_server, self.cut_watches, self.silence, self.take_room, self.edit_group,
            self.ambush, self.ambush, self.ambush, self.guard, self.guard, self.open_gates,
            self.revalue, self.requeue, self.drop_queue, self.promote,
        ]  # fmt: skip

    # Who wants what.

    def _wishes(self, policy: dict[str, Any]) -> None:
        chance = self.chance
        if chance.random() < 0.5:
            policy["priorityClass"] = chance.choice([*CLASSES, "unheard-of"])
        if chance.random() < 0.5:
            policy["queue"] = "research"

    def _job(self, name: str) -> dict[str, Any]:
        job = super()._job(name)
        self._wishes(job["spec"]["runPolicy"].setdefault("schedulingPolicy", {}))
        return job

    def _tf_job(self, name: str) -> dict[str, Any]:
        job = super()._tf_job(name)
        self._wishes(job["spec"].setdefault("runPolicy", {}).setdefault("schedulingPolicy", {}))
        return job

    async def submit_gang(self) -> None:
        """By hand, now and then with a gate before one of its pods."""
        chance, name = self.chance, self._name("g")
        size = chance.randint(1, 4)
        wishes: dict[str, Any] = {}
        self._wishes(wishes)
        named = {"priorityClassName": wishes.get("priorityClass"), "queue": wishes.get("queue")}
        group = pod_group(name, size, **{key: value for key, value in named.items() if value})
        await self.running.connection.create(kinds.POD_GROUP, group, NAMESPACE)
        gated = chance.randrange(size) if chance.random() < 0.4 else None
        for index in range(size):
            gate = GATE if index == gated else {}
            each = pod(
                f"{name}-{index}",
                name,
                gpus=chance.choice([0, 1, 1]),
                seconds=chance.choice(self.seconds),
                **gate,
            )
            each["metadata"]["labels"] = {"guarded": chance.choice(["yes", "no"])}
            await self.running.connection.create(kinds.POD, each, NAMESPACE)

    # What else may happen.

    async def open_gates(self) -> None:
        for one in (await self.running.connection.list(kinds.POD, NAMESPACE)).items:
            if one["spec"].get("schedulingGates"):
                opened: dict[str, Any] = {"spec": {"schedulingGates": []}}
                name = one["metadata"]["name"]
                await self.running.connection.patch(kinds.POD, name, opened, NAMESPACE)

    async def guard(self) -> None:
        """A budget for some pods of gangs, or for all that belong to jobs."""
        chance = self.chance
        chosen = chance.choice(
            [{"matchLabels": {"guarded": "yes"}}, {"matchLabels": {"app": "mpi"}}, {}]
        )
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": self._name("b")},
            "spec": {"maxUnavailable": chance.choice([0, 1, 2]), "selector": chosen},
        }
        await self.running.connection.create(kinds.POD_DISRUPTION_BUDGET, budget, NAMESPACE)

    async def revalue(self) -> None:
        """A class is deleted and made again; its value cannot be changed otherwise."""
        name = self.chance.choice(list(CLASSES))
        await self.running.connection.delete(kinds.PRIORITY_CLASS, name)
        await asyncio.sleep(self.chance.choice([0.0, 5.0]))
        await self._classify(name, CLASSES[name] + self.chance.choice([-15, 0, 15]))

    async def _classify(self, name: str, value: int) -> None:
        made = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "value": value}
        await self.running.connection.create(
            kinds.PRIORITY_CLASS, {**made, "metadata": {"name": name}}
        )

    async def requeue(self) -> None:
        quota = self.chance.choice([0, 1, self.quota, self.quota])
        await self._set_quota(quota)

    async def _set_quota(self, quota: int) -> None:
        spec = {"spec": {"capability": {GPU: str(quota)}}}
        await self.running.connection.patch(kinds.QUEUE, "research", spec)

    async def drop_queue(self) -> None:
        await self.running.connection.delete(kinds.QUEUE, "research")
        await asyncio.sleep(self.chance.choice([0.0, 10.0]))
        await self._make_queue()

    async def _make_queue(self) -> None:
        made = queue("research")
        made["spec"]["capability"] = {GPU: str(self.quota)}
        await self.running.connection.create(kinds.QUEUE, made)

    async def promote(self) -> None:
        if found := await self._any(kinds.POD_GROUP, "g"):
            spec = {"spec": {"priorityClassName": self.chance.choice(list(CLASSES))}}
            name = found["metadata"]["name"]
            await self.running.connection.patch(kinds.POD_GROUP, name, spec, NAMESPACE)

    async def prepare(self) -> None:
        await self._make_queue()
        for name, value in CLASSES.items():
            await self._classify(name, value)

    async def subside(self) -> None:
        if self._server_down:
            await self.running.start_server()
            self._server_down = False
        connection = self.running.connection
        queues = (await connection.list(kinds.QUEUE)).items
        if "research" in [each["metadata"]["name"] for each in queues]:
            await self._set_quota(self.quota)
        else:
            await self._make_queue()
        for budget in (await connection.list(kinds.POD_DISRUPTION_BUDGET, NAMESPACE)).items:
            name = budget["metadata"]["name"]
            await connection.delete(kinds.POD_DISRUPTION_BUDGET, name, NAMESPACE)
        await self.open_gates()
        await super().subside()


async def story(seed: int, *, steps: int = STEPS) -> tuple[VirtualCluster, list[str], list[str]]:
    """The cluster as it was left, what is wrong with it, and what happened."""
    chance = random.Random(f"contest {seed}")
    nodes, gpus = chance.randint(2, 3), chance.choice([1, 2, 4])
    quota = chance.randint(1, nodes * gpus)
    async with open_cluster(nodes, gpus=gpus, cpus="8", seed=seed) as running:
        witness = Witness(running, lag=90.0)
        contest = Contest(running, witness, chance, quota)
        await contest.prepare()
        await contest.rage(steps)
        contest._say("-- calm")
        await contest.subside()
        troubles = await aftermath(running, nodes, gpus, {"research": quota})
        await asyncio.sleep(30)
        if await _untrue(running):
            await asyncio.sleep(30)  # what has just happened is told a little later
        troubles += [*await _untrue(running), *await _ended_too_often(running)]
        return running, [*witness.settled(), *troubles], contest.said


async def _ended_too_often(running: VirtualCluster) -> list[str]:
    groups = (await running.connection.list(kinds.POD_GROUP, NAMESPACE)).items
    most = Policy().most_evictions
    ended = {
        each["metadata"]["name"]: int(
            (each["metadata"].get("annotations") or {}).get(keys.EVICTIONS, 0)
        )
        for each in groups
    }
    return [f"{name} was ended {often} times" for name, often in ended.items() if often > most]


async def _untrue(running: VirtualCluster) -> list[str]:
    """What groups and queues say of themselves, against their pods."""
    wrong: list[str] = []
    groups = (await running.connection.list(kinds.POD_GROUP, NAMESPACE)).items
    members: dict[str, list[dict[str, Any]]] = {each["metadata"]["name"]: [] for each in groups}
    left = 0  # of a group that is gone: they are still their queue's
    for one in (await running.connection.list(kinds.POD, NAMESPACE)).items:
        named = (one["metadata"].get("annotations") or {}).get(keys.GROUP_NAME, "")
        if named in members:
            members[named].append(one)
        else:
            left += bool(named) and _sits(one)
    used = 0
    for group in groups:
        name, status = group["metadata"]["name"], group.get("status") or {}
        phases = [each["status"].get("phase") for each in members[name]]
        for field, phase in (("running", "Running"), ("failed", "Failed")):
            if status.get(field, 0) != phases.count(phase):
                wrong.append(f"group {name} says {status} of {phases}")
        if group["spec"].get("queue") == "research":
            used += sum(map(_gpus, filter(_sits, members[name])))
    for each in (await running.connection.list(kinds.QUEUE)).items:
        said = int(((each.get("status") or {}).get("allocated") or {}).get(GPU, 0))
        if each["metadata"]["name"] == "research" and said != used and not left:
            wrong.append(f"queue research says {said} GPUs, and {used} are in use")
    return wrong


def _sits(one: dict[str, Any]) -> bool:
    ended = one["status"].get("phase") in ("Succeeded", "Failed")
    return bool(one["spec"].get("nodeName")) and not ended


def _gpus(one: dict[str, Any]) -> int:
    return sum(
        int(each.get("resources", {}).get("limits", {}).get(GPU, 0))
        for each in one["spec"]["containers"]
    )
