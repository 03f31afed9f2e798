"""A random story: jobs come and go on a small cluster while everything that can fail does.

The seed decides all of it. After the storm whatever was broken is mended, and then every job must
end, or say why it cannot.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import looptime

from posse.kube.errors import KubeError
from posse.objects import keys, kinds
from posse.virtual.cluster import VirtualCluster
from posse.virtual.faults import (
    CONFLICT,
    GONE,
    INTERNAL,
    TOO_MANY,
    UNAVAILABLE,
    Delay,
    Fault,
    Loss,
    Plan,
    peace,
)
from tests.cluster.manifests import GPU, NAMESPACE, pod, pod_group, queue
from tests.cluster.riding import mpi, tf
from tests.cluster.witness import Witness, open_cluster

STEPS = 25
CALM = 4000.0

_REPLICAS = {kinds.MPI_JOB: "mpiReplicaSpecs", kinds.TF_JOB: "tfReplicaSpecs"}


class Storm:
    pauses: tuple[float, ...] = (0.0, 0.01, 0.3, 2.0, 20.0, 60.0)
    seconds: tuple[int, ...] = (1, 30, 120)  # that a job may take
    loners: float = 0.1  # how many jobs are no gangs

    def __init__(self, running: VirtualCluster, witness: Witness, chance: random.Random) -> None:
        self.running = running
        self.witness = witness
        self.chance = chance
        self.said: list[str] = []
        self._number = 0
        self._killed: dict[str, None] = {}
        self._paused: dict[str, None] = {}
        self._standby = False
        self._server_down = False
        self._burials: list[asyncio.Task[None]] = []
        self._over = False

    # The story.

    async def rage(self, steps: int = STEPS) -> None:
        self.witness.trouble()
        acts = self._acts()
        rate = self.chance.choice([0.0, 0.01, 0.05, 0.2])
        for service in self.running.services:
            self.running.line(service).plan = self._plan(rate)
        for _ in range(steps):
            act = self.chance.choice(acts)
            self._say(act.__name__)
            try:
                await act()
            except KubeError as error:
                self._say(f"  {type(error).__name__}")
            await asyncio.sleep(self.chance.choice(self.pauses))

    async def subside(self) -> None:
        """Everything is mended: services, nodes, queues; nobody else takes room any more."""
        running, self._over = self.running, True
        await asyncio.gather(*self._burials)
        if self._server_down:
            await running.start_server()
            self._server_down = False
        for service in list(self._paused):
            running.resume(service)
        for service in list(self._killed):
            running.start(service)
        for service in running.services:
            running.line(service).plan = peace
            running.line(service).listen()
        for agent in [name for name in running.services if name.startswith("node")]:
            await running.kill(agent)  # a deleted node comes back with its agent
            running.start(agent)
        for node in (await running.connection.list(kinds.NODE)).items:
            spec = {"unschedulable": None, "taints": None}
            await running.connection.patch(kinds.NODE, node["metadata"]["name"], {"spec": spec})
        await self._set_queue("research", "Open")
        for one in (await running.connection.list(kinds.POD, NAMESPACE)).items:
            if (one["metadata"].get("labels") or {}).get("foreign"):
                await running.connection.delete(
                    kinds.POD, one["metadata"]["name"], NAMESPACE, grace=0
                )
        for kind in _REPLICAS:
            for job in (await running.connection.list(kind, NAMESPACE)).items:
                await self._merge_job(kind, job, {"runPolicy": {"suspend": False}})
        self.witness.calm()

    def _say(self, what: str) -> None:
        self.said.append(f"{self.running.world.monotonic():9.3f} {what}")

    def _plan(self, rate: float) -> Plan:
        chance = self.chance

        def plan(method: str, path: str) -> Fault | None:
            if chance.random() >= rate:
                return None
            if method == "WATCH":
                closed: list[Fault] = [Loss.REQUEST, GONE, INTERNAL, UNAVAILABLE, TOO_MANY]
                return chance.choice(closed)
            faults: list[Fault] = [
                Loss.REQUEST, INTERNAL, UNAVAILABLE, TOO_MANY,
                Delay(there=chance.random()), Delay(back=3 * chance.random()),
            ]  # fmt: skip
            if method != "GET":
                faults += [Loss.ANSWER, Loss.ANSWER, CONFLICT]
            return chance.choice(faults)

        return plan

    # What may happen.

    def _acts(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            self.submit_job, self.submit_job, self.submit_tf_job, self.submit_tf_job,
            self.submit_gang, self.submit_gang,
            self.submit_pod, self.delete_job, self.submit_again, self.scale_job, self.suspend_job,
            self.delete_pod, self.cordon, self.taint, self.delete_node, self.kill_service,
            self.kill_service, self.start_service, self.start_service, self.pause_service,
            self.resume_service, self.kill_server, self.cut_watches, self.silence, self.take_room,
            self.edit_group, self.delete_group, self.close_queue, self.standby, self.malform,
            self.shrink_node, self.ambush, self.ambush, self.ambush, self.ambush, self.ambush,
        ]  # fmt: skip

    def _name(self, prefix: str) -> str:
        self._number += 1
        return f"{prefix}{self._number}"

    async def _any_job(self) -> tuple[kinds.Kind, dict[str, Any]] | None:
        kind = self.chance.choice(list(_REPLICAS))
        found = await self._any(kind)
        return None if found is None else (kind, found)

    async def _any(self, kind: kinds.Kind, prefix: str = "") -> dict[str, Any] | None:
        listed = await self.running.connection.list(kind, NAMESPACE if kind.namespaced else "")
        found = [item for item in listed.items if item["metadata"]["name"].startswith(prefix)]
        return self.chance.choice(found) if found else None

    def _job(self, name: str) -> dict[str, Any]:
        chance = self.chance
        job = mpi(
            name, workers=chance.randint(1, 4), gpus=chance.choice([0, 1, 1, 2]),
            cpu=chance.choice(["", "1", "500m"]), retry=chance.choice([0, 2]),
            gang=chance.random() >= self.loners,
        ).manifest()  # fmt: skip
        spec = job["spec"]
        launcher = spec["mpiReplicaSpecs"]["Launcher"]["template"]["metadata"]
        launcher["annotations"] = dict(launcher.get("annotations") or {}) | {
            keys.SIMULATED_DURATION: f"{chance.choice(self.seconds)}s",
            keys.SIMULATED_EXIT_CODE: chance.choice(["0", "0", "0", "1"]),
        }
        spec["launcherCreationPolicy"] = chance.choice(["WaitForWorkersReady", "AtStartup"])
        spec["runPolicy"]["cleanPodPolicy"] = clean = chance.choice(["All", "Running", "None"])
        if clean == "None":
            spec["runPolicy"]["ttlSecondsAfterFinished"] = 60  # its workers would stay for ever
        if chance.random() < 0.2:
            spec["runPolicy"].setdefault("schedulingPolicy", {})["minAvailable"] = chance.randint(
                1, spec["mpiReplicaSpecs"]["Worker"]["replicas"]
            )
        if chance.random() < 0.2:
            spec["runPolicy"].setdefault("schedulingPolicy", {})["queue"] = "research"
        return dict(job)

    def _tf_job(self, name: str) -> dict[str, Any]:
        chance = self.chance
        job = tf(
            name, workers=chance.randint(1, 3), gpus=chance.choice([0, 1, 1]), cpu="500m",
            ps=chance.choice([0, 1, 2]), chief=chance.random() < 0.2,
            gang=chance.random() >= self.loners,
            clean_task_policy=chance.choice(["Running", "All"]),
        ).manifest()  # fmt: skip
        for role, replicas in job["spec"]["tfReplicaSpecs"].items():
            if role != "PS":
                metadata = replicas["template"].setdefault("metadata", {})
                metadata["annotations"] = dict(metadata.get("annotations") or {}) | {
                    keys.SIMULATED_DURATION: f"{chance.choice(self.seconds)}s"
                }
            replicas["restartPolicy"] = chance.choice(["Never", "OnFailure", "ExitCode"])
        return dict(job)

    async def submit_job(self) -> None:
        await self.running.connection.create(kinds.MPI_JOB, self._job(self._name("j")), NAMESPACE)

    async def submit_tf_job(self) -> None:
        await self.running.connection.create(kinds.TF_JOB, self._tf_job(self._name("t")), NAMESPACE)

    async def submit_again(self) -> None:
        """Delete and re-apply the same name at once."""
        if found := await self._any_job():
            kind, job = found
            name = job["metadata"]["name"]
            again = self._job(name) if kind == kinds.MPI_JOB else self._tf_job(name)
            await self.running.connection.delete(kind, name, NAMESPACE, propagation="Background")
            await self.running.connection.create(kind, again, NAMESPACE)

    async def submit_gang(self) -> None:
        """A PodGroup and pods by hand, in either order."""
        chance, name = self.chance, self._name("g")
        size = chance.randint(1, 4)
        group = pod_group(name, size)
        pods = [
            pod(f"{name}-{index}", name, gpus=chance.choice([0, 1, 1]), seconds=30)
            for index in range(size + chance.choice([0, 0, 1]))
        ]
        objects = [(kinds.POD_GROUP, group), *((kinds.POD, one) for one in pods)]
        if chance.random() < 0.3:
            objects.reverse()
        for kind, obj in objects:
            await self.running.connection.create(kind, obj, NAMESPACE)

    async def submit_pod(self) -> None:
        one = pod(self._name("p"), "", gpus=self.chance.choice([0, 1]), seconds=30)
        await self.running.connection.create(kinds.POD, one, NAMESPACE)

    async def delete_job(self) -> None:
        if found := await self._any_job():
            kind, job = found
            await self.running.connection.delete(
                kind, job["metadata"]["name"], NAMESPACE, propagation="Background"
            )

    async def scale_job(self) -> None:
        if found := await self._any_job():
            kind, job = found
            workers = {"replicas": self.chance.randint(1, 4)}
            if "Worker" in job["spec"][_REPLICAS[kind]]:
                await self._merge_job(kind, job, {_REPLICAS[kind]: {"Worker": workers}})

    async def suspend_job(self) -> None:
        if found := await self._any_job():
            suspend = self.chance.random() < 0.5
            await self._merge_job(*found, {"runPolicy": {"suspend": suspend}})

    async def _merge_job(self, kind: kinds.Kind, job: dict[str, Any], spec: dict[str, Any]) -> None:
        await self.running.connection.patch(
            kind, job["metadata"]["name"], {"spec": spec}, NAMESPACE
        )

    async def delete_pod(self) -> None:
        if found := await self._any(kinds.POD):
            grace = self.chance.choice([None, 0])
            await self.running.connection.delete(
                kinds.POD, found["metadata"]["name"], NAMESPACE, grace=grace
            )

    async def cordon(self) -> None:
        if found := await self._any(kinds.NODE):
            shut = {"spec": {"unschedulable": self.chance.choice([True, None])}}
            await self.running.connection.patch(kinds.NODE, found["metadata"]["name"], shut)

    async def taint(self) -> None:
        if found := await self._any(kinds.NODE):
            effect = self.chance.choice(["NoSchedule", "NoExecute"])
            taints = {"spec": {"taints": [{"key": "mine", "effect": effect}]}}
            await self.running.connection.patch(kinds.NODE, found["metadata"]["name"], taints)

    async def delete_node(self) -> None:
        if found := await self._any(kinds.NODE):
            await self.running.connection.delete(kinds.NODE, found["metadata"]["name"])

    async def shrink_node(self) -> None:
        """Its agent says otherwise, sooner or later."""
        if found := await self._any(kinds.NODE):
            status = {"status": {"allocatable": {GPU: "0"}}}
            await self.running.connection.patch(
                kinds.NODE, found["metadata"]["name"], status, subresource="status"
            )

    async def kill_service(self) -> None:
        service = self.chance.choice(self.running.services)
        self._paused.pop(service, None)
        rate = self.running.line(service).plan
        await self.running.kill(service)
        self.running.line(service).plan = rate
        if self.chance.random() < 0.5:
            self.running.start(service)
        else:
            self._killed[service] = None

    async def ambush(self) -> None:
        """A service dies at one of its next writes: just before it, or just after."""
        service = self.chance.choice(self.running.services)
        line, before = self.running.line(service), self.running.line(service).plan
        left = self.chance.randint(1, 6)
        loss = self.chance.choice(list(Loss))
        where = self.chance.choice(["/binding", "/pods", "/status", "/eviction", ""])

        def plan(method: str, path: str) -> Fault | None:
            nonlocal left
            if method in ("GET", "WATCH") or "/leases" in path or not path.endswith(where):
                return before(method, path)
            left -= 1
            if left:
                return before(method, path)
            self._say(f"  {service} dies at {method} {path}: it {loss.value}")
            line.kill()
            self._burials.append(asyncio.create_task(self._bury(service, before)))
            return loss

        line.plan = plan

    async def _bury(self, service: str, plan: Plan) -> None:
        if service in self.running.services and not self._over:
            self._paused.pop(service, None)
            await self.running.kill(service)
            self.running.line(service).plan = plan
            self.running.start(service)

    async def start_service(self) -> None:
        for service in list(self._killed):
            self.running.start(service)
        self._killed.clear()

    async def pause_service(self) -> None:
        service = self.chance.choice(self.running.services)
        self.running.pause(service)
        self._paused[service] = None

    async def resume_service(self) -> None:
        for service in list(self._paused):
            self.running.resume(service)
        self._paused.clear()

    async def kill_server(self) -> None:
        await self.running.kill_server()
        self._server_down = True
        await asyncio.sleep(self.chance.choice([0.0, 1.0, 10.0, 60.0]))
        await self.running.start_server()
        self._server_down = False

    async def cut_watches(self) -> None:
        for service in self.running.services:
            if self.chance.random() < 0.5:
                self.running.line(service).cut()

    async def silence(self) -> None:
        line = self.running.line(self.chance.choice(self.running.services))
        line.silence()
        await asyncio.sleep(self.chance.choice([0.1, 3.0, 30.0]))
        line.listen()

    async def take_room(self) -> None:
        """Somebody binds a pod of his own by hand."""
        if found := await self._any(kinds.NODE):
            one = pod(self._name("f"), "", gpus=1, seconds=200)
            one["metadata"]["labels"] = {"foreign": "true"}
            one["spec"]["nodeName"] = found["metadata"]["name"]
            await self.running.connection.create(kinds.POD, one, NAMESPACE)

    async def edit_group(self) -> None:
        """Only groups made by hand: a job's group is put right by its controller."""
        if found := await self._any(kinds.POD_GROUP, "g"):
            name = found["metadata"]["name"]
            listed = await self.running.connection.list(kinds.POD, NAMESPACE)
            there = [p for p in listed.items if p["metadata"]["name"].startswith(f"{name}-")]
            members = {"minMember": self.chance.randint(1, max(1, len(there)))}
            await self.running.connection.patch(kinds.POD_GROUP, name, {"spec": members}, NAMESPACE)

    async def delete_group(self) -> None:
        if found := await self._any(kinds.POD_GROUP, self.chance.choice("jt")):
            await self.running.connection.delete(
                kinds.POD_GROUP, found["metadata"]["name"], NAMESPACE
            )

    async def close_queue(self) -> None:
        await self._set_queue("research", self.chance.choice(["Open", "Closed"]))

    async def _set_queue(self, name: str, state: str) -> None:
        await self.running.connection.patch(
            kinds.QUEUE, name, {"status": {"state": state}}, subresource="status"
        )

    async def standby(self) -> None:
        for service in ("scheduler-2", "controllers-2"):
            if not self._standby:
                self.running.start_standby(service)
        self._standby = True

    async def malform(self) -> None:
        """Objects that the schema lets through and nobody can make sense of."""
        name = self._name("m")
        bad = self.chance.choice(
            [
                pod_group(name, 1, {keys.EXPECTS: "{"}),
                pod_group(name, 1, {keys.EXPECTS: '[{"role":"x","count":-1}]'}),
                pod_group(name, 1, {keys.HELD: '{"launcher": ["", "no-such-node"]}'}),
                pod_group(name, 1, {keys.HELD: '{"launcher": ["no-such-node"]}'}),
                pod_group(name, 2**31 - 1),
            ]
        )
        await self.running.connection.create(kinds.POD_GROUP, bad, NAMESPACE)
        await self.running.connection.create(kinds.POD, pod(f"{name}-0", name), NAMESPACE)


