"""The agent over a real API server: pods live and end as on a kubelet."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.kube.cache import Cache
from posse.local.node.manifests import simulated_nodes
from posse.objects.kinds import EVENT, LEASE, NODE, POD
from tests.unit.node.embedded import Embedded, conditions, embedded

pytestmark = pytest.mark.looptime

Manifest = dict[str, Any]

DURATION = "posse.dev/simulated-duration"
EXIT_CODE = "posse.dev/simulated-exit-code"


async def ready(cluster: Embedded, name: str = "node-0") -> dict[str, Any]:
    async def is_ready() -> dict[str, Any] | None:
        node = await cluster.find(NODE, name, "")
        return node if node and conditions(node).get("Ready") == "True" else None

    node: dict[str, Any] = await cluster.until(is_ready)
    return node


async def test_nodes_are_registered_ready_and_keep_a_lease() -> None:
    async with embedded("node", count=3, gpus=8) as cluster:
        node = await ready(cluster, "node-2")
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
        assert node["status"]["addresses"][0] == {"type": "InternalIP", "address": "127.0.0.1"}

        async def renewed() -> str | None:
            lease = await cluster.find(LEASE, "node-2", "kube-node-lease")
            return lease["spec"]["renewTime"] if lease else None

        first = await cluster.until(renewed)
        await asyncio.sleep(11)
        assert await renewed() > first


async def test_a_thousand_heartbeats_come_as_a_trickle() -> None:
    async with embedded("node", count=1000) as cluster:
        await ready(cluster, "node-999")
        await asyncio.sleep(15)
        before = len(cluster.journal.records)
        await asyncio.sleep(1)
        assert 50 <= len(cluster.journal.records) - before <= 200
        await asyncio.sleep(9)
        assert 900 <= len(cluster.journal.records) - before <= 1100


async def test_what_others_put_on_a_node_survives_a_restart_of_its_agent() -> None:
    async with embedded("node") as cluster:
        await ready(cluster)
        taints = [{"key": "mine", "effect": "NoSchedule"}]
        await cluster.connection.patch(
            NODE,
            "node-0",
            {
                "metadata": {"labels": {"rack": "r1"}},
                "spec": {"unschedulable": True, "taints": taints},
            },
        )
        await cluster.stop("node")
        cluster.start("node")
        await asyncio.sleep(5)
        node = await ready(cluster)
        assert node["metadata"]["labels"]["rack"] == "r1"
        assert node["spec"]["unschedulable"] is True
        assert node["spec"]["taints"][0]["key"] == "mine"


async def test_a_bound_pod_runs_with_an_address_of_its_own() -> None:
    async with embedded("node") as cluster:
        await cluster.run_pod("a")
        await cluster.run_pod("b", "node-1")
        a, b = await cluster.pod("a", "Running"), await cluster.pod("b", "Running")
        assert a["status"]["podIP"] != b["status"]["podIP"]
        assert a["status"]["hostIP"] == "127.0.0.1"
        assert conditions(a)["Ready"] == "True"
        container = a["status"]["containerStatuses"][0]
        assert container["ready"] is True
        assert "running" in container["state"]


async def test_a_pod_of_somebody_elses_node_is_left_alone() -> None:
    async with embedded("node") as cluster:
        await ready(cluster)
        await cluster.run_pod("a", "elsewhere")
        await asyncio.sleep(5)
        found = await cluster.find(POD, "a")
        assert found is not None
        assert found["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("code", "phase", "reason"), [(None, "Succeeded", "Completed"), ("3", "Failed", "Error")]
)
async def test_a_pod_ends_when_its_annotation_says_so(
    code: str | None, phase: str, reason: str
) -> None:
    async with embedded("node") as cluster:
        annotations = {DURATION: "1m30s", **({EXIT_CODE: code} if code else {})}
        await cluster.run_pod("a", annotations=annotations)
        await cluster.pod("a", "Running")
        began = cluster.world.monotonic()
        pod = await cluster.pod("a", phase, within=120)
        assert cluster.world.monotonic() - began == pytest.approx(90, abs=0.5)
        terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (terminated["exitCode"], terminated["reason"]) == (int(code or 0), reason)
        assert conditions(pod)["Ready"] == "False"


async def test_a_malformed_duration_is_told_and_the_pod_runs_on() -> None:
    async with embedded("node") as cluster:
        await cluster.run_pod("a", annotations={DURATION: "soon"})
        await cluster.pod("a", "Running")

        async def told() -> bool:
            events = await cluster.all(EVENT)
            return any(e["reason"] == "MalformedAnnotation" for e in events)

        await cluster.until(told)
        await asyncio.sleep(300)
        await cluster.pod("a", "Running", within=0)


async def test_a_failing_container_is_restarted_in_place_with_backoff() -> None:
    async with embedded("node") as cluster:
        await cluster.run_pod(
            "a", restartPolicy="OnFailure", annotations={DURATION: "5s", EXIT_CODE: "1"}
        )

        async def waits() -> dict[str, Any] | None:
            found = await cluster.find(POD, "a")
            statuses = (found or {}).get("status", {}).get("containerStatuses") or [{}]
            return found if "waiting" in statuses[0].get("state", {}) else None

        pod = await cluster.until(waits)
        container = pod["status"]["containerStatuses"][0]
        assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert container["lastState"]["terminated"]["exitCode"] == 1
        assert conditions(pod)["Ready"] == "False"
        await asyncio.sleep(11)
        pod = await cluster.pod("a", "Running", within=0)
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
        assert conditions(pod)["Ready"] == "True"


async def test_a_pod_that_runs_past_its_deadline_fails() -> None:
    async with embedded("node") as cluster:
        await cluster.run_pod("a", activeDeadlineSeconds=20)
        pod = await cluster.pod("a", "Failed")
        assert pod["status"]["reason"] == "DeadlineExceeded"


async def test_the_first_bound_are_admitted_and_the_rest_fail() -> None:
    async with embedded("node", gpus=2) as cluster:
        await ready(cluster)
        for name in ("a", "b"):
            await cluster.run_pod(name, requests={"nvidia.com/gpu": "2"})
        await cluster.pod("a", "Running")
        pod = await cluster.pod("b", "Failed")
        assert pod["status"]["reason"] == "OutOfnvidia.com/gpu"
        assert "requested: 2, used: 2, capacity: 2" in pod["status"]["message"]
        await cluster.connection.delete(POD, "a", "default")
        await cluster.until(lambda: cluster.gone(POD, "a"))
        await cluster.run_pod("c", requests={"nvidia.com/gpu": "2"})
        await cluster.pod("c", "Running")


async def test_a_finished_pod_gives_its_room_back() -> None:
    async with embedded("node", gpus=2) as cluster:
        gpus = {"nvidia.com/gpu": "2"}
        await cluster.run_pod("a", requests=gpus, annotations={DURATION: "1s"})
        await cluster.pod("a", "Succeeded")
        await cluster.run_pod("b", requests=gpus)
        await cluster.pod("b", "Running")


async def test_a_pod_whose_selector_the_node_does_not_match_fails() -> None:
    async with embedded("node") as cluster:
        await ready(cluster)
        await cluster.run_pod("a", nodeSelector={"rack": "r9"})
        status = (await cluster.pod("a", "Failed"))["status"]
        assert status["reason"] == "NodeAffinity"
        why = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        assert status["message"] == f"Pod was rejected: {why}"

        async def told() -> list[Manifest]:
            return [one for one in await cluster.all(EVENT) if one["reason"] == "NodeAffinity"]

        assert (await cluster.until(told))[0]["message"] == why


async def test_a_label_that_the_agent_has_not_seen_yet_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with embedded("node") as cluster:
        await ready(cluster)
        change = {"metadata": {"labels": {"rack": "r9"}}}
        await cluster.connection.patch(NODE, "node-0", change)
        known = Cache.get

        def behind(cache: Cache[Any], namespace: str, name: str) -> Any:
            found = known(cache, namespace, name)
            if found is None or cache.kind != NODE:
                return found
            return found | {"metadata": found["metadata"] | {"labels": {}}}

        monkeypatch.setattr(Cache, "get", behind)
        await cluster.run_pod("a", nodeSelector={"rack": "r9"})
        await cluster.pod("a", "Running")


async def test_two_pods_do_not_share_a_port_of_their_node() -> None:
    port = {"containerPort": 80, "hostPort": 8080}
    containers = [{"name": "main", "image": "i", "ports": [port]}]
    async with embedded("node") as cluster:
        await ready(cluster)
        await cluster.run_pod("a", containers=containers)
        await cluster.pod("a", "Running")
        await cluster.run_pod("b", containers=containers)
        assert (await cluster.pod("b", "Failed"))["status"]["reason"] == "NodePorts"
        await cluster.run_pod("c", "node-1", containers=containers)
        await cluster.pod("c", "Running")
        await cluster.connection.delete(POD, "a", "default")
        await cluster.until(lambda: cluster.gone(POD, "a"))
        await cluster.run_pod("d", containers=containers)
        await cluster.pod("d", "Running")


async def test_a_deleted_pod_is_ended_and_removed() -> None:
    async with embedded("node") as cluster:
        await cluster.run_pod("a")
        await cluster.pod("a", "Running")
        await cluster.connection.delete(POD, "a", "default")
        await cluster.until(lambda: cluster.gone(POD, "a"), within=5)


async def test_a_pod_deleted_while_its_agent_was_away_is_removed_when_it_is_back() -> None:
    async with embedded("node") as cluster:
        await cluster.run_pod("a")
        await cluster.pod("a", "Running")
        await cluster.stop("node")
        await cluster.connection.delete(POD, "a", "default")
        assert await cluster.find(POD, "a") is not None
        cluster.start("node")
        await cluster.until(lambda: cluster.gone(POD, "a"), within=10)


async def test_running_pods_go_on_after_a_restart_and_end_when_they_would_have() -> None:
    async with embedded("node", gpus=2) as cluster:
        gpus = {"nvidia.com/gpu": "2"}
        await cluster.run_pod("a", requests=gpus, annotations={DURATION: "100s"})
        before = await cluster.pod("a", "Running")
        began = cluster.world.monotonic()
        await asyncio.sleep(40)
        await cluster.stop("node")
        await cluster.run_pod("b", requests=gpus)
        await asyncio.sleep(20)
        cluster.start("node")
        await cluster.pod("b", "Failed")
        after = await cluster.pod("a", "Running", within=0)
        assert after["status"]["podIP"] == before["status"]["podIP"]
        assert after["status"]["containerStatuses"][0]["restartCount"] == 0
        await cluster.pod("a", "Succeeded")
        assert cluster.world.monotonic() - began == pytest.approx(100, abs=2)


async def test_logs_come_through_the_api_server() -> None:
    async with embedded("node") as cluster:
        await cluster.run_pod("a", annotations={DURATION: "30s"})
        await cluster.pod("a", "Running")

        async def logs(**options: Any) -> bytes:
            chunks = cluster.connection.logs("a", "default", **options)
            return b"".join([chunk async for chunk in chunks])

        line = b"simulated: this container runs nothing\n"
        assert await logs() == line
        assert await logs(tail_lines=0) == b""
        stamped = await logs(timestamps=True)
        assert stamped.startswith(b"2020-")
        assert stamped.endswith(b"Z " + line)
        began = cluster.world.monotonic()
        assert await logs(follow=True) == line
        assert cluster.world.monotonic() - began == pytest.approx(29, abs=2)


async def test_a_deleted_node_stays_deleted() -> None:
    async with embedded("node") as cluster:
        await ready(cluster)
        await cluster.connection.delete(NODE, "node-0")
        await asyncio.sleep(30)
        assert await cluster.gone(NODE, "node-0", "")


async def test_an_idle_cluster_writes_nothing_but_heartbeats() -> None:
    async with embedded("node", nodes=simulated_nodes(1)) as cluster:
        await cluster.run_pod("a", restartPolicy="Always")
        await cluster.pod("a", "Running")
        await asyncio.sleep(5)
        before = len(cluster.journal.records)
        await asyncio.sleep(250)
        resources = {record.resource for record in cluster.journal.records[before:]}
        assert resources == {"leases.coordination.k8s.io"}


async def test_a_pod_that_somebody_else_declared_failed_is_ended_and_its_room_free() -> None:
    async with embedded("node", gpus=2) as cluster:
        gpus = {"nvidia.com/gpu": "2"}
        await cluster.run_pod("a", requests=gpus)
        await cluster.pod("a", "Running")
        await cluster.connection.patch(
            POD, "a", {"status": {"phase": "Failed"}}, "default", subresource="status"
        )
        await cluster.run_pod("b", requests=gpus)
        await cluster.pod("b", "Running")
        await cluster.pod("a", "Failed", within=0)


async def test_pods_are_reported_while_the_api_server_comes_and_goes() -> None:
    async with embedded("node") as cluster:
        await cluster.run_pod("a", annotations={DURATION: "30s"})
        await cluster.pod("a", "Running")
        cluster.cut = True
        await asyncio.sleep(60)
        cluster.cut = False
        await cluster.pod("a", "Succeeded", within=90)
