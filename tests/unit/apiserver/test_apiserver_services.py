"""Services get addresses and ports of their own, and keep them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.asking import Server

pytestmark = pytest.mark.looptime

SERVICES = "/api/v1/namespaces/default/services"


def service(name: str = "s", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_addresses_differ(server: Server) -> None:
    said = [(await server.post(SERVICES, service(name))).body["spec"] for name in ("a", "b")]
    addresses = [spec["clusterIP"] for spec in said]
    assert len({*addresses, "10.96.0.1"}) == 3
    assert [spec["clusterIPs"] for spec in said] == [[address] for address in addresses]


async def test_a_headless_service_has_none(server: Server) -> None:
    spec = (await server.post(SERVICES, service(clusterIP="None"))).body["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


async def test_a_freed_address_is_given_again(server: Server) -> None:
    first = (await server.post(SERVICES, service("a"))).body["spec"]["clusterIP"]
    await server.delete(f"{SERVICES}/a")
    assert (await server.post(SERVICES, service("b"))).body["spec"]["clusterIP"] == first


@pytest.mark.parametrize("address", ["10.96.0.1", "192.168.0.1", "nonsense"])
async def test_an_address_that_cannot_be_had_is_refused(server: Server, address: str) -> None:
    said = await server.post(SERVICES, service(clusterIP=address))
    assert (said.status, said.reason) == (422, "Invalid")


async def test_an_update_keeps_the_address(server: Server) -> None:
    address = (await server.post(SERVICES, service())).body["spec"]["clusterIP"]
    said = await server.put(f"{SERVICES}/s", service(selector={"a": "b"}))
    assert said.body["spec"]["clusterIP"] == address
    moved = await server.put(f"{SERVICES}/s", service(clusterIP="10.96.0.77"))
    assert moved.status == 422


async def test_node_ports_are_given_and_kept(server: Server) -> None:
    made = [(await server.post(SERVICES, service(name, type="NodePort"))).body for name in "ab"]
    ports = [one["spec"]["ports"][0]["nodePort"] for one in made]
    assert ports[0] != ports[1]
    said = await server.put(f"{SERVICES}/a", service("a", type="NodePort", selector={"a": "b"}))
    assert said.body["spec"]["ports"][0]["nodePort"] == ports[0]


async def test_a_job_finds_its_pods_by_its_uid(server: Server) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    made = {"metadata": {"name": "j"}, "spec": {"template": template}}
    said = (await server.post("/apis/batch/v1/namespaces/default/jobs", made)).body
    uid = said["metadata"]["uid"]
    assert said["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert said["spec"]["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": uid,
        "controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "job-name": "j",
    }