@dataclass(frozen=True)
class Room:
    """What the cluster has: nodes of so many GPUs each, and queues that may use fewer."""

    nodes: int
    gpus: int
    quotas: Mapping[str, int]

    def most(self, queue: str | None) -> int:
        return self.quotas.get(queue or "", self.nodes * self.gpus)


async def story(seed: int, *, steps: int = STEPS) -> tuple[VirtualCluster, list[str], list[str]]:
    """The cluster as it was left, what is wrong with it, and what happened."""
    chance = random.Random(f"storm {seed}")
    nodes, gpus = chance.randint(2, 5), chance.choice([1, 2, 4])
    agents = chance.randint(1, 2)
    async with open_cluster(nodes, gpus=gpus, cpus="8", seed=seed, agents=agents) as running:
        witness = Witness(running, lag=90.0)
        storm = Storm(running, witness, chance)
        await running.connection.create(kinds.QUEUE, queue("research"))
        await storm.rage(steps)
        storm._say("-- calm")
        await storm.subside()
        troubles = await aftermath(running, nodes, gpus)
        return running, [*witness.settled(), *troubles], storm.said


async def aftermath(
    running: VirtualCluster, nodes: int, gpus: int, quotas: Mapping[str, int] | None = None
) -> list[str]:
    """Who has neither ended nor a good reason to wait, when there was time for everybody."""
    room = Room(nodes, gpus, quotas or {})
    waited, left = 0.0, ["nobody has looked"]
    while waited < CALM:
        await asyncio.sleep(50)
        waited += 50
        left = await _unfinished(running, room)
        if not left and waited >= 400:
            break
    return [*left, *running.ended()]


