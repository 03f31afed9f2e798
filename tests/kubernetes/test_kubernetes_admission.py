"""The webhook at the door of a real API server, with the rights that an installation gives it."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from posse.admission import keeping
from posse.admission.certificates import Holding, held
from posse.admission.installation import WebhookOptions, webhook_objects
from posse.admission.naming import ACCOUNT, CONFIGURATION, KEPT_IN
from posse.admission.program import AdmissionConfig, run
from posse.kube import Connection, connect
from posse.kube.certificates import Authority, create_authority
from posse.kube.errors import Forbidden, Invalid, KubeError, NotFound
from posse.kube.serving import Address
from posse.objects import kinds
from posse.objects.keys import HELD, QUEUE_NAME, WRITTEN_AS
from posse.objects.kinds import Kind
from posse.world import SystemClock, World
from tests.cluster.riding import cluster, wait_for_status
from tests.cluster.test_cluster_tfjobs import replicas, tf_job
from tests.kubernetes.plane import SYSTEM, ControlPlane
from tests.kubernetes.programs import free_port

_NOT_HERE = ("Deployment", "PodDisruptionBudget", "Service")
_HOOKS = (kinds.MUTATING_WEBHOOK_CONFIGURATION, kinds.VALIDATING_WEBHOOK_CONFIGURATION)
_WITHIN = 30.0


class Door:
    """The webhook, which can be started and stopped, and a namespace to try it in."""

    def __init__(self, plane: ControlPlane) -> None:
        self.world = World.real()
        self.admin = connect(plane.settings(), self.world)
        self.namespace = f"door-{self.world.suffix(6)}"
        self.port = free_port()
        self.config = AdmissionConfig(
            address=Address("127.0.0.1", self.port), addresses=("127.0.0.1",)
        )
        self._settings = plane.settings(ACCOUNT)
        self._plane = plane
        self._connections: list[Connection] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def install(self) -> None:
        options = WebhookOptions(image="none", url=f"https://127.0.0.1:{self.port}")
        made = [obj for obj in webhook_objects(options) if obj["kind"] not in _NOT_HERE]
        listed = {"apiVersion": "v1", "kind": "List", "items": made}
        self._plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))
        await self._until_granted()
        await self.admin.create(
            kinds.NAMESPACE,
            {"metadata": {"name": self.namespace, "annotations": {QUEUE_NAME: "door-open"}}},
        )
        for name in ("door-open", "door-shut"):
            await self.admin.create(kinds.QUEUE, {"metadata": {"name": name}, "spec": {}})
        shut = {"status": {"state": "Closed"}}
        await self.admin.patch(kinds.QUEUE, "door-shut", shut, subresource="status")

    async def _until_granted(self) -> None:
        """Roles are heard of a little later; a call before that would be a call denied."""
        asked = (
            ("get", f"secrets/{KEPT_IN}", "-n", SYSTEM),
            ("patch", f"validatingwebhookconfigurations/{CONFIGURATION}"),
        )
        for words in asked:
            async with asyncio.timeout(_WITHIN):
                while self._can(*words) != "yes":  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.1)

    def _can(self, *words: str) -> str:
        said = self._plane.kubectl("auth", "can-i", *words, user=ACCOUNT, check=False)
        return said.stdout.strip()

    async def remove(self) -> None:
        await self.stop()
        for kind in _HOOKS:
            await self.admin.delete(kind, CONFIGURATION)
        await self.admin.delete(kinds.SECRET, KEPT_IN, SYSTEM)
        for name in ("door-open", "door-shut"):
            await self.admin.delete(kinds.QUEUE, name)
        await self.admin.delete(kinds.NAMESPACE, self.namespace)
        for connection in (*self._connections, self.admin):
            await connection.close()

    async def start(self) -> None:
        """Until an API server trusts it."""
        connection = connect(self._settings, self.world)
        self._connections.append(connection)
        self._tasks.append(asyncio.create_task(run(self.config, connection, self.world)))
        await self.until_answered()

    async def kubectl(self, *words: str, stdin: str, check: bool = True) -> Any:
        """In a thread: whoever waits here could not be answered."""
        return await asyncio.to_thread(
            self._plane.kubectl, *words, "-n", self.namespace, check=check, stdin=stdin
        )

    async def shown(self) -> bytes:
        """The certificate that somebody who connects now is shown."""
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=trusting)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
        return ssl.DER_cert_to_PEM_cert(found).encode()

    async def stop(self) -> None:
        while self._tasks:
            task = self._tasks.pop()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until_answered(self) -> None:
        """A job that can never run is refused."""
        async with asyncio.timeout(_WITHIN):
            while not isinstance(await self.refusal(kinds.TF_JOB, hopeless()), Invalid):
                for task in self._tasks:
                    if task.done():
                        await task
                await asyncio.sleep(0.1)

    async def refusal(self, kind: Kind, obj: dict[str, Any]) -> KubeError | None:
        """Why it was not let in; None where it was (and it is not kept)."""
        try:
            await self.admin.create(kind, obj, self.namespace, dry_run=True)
        except KubeError as error:
            return error
        return None


@asynccontextmanager
async def a_door(plane: ControlPlane) -> AsyncIterator[Door]:
    door = Door(plane)
    await door.install()
    try:
        yield door
    finally:
        await door.remove()


def hopeless() -> dict[str, Any]:
    """The schema says nothing against it; only its controller would."""
    job = a_job("hopeless")
    containers = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    containers[0]["name"] = "other"
    return job


def a_job(name: str = "fine", **spec: Any) -> dict[str, Any]:
    return tf_job({"Worker": replicas(1)}, name, **spec)


def in_queue(name: str) -> dict[str, Any]:
    return {"runPolicy": {"schedulingPolicy": {"queue": name}}}


async def test_what_is_said_at_the_door(control_plane: ControlPlane) -> None:
    async with a_door(control_plane) as door:
        await door.start()
        admin, namespace = door.admin, door.namespace

        # Refused with the reasons, as the API words them.
        refused = await door.refusal(kinds.TF_JOB, hopeless())
        assert isinstance(refused, Invalid)
        assert "tfjobs.validate.posse.dev" in refused.message
        assert "must have at least one container with name tensorflow" in refused.message
        for queue in ("door-shut", "door-missing"):
            closed = await door.refusal(kinds.TF_JOB, a_job(**in_queue(queue)))
            assert isinstance(closed, Invalid), queue
            assert "schedulingPolicy.queue" in closed.message

        # Let in with what will be needed later.
        older = kinds.Kind("kubeflow.org", "v1beta1", "TFJob", "tfjobs")
        manifest = a_job("older") | {"apiVersion": older.api_version}
        made = await admin.create(older, manifest, namespace)
        assert made["metadata"]["annotations"][WRITTEN_AS] == "kubeflow.org/v1beta1"
        assert made["metadata"]["annotations"][QUEUE_NAME] == "door-open"
        handed = {"spec": {"runPolicy": {"managedBy": "kueue.x-k8s.io/multikueue"}}}
        with pytest.raises(Invalid, match="field is immutable"):
            await admin.patch(kinds.TF_JOB, "older", handed, namespace)

        # Groups, queues.
        group = {"metadata": {"name": "by-hand"}, "spec": {"minMember": 1}}
        by_hand = await admin.create(kinds.POD_GROUP, group, namespace)
        assert by_hand["spec"]["queue"] == "door-open"
        weird = {"metadata": {"name": "weird"}, "spec": {"deserved": {"cpu": "x"}}}
        assert isinstance(await door.refusal(kinds.QUEUE, weird), Invalid)
        with pytest.raises(Forbidden, match="names no queue"):
            await admin.delete(kinds.QUEUE, "default")


async def test_seats_are_for_schedulers(control_plane: ControlPlane) -> None:
    async with a_door(control_plane) as door:
        await door.start()
        group = {
            "apiVersion": kinds.POD_GROUP.api_version,
            "kind": kinds.POD_GROUP.kind,
            "metadata": {"name": "greedy", "annotations": {HELD: '{"x": ["node-1"]}'}},
            "spec": {"minMember": 1},
        }
        assert await door.refusal(kinds.POD_GROUP, group) is None, "an administrator may"
        words = ("create", "-f", "-", "--as=ann")
        control_plane.kubectl(
            "create", "rolebinding", "ann", "--clusterrole=edit", "--user=ann", "-n", door.namespace
        )
        refused = await door.kubectl(*words, check=False, stdin=json.dumps(group))
        assert refused.returncode != 0
        assert "only a scheduler may write" in refused.stderr
        del group["metadata"]["annotations"]  # type: ignore[attr-defined]
        await door.kubectl(*words, stdin=json.dumps(group))


async def test_pods_are_warned_of_only_where_they_are_ours(control_plane: ControlPlane) -> None:
    async with a_door(control_plane) as door:
        await door.start()

        async def told(scheduler: str) -> str:
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "annotations": {QUEUE_NAME: "door-shut"}},
                "spec": {
                    "schedulerName": scheduler,
                    "serviceAccountName": "default",
                    "automountServiceAccountToken": False,
                    "containers": [{"name": "main", "image": "x"}],
                },
            }
            words = ("create", "--dry-run=server", "-f", "-")
            return str((await door.kubectl(*words, stdin=json.dumps(pod))).stderr)

        await _accounted(door)
        assert "queue 'door-shut' is closed" in await told("posse")
        assert await told("default-scheduler") == ""


async def test_a_day_without_it_loses_nothing(control_plane: ControlPlane) -> None:
    """Whoever would have been refused is let in, and what is running is not stopped."""
    async with a_door(control_plane) as door:
        await door.start()
        await door.stop()
        admin, namespace = door.admin, door.namespace
        assert await door.refusal(kinds.TF_JOB, hopeless()) is None
        await admin.create(kinds.TF_JOB, a_job("meanwhile"), namespace)
        await admin.create(
            kinds.POD_GROUP,
            {"metadata": {"name": "meanwhile"}, "spec": {"minMember": 1}},
            namespace,
        )
        await admin.create(kinds.QUEUE, {"metadata": {"name": "door-new"}, "spec": {}})
        # What could not be undone waits for it.
        with pytest.raises(KubeError):
            await admin.delete(kinds.QUEUE, "door-new")
        await door.start()
        await admin.delete(kinds.QUEUE, "door-new")
        await admin.delete(kinds.TF_JOB, "meanwhile", namespace)


async def test_without_it_a_job_is_still_in_the_queue_of_its_namespace() -> None:
    async with cluster(1) as running:
        await running.connection.create(
            kinds.QUEUE, {"metadata": {"name": running.namespace}, "spec": {}}
        )
        named = {"metadata": {"annotations": {QUEUE_NAME: running.namespace}}}
        await running.connection.patch(kinds.NAMESPACE, running.namespace, named)
        await running.connection.create(kinds.TF_JOB, a_job("unsaid"), running.namespace)
        await wait_for_status(running, "unsaid", "RUNNING")
        group = await running.connection.get(kinds.POD_GROUP, "unsaid", running.namespace)
        assert group["spec"]["queue"] == running.namespace
        await running.connection.delete(kinds.QUEUE, running.namespace)


async def test_an_emptied_secret_is_filled_and_trusted_again(control_plane: ControlPlane) -> None:
    async with a_door(control_plane) as door:
        await door.start()
        before = await _bundle(door)
        await door.admin.patch(kinds.SECRET, KEPT_IN, {"data": None}, SYSTEM)
        await door.stop()
        await door.start()
        after = await _bundle(door)
        assert after != before
        secret = await door.admin.get(kinds.SECRET, KEPT_IN, SYSTEM)
        assert base64.b64decode(secret["data"]["bundle.crt"]) == base64.b64decode(after)


@pytest.mark.parametrize("due", ["certificate", "authority"])
async def test_what_is_renewed_is_shown_at_once_and_trusted_all_the_time(
    control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch, due: str
) -> None:
    """Nothing is started again, and no question meanwhile goes unanswered."""
    monkeypatch.setattr(keeping, "EVERY", 0.5)
    monkeypatch.setattr(keeping, "SPREADS_WITHIN", 1.0)
    async with a_door(control_plane) as door:
        await door.start()
        first = held(await door.admin.get(kinds.SECRET, KEPT_IN, SYSTEM))
        before = await door.shown()
        assert first is not None
        aged = _aged(first, door) if due == "certificate" else _aged_authority(first, door)
        await door.admin.patch(kinds.SECRET, KEPT_IN, {"data": aged.data()}, SYSTEM)
        async with asyncio.timeout(_WITHIN):
            while await door.shown() == before:
                assert isinstance(await door.refusal(kinds.TF_JOB, hopeless()), Invalid)
        assert isinstance(await door.refusal(kinds.TF_JOB, hopeless()), Invalid)
        last = held(await door.admin.get(kinds.SECRET, KEPT_IN, SYSTEM))
        assert last is not None
        assert await door.shown() == last.certificate
        assert last.certificate not in (first.certificate, aged.certificate)
        assert (last.authority != first.authority) is (due == "authority")
        assert base64.b64decode(await _bundle(door)) == last.bundle
        assert first.authority in last.bundle


def _aged(holding: Holding, door: Door) -> Holding:
    """As it is when its certificate has been in use for long."""
    authority = Authority.read(holding.authority, holding.authority_key, door.world)
    certificate, key = authority.issue(door.config.names, door.config.addresses, days=20)
    return msgspec.structs.replace(holding, certificate=certificate, key=key)


def _aged_authority(holding: Holding, door: Door) -> Holding:
    """As it is when its authority has been for nearly ten years."""

    class Then(SystemClock):
        def now(self) -> float:
            return super().now() - 3_500 * 86_400

    old = create_authority(World(Then(), door.world.chance))
    return _aged(
        msgspec.structs.replace(
            holding,
            authority=old.certificate_pem,
            authority_key=old.key_pem,
            bundle=old.certificate_pem + holding.bundle,
        ),
        door,
    )


async def test_an_installation_again_leaves_the_trust_alone(control_plane: ControlPlane) -> None:
    async with a_door(control_plane) as door:
        await door.start()
        before = await _bundle(door)
        options = WebhookOptions(image="other", url=f"https://127.0.0.1:{door.port}")
        made = [obj for obj in webhook_objects(options) if obj["kind"] not in _NOT_HERE]
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
        control_plane.kubectl("apply", "--server-side", "-f", "-", stdin=listed)
        assert await _bundle(door) == before
        assert (await door.admin.get(kinds.SECRET, KEPT_IN, SYSTEM))["data"]
        assert isinstance(await door.refusal(kinds.TF_JOB, hopeless()), Invalid)


async def _bundle(door: Door) -> str:
    found = [await door.admin.get(kind, CONFIGURATION) for kind in _HOOKS]
    bundles = {one["clientConfig"]["caBundle"] for item in found for one in item["webhooks"]}
    (bundle,) = bundles
    return str(bundle)


async def _accounted(door: Door) -> None:
    async with asyncio.timeout(_WITHIN):
        while True:
            try:
                await door.admin.get(kinds.SERVICE_ACCOUNT, "default", door.namespace)
                return
            except NotFound:
                await asyncio.sleep(0.1)
