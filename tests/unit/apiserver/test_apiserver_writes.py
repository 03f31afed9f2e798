"""POST, PUT and PATCH: what is kept, what is refused, and in which words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.apiserver.asking import CONFIG_MAPS, PODS, Server, config_map, pod

pytestmark = pytest.mark.looptime

NODES = "/api/v1/nodes"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def deployment(replicas: int = 1) -> dict[str, Any]:
    labels = {"app": "web"}
    return {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod()["spec"]},
        },
    }


async def test_a_created_object_has_an_identity(server: Server) -> None:
    said = await server.post(CONFIG_MAPS, config_map("c", x="1"))
    assert said.status == 201
    metadata = said.body["metadata"]
    assert metadata["uid"]
    assert metadata["resourceVersion"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert metadata["namespace"] == "default"
    assert (said.body["kind"], said.body["apiVersion"]) == ("ConfigMap", "v1")
    assert (await server.get(f"{CONFIG_MAPS}/c")).body == said.body


async def test_a_second_object_of_the_name_is_refused(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map())
    said = await server.post(CONFIG_MAPS, config_map())
    assert (said.status, said.reason) == (409, "AlreadyExists")
    assert said.message == 'configmaps "c" already exists'
    assert said.body["details"] == {"name": "c", "kind": "configmaps"}


async def test_generated_names_differ(server: Server) -> None:
    made = {"metadata": {"generateName": "x-"}}
    names = [(await server.post(CONFIG_MAPS, made)).body["metadata"]["name"] for _ in range(20)]
    assert len(set(names)) == 20
    assert all(name.startswith("x-") and len(name) == 7 for name in names)


async def test_a_long_generate_name_is_cut_to_a_label(server: Server) -> None:
    said = await server.post(CONFIG_MAPS, {"metadata": {"generateName": "x" * 80}})
    assert len(said.body["metadata"]["name"]) == 63


REFUSED_CREATIONS: list[tuple[str, Any, int, str]] = [
    ("no name", {"metadata": {}}, 422, "name or generateName is required"),
    ("no metadata", {}, 422, "name or generateName is required"),
    ("a name with capitals", {"metadata": {"name": "Bad"}}, 422, "lowercase RFC 1123"),
    ("a name of 300 characters", {"metadata": {"name": "x" * 300}}, 422, "253"),
    ("a path in the name", {"metadata": {"name": "../x"}}, 422, "metadata.name"),
    ("another namespace", {"metadata": {"name": "x", "namespace": "y"}}, 400, "does not match"),
    ("another kind", {"kind": "Pod", "metadata": {"name": "x"}}, 400, "cannot be handled as"),
    ("another version", {"apiVersion": "v2", "metadata": {"name": "x"}}, 400, "does not match"),
    ("a version already", {"metadata": {"name": "x", "resourceVersion": "1"}}, 500, "should not"),
    ("text as metadata", {"metadata": "x"}, 400, "cannot unmarshal"),
    ("a number as label", {"metadata": {"name": "x", "labels": {"a": 1}}}, 400, "cannot unmarshal"),
    ("a list", [], 400, ""),
    ("not JSON", b"{", 400, ""),
    ("nothing", b"", 400, ""),
    ("invalid UTF-8", b'{"metadata":{"name":"\xff"}}', 400, ""),
]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [case[1:] for case in REFUSED_CREATIONS],
    ids=[case[0] for case in REFUSED_CREATIONS],
)
async def test_a_creation_is_refused(server: Server, body: Any, status: int, words: str) -> None:
    said = await server.post(CONFIG_MAPS, body)
    assert said.status == status, said.body
    assert said.body["kind"] == "Status"
    assert said.body["code"] == status
    assert words in said.message


async def test_a_namespace_must_exist(server: Server) -> None:
    said = await server.post("/api/v1/namespaces/nowhere/pods", pod())
    assert (said.status, said.message) == (404, 'namespaces "nowhere" not found')


async def test_nothing_is_created_across_all_namespaces(server: Server) -> None:
    assert (await server.post("/api/v1/pods", pod())).status == 405


async def test_a_stale_put_conflicts(server: Server) -> None:
    first = (await server.post(CONFIG_MAPS, config_map())).body
    await server.put(f"{CONFIG_MAPS}/c", {**first, "data": {"x": "1"}})
    said = await server.put(f"{CONFIG_MAPS}/c", {**first, "data": {"x": "2"}})
    assert (said.status, said.reason) == (409, "Conflict")
    assert said.message == (
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; please'
        " apply your changes to the latest version and try again"
    )


async def test_a_put_without_a_version_overwrites(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map(x="1"))
    said = await server.put(f"{CONFIG_MAPS}/c", config_map(x="2"))
    assert (said.status, said.body["data"]) == (200, {"x": "2"})


async def test_a_put_to_another_incarnation_conflicts(server: Server) -> None:
    first = (await server.post(CONFIG_MAPS, config_map())).body
    await server.delete(f"{CONFIG_MAPS}/c")
    await server.post(CONFIG_MAPS, config_map())
    said = await server.put(
        f"{CONFIG_MAPS}/c", {"metadata": {"name": "c", "uid": first["metadata"]["uid"]}}
    )
    assert said.status == 409
    assert "Precondition failed: UID in precondition" in said.message


async def test_a_put_creates_nothing(server: Server) -> None:
    said = await server.put(f"{CONFIG_MAPS}/c", config_map())
    assert (said.status, said.message) == (404, 'configmaps "c" not found')


async def test_the_name_on_the_url_counts(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map())
    said = await server.put(f"{CONFIG_MAPS}/c", config_map("d"))
    assert said.status == 400
    assert said.message == "the name of the object (d) does not match the name on the URL (c)"


async def test_a_change_of_nothing_keeps_the_version(server: Server) -> None:
    first = await server.post(CONFIG_MAPS, config_map(x="1"))
    put = await server.put(f"{CONFIG_MAPS}/c", first.body)
    patched = await server.patch(f"{CONFIG_MAPS}/c", {"data": {"x": "1"}})
    assert put.version == patched.version == first.version


async def test_who_and_when_an_object_is_cannot_be_changed(server: Server) -> None:
    first = (await server.post(CONFIG_MAPS, config_map())).body
    said = await server.patch(
        f"{CONFIG_MAPS}/c",
        {
            "metadata": {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7},
            "data": {"x": "1"},
        },
    )
    metadata = said.body["metadata"]
    assert metadata["uid"] == first["metadata"]["uid"]
    assert metadata["creationTimestamp"] == first["metadata"]["creationTimestamp"]
    assert "generation" not in metadata


async def test_every_write_takes_the_next_revision_of_one_counter(server: Server) -> None:
    first = await server.post(CONFIG_MAPS, config_map("a"))
    second = await server.post(PODS, pod("b"))
    third = await server.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "1"}})
    assert [int(one.version) for one in (second, third)] == [
        int(first.version) + 1,
        int(first.version) + 2,
    ]


async def test_of_many_writers_with_one_version_one_wins(server: Server) -> None:
    first = (await server.post(CONFIG_MAPS, config_map())).body
    answers = await asyncio.gather(
        *(server.put(f"{CONFIG_MAPS}/c", {**first, "data": {"x": str(n)}}) for n in range(10))
    )
    assert sorted(said.status for said in answers) == [200] + [409] * 9


async def test_status_is_ignored_by_create_and_update(server: Server) -> None:
    made = {**pod(), "status": {"phase": "Running"}}
    said = await server.post(PODS, made)
    assert said.body["status"]["phase"] == "Pending"
    changed = said.body | {"status": {"phase": "Failed"}}
    changed["metadata"]["labels"] = {"a": "b"}
    assert (await server.put(f"{PODS}/p", changed)).body["status"]["phase"] == "Pending"


async def test_a_node_brings_its_status(server: Server) -> None:
    made = {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}}
    assert (await server.post(NODES, made)).body["status"]["capacity"] == {"cpu": "4"}


async def test_a_status_write_changes_nothing_but_the_status(server: Server) -> None:
    first = (await server.post(DEPLOYMENTS, deployment(1))).body
    changed = {**first, "spec": {**first["spec"], "replicas": 9}, "status": {"replicas": 1}}
    said = await server.put(f"{DEPLOYMENTS}/web/status", changed)
    assert said.status == 200
    assert said.body["spec"]["replicas"] == 1
    assert said.body["status"] == {"replicas": 1}
    assert said.body["metadata"]["generation"] == 1


async def test_a_patch_of_the_status_merges_conditions(server: Server) -> None:
    await server.post(PODS, pod())
    for kind in ("Ready", "PodScheduled"):
        condition = {"type": kind, "status": "True"}
        await server.patch(
            f"{PODS}/p/status", {"status": {"conditions": [condition]}}, "strategic-merge"
        )
    said = await server.get(f"{PODS}/p/status")
    assert {one["type"] for one in said.body["status"]["conditions"]} == {"Ready", "PodScheduled"}


async def test_the_generation_counts_changes_of_the_spec(server: Server) -> None:
    await server.post(DEPLOYMENTS, deployment())
    path = f"{DEPLOYMENTS}/web"
    generations = [
        (await server.patch(path, change)).body["metadata"]["generation"]
        for change in (
            {"metadata": {"labels": {"a": "b"}}},
            {"spec": {"replicas": 2}},
            {"spec": {"replicas": 2}},
            {"status": {"replicas": 5}},
            {"spec": {"replicas": 3}},
        )
    ]
    assert generations == [1, 2, 2, 2, 3]


async def test_a_json_patch_applies_and_tests(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map(x="1"))
    path = f"{CONFIG_MAPS}/c"
    good = [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "remove", "path": "/data/x"}]
    assert (await server.patch(path, good, "json")).status == 200
    assert (await server.patch(path, good, "json")).status == 422


async def test_an_unknown_kind_of_patch_is_415(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map())
    said = await server.ask("PATCH", f"{CONFIG_MAPS}/c", {}, headers={"content-type": "text/plain"})
    assert (said.status, said.reason) == (415, "UnsupportedMediaType")


async def test_a_patch_with_a_stale_version_conflicts(server: Server) -> None:
    first = await server.post(CONFIG_MAPS, config_map())
    await server.patch(f"{CONFIG_MAPS}/c", {"data": {"x": "1"}})
    change = {"metadata": {"resourceVersion": first.version}, "data": {"x": "2"}}
    assert (await server.patch(f"{CONFIG_MAPS}/c", change)).status == 409


async def test_a_patch_cannot_break_the_object(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map())
    metadata: list[Any] = [None, {"name": None}, {"name": "d"}, {"namespace": "x"}, {"labels": []}]
    for change in ({"kind": "Pod"}, {"data": 5}, *({"metadata": one} for one in metadata)):
        said = await server.patch(f"{CONFIG_MAPS}/c", change)
        assert 400 <= said.status < 500, change
    assert (await server.get(f"{CONFIG_MAPS}/c")).status == 200


@pytest.mark.parametrize("verb", ["post", "put", "patch", "delete"])
async def test_a_dry_run_changes_nothing(server: Server, verb: str) -> None:
    await server.post(CONFIG_MAPS, config_map("c"))
    revision = server.store.revision
    match verb:
        case "post":
            said = await server.post(CONFIG_MAPS, config_map("d"), dryRun="All")
        case "put":
            said = await server.put(f"{CONFIG_MAPS}/c", config_map(x="1"), dryRun="All")
        case "patch":
            said = await server.patch(f"{CONFIG_MAPS}/c", {"data": {"x": "1"}}, dryRun="All")
        case _:
            said = await server.delete(f"{CONFIG_MAPS}/c", dryRun="All")
    assert said.status < 300
    assert server.store.revision == revision
    assert (await server.get(CONFIG_MAPS)).names == ["c"]


async def test_a_dry_run_must_be_of_all(server: Server) -> None:
    said = await server.post(CONFIG_MAPS, config_map(), dryRun="Some")
    assert (said.status, said.reason) == (422, "Invalid")


async def test_strict_validation_refuses_unknown_and_doubled_fields(server: Server) -> None:
    said = await server.post(PODS, pod(foo=1), fieldValidation="Strict")
    assert said.status == 400
    assert 'strict decoding error: unknown field "spec.foo"' in said.message
    body = b'{"metadata":{"name":"c"},"data":{"a":"1"},"data":{"a":"2"}}'
    said = await server.post(CONFIG_MAPS, body, fieldValidation="Strict")
    assert said.status == 400
    assert 'duplicate field "data"' in said.message


async def test_by_default_unknown_fields_are_dropped_with_a_warning(server: Server) -> None:
    said = await server.post(PODS, pod(foo=1))
    assert said.status == 201
    assert "foo" not in said.body["spec"]
    assert said.headers["warning"] == '299 - "unknown field \\"spec.foo\\""'


async def test_ignored_fields_are_dropped_in_silence(server: Server) -> None:
    said = await server.post(PODS, pod(foo=1), fieldValidation="Ignore")
    assert said.status == 201
    assert "warning" not in said.headers


async def test_a_strict_patch_names_the_unknown_field(server: Server) -> None:
    await server.post(CONFIG_MAPS, config_map())
    said = await server.patch(f"{CONFIG_MAPS}/c", {"foo": 1}, fieldValidation="Strict")
    assert said.status == 422
    assert 'unknown field "foo"' in said.message


async def test_yaml_is_read(server: Server) -> None:
    body = b"metadata:\n  name: c\ndata:\n  x: '1'\n"
    said = await server.post(CONFIG_MAPS, body, headers={"content-type": "application/yaml"})
    assert (said.status, said.body["data"]) == (201, {"x": "1"})


async def test_an_invalid_object_lists_its_causes(server: Server) -> None:
    said = await server.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": []}})
    assert (said.status, said.reason) == (422, "Invalid")
    assert said.message.startswith('Pod "p" is invalid: spec.containers: Required value')
    assert said.body["details"]["causes"][0] == {
        "reason": "FieldValueRequired",
        "message": "Required value",
        "field": "spec.containers",
    }


async def test_a_secret_in_plain_text_is_stored_encoded(server: Server) -> None:
    made = {"metadata": {"name": "s"}, "stringData": {"key": "value"}}
    said = await server.post("/api/v1/namespaces/default/secrets", made)
    assert said.body["data"] == {"key": "dmFsdWU="}
    assert "stringData" not in said.body


async def test_managed_fields_and_self_links_are_not_kept(server: Server) -> None:
    made = config_map()
    made["metadata"] |= {"managedFields": [{"manager": "x"}], "selfLink": "/x"}
    metadata = (await server.post(CONFIG_MAPS, made)).body["metadata"]
    assert "managedFields" not in metadata
    assert "selfLink" not in metadata