async def _unfinished(running: VirtualCluster, room: Room) -> list[str]:
    left: list[str] = []
    jobs = [
        job for kind in _REPLICAS for job in (await running.connection.list(kind, NAMESPACE)).items
    ]
    pods = (await running.connection.list(kinds.POD, NAMESPACE)).items
    groups = {
        g["metadata"]["name"]: g
        for g in (await running.connection.list(kinds.POD_GROUP, NAMESPACE)).items
    }
    for job in jobs:
        name = job["metadata"]["name"]
        conditions = (job.get("status") or {}).get("conditions") or []
        if any(c["type"] in ("Succeeded", "Failed") and c["status"] == "True" for c in conditions):
            continue
        if _fits(job, room):
            left.append(f"job {name} has not ended: {[c['type'] for c in conditions]}")
        elif not _sentence(
            groups.get(name), [p for p in pods if p["metadata"]["name"].startswith(f"{name}-")]
        ):
            left.append(f"job {name} waits and does not say why")
    for one in pods:
        name = one["metadata"]["name"]
        if one["metadata"].get("ownerReferences") or (
            one["status"].get("phase") in ("Succeeded", "Failed")
        ):
            continue
        group = (one["metadata"].get("annotations") or {}).get(keys.GROUP_NAME, "")
        if not _sentence(groups.get(group), [one]):
            left.append(f"pod {name} waits and does not say why")
            continue
        if name[0] == "m":
            continue
        members = [
            p
            for p in pods
            if (p["metadata"].get("annotations") or {}).get(keys.GROUP_NAME) == group
        ]
        least = (groups.get(group) or {"spec": {"minMember": 1}})["spec"].get("minMember", 1)
        asked = sum(
            int(c.get("resources", {}).get("limits", {}).get(GPU, 0))
            for p in members
            for c in p["spec"]["containers"]
        )
        spec = (groups.get(group) or {"spec": {}})["spec"]
        if group and (len(members) < least or asked > room.most(spec.get("queue"))):
            continue
        left.append(f"pod {name} has not ended: {one['status']}")
    return left


