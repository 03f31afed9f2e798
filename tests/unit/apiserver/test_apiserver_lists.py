"""LIST: one state, in order, in pages, selected, in the form asked for."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.apiserver.asking import CONFIG_MAPS, PODS, Server, config_map, pod

pytestmark = pytest.mark.looptime

TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


async def fill(server: Server, count: int = 5) -> None:
    for n in range(count):
        await server.post(CONFIG_MAPS, config_map(f"c{n}", {"odd": str(n % 2)}))


async def test_a_list_is_sorted_and_carries_the_revision_of_the_store(server: Server) -> None:
    for name in ("b", "c", "a"):
        await server.post(CONFIG_MAPS, config_map(name))
    await server.post(PODS, pod())
    said = await server.get(CONFIG_MAPS)
    assert said.names == ["a", "b", "c"]
    assert said.body["kind"] == "ConfigMapList"
    assert said.version == str(server.store.revision)


async def test_all_namespaces_or_one(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map("here"))
    await server.post("/api/v1/namespaces/kube-system/configmaps", config_map("there"))
    assert (await server.get("/api/v1/configmaps")).names == ["here", "there"]
    assert (await server.get(CONFIG_MAPS)).names == ["here"]


async def test_labels_and_fields_select(server: Server) -> None:
    await fill(server)
    assert (await server.get(CONFIG_MAPS, labelSelector="odd=1")).names == ["c1", "c3"]
    assert (await server.get(CONFIG_MAPS, fieldSelector="metadata.name=c2")).names == ["c2"]


@pytest.mark.parametrize(
    "query", [{"labelSelector": "a in"}, {"fieldSelector": "data.x=1"}, {"limit": "x"}]
)
async def test_a_query_that_cannot_be_read_is_400(server: Server, query: dict[str, str]) -> None:
    said = await server.get(CONFIG_MAPS, **query)
    assert (said.status, said.reason) == (400, "BadRequest")


async def test_pages_are_of_one_state(server: Server) -> None:
    await fill(server)
    first = await server.get(CONFIG_MAPS, limit=2)
    assert first.names == ["c0", "c1"]
    assert first.body["metadata"]["remainingItemCount"] == 3
    await server.delete(f"{CONFIG_MAPS}/c2")
    await server.post(CONFIG_MAPS, config_map("c25"))
    await server.patch(f"{CONFIG_MAPS}/c3", {"data": {"x": "new"}})
    token = first.body["metadata"]["continue"]
    second = await server.get(CONFIG_MAPS, limit=2, **{"continue": token})
    assert second.names == ["c2", "c3"]
    assert "data" not in second.body["items"][1] or not second.body["items"][1]["data"]
    assert second.version == first.version
    last = await server.get(
        CONFIG_MAPS, limit=2, **{"continue": second.body["metadata"]["continue"]}
    )
    assert last.names == ["c4"]
    assert "continue" not in last.body["metadata"]


async def test_a_page_of_a_forgotten_state_is_410_with_a_way_on() -> None:
    server = Server(history_events=2)
    await fill(server)
    token = (await server.get(CONFIG_MAPS, limit=2)).body["metadata"]["continue"]
    for n in range(5):
        await server.patch(f"{CONFIG_MAPS}/c4", {"data": {"x": str(n)}})
    said = await server.get(CONFIG_MAPS, limit=2, **{"continue": token})
    assert (said.status, said.reason) == (410, "Expired")
    on = said.body["metadata"]["continue"]
    assert (await server.get(CONFIG_MAPS, **{"continue": on})).names == ["c2", "c3", "c4"]


@pytest.mark.parametrize("token", ["x", "!!!", "eyJ9"])
async def test_a_token_of_ones_own_making_is_400(server: Server, token: str) -> None:
    assert (await server.get(CONFIG_MAPS, **{"continue": token})).status == 400


async def test_an_exact_revision_shows_that_state(server: Server) -> None:
    await fill(server, 2)
    revision = server.store.revision
    await fill(server, 4)
    exact = {"resourceVersion": revision, "resourceVersionMatch": "Exact"}
    assert (await server.get(CONFIG_MAPS, **exact)).names == ["c0", "c1"]
    newer = {"resourceVersion": revision, "resourceVersionMatch": "NotOlderThan"}
    assert len((await server.get(CONFIG_MAPS, **newer)).names) == 4


async def test_an_exact_revision_of_long_ago_is_410() -> None:
    server = Server(history_events=2)
    await fill(server)
    said = await server.get(CONFIG_MAPS, resourceVersion=1, resourceVersionMatch="Exact")
    assert (said.status, said.reason) == (410, "Expired")


@pytest.mark.parametrize("revision", ["", "0"])
async def test_any_revision_shows_the_present(server: Server, revision: str) -> None:
    await fill(server)
    assert len((await server.get(CONFIG_MAPS, resourceVersion=revision)).names) == 5


async def test_a_revision_to_come_is_waited_for_and_then_504(server: Server) -> None:
    ahead = server.store.revision + 100
    said = await server.get(CONFIG_MAPS, resourceVersion=ahead)
    assert (said.status, said.reason) == (504, "Timeout")
    assert f"Too large resource version: {ahead}, current: {server.store.revision}" in said.message
    assert said.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert said.headers["retry-after"] == "1"


async def test_a_revision_that_comes_in_time_is_answered(server: Server) -> None:
    ahead = server.store.revision + 1
    asked = asyncio.create_task(server.get(CONFIG_MAPS, resourceVersion=ahead))
    await asyncio.sleep(1)
    await server.post(CONFIG_MAPS, config_map("late"))
    assert (await asked).names == ["late"]


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Roughly", "resourceVersion": "1"},
        {"sendInitialEvents": "true"},
        {"watch": "true", "resourceVersionMatch": "NotOlderThan"},
        {"watch": "true", "sendInitialEvents": "true"},
    ],
)
async def test_options_that_mean_nothing_are_422(server: Server, query: dict[str, str]) -> None:
    said = await server.get(CONFIG_MAPS, **query)
    assert (said.status, said.reason) == (422, "Invalid")


async def test_a_table_for_people(server: Server) -> None:
    await server.post(PODS, pod())
    said = await server.get(PODS, headers=TABLE)
    assert said.body["kind"] == "Table"
    assert said.body["columnDefinitions"][0]["name"] == "Name"
    assert said.body["rows"][0]["cells"][0] == "p"
    assert said.version == str(server.store.revision)
    one = await server.get(f"{PODS}/p", headers=TABLE)
    assert len(one.body["rows"]) == 1


async def test_metadata_alone(server: Server) -> None:
    await server.post(PODS, pod())
    accept = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    said = await server.get(PODS, headers=accept)
    assert said.body["kind"] == "PartialObjectMetadataList"
    assert "spec" not in said.body["items"][0]


ACCEPTED = [
    ("application/json", 200),
    ("*/*", 200),
    ("application/vnd.kubernetes.protobuf,application/json", 200),
    ("application/vnd.kubernetes.protobuf", 406),
    ("text/html", 406),
    ("application/json;as=Nonsense;v=v1;g=meta.k8s.io", 406),
]


@pytest.mark.parametrize(("accept", "status"), ACCEPTED)
async def test_the_form_is_negotiated(server: Server, accept: str, status: int) -> None:
    said = await server.get(PODS, headers={"accept": accept})
    assert said.status == status
    assert said.body["kind"] == ("PodList" if status == 200 else "Status")


async def test_yaml_where_it_is_asked_for(server: Server) -> None:
    said = await server.get(PODS, headers={"accept": "application/yaml"})
    assert said.headers["content-type"] == "application/yaml"
    assert said.raw.startswith(b"kind: PodList")
