"""The scale subresource, of built-in kinds and of custom ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.asking import DEFINITIONS, WIDGETS, Server, definition, widget

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SCALE = f"{DEPLOYMENTS}/web/scale"


async def deploy(server: Server, replicas: int = 2) -> None:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    made = await server.post(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    assert made.status == 201, made.raw


async def replicas(server: Server) -> int:
    found: int = (await server.get(f"{DEPLOYMENTS}/web")).body["spec"]["replicas"]
    return found


async def test_a_scale_is_a_view_of_its_object(server: Server) -> None:
    await deploy(server)
    scale, whole = (await server.get(SCALE)).body, (await server.get(f"{DEPLOYMENTS}/web")).body
    assert (scale["kind"], scale["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert scale["spec"] == {"replicas": 2}
    assert scale["status"] == {"replicas": 0, "selector": "app=web"}
    for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp"):
        assert scale["metadata"][name] == whole["metadata"][name]


async def test_writing_the_scale_changes_the_replicas_alone(server: Server) -> None:
    await deploy(server)
    before = (await server.get(f"{DEPLOYMENTS}/web")).body
    scale = (await server.get(SCALE)).body
    said = await server.put(SCALE, scale | {"spec": {"replicas": 5}})
    assert (said.status, said.body["spec"]) == (200, {"replicas": 5})
    after = (await server.get(f"{DEPLOYMENTS}/web")).body
    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert after["spec"] == before["spec"] | {"replicas": 5}


@pytest.mark.parametrize(
    ("how", "patch"),
    [
        ("merge", {"spec": {"replicas": 0}}),
        ("strategic-merge", {"spec": {"replicas": 0}}),
        ("json", [{"op": "replace", "path": "/spec/replicas", "value": 0}]),
    ],
)
async def test_a_scale_can_be_patched(server: Server, how: str, patch: Any) -> None:
    await deploy(server)
    assert (await server.patch(SCALE, patch, how)).status == 200
    assert await replicas(server) == 0
    assert "replicas" not in (await server.get(SCALE)).body["spec"]


async def test_an_old_scale_is_refused(server: Server) -> None:
    await deploy(server)
    old = (await server.get(SCALE)).body
    await server.patch(f"{DEPLOYMENTS}/web", {"metadata": {"labels": {"a": "b"}}})
    said = await server.put(SCALE, old | {"spec": {"replicas": 7}})
    assert (said.status, said.reason) == (409, "Conflict")
    assert await replicas(server) == 2


async def test_a_dry_run_scales_nothing(server: Server) -> None:
    await deploy(server)
    said = await server.patch(SCALE, {"spec": {"replicas": 9}}, dryRun="All")
    assert said.body["spec"] == {"replicas": 9}
    assert await replicas(server) == 2


@pytest.mark.parametrize(
    ("patch", "code", "words"),
    [
        ({"spec": {"replicas": -1}}, 422, "must be greater than or equal to 0"),
        ({"spec": {"replicas": "two"}}, 400, "cannot unmarshal string"),
        ({"metadata": {"name": "other"}}, 400, "does not match the name on the URL"),
    ],
)
async def test_nonsense_is_refused(server: Server, patch: Any, code: int, words: str) -> None:
    await deploy(server)
    said = await server.patch(SCALE, patch)
    assert said.status == code
    assert words in said.message


async def test_what_is_not_there_cannot_be_scaled(server: Server) -> None:
    assert (await server.get(SCALE)).status == 404
    assert (await server.patch(SCALE, {"spec": {"replicas": 1}})).status == 404
    assert (await server.get("/api/v1/namespaces/default/pods/p/scale")).status == 404


async def test_a_definition_says_what_its_scale_is(server: Server) -> None:
    paths = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.count",
        "labelSelectorPath": ".status.selector",
    }
    await server.post(DEFINITIONS, definition(subresources={"status": {}, "scale": paths}))
    await server.post(WIDGETS, widget(size=3))
    status = {"status": {"count": 2, "selector": "app=w"}}
    await server.patch(f"{WIDGETS}/w/status", status)
    scale = (await server.get(f"{WIDGETS}/w/scale")).body
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == {"replicas": 2, "selector": "app=w"}
    await server.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 4}})
    assert (await server.get(f"{WIDGETS}/w")).body["spec"] == {"size": 4}
    listed = (await server.get("/apis/example.com/v1")).body["resources"]
    assert "widgets/scale" in [one["name"] for one in listed]
