"""DELETE: at once, after a grace, after finalizers, after a namespace is empty."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.asking import CONFIG_MAPS, PODS, Server, binding, config_map, pod

pytestmark = pytest.mark.looptime

JOBS = "/apis/batch/v1/namespaces/default/jobs"
NAMESPACES = "/api/v1/namespaces"


async def bound(server: Server, name: str = "p", node: str = "n") -> None:
    await server.post(PODS, pod(name))
    target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    assert (await server.post(f"{PODS}/{name}/binding", target)).status == 201


async def test_an_object_goes_at_once(server: Server) -> None:
    uid = (await server.post(CONFIG_MAPS, config_map())).body["metadata"]["uid"]
    said = await server.delete(f"{CONFIG_MAPS}/c")
    assert said.status == 200
    assert said.body["status"] == "Success"
    assert said.body["details"] == {"name": "c", "kind": "configmaps", "uid": uid}
    assert (await server.get(f"{CONFIG_MAPS}/c")).status == 404


async def test_what_is_not_there_cannot_be_deleted(server: Server) -> None:
    said = await server.delete(f"{CONFIG_MAPS}/c")
    assert (said.status, said.reason) == (404, "NotFound")


async def test_a_pod_without_a_node_goes_at_once(server: Server) -> None:
    await server.post(PODS, pod())
    assert (await server.delete(f"{PODS}/p")).body["kind"] == "Pod"
    assert (await server.get(f"{PODS}/p")).status == 404


async def test_a_pod_on_a_node_waits_for_its_agent(server: Server) -> None:
    await bound(server)
    said = await server.delete(f"{PODS}/p")
    assert said.status == 200
    assert said.body["metadata"]["deletionGracePeriodSeconds"] == 30
    assert said.body["metadata"]["deletionTimestamp"] > said.body["metadata"]["creationTimestamp"]
    assert (await server.get(f"{PODS}/p")).status == 200
    await server.delete(f"{PODS}/p", gracePeriodSeconds=0)
    assert (await server.get(f"{PODS}/p")).status == 404


async def test_a_finished_pod_goes_at_once(server: Server) -> None:
    await bound(server)
    await server.patch(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
    await server.delete(f"{PODS}/p")
    assert (await server.get(f"{PODS}/p")).status == 404


async def test_a_grace_can_only_be_shortened(server: Server) -> None:
    await bound(server)
    grace = []
    for asked in (20, 25, 5):
        await server.delete(f"{PODS}/p", {"gracePeriodSeconds": asked})
        pod_now = (await server.get(f"{PODS}/p")).body
        grace.append(pod_now["metadata"]["deletionGracePeriodSeconds"])
    assert grace == [20, 20, 5]


async def test_options_come_in_the_body_or_in_the_query(server: Server) -> None:
    for name in ("a", "b"):
        await bound(server, name)
    await server.delete(f"{PODS}/a", {"kind": "DeleteOptions", "gracePeriodSeconds": 0})
    await server.delete(f"{PODS}/b", gracePeriodSeconds=0)
    assert (await server.get(PODS)).names == []


@pytest.mark.parametrize("what", ["uid", "resourceVersion"])
async def test_preconditions_are_kept(server: Server, what: str) -> None:
    metadata = (await server.post(CONFIG_MAPS, config_map())).body["metadata"]
    said = await server.delete(f"{CONFIG_MAPS}/c", {"preconditions": {what: "999"}})
    assert (said.status, said.reason) == (409, "Conflict")
    said = await server.delete(f"{CONFIG_MAPS}/c", {"preconditions": {what: metadata[what]}})
    assert said.status == 200


async def test_finalizers_hold_an_object(server: Server) -> None:
    made = config_map()
    made["metadata"]["finalizers"] = ["example.com/hold"]
    await server.post(CONFIG_MAPS, made)
    said = await server.delete(f"{CONFIG_MAPS}/c")
    assert said.body["metadata"]["deletionTimestamp"]
    assert (await server.get(f"{CONFIG_MAPS}/c")).status == 200
    said = await server.patch(f"{CONFIG_MAPS}/c", {"metadata": {"finalizers": None}})
    assert said.status == 200
    assert (await server.get(f"{CONFIG_MAPS}/c")).status == 404


async def test_a_dying_object_takes_no_new_finalizer(server: Server) -> None:
    made = config_map()
    made["metadata"]["finalizers"] = ["example.com/hold"]
    await server.post(CONFIG_MAPS, made)
    await server.delete(f"{CONFIG_MAPS}/c")
    finalizers = ["example.com/hold", "example.com/more"]
    said = await server.patch(f"{CONFIG_MAPS}/c", {"metadata": {"finalizers": finalizers}})
    assert said.status == 422
    assert "no new finalizers can be added if the object is being deleted" in said.message


async def test_a_pod_with_a_finalizer_goes_when_the_agent_and_the_finalizer_are_done(
    server: Server,
) -> None:
    made = pod()
    made["metadata"]["finalizers"] = ["example.com/hold"]
    await server.post(PODS, made)
    await server.post(f"{PODS}/p/binding", binding("p", "n"))
    await server.delete(f"{PODS}/p")
    await server.delete(f"{PODS}/p", gracePeriodSeconds=0)
    assert (await server.get(f"{PODS}/p")).status == 200
    await server.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
    assert (await server.get(f"{PODS}/p")).status == 404


PROPAGATION: list[tuple[dict[str, Any], list[str]]] = [
    ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
    ({"propagationPolicy": "Orphan"}, ["orphan"]),
    ({"orphanDependents": True}, ["orphan"]),
]


@pytest.mark.parametrize(("options", "finalizers"), PROPAGATION)
async def test_propagation_is_left_to_the_garbage_collector(
    server: Server, options: dict[str, Any], finalizers: list[str]
) -> None:
    await server.post(CONFIG_MAPS, config_map())
    said = await server.delete(f"{CONFIG_MAPS}/c", options)
    assert said.body["metadata"]["finalizers"] == finalizers


async def test_background_propagation_takes_foreground_back(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map())
    await server.delete(f"{CONFIG_MAPS}/c", {"propagationPolicy": "Foreground"})
    await server.delete(f"{CONFIG_MAPS}/c", {"propagationPolicy": "Background"})
    assert (await server.get(f"{CONFIG_MAPS}/c")).status == 404


async def test_a_job_keeps_its_pods_unless_told_otherwise(server: Server) -> None:
    spec = pod()["spec"] | {"restartPolicy": "Never"}
    for name in ("a", "b"):
        await server.post(JOBS, {"metadata": {"name": name}, "spec": {"template": {"spec": spec}}})
    said = await server.delete(f"{JOBS}/a")
    assert said.body["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved" in said.headers["warning"]
    await server.delete(f"{JOBS}/b", propagationPolicy="Background")
    assert (await server.get(f"{JOBS}/b")).status == 404


@pytest.mark.parametrize(
    "options",
    [
        {"propagationPolicy": "Sideways"},
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        {"dryRun": ["Some"]},
    ],
)
async def test_options_that_mean_nothing_are_refused(
    server: Server, options: dict[str, Any]
) -> None:
    await server.post(CONFIG_MAPS, config_map())
    said = await server.delete(f"{CONFIG_MAPS}/c", options)
    assert (said.status, said.reason) == (422, "Invalid")
    assert (await server.get(f"{CONFIG_MAPS}/c")).status == 200


async def test_a_selection_is_deleted_and_nothing_else(server: Server) -> None:
    for name, team in (("a", "x"), ("b", "y"), ("c", "x")):
        await server.post(CONFIG_MAPS, config_map(name, {"team": team}))
    said = await server.delete(CONFIG_MAPS, labelSelector="team=x")
    assert (said.status, said.names) == (200, ["a", "c"])
    assert (await server.get(CONFIG_MAPS)).names == ["b"]


async def test_a_namespace_waits_until_it_is_finalized(server: Server) -> None:
    made = (await server.post(NAMESPACES, {"metadata": {"name": "team"}})).body
    assert made["status"] == {"phase": "Active"}
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    said = await server.delete(f"{NAMESPACES}/team")
    assert said.body["status"]["phase"] == "Terminating"
    emptied = {**said.body, "spec": {"finalizers": []}}
    assert (await server.put(f"{NAMESPACES}/team/finalize", emptied)).status == 200
    assert (await server.get(f"{NAMESPACES}/team")).status == 404


async def test_deleting_an_ending_namespace_again_changes_nothing(server: Server) -> None:
    await server.post(NAMESPACES, {"metadata": {"name": "team"}})
    first = await server.delete(f"{NAMESPACES}/team")
    again = await server.delete(f"{NAMESPACES}/team")
    assert (again.status, again.body) == (200, first.body)


async def test_nothing_is_created_in_an_ending_namespace(server: Server) -> None:
    await server.post(NAMESPACES, {"metadata": {"name": "team"}})
    await server.delete(f"{NAMESPACES}/team")
    said = await server.post("/api/v1/namespaces/team/configmaps", config_map())
    assert (said.status, said.reason) == (403, "Forbidden")
    assert said.message == (
        'configmaps "c" is forbidden: unable to create new content in namespace team because it is'
        " being terminated"
    )
    assert said.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"


async def test_the_finalizers_of_a_namespace_change_only_by_finalize(server: Server) -> None:
    made = (await server.post(NAMESPACES, {"metadata": {"name": "team"}})).body
    said = await server.put(f"{NAMESPACES}/team", {**made, "spec": {"finalizers": []}})
    assert said.body["spec"] == {"finalizers": ["kubernetes"]}


async def test_the_first_namespaces_stay(server: Server) -> None:
    said = await server.delete(f"{NAMESPACES}/default")
    assert (said.status, said.reason) == (403, "Forbidden")


async def test_namespaces_are_not_deleted_by_the_dozen(server: Server) -> None:
    assert (await server.delete(NAMESPACES)).status == 405
