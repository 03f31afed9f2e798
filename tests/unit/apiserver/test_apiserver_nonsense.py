"""Whatever is sent, the answer is the client's fault: nonsense never becomes a 5xx."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from posse.objects import kinds
from posse.objects.kinds import Kind
from tests.unit.apiserver.asking import DEFINITIONS, Server, definition, pod, widget

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "x", "1", "-1", "1e999", "10Gi", "None", "2020-01-01T00:00:00Z", "é"]),
)
FIELDS = st.sampled_from(
    [
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "generateName",
        "uid",
        "kind",
        "apiVersion",
        "spec",
        "status",
        "metadata",
        "data",
        "containers",
        "initContainers",
        "resources",
        "limits",
        "requests",
        "cpu",
        "memory",
        "template",
        "selector",
        "matchLabels",
        "ports",
        "port",
        "nodePort",
        "clusterIP",
        "clusterIPs",
        "type",
        "hard",
        "scopes",
        "scopeSelector",
        "matchExpressions",
        "min",
        "max",
        "default",
        "priorityClassName",
        "nodeName",
        "conditions",
        "versions",
        "names",
        "group",
        "plural",
        "schema",
        "openAPIV3Schema",
        "properties",
        "replicas",
        "value",
        "taints",
        "schedulingGates",
        "tolerations",
        "volumes",
        "size",
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(FIELDS, inner, max_size=4)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(
    st.sampled_from(["metadata", "spec", "status", "data", "value", "rules", "type"]),
    st.dictionaries(FIELDS, VALUES, max_size=5) | VALUES,
    max_size=4,
)
KINDS = st.sampled_from(kinds.BUILT_IN)
_FEW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


def path_of(kind: Kind) -> str:
    return kind.path("default" if kind.namespaced else None)


def template(kind: Kind) -> dict[str, Any]:
    """An object of the kind that would do, for the nonsense to be mixed into."""
    spec: dict[str, Any] = {}
    match kind.kind:
        case "Pod":
            spec = pod()["spec"]
        case "Job" | "Deployment" | "ReplicaSet":
            labels = {"a": "b"}
            inner = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
            spec = {"template": inner, "selector": {"matchLabels": labels}}
            if kind.kind == "Job":
                inner["spec"]["restartPolicy"] = "Never"
                del spec["selector"]
        case "Service":
            spec = {"ports": [{"port": 80}]}
        case "ResourceQuota":
            spec = {"hard": {"pods": "5", "requests.cpu": "4"}}
        case "LimitRange":
            spec = {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}
        case "CustomResourceDefinition":
            return definition()
    return {"metadata": {"name": "x"}, "spec": spec} if spec else {"metadata": {"name": "x"}}


def mixed(base: Any, nonsense: Any) -> Any:
    if isinstance(base, dict) and isinstance(nonsense, dict):
        return base | {key: mixed(base.get(key), value) for key, value in nonsense.items()}
    return nonsense


@_FEW
@given(kind=KINDS, nonsense=OBJECTS, how=st.sampled_from(["merge", "strategic-merge"]))
def test_nonsense_is_refused_or_made_sense_of(
    kind: Kind, nonsense: dict[str, Any], how: str
) -> None:
    async def run() -> None:
        server = Server()
        path = path_of(kind)
        answers = [
            await server.post(path, nonsense),
            await server.post(path, mixed(template(kind), nonsense)),
            await server.post(path, template(kind)),
            await server.put(f"{path}/x", mixed(template(kind), nonsense)),
            await server.patch(f"{path}/x", nonsense, how),
            await server.patch(f"{path}/x/status", nonsense, how),
            await server.delete(f"{path}/x", nonsense.get("metadata")),
        ]
        assert [said.status for said in answers if said.status >= 500] == []
        assert (await server.get(path)).status == 200
        assert (await server.post("/api/v1/namespaces/default/pods", pod("after"))).status < 500

    asyncio.run(run())


@_FEW
@given(spec=VALUES, schema=st.dictionaries(FIELDS, VALUES, max_size=4))
def test_nonsense_in_custom_objects_and_schemas(spec: Any, schema: dict[str, Any]) -> None:
    async def run() -> None:
        server = Server()
        path = "/apis/example.com/v1/namespaces/default/widgets"
        broken = definition(schema={"type": "object", "properties": schema})
        answers = [
            await server.post(DEFINITIONS, broken),
            await server.delete(f"{DEFINITIONS}/widgets.example.com"),
            await server.post(DEFINITIONS, definition()),
            await server.post(path, widget() | {"spec": spec}),
            await server.post(path, widget()),
            await server.patch(f"{path}/w", {"spec": spec, "metadata": spec}),
            await server.post(f"{path}", spec),
        ]
        assert [said.status for said in answers if said.status >= 500] == []

    asyncio.run(run())


@_FEW
@given(
    name=st.sampled_from(
        [
            "limit",
            "continue",
            "labelSelector",
            "fieldSelector",
            "resourceVersion",
            "resourceVersionMatch",
            "watch",
            "timeoutSeconds",
            "dryRun",
            "fieldValidation",
            "sendInitialEvents",
            "pretty",
        ]
    ),
    value=st.text(max_size=12) | st.sampled_from(["-1", "99999999999999999999", "a=b,", "!", "٣"]),
)
def test_nonsense_in_the_query(name: str, value: str) -> None:
    async def run() -> None:
        server = Server()
        query = {name: value, "timeoutSeconds": "1"} if name == "watch" else {name: value}
        path = "/api/v1/namespaces/default/pods"
        for said in (
            await server.get(path, **query),
            await server.post(path, pod(), **query),
            await server.delete(path, **query),
        ):
            assert said.status < 500 or said.status == 504

    asyncio.run(run())
