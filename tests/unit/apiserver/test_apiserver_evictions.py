"""Evictions, and the budgets that are asked before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.apiserver.asking import PODS, Said, Server, pod

pytestmark = pytest.mark.looptime

BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
STRATEGIC = {"content-type": "application/strategic-merge-patch+json"}


async def running(server: Server, *names: str, ready: bool = True) -> None:
    """On a node, so that it takes its time to go."""
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    for name in names:
        made = pod(name, nodeName="n")
        made["metadata"]["labels"] = {"app": "a"}
        await server.post(PODS, made)
        status = {"phase": "Running", "conditions": [condition]}
        await server.patch(f"{PODS}/{name}/status", {"status": status})


async def budget(server: Server, **status: Any) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    await server.post(BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    if status:
        status = {"observedGeneration": 1} | status
        assert (await server.patch(f"{BUDGETS}/b/status", {"status": status})).status == 200


async def evict(server: Server, name: str = "p", options: Any = None, **query: str) -> Said:
    eviction = {"metadata": {"name": name}, "deleteOptions": options or {}}
    return await server.post(f"{PODS}/{name}/eviction", eviction, **query)


async def status(server: Server) -> Any:
    return (await server.get(f"{BUDGETS}/b")).body["status"]


def cause(said: Said) -> str:
    assert (said.status, said.reason) == (429, "TooManyRequests")
    (only,) = said.body["details"]["causes"]
    assert only["reason"] == "DisruptionBudget"
    return str(only["message"])


async def test_an_eviction_uses_the_budget_up(server: Server) -> None:
    await running(server, "p", "q")
    await budget(server, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1, expectedPods=2)
    assert (await evict(server)).status == 201
    said = await status(server)
    assert (said["disruptionsAllowed"], list(said["disruptedPods"])) == (0, ["p"])
    (condition,) = said["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "InsufficientPods")
    refused = cause(await evict(server, "q"))
    assert refused == "The disruption budget b does not allow evicting pods currently"
    assert (await server.get(f"{PODS}/q")).body["metadata"].get("deletionTimestamp") is None


async def test_as_if_uses_nothing_up(server: Server) -> None:
    await running(server, "p")
    await budget(server, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1, expectedPods=2)
    before = (await server.get(f"{BUDGETS}/b")).version
    assert (await evict(server, dryRun="All")).status == 201
    assert (await evict(server, options={"dryRun": ["All"]})).status == 201
    assert (await server.get(f"{BUDGETS}/b")).version == before
    assert (await server.get(f"{PODS}/p")).body["metadata"].get("deletionTimestamp") is None


async def test_a_budget_that_nobody_has_reckoned_yet_allows_nothing(server: Server) -> None:
    await running(server, "p")
    await budget(server)
    said = await evict(server)
    assert cause(said) == "The disruption budget b is still being processed by the server."
    assert said.body["details"]["retryAfterSeconds"] == 10
    assert said.headers["retry-after"] == "10"


async def test_a_budget_that_could_not_be_reckoned_says_why(server: Server) -> None:
    await running(server, "p")
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "SyncFailed",
        "message": "no scale",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await budget(server, disruptionsAllowed=0, conditions=[condition])
    assert cause(await evict(server)).endswith("because it failed sync: no scale")


async def test_a_condition_with_a_message_is_told(server: Server) -> None:
    await running(server, "p")
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "Drained",
        "message": "not now",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    await budget(server, currentHealthy=2, desiredHealthy=1, conditions=[condition])
    assert cause(await evict(server)).endswith("evicting pods currently (Drained): not now")


async def test_evictions_that_nobody_confirms_come_to_an_end(server: Server) -> None:
    await running(server, "p")
    evicted = {f"gone-{n}": "2026-01-01T00:00:00Z" for n in range(2001)}
    await budget(server, disruptionsAllowed=1, currentHealthy=2, disruptedPods=evicted)
    said = await evict(server)
    assert (said.status, said.reason) == (403, "Forbidden")
    assert said.message.startswith('poddisruptionbudget.policy "b" is forbidden: DisruptedPods')


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"currentHealthy": 1, "desiredHealthy": 1}, 201),
        ({"currentHealthy": 0, "desiredHealthy": 1}, 429),
        ({"currentHealthy": 0, "desiredHealthy": 0}, 429),
    ],
)
async def test_an_unhealthy_pod_may_go_while_enough_others_are_healthy(
    server: Server, counts: dict[str, int], code: int
) -> None:
    await running(server, "p", ready=False)
    await budget(server, disruptionsAllowed=0, **counts)
    assert (await evict(server)).status == code
    assert "disruptedPods" not in await status(server), "it was not counted on"


async def test_a_pod_on_its_way_out_needs_no_leave(server: Server) -> None:
    await running(server, "p")
    await budget(server, disruptionsAllowed=0)
    await server.delete(f"{PODS}/p")
    assert (await evict(server)).status == 201


async def test_another_pod_of_that_name_is_not_evicted(server: Server) -> None:
    await running(server, "p")
    said = await evict(server, options={"preconditions": {"uid": "other"}})
    assert (said.status, said.reason) == (409, "Conflict")
    assert (await server.get(f"{PODS}/p")).body["metadata"].get("deletionTimestamp") is None


async def test_a_pod_that_is_evicted_twice_was_disrupted_once() -> None:
    server = Server()  # started in the test's own time, which a fixture does not share
    await server.app.start()
    await running(server, "p")

    async def target() -> Any:
        conditions = (await server.get(f"{PODS}/p")).body["status"]["conditions"]
        return [one for one in conditions if one["type"] == "DisruptionTarget"]

    await evict(server)
    (first,) = await target()
    assert (first["status"], first["reason"]) == ("True", "EvictionByEvictionAPI")
    await asyncio.sleep(5)
    await evict(server)
    assert await target() == [first]
    await server.transport.close()


async def test_a_strategic_patch_replaces_the_selector_whole(server: Server) -> None:
    await budget(server)
    change = {"spec": {"selector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}}
    said = await server.ask("PATCH", f"{BUDGETS}/b", change, headers=STRATEGIC)
    assert said.body["spec"]["selector"] == change["spec"]["selector"]
    assert said.body["metadata"]["generation"] == 2
