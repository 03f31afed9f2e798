"""The verbs of a user, over a Connection: submit, get, list, logs, delete, why."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from typing import Any, Protocol

from posse.client.errors import JobExists, JobNotFound, PosseError, TimedOut
from posse.client.happenings import Happening, read_happenings, when
from posse.client.jobs import FINISHED, TrainingJob, read_job
from posse.client.nodes import NodeUse, read_nodes
from posse.client.submitting.tensorboard import (
    listening,
    tensorboard_name,
    tensorboard_selector,
)
from posse.client.trainers import TRAINERS, Trainer
from posse.client.turns import in_line, turn
from posse.client.why import Casualty, Explanation, explain, explain_group, why_not_running
from posse.kube.connection import Connection
from posse.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from posse.objects import keys, kinds
from posse.objects.groups import PodGroup, PriorityClass
from posse.objects.kinds import Kind
from posse.objects.nodes import Node
from posse.objects.pods import Pod

# A verdict comes milliseconds after the pods; a user who asks at once should not hear "not yet".
_FIRST_VERDICT = 5.0
# Who waits for minutes looks every few seconds: many may wait, and the API server is everybody's.
_FIRST_LOOK_AGAIN, _LOOK_EVERY = 0.2, 2.0
# As many of the last lines of who died are told.
_LAST_LINES = 5
# What an earlier job of the same name left behind is gone by then.
_COLLECTED_WITHIN = 30.0
_COMPANION_KINDS = {k.kind: k for k in (kinds.CONFIG_MAP, kinds.DEPLOYMENT, kinds.SERVICE)}


class Submission(Protocol):
    """A job that can be written down: the job itself, and what goes with it."""

    name: str
    priority: str
    tensorboard: bool
    log_directory: str

    def manifest(self) -> dict[str, Any]: ...

    def companions(self) -> list[dict[str, Any]]: ...


class Training:
    def __init__(self, connection: Connection, namespace: str) -> None:
        self._connection = connection
        self.namespace = namespace

    async def submit(
        self, submission: Submission, *, dry_run: bool = False
    ) -> tuple[Trainer, dict[str, Any]]:
        """Create the job, then what belongs to it, owned by it so that it goes with it."""
        machine = await self._this_machine() if submission.tensorboard else None
        if machine is not None and keys.SHARED_DIRECTORY in machine.metadata.annotations:
            shared = machine.metadata.annotations[keys.SHARED_DIRECTORY]
            submission = copy.copy(submission)
            submission.log_directory = f"{shared}/{self.namespace}/{submission.name}/logs"
        manifest = submission.manifest()
        trainer = next(t for t in TRAINERS if t.kind.kind == manifest["kind"])
        if submission.priority:
            await self._priority_class(submission.priority)
        try:
            job = await self._connection.create(
                trainer.kind, manifest, self.namespace, dry_run=dry_run
            )
        except AlreadyExists as error:
            raise JobExists(submission.name) from error
        if not dry_run:
            await self._create_companions(submission, job, on_this_machine=machine is not None)
        return trainer, job

    async def get(self, name: str, trainer: Trainer | None = None) -> TrainingJob:
        trainer, job = await self._find(name, trainer)
        return await self._read(trainer, job)

    async def jobs(
        self, trainer: Trainer | None = None, *, all_namespaces: bool = False
    ) -> list[TrainingJob]:
        namespace = "" if all_namespaces else self.namespace
        found: list[TrainingJob] = []
        pods = await self._connection.list(
            kinds.POD, namespace, model=Pod, labels=keys.JOB_NAME_LABEL
        )
        wanted = [trainer] if trainer else TRAINERS
        refused: list[Forbidden] = []
        for one in wanted:
            try:
                jobs = await self._connection.list(one.kind, namespace)
            except NotFound:
                continue  # this cluster does not serve the kind
            except Forbidden as error:
                refused.append(error)  # who may see some kinds of jobs has no others
                continue
            for job in jobs.items:
                mine = [p for p in pods.items if _belongs(p, job)]
                found.append(read_job(one, job, mine, self._connection.world.now()))
        if len(refused) == len(wanted):
            raise refused[0]
        return sorted(found, key=lambda j: (j.namespace, j.created, j.name))

    async def delete(self, name: str, trainer: Trainer | None = None) -> Trainer:
        trainer, job = await self._find(name, trainer)
        await self._connection.delete(
            trainer.kind, name, self.namespace, uid=job["metadata"]["uid"], propagation="Background"
        )
        return trainer

    async def why(self, name: str, trainer: Trainer | None = None) -> Explanation:
        clock = self._connection.world
        deadline = clock.monotonic() + _FIRST_VERDICT
        while True:
            explanation = await self._explain(name, trainer)
            if explanation.settled or clock.monotonic() > deadline:
                return explanation
            await asyncio.sleep(0.05)

    async def wait(
        self, name: str, wanted: str, timeout: float | None, trainer: Trainer | None = None
    ) -> TrainingJob:
        """Until the job has the wanted status, or one it cannot leave any more.

        An API server that is away after the job was first seen is waited for as well.
        """
        clock = self._connection.world
        deadline = None if timeout is None else clock.monotonic() + timeout
        pause, job = _FIRST_LOOK_AGAIN, await self.get(name, trainer)
        while job.status != wanted and job.status not in FINISHED:
            if deadline is not None and clock.monotonic() >= deadline:
                raise TimedOut(f"{name} is {job.status} and not {wanted} after {timeout:g}s")
            left = pause if deadline is None else max(0.0, deadline - clock.monotonic())
            await asyncio.sleep(min(pause, left))
            pause = min(_LOOK_EVERY, pause * 1.2)
            try:
                job = await self.get(name, trainer)
            except (Unreachable, ServerError, TooManyRequests):
                continue
        return job

    async def logs(
        self,
        name: str,
        *,
        instance: str = "",
        container: str = "",
        trainer: Trainer | None = None,
        **options: Any,
    ) -> AsyncIterator[bytes]:
        job = await self.get(name, trainer)
        names = [i.name for i in job.instances]
        if not names:
            raise PosseError(f"{name} has no pods yet; `posse why {name}` says why")
        if instance and instance not in names:
            raise PosseError(f"{name} has no instance {instance}; it has {', '.join(names)}")
        pod = instance or job.chief or names[0]
        if next(i for i in job.instances if i.name == pod).node == "N/A":
            raise PosseError(f"{pod} has not started, so it has no logs; see `posse why {name}`")
        async for chunk in self._connection.logs(
            pod, self.namespace, container=container or None, **options
        ):
            yield chunk

    async def events(self, name: str, trainer: Trainer | None = None) -> list[Happening]:
        trainer, job = await self._find(name, trainer)
        pods = await self._pods(job)
        events = await self._events(job, pods, await self._group(name, pods))
        return read_happenings(events, self._connection.world.now())

    async def close(self) -> None:
        await self._connection.close()

    async def nodes(self) -> list[NodeUse]:
        nodes = await self._connection.list(kinds.NODE, model=Node)
        pods = await self._connection.list(kinds.POD, model=Pod)
        return read_nodes(nodes.items, pods.items)

    async def _find(self, name: str, trainer: Trainer | None) -> tuple[Trainer, dict[str, Any]]:
        refused: Forbidden | None = None
        for one in ([trainer] if trainer else TRAINERS) if name else ():
            try:
                return one, await self._connection.get(one.kind, name, self.namespace)
            except NotFound:
                continue
            except Forbidden as error:
                refused = refused or error  # it may be of a kind that this user may see
        raise refused or JobNotFound(name, self.namespace)

    async def _pods(self, job: dict[str, Any]) -> list[Pod]:
        label = f"{keys.JOB_NAME_LABEL}={job['metadata']['name']}"
        pods = await self._connection.list(
            kinds.POD, job["metadata"]["namespace"], model=Pod, labels=label
        )
        return [pod for pod in pods.items if _belongs(pod, job)]

    async def _read(self, trainer: Trainer, job: dict[str, Any]) -> TrainingJob:
        pods = await self._pods(job)
        board = await self._tensorboard(job["metadata"]["name"], pods)
        return read_job(trainer, job, pods, self._connection.world.now(), *board)

    async def _explain(self, name: str, trainer: Trainer | None) -> Explanation:
        group: PodGroup | None
        try:
            trainer, job = await self._find(name, trainer)
        except JobNotFound:
            explanation, group = await self._explain_group(name)
        else:
            pods = await self._pods(job)
            group = await self._group(name, pods)
            read = read_job(trainer, job, pods, self._connection.world.now())
            events = [] if read.status == "RUNNING" else await self._events(job, pods, group)
            explanation = explain(read, job, pods, group, events)
        if explanation.casualty is not None:
            last = await self._last_words(explanation.casualty)
            explanation = Explanation("\n".join([explanation.sentence, *last]), True)
        elif group is not None and explanation.settled and (place := await self._turn(group)):
            explanation = Explanation(f"{explanation.sentence}\n{place}", True)
        return explanation

    async def _explain_group(self, name: str) -> tuple[Explanation, PodGroup]:
        """Of a group that no job of ours is about: somebody else's operator, or a person, made its
        pods."""
        group = await self._group(name, [])
        if group is None:
            raise JobNotFound(name, self.namespace)
        listed = await self._connection.list(kinds.POD, self.namespace, model=Pod)
        pods = [pod for pod in listed.items if _group_named_by(pod) == name]
        about = {group.metadata.uid, *(pod.metadata.uid for pod in pods)}
        events = await self._connection.list(kinds.EVENT, self.namespace)
        told = [e for e in events.items if (e.get("involvedObject") or {}).get("uid") in about]
        return explain_group(group, pods, told), group

    async def _turn(self, group: PodGroup) -> str:
        """Its place in its queue's line; nothing is said by halves to who may not see all of it."""
        if not in_line(group):
            return ""
        try:
            groups = await self._connection.list(kinds.POD_GROUP, model=PodGroup)
            classes = await self._connection.list(kinds.PRIORITY_CLASS, model=PriorityClass)
        except (Forbidden, NotFound):
            return ""
        return turn(group, groups.items, {c.metadata.name: c.value for c in classes.items})

    async def _events(
        self, job: dict[str, Any], pods: list[Pod], group: PodGroup | None
    ) -> list[dict[str, Any]]:
        """Events about the job, its group, its launcher's Job and its pods."""
        about = {job["metadata"]["uid"], *(p.metadata.uid for p in pods)}
        about.update(o.uid for p in pods for o in p.metadata.owner_references)
        if group is not None:
            about.add(group.metadata.uid)
        launcher = (kinds.JOB.kind, f"{job['metadata']['name']}-launcher")
        since = job["metadata"].get("creationTimestamp") or ""
        listed = await self._connection.list(kinds.EVENT, self.namespace)
        found = []
        for event in listed.items:
            regarding = event.get("involvedObject") or {}
            named = (regarding.get("kind"), regarding.get("name"))
            if regarding.get("uid") in about or (named == launcher and when(event) >= since):
                found.append(event)
        return found

    async def _last_words(self, casualty: Casualty) -> list[str]:
        """The last lines of who died, where they can still be had."""
        words = self._connection.logs(
            casualty.pod,
            self.namespace,
            container=casualty.container,
            tail_lines=_LAST_LINES,
            previous=casualty.restarted,
        )
        try:
            chunks = [chunk async for chunk in words]
        except KubeError:
            return []
        lines = b"".join(chunks).decode(errors="replace").splitlines()[-_LAST_LINES:]
        return [f"    {''.join(c if c.isprintable() else ' ' for c in line)}" for line in lines]

    async def _group(self, job: str, pods: list[Pod]) -> PodGroup | None:
        """The PodGroup that the pods name, or that has the job's name, in whichever dialect.

        Where several have it, the one that the scheduler goes by is the one it has written on.
        """
        names = [group for pod in pods if (group := _group_named_by(pod))]
        name = names[0] if names else job
        found = [await self._get_or_none(kind, name, PodGroup) for kind in kinds.POD_GROUPS]
        there = [group for group in found if group is not None]
        return next((g for g in there if g.status.phase), there[0] if there else None)

    async def _get_or_none(self, kind: Kind, name: str, model: type[Any]) -> Any:
        try:
            return await self._connection.get(kind, name, self.namespace, model=model)
        except NotFound:
            return None

    async def _tensorboard(self, job: str, pods: list[Pod]) -> tuple[str, str]:
        """Where a browser finds it, and why it does not run where that is so."""
        service = await self._get_or_none(kinds.SERVICE, tensorboard_name(job), dict)
        if service is None:
            return "", ""
        labels = ",".join(f"{k}={v}" for k, v in tensorboard_selector(job).items())
        found = await self._connection.list(kinds.POD, self.namespace, model=Pod, labels=labels)
        boards = sorted(found.items, key=lambda p: p.status.phase != "Running")
        ports = service["spec"].get("ports") or [{}]
        node_port = ports[0].get("nodePort")
        host = next((p.status.host_ip for p in (*boards, *pods) if p.status.host_ip), "")
        if any(p.status.pod_ip.startswith("127.") for p in boards):
            host = "127.0.0.1"
        url = f"http://{host}:{node_port}" if node_port and host else ""
        return url, next((why_not_running(p) for p in boards[:1]), "")

    async def _this_machine(self) -> Node | None:
        """The node that runs pods as processes of the machine that it is."""
        try:
            nodes = await self._connection.list(kinds.NODE, model=Node, labels=keys.ISOLATION_LABEL)
        except Forbidden:
            return None  # nodes are not everybody's business on a cluster of many machines
        return nodes.items[0] if len(nodes.items) == 1 else None

    async def _create_companions(
        self, submission: Submission, job: dict[str, Any], *, on_this_machine: bool
    ) -> None:
        node_port: int | None = None
        for companion in submission.companions():
            if on_this_machine and node_port and companion["kind"] == "Deployment":
                companion = listening(companion, "127.0.0.1", node_port)
            created = await self._create_owned(companion, job)
            if companion["kind"] == "Service":
                node_port = created["spec"]["ports"][0].get("nodePort")

    async def _priority_class(self, name: str) -> None:
        try:
            await self._connection.get(kinds.PRIORITY_CLASS, name)
        except Forbidden:
            return  # who may not look is told by the API server, when the pods are made
        except NotFound as error:
            raise PosseError(
                f"the priority class {name} does not exist; create it first"
            ) from error

    async def _create_owned(self, companion: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
        owner = {
            "apiVersion": job["apiVersion"],
            "kind": job["kind"],
            "name": job["metadata"]["name"],
            "uid": job["metadata"]["uid"],
        }
        owned = {**companion, "metadata": {**companion["metadata"], "ownerReferences": [owner]}}
        kind = _COMPANION_KINDS[companion["kind"]]
        name = companion["metadata"]["name"]
        deadline = self._connection.world.monotonic() + _COLLECTED_WITHIN
        while True:
            try:
                return await self._connection.create(kind, owned, self.namespace)
            except AlreadyExists as error:
                existing = await self._get_or_none(kind, name, dict)
                if existing is not None and not _left_over(existing, job):
                    raise PosseError(
                        f"{kind.singular} {name} already exists and belongs to somebody else"
                    ) from error
                if self._connection.world.monotonic() > deadline:
                    raise
            if existing is not None:
                await self._collect(kind, existing)
            await asyncio.sleep(0.05)

    async def _collect(self, kind: Kind, leftover: dict[str, Any]) -> None:
        """What a predecessor of the same name left; its collection is under way, too."""
        metadata = leftover["metadata"]
        try:
            await self._connection.delete(
                kind, metadata["name"], self.namespace, uid=metadata["uid"]
            )
        except (NotFound, Conflict):
            return


def _belongs(pod: Pod, job: dict[str, Any]) -> bool:
    metadata = job["metadata"]
    return (
        pod.metadata.labels.get(keys.JOB_NAME_LABEL) == metadata["name"]
        and pod.metadata.namespace == metadata["namespace"]
        and (pod.metadata.creation_timestamp or "") >= (metadata.get("creationTimestamp") or "")
    )


def _left_over(companion: dict[str, Any], job: dict[str, Any]) -> bool:
    """Whether it belonged to an earlier job of this kind."""
    owners = companion["metadata"].get("ownerReferences") or []
    return any(owner.get("kind") == job["kind"] for owner in owners)


def _group_named_by(pod: Pod) -> str:
    annotations = pod.metadata.annotations
    return annotations.get(keys.GROUP_NAME) or annotations.get(keys.VOLCANO_GROUP_NAME) or ""


def as_document(job: TrainingJob) -> dict[str, Any]:
    """The stable keys of `-o json` and `-o yaml`."""
    return {
        "name": job.name,
        "namespace": job.namespace,
        "uuid": job.uid,
        "status": job.status,
        "trainer": job.trainer,
        "priority": job.priority,
        "duration": f"{int(job.duration)}s",
        "creationTimestamp": job.created,
        "chiefName": job.chief,
        "requestGPUs": job.requested_gpus,
        "allocatedGPUs": job.allocated_gpus,
        "tensorboard": job.tensorboard,
        "instances": [
            {
                "name": i.name,
                "status": i.status,
                "age": f"{int(i.age)}s",
                "node": i.node,
                "nodeIP": i.node_ip,
                "ip": i.ip,
                "chief": i.chief,
                "requestGPUs": i.gpus,
                "gpuMetrics": {},
                "creationTimestamp": i.created,
            }
            for i in job.instances
        ],
    }
