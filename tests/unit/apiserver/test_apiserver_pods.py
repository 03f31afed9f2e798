"""What admission does to pods, and how they are bound, evicted and counted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.objects.times import rfc3339
from tests.unit.apiserver.asking import PODS, Said, Server, asking, config_map, pod

pytestmark = pytest.mark.looptime

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
LIMITS = "/api/v1/namespaces/default/limitranges"


async def bind(server: Server, name: str = "p", node: str = "n", **metadata: str) -> Said:
    binding = {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}
    return await server.post(f"{PODS}/{name}/binding", binding)


async def test_a_pod_is_filled_in(server: Server) -> None:
    made = pod()
    made["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "2", "cpu": "1"}}
    said = (await server.post(PODS, made)).body
    requests = said["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"nvidia.com/gpu": "2", "cpu": "1"}
    assert said["spec"]["serviceAccountName"] == "default"
    assert said["spec"]["priority"] == 0
    assert said["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
    assert said["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    assert {one["key"] for one in said["spec"]["tolerations"]} == {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }


async def test_a_pod_needs_its_service_account(server: Server) -> None:
    said = await server.post(PODS, pod(serviceAccountName="robot"))
    assert (said.status, said.reason) == (403, "Forbidden")
    assert 'serviceaccount "robot" not found' in said.message


async def test_every_namespace_has_the_default_account(server: Server) -> None:
    await server.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    assert (await server.post("/api/v1/namespaces/team/pods", pod())).status == 201


async def test_the_default_account_comes_back(server: Server) -> None:
    await server.delete("/api/v1/namespaces/default/serviceaccounts/default")
    await asyncio.sleep(0)
    assert (await server.post(PODS, pod())).status == 201


async def test_events_are_forgotten_after_an_hour() -> None:
    server = Server()  # started in the test's own time, which a fixture does not share
    await server.app.start()
    path = "/api/v1/namespaces/default/events"
    about = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}
    await server.post(path, {"metadata": {"name": "once"}, **about})
    await server.post(path, {"metadata": {"name": "again"}, **about})
    await asyncio.sleep(1800)
    seen = rfc3339(server.world.now())
    await server.patch(f"{path}/again", {"lastTimestamp": seen})
    await asyncio.sleep(1500)
    assert (await server.get(path)).names == ["again", "once"]
    await asyncio.sleep(900)
    assert (await server.get(path)).names == ["again"]
    await asyncio.sleep(3600)
    assert (await server.get(path)).names == []


async def test_the_priority_comes_from_the_class(server: Server) -> None:
    await server.post(CLASSES, {"metadata": {"name": "high"}, "value": 7})
    said = await server.post(PODS, pod(priorityClassName="high"))
    assert said.body["spec"]["priority"] == 7


async def test_the_classes_of_the_system_are_there(server: Server) -> None:
    said = await server.post(PODS, pod(priorityClassName="system-node-critical"))
    assert said.body["spec"]["priority"] == 2_000_001_000


async def test_the_default_class_is_for_pods_without_one(server: Server) -> None:
    policy = {"globalDefault": True, "preemptionPolicy": "Never"}
    await server.post(CLASSES, {"metadata": {"name": "usual"}, "value": 3, **policy})
    spec = (await server.post(PODS, pod())).body["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 3)
    assert spec["preemptionPolicy"] == "Never"


async def test_there_is_one_default_class(server: Server) -> None:
    made = {"metadata": {"name": "a"}, "value": 3, "globalDefault": True}
    await server.post(CLASSES, made)
    said = await server.post(CLASSES, made | {"metadata": {"name": "b"}})
    assert said.status == 403
    assert "PriorityClass a is already marked as default" in said.message


@pytest.mark.parametrize("spec", [{"priorityClassName": "none"}, {"priority": 5}])
async def test_a_priority_of_ones_own_is_forbidden(server: Server, spec: dict[str, Any]) -> None:
    said = await server.post(PODS, pod(**spec))
    assert (said.status, said.reason) == (403, "Forbidden")


async def test_a_pods_spec_is_immutable(server: Server) -> None:
    await server.post(PODS, pod())
    said = await server.patch(f"{PODS}/p", {"spec": {"priority": 9, "nodeName": "n"}})
    assert (said.status, said.reason) == (422, "Invalid")


async def test_a_pod_is_bound_once(server: Server) -> None:
    await server.post(PODS, pod())
    said = await bind(server)
    assert (said.status, said.body["status"]) == (201, "Success")
    bound = (await server.get(f"{PODS}/p")).body
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["generation"] == 1
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    again = await bind(server, node="m")
    assert (again.status, again.reason) == (409, "Conflict")
    assert again.message == (
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"'
    )


async def test_of_two_binds_at_once_one_wins(server: Server) -> None:
    await server.post(PODS, pod())
    answers = await asyncio.gather(*(bind(server, node=f"n{n}") for n in range(5)))
    assert sorted(said.status for said in answers) == [201, 409, 409, 409, 409]


async def test_what_the_scheduler_said_of_a_waiting_pod_ends_with_the_bind(server: Server) -> None:
    await server.post(PODS, pod())
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    said = {"conditions": [waiting], "nominatedNodeName": "m"}
    await server.patch(f"{PODS}/p/status", {"status": said})
    await bind(server)
    status = (await server.get(f"{PODS}/p")).body["status"]
    (condition,) = status["conditions"]
    assert condition["status"] == "True"
    assert "reason" not in condition
    assert "nominatedNodeName" not in status


@pytest.mark.parametrize("what", ["uid", "resourceVersion"])
async def test_a_bind_names_the_pod_it_means(server: Server, what: str) -> None:
    metadata = (await server.post(PODS, pod())).body["metadata"]
    said = await bind(server, **{what: "999"})
    assert said.status == 409
    assert "Precondition failed" in said.message
    assert (await bind(server, **{what: metadata[what]})).status == 201


async def test_a_gated_pod_is_not_bound(server: Server) -> None:
    said = await server.post(PODS, pod(schedulingGates=[{"name": "example.com/wait"}]))
    assert said.body["status"]["conditions"][0]["reason"] == "SchedulingGated"
    said = await bind(server)
    assert said.status == 409
    assert said.message.endswith("pod p has non-empty .spec.schedulingGates")


async def test_a_dying_pod_is_not_bound(server: Server) -> None:
    made = pod()
    made["metadata"]["finalizers"] = ["example.com/hold"]
    await server.post(PODS, made)
    await server.delete(f"{PODS}/p")
    said = await bind(server)
    assert said.status == 409
    assert said.message.endswith("pod p is being deleted, cannot be assigned to a host")


async def test_a_bind_needs_a_pod_and_a_node(server: Server) -> None:
    assert (await bind(server)).status == 404
    await server.post(PODS, pod())
    assert (await bind(server, node="")).status == 500
    assert (await server.post(f"{PODS}/p/binding", {"metadata": {"name": "q"}})).status == 400
    assert (await server.get(f"{PODS}/p/binding")).status == 405


async def test_a_binding_may_be_posted_to_its_collection(server: Server) -> None:
    await server.post(PODS, pod())
    body = {"metadata": {"name": "p"}, "target": {"name": "n"}}
    assert (await server.post("/api/v1/namespaces/default/bindings", body)).status == 201
    assert (await server.get(f"{PODS}/p")).body["spec"]["nodeName"] == "n"


async def test_a_dry_bind_binds_nothing(server: Server) -> None:
    await server.post(PODS, pod())
    body = {"metadata": {"name": "p"}, "target": {"name": "n"}}
    assert (await server.post(f"{PODS}/p/binding", body, dryRun="All")).status == 201
    assert "nodeName" not in (await server.get(f"{PODS}/p")).body["spec"]


async def test_an_eviction_deletes_with_grace(server: Server) -> None:
    uid = (await server.post(PODS, pod())).body["metadata"]["uid"]
    await bind(server)
    wrong = {"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"uid": "999"}}}
    assert (await server.post(f"{PODS}/p/eviction", wrong)).status == 409
    right = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p"},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }
    said = await server.post(f"{PODS}/p/eviction", right)
    assert (said.status, said.body["status"]) == (201, "Success")
    assert (await server.get(f"{PODS}/p")).body["metadata"]["deletionTimestamp"]


def quota(name: str = "q", **hard: str) -> dict[str, Any]:
    named = {key.replace("_", "."): value for key, value in hard.items()}
    return {"metadata": {"name": name}, "spec": {"hard": named}}


async def test_a_quota_bounds_the_pods_of_a_namespace(server: Server) -> None:
    await server.post(QUOTAS, quota(pods="1"))
    assert (await server.post(PODS, pod("a"))).status == 201
    said = await server.post(PODS, pod("b"))
    assert (said.status, said.reason) == (403, "Forbidden")
    assert said.message == (
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    )


async def test_a_quota_counts_what_is_requested(server: Server) -> None:
    await server.post(QUOTAS, quota(requests_cpu="2", **{"requests.nvidia.com/gpu": "8"}))
    await server.post(PODS, asking("a", cpu="1500m"))
    said = await server.post(PODS, asking("b", cpu="1"))
    assert said.message.endswith(
        "exceeded quota: q, requested: requests.cpu=1, used: requests.cpu=1500m, limited:"
        " requests.cpu=2"
    )
    assert (await server.post(PODS, asking("c", cpu="500m"))).status == 201


async def test_a_quota_asks_every_pod_to_say_what_it_needs(server: Server) -> None:
    await server.post(QUOTAS, quota(limits_memory="1Gi", requests_cpu="2"))
    said = await server.post(PODS, pod())
    assert said.message == (
        'pods "p" is forbidden: failed quota: q: must specify limits.memory for: main;'
        " requests.cpu for: main"
    )


async def test_finished_and_deleted_pods_free_their_quota(server: Server) -> None:
    await server.post(QUOTAS, quota(pods="1"))
    await server.post(PODS, pod("a"))
    await server.patch(f"{PODS}/a/status", {"status": {"phase": "Succeeded"}})
    assert (await server.post(PODS, pod("b"))).status == 201
    await server.delete(f"{PODS}/b")
    assert (await server.post(PODS, pod("c"))).status == 201


async def test_a_quota_shows_what_is_used(server: Server) -> None:
    await server.post(QUOTAS, quota(pods="4", cpu="4"))
    await server.post(PODS, asking("a", cpu="1"))
    await server.post(PODS, asking("b", cpu="500m"))
    await asyncio.sleep(0)
    status = (await server.get(f"{QUOTAS}/q")).body["status"]
    assert status == {"hard": {"pods": "4", "cpu": "4"}, "used": {"pods": "2", "cpu": "1500m"}}
    await server.delete(f"{PODS}/a")
    await asyncio.sleep(0)
    assert (await server.get(f"{QUOTAS}/q")).body["status"]["used"] == {"pods": "1", "cpu": "500m"}


async def test_a_quota_may_count_any_kind(server: Server) -> None:
    await server.post(
        QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "1"}}}
    )
    path = "/api/v1/namespaces/default/configmaps"
    assert (await server.post(path, config_map("a"))).status == 201
    assert (await server.post(path, config_map("b"))).status == 403


async def test_a_scoped_quota_is_for_its_pods_alone(server: Server) -> None:
    await server.post(
        QUOTAS, quota(pods="0") | {"spec": {"hard": {"pods": "0"}, "scopes": ["BestEffort"]}}
    )
    assert (await server.post(PODS, asking("a", cpu="1"))).status == 201
    assert (await server.post(PODS, pod("b"))).status == 403


async def test_many_at_once_do_not_exceed_a_quota(server: Server) -> None:
    await server.post(QUOTAS, quota(pods="3"))
    answers = await asyncio.gather(*(server.post(PODS, pod(f"p{n}")) for n in range(10)))
    assert sorted(said.status for said in answers) == [201] * 3 + [403] * 7


def limit(**bounds: dict[str, str]) -> dict[str, Any]:
    item = {"type": "Container", **bounds}
    return {"metadata": {"name": "l"}, "spec": {"limits": [item]}}


async def test_a_limit_range_speaks_for_containers_that_do_not(server: Server) -> None:
    await server.post(LIMITS, limit(default={"cpu": "1"}, defaultRequest={"cpu": "500m"}))
    said = (await server.post(PODS, pod())).body
    resources = said["spec"]["containers"][0]["resources"]
    assert resources == {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}
    assert said["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"min": {"cpu": "2"}}, "minimum cpu usage per Container is 2, but request is 1"),
        ({"max": {"cpu": "500m"}}, "maximum cpu usage per Container is 500m, but"),
        (
            {"maxLimitRequestRatio": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 1, but no limit is specified",
        ),
    ],
)
async def test_a_limit_range_bounds_containers(
    server: Server, bounds: dict[str, Any], words: str
) -> None:
    await server.post(LIMITS, limit(**bounds))
    said = await server.post(PODS, asking(cpu="1"))
    assert (said.status, said.reason) == (403, "Forbidden")
    assert words in said.message
