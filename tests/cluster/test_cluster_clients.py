"""The official Python client and kubernetes_asyncio, with the kubeconfig that `posse up` wrote."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.cluster import tools
from tests.cluster.kubectl import mpi_job, pod
from tests.cluster.processes import Commands, eventually

pytestmark = pytest.mark.process

JOBS = ("kubeflow.org", "v2beta1")
SECONDS = 60


def _fresh(prefix: str) -> str:
    return f"{prefix}{time.time_ns() % 10**12}"


class Official:
    """The parts of `kubernetes.client` that people use, in a namespace of their own."""

    def __init__(self, commands: Commands) -> None:
        self.library = tools.client("kubernetes")
        client = self.library.config.new_client_from_config(str(commands.kubeconfig))
        self.core = self.library.client.CoreV1Api(client)
        self.apps = self.library.client.AppsV1Api(client)
        self.custom = self.library.client.CustomObjectsApi(client)
        self.version = self.library.client.VersionApi(client)
        self.namespace = _fresh("py")
        self.ApiException = self.library.client.exceptions.ApiException

    def running(self, name: str) -> Any:
        def phase() -> str:
            return str(self.core.read_namespaced_pod(name, self.namespace).status.phase)

        eventually(lambda: phase() == "Running", f"{name} runs")
        return self.core.read_namespaced_pod(name, self.namespace)


@pytest.fixture
def official(commands: Commands) -> Iterator[Official]:
    made = Official(commands)
    body = {"metadata": {"name": made.namespace}}
    made.core.create_namespace(body)
    yield made
    made.core.delete_namespace(made.namespace)


def test_the_official_client_reads_the_cluster(official: Official) -> None:
    assert official.version.get_code().major == "1"
    nodes = official.core.list_node().items
    assert [node.metadata.name for node in nodes] == [f"node-{index}" for index in range(4)]
    assert nodes[0].status.allocatable["nvidia.com/gpu"] == "2"
    page = official.core.list_node(limit=3)
    assert len(page.items) == 3
    rest = official.core.list_node(limit=3, _continue=page.metadata._continue)
    assert [node.metadata.name for node in rest.items] == ["node-3"]


def test_the_official_client_has_its_way_with_pods(official: Official) -> None:
    core, namespace = official.core, official.namespace
    created = core.create_namespaced_pod(namespace, pod("a"))
    assert created.metadata.uid
    running = official.running("a")
    assert running.status.pod_ip
    assert running.metadata.creation_timestamp.tzinfo is not None
    for how, patch in (
        ("strategic", {"metadata": {"labels": {"x": "y"}}}),
        ("json", [{"op": "add", "path": "/metadata/labels/z", "value": "w"}]),
    ):
        patched = core.patch_namespaced_pod("a", namespace, patch)
        assert ("x" if how == "strategic" else "z") in patched.metadata.labels
    listed = core.list_namespaced_pod(namespace, label_selector="x=y")
    assert [one.metadata.name for one in listed.items] == ["a"]
    running = official.running("a")
    running.metadata.annotations = {"note": "kept"}
    replaced = core.replace_namespaced_pod("a", namespace, running)
    assert replaced.metadata.annotations["note"] == "kept"
    assert "simulated" in core.read_namespaced_pod_log("a", namespace, container="main")
    core.delete_namespaced_pod("a", namespace, grace_period_seconds=0)
    with pytest.raises(official.ApiException) as gone:
        core.read_namespaced_pod("a", namespace)
    assert gone.value.status == 404


def test_the_official_client_watches(official: Official) -> None:
    watch = official.library.watch.Watch()
    names = iter(("a", "b"))
    told: list[tuple[str, str]] = []
    official.core.create_namespaced_config_map(
        official.namespace, {"metadata": {"name": next(names)}}
    )
    for event in watch.stream(
        official.core.list_namespaced_config_map, official.namespace, timeout_seconds=SECONDS
    ):
        told.append((event["type"], event["object"].metadata.name))
        if told[-1] == ("ADDED", "a"):
            official.core.create_namespaced_config_map(
                official.namespace, {"metadata": {"name": next(names)}}
            )
        elif told[-1] == ("ADDED", "b"):
            official.core.delete_namespaced_config_map("a", official.namespace)
        else:
            watch.stop()
    assert told == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]


def test_the_official_client_follows_logs(official: Official) -> None:
    short = pod("a", annotations={"posse.dev/simulated-duration": "2s"})
    official.core.create_namespaced_pod(official.namespace, short)
    official.running("a")
    watch = official.library.watch.Watch()
    lines = list(
        watch.stream(
            official.core.read_namespaced_pod_log, "a", official.namespace, container="main"
        )
    )
    assert any("simulated" in line for line in lines)


def test_the_official_client_runs_a_gang(official: Official) -> None:
    place = (*JOBS, official.namespace, "mpijobs")
    official.custom.create_namespaced_custom_object(*place, mpi_job())

    def conditions() -> dict[str, str]:
        found = official.custom.get_namespaced_custom_object(*place, "mpi")
        entries = found.get("status", {}).get("conditions", [])
        return {one["type"]: one["status"] for one in entries}

    eventually(lambda: conditions().get("Running") == "True", "the job runs")
    patch = {"metadata": {"labels": {"x": "y"}}}
    official.custom.patch_namespaced_custom_object(*place, "mpi", patch)
    listed = official.custom.list_namespaced_custom_object(*place, label_selector="x=y")
    assert [one["metadata"]["name"] for one in listed["items"]] == ["mpi"]
    pods = official.core.list_namespaced_pod(official.namespace).items
    assert {one.status.phase for one in pods} == {"Running"}
    official.custom.delete_namespaced_custom_object(*place, "mpi", propagation_policy="Foreground")
    eventually(
        lambda: not official.core.list_namespaced_pod(official.namespace).items, "all is gone"
    )


def test_the_official_client_scales_and_learns_of_refusals(official: Official) -> None:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    made = {"metadata": {"name": "web"}, "spec": spec}
    official.apps.create_namespaced_deployment(official.namespace, made)
    with pytest.raises(official.ApiException) as twice:
        official.apps.create_namespaced_deployment(official.namespace, made)
    assert twice.value.status == 409
    scale = official.apps.read_namespaced_deployment_scale("web", official.namespace)
    assert (scale.spec.replicas, scale.status.selector) == (1, "app=web")
    three = {"spec": {"replicas": 3}}
    official.apps.patch_namespaced_deployment_scale("web", official.namespace, three)
    eventually(
        lambda: (
            official.apps.read_namespaced_deployment(
                "web", official.namespace
            ).status.ready_replicas
            == 3
        ),
        "three replicas are ready",
    )


def test_two_threads_can_share_the_official_client(official: Official) -> None:
    def work(name: str) -> None:
        for index in range(10):
            body = {"metadata": {"name": f"{name}-{index}"}}
            official.core.create_namespaced_config_map(official.namespace, body)

    threads = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(official.core.list_namespaced_config_map(official.namespace).items) == 20


class Asynchronous:
    """The same of kubernetes_asyncio."""

    def __init__(self, library: Any, client: Any) -> None:
        self.library = library
        self.core = library.client.CoreV1Api(client)
        self.custom = library.client.CustomObjectsApi(client)
        self.namespace = _fresh("aio")

    async def running(self, name: str) -> Any:
        async with asyncio.timeout(SECONDS):
            while True:
                found = await self.core.read_namespaced_pod(name, self.namespace)
                if found.status.phase == "Running":
                    return found
                await asyncio.sleep(0.1)


@pytest.fixture
async def asynchronous(commands: Commands) -> AsyncIterator[Asynchronous]:
    library = tools.client("kubernetes_asyncio")
    configuration = library.client.Configuration()
    await library.config.load_kube_config(
        str(commands.kubeconfig), client_configuration=configuration
    )
    async with library.client.ApiClient(configuration) as client:
        made = Asynchronous(library, client)
        await made.core.create_namespace({"metadata": {"name": made.namespace}})
        yield made
        await made.core.delete_namespace(made.namespace)


async def test_the_asynchronous_client_has_its_way_with_pods(asynchronous: Asynchronous) -> None:
    core, namespace = asynchronous.core, asynchronous.namespace
    await asyncio.gather(*(core.create_namespaced_pod(namespace, pod(name)) for name in "abc"))
    for name in "abc":
        await asynchronous.running(name)
    patched = await core.patch_namespaced_pod("a", namespace, {"metadata": {"labels": {"x": "y"}}})
    assert patched.metadata.labels["x"] == "y"
    listed = await core.list_namespaced_pod(namespace, label_selector="x=y")
    assert [one.metadata.name for one in listed.items] == ["a"]
    assert "simulated" in await core.read_namespaced_pod_log("a", namespace, container="main")
    await core.delete_namespaced_pod("a", namespace, grace_period_seconds=0)
    with pytest.raises(asynchronous.library.client.exceptions.ApiException) as gone:
        await core.read_namespaced_pod("a", namespace)
    assert gone.value.status == 404


async def test_the_asynchronous_client_watches_a_gang(asynchronous: Asynchronous) -> None:
    place = (*JOBS, asynchronous.namespace, "mpijobs")
    await asynchronous.custom.create_namespaced_custom_object(*place, mpi_job())
    watch = asynchronous.library.watch.Watch()
    ready: dict[str, None] = {}
    async with watch.stream(
        asynchronous.core.list_namespaced_pod, asynchronous.namespace, timeout_seconds=SECONDS
    ) as events:
        async for event in events:
            if event["object"].status.phase == "Running":
                ready[event["object"].metadata.name] = None
            if len(ready) == 3:
                break
    assert len(ready) == 3
    await asynchronous.custom.delete_namespaced_custom_object(*place, "mpi")