def _sentence(group: dict[str, Any] | None, pods: list[dict[str, Any]]) -> bool:
    for obj, kind, status in (
        (group, "Unschedulable", "True"),
        *((p, "PodScheduled", "False") for p in pods),
    ):
        for c in ((obj or {}).get("status") or {}).get("conditions") or []:
            if c["type"] == kind and c["status"] == status and c.get("message"):
                return True
    return any(p["spec"].get("nodeName") for p in pods)


def _fits(job: dict[str, Any], room: Room) -> bool:
    """Whether an empty cluster has room for all of it, and it has as many pods as it asks for."""
    spec = job["spec"]
    roles = next(spec[field] for field in _REPLICAS.values() if field in spec)
    policy = spec["runPolicy"].get("schedulingPolicy") or {}
    if policy.get("minAvailable", 0) > sum(role["replicas"] for role in roles.values()) - 1:
        return False
    seats, per_node, total = 0, room.gpus, 0
    for role in roles.values():
        limits = role["template"]["spec"]["containers"][0].get("resources", {}).get("limits", {})
        asked = int(limits.get(GPU, 0))
        if asked:
            seats += role["replicas"]
            total += role["replicas"] * asked
            per_node = min(per_node, room.gpus // asked)
    return seats <= room.nodes * per_node and total <= room.most(policy.get("queue"))


def main(seed: int) -> None:
    """One storm; a digest of every write."""
    with asyncio.Runner(loop_factory=lambda: looptime.new_event_loop(noop_cycles=0)) as runner:
        running, wrong, _ = runner.run(story(seed))
    whole = hashlib.sha256()
    for record in running.journal.records:
        whole.update(repr(record).encode())
    print(len(running.journal.records), "writes", whole.hexdigest(), wrong)


if __name__ == "__main__":
    main(int(sys.argv[1]))
