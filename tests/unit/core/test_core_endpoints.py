"""Endpoints and EndpointSlices follow the pods of their service."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from posse.objects.kinds import ENDPOINT_SLICE, ENDPOINTS, POD, SERVICE
from tests.unit.node.embedded import Embedded, embedded, pod

pytestmark = pytest.mark.looptime

Manifest = dict[str, Any]
LABELS = {"app": "board"}


def service(name: str = "board", **spec: Any) -> Manifest:
    ports = [{"port": 80, "targetPort": 6006}]
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"team": "red"}},
        "spec": {"selector": LABELS, "ports": ports, **spec},
    }


async def run(cluster: Embedded, name: str, **spec: Any) -> str:
    """A labelled pod that runs; its address."""
    made = pod(name, "node-0", **spec)
    made["metadata"]["labels"] = LABELS
    await cluster.connection.create(POD, made)
    running = await cluster.pod(name, "Running")
    return str(running["status"]["podIP"])


async def leads_to(cluster: Embedded, name: str, *addresses: str) -> Manifest:
    """The Endpoints, once these are the addresses that are ready."""

    async def holds() -> Manifest | None:
        found = await cluster.find(ENDPOINTS, name)
        subsets = (found or {}).get("subsets") or []
        there = [one["ip"] for subset in subsets for one in subset.get("addresses") or []]
        return found if found is not None and there == sorted(addresses) else None

    found: Manifest = await cluster.until(holds)
    return found


async def test_a_service_leads_to_its_ready_pods() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(SERVICE, service())
        assert "subsets" not in await leads_to(cluster, "board")
        first = await run(cluster, "a")
        second = await run(cluster, "b")
        found = await leads_to(cluster, "board", first, second)
        assert found["metadata"]["labels"]["team"] == "red"
        (subset,) = found["subsets"]
        assert subset["ports"] == [{"port": 6006, "protocol": "TCP"}]
        assert subset["addresses"][0]["targetRef"]["name"] == "a"
        (made,) = await cluster.all(ENDPOINT_SLICE)
        assert made["metadata"]["labels"]["kubernetes.io/service-name"] == "board"
        assert [one["addresses"] for one in made["endpoints"]] == [[first], [second]]
        assert made["endpoints"][0]["conditions"] == {
            "ready": True,
            "serving": True,
            "terminating": False,
        }


async def test_a_pod_that_goes_is_taken_out() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(SERVICE, service())
        first, second = await run(cluster, "a"), await run(cluster, "b")
        await leads_to(cluster, "board", first, second)
        await cluster.connection.delete(POD, "a", "default", grace=0)
        await leads_to(cluster, "board", second)


async def test_named_ports_are_those_of_the_containers() -> None:
    async with embedded("core", "node") as cluster:
        ports = [{"name": "http", "port": 80, "targetPort": "web"}]
        await cluster.connection.create(SERVICE, service(ports=ports))
        containers = [{"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": 9}]}]
        address = await run(cluster, "a", containers=containers)
        found = await leads_to(cluster, "board", address)
        assert found["subsets"][0]["ports"] == [{"name": "http", "port": 9, "protocol": "TCP"}]


async def test_a_pod_has_its_hostname_under_a_headless_service() -> None:
    async with embedded("core", "node") as cluster:
        made = service(clusterIP="None")
        del made["spec"]["ports"]
        await cluster.connection.create(SERVICE, made)
        address = await run(cluster, "a", hostname="host-a", subdomain="board")
        found = await leads_to(cluster, "board", address)
        assert found["subsets"][0]["addresses"][0]["hostname"] == "host-a"
        assert "ports" not in found["subsets"][0]
        assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""


async def test_pods_are_led_to_before_they_are_ready_where_the_service_says_so() -> None:
    async with embedded("core") as cluster:
        await cluster.connection.create(SERVICE, service(publishNotReadyAddresses=True))
        await cluster.connection.create(SERVICE, service("patient"))
        made = pod("a", "node-0")
        made["metadata"]["labels"] = LABELS
        await cluster.connection.create(POD, made)
        status = {"status": {"podIP": "10.1.2.3", "phase": "Running"}}
        await cluster.connection.patch(POD, "a", status, "default", subresource="status")
        await leads_to(cluster, "board", "10.1.2.3")

        async def waits() -> list[str]:
            found = await cluster.find(ENDPOINTS, "patient")
            subsets = (found or {}).get("subsets") or []
            return [one["ip"] for subset in subsets for one in subset["notReadyAddresses"]]

        assert await cluster.until(waits) == ["10.1.2.3"]


async def test_a_service_without_a_selector_is_left_to_its_author() -> None:
    async with embedded("core") as cluster:
        made = service()
        del made["spec"]["selector"]
        await cluster.connection.create(SERVICE, made)
        subsets = [{"addresses": [{"ip": "10.0.0.9"}], "ports": [{"port": 1}]}]
        metadata = {"name": "board", "namespace": "default"}
        await cluster.connection.create(ENDPOINTS, {"metadata": metadata, "subsets": subsets})
        await asyncio.sleep(5)
        found = await leads_to(cluster, "board", "10.0.0.9")
        assert "labels" not in found["metadata"]


async def test_endpoints_go_with_their_service() -> None:
    async with embedded("core") as cluster:
        await cluster.connection.create(SERVICE, service())
        await leads_to(cluster, "board")
        await cluster.connection.delete(SERVICE, "board", "default")
        await cluster.until(lambda: cluster.gone(ENDPOINTS, "board"))

        async def no_slices() -> bool:
            return not await cluster.all(ENDPOINT_SLICE)

        await cluster.until(no_slices)


async def test_endpoints_of_a_service_deleted_while_nobody_looked_go_too() -> None:
    async with embedded("core") as cluster:
        await cluster.connection.create(SERVICE, service())
        await leads_to(cluster, "board")
        await cluster.stop("core")
        await cluster.connection.delete(SERVICE, "board", "default")
        cluster.start("core")
        await cluster.until(lambda: cluster.gone(ENDPOINTS, "board"))


async def test_a_changed_selector_is_followed() -> None:
    async with embedded("core", "node") as cluster:
        await cluster.connection.create(SERVICE, service(selector={"app": "other"}))
        address = await run(cluster, "a")
        await leads_to(cluster, "board")
        patch = {"spec": {"selector": LABELS}}
        await cluster.connection.patch(SERVICE, "board", patch, "default")
        await leads_to(cluster, "board", address)
