"""Answers of the server, held against what kube-apiserver 1.36 was seen to answer.

Each case is a short conversation. The last answer is looked at: its status code, and facts of its
body by path (`reason`, `spec.type`, `items[0].kind`); ABSENT is a member that must not be there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.unit.apiserver.asking import (
    CONFIG_MAPS,
    DEFINITIONS,
    PODS,
    Said,
    Server,
    binding,
    config_map,
    definition,
    pod,
    widget,
)

pytestmark = pytest.mark.looptime

ABSENT = object()
NAMESPACE = "/api/v1/namespaces/default"
BATCH = "/apis/batch/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/default/roles"
BINDINGS = f"{RBAC}/namespaces/default/rolebindings"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
GROUP = "rbac.authorization.k8s.io"
IMMUTABLE = "field is immutable"


class Ask(NamedTuple):
    method: str
    path: str
    body: Any = None
    query: Mapping[str, str] = MappingProxyType({})
    accept: str = ""


TEMPLATE = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x"}]},
}


def named(name: str = "x", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **more}


def put(path: str, body: dict[str, Any]) -> Ask:
    return Ask("PUT", path, body)


def post(path: str, body: Any) -> Ask:
    return Ask("POST", path, body)


def merge(path: str, body: dict[str, Any], **query: str) -> Ask:
    return Ask("PATCH", path, body, query)


def delete(path: str, body: Any = None) -> Ask:
    return Ask("DELETE", path, body)


def get(path: str, accept: str = "", **query: str) -> Ask:
    return Ask("GET", path, None, query, accept)


def job(**spec: Any) -> dict[str, Any]:
    return named("j", spec={"template": TEMPLATE, **spec})


def service(**spec: Any) -> dict[str, Any]:
    return named("s", spec={"ports": [{"port": 80}], **spec})


def role_binding(**role: str) -> dict[str, Any]:
    return named(roleRef={"kind": "Role", "name": "r", **role})


DEPLOYMENT = named(
    "d",
    spec={
        "selector": {"matchLabels": {"a": "b"}},
        "template": {**TEMPLATE, "spec": {"containers": [{"name": "m", "image": "x"}]}},
    },
)
EVENT = named(involvedObject={"kind": "Pod", "namespace": "default", "name": "p"})
HELD = named(metadata={"name": "c", "finalizers": ["example.com/hold"]})

CASES: dict[str, tuple[list[Ask], int, dict[str, Any]]] = {
    # What says nothing is not kept.
    "zeros of a pod": (
        [post(PODS, pod(hostNetwork=False, nodeSelector={}, hostname="", initContainers=[]))],
        201,
        {"spec.hostNetwork": ABSENT, "spec.nodeSelector": ABSENT, "spec.initContainers": ABSENT},
    ),
    "a pointer to false is kept": (
        [post(PODS, pod(shareProcessNamespace=False))],
        201,
        {"spec.shareProcessNamespace": False},
    ),
    "sending zeros back changes nothing": (
        [
            post(PODS, pod()),
            merge(f"{PODS}/p", {"spec": {"hostNetwork": False, "nodeSelector": {}}}),
        ],
        200,
        {"metadata.generation": 1},
    ),
    "an empty map": ([post(CONFIG_MAPS, named(data={}))], 201, {"data": ABSENT}),
    "times nobody gave": (
        [
            post(PODS, pod()),
            merge(
                f"{PODS}/p/status",
                {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            ),
        ],
        200,
        {
            "status.conditions[0].lastProbeTime": None,
            "status.conditions[0].lastTransitionTime": None,
        },
    ),
    "a bare event": (
        [post(f"{NAMESPACE}/events", EVENT)],
        201,
        {"source": {}, "firstTimestamp": None, "eventTime": None, "reportingComponent": ""},
    ),
    "a bare lease": ([post(LEASES, named())], 201, {"spec": {}}),
    "a role without rules": ([post(ROLES, named(rules=[]))], 201, {"rules": None}),
    # Filled in.
    "labels of a job": (
        [post(f"{BATCH}/jobs", job())],
        201,
        {"metadata.labels.job-name": "j", "metadata.labels.a": "b"},
    ),
    "the group of a role": (
        [post(BINDINGS, role_binding())],
        201,
        {"roleRef.apiGroup": GROUP},
    ),
    "the group of a user": (
        [post(BINDINGS, {**role_binding(), "subjects": [{"kind": "User", "name": "u"}]})],
        201,
        {"subjects[0].apiGroup": GROUP},
    ),
    "the address ranges of a node": (
        [post("/api/v1/nodes", named("n", spec={"podCIDR": "10.1.0.0/24"}))],
        201,
        {"spec.podCIDRs": ["10.1.0.0/24"]},
    ),
    "a headless service without selector": (
        [post(f"{NAMESPACE}/services", service(clusterIP="None"))],
        201,
        {"spec.ipFamilyPolicy": "RequireDualStack", "spec.ipFamilies": ["IPv4", "IPv6"]},
    ),
    "a namespace on what has none": (
        [post("/api/v1/nodes", {"metadata": {"name": "n", "namespace": "x"}})],
        201,
        {"metadata.namespace": ABSENT},
    ),
    # Who may create how.
    "a PUT makes a lease": ([put(f"{LEASES}/x", named())], 201, {"metadata.name": "x"}),
    "a PUT makes a service": ([put(f"{NAMESPACE}/services/s", service())], 201, {}),
    "a PUT makes an event": ([put(f"{NAMESPACE}/events/x", EVENT)], 201, {}),
    "a PUT makes a role": ([put(f"{ROLES}/x", named(rules=[]))], 201, {}),
    "a PUT makes no config map": ([put(f"{CONFIG_MAPS}/c", config_map())], 404, {}),
    "a PUT makes no pod": ([put(f"{PODS}/p", pod())], 404, {}),
    "a lease is not overwritten blindly": (
        [post(LEASES, named()), put(f"{LEASES}/x", named())],
        422,
        {"details.kind": "leases", "details.causes[0].field": "metadata.resourceVersion"},
    ),
    "a version on creation": (
        [post(CONFIG_MAPS, named(metadata={"name": "c", "resourceVersion": "5"}))],
        500,
        {"reason": ABSENT, "message": "resourceVersion should not be set on objects to be created"},
    ),
    "the name of one that is ending": (
        [post(CONFIG_MAPS, HELD), delete(f"{CONFIG_MAPS}/c"), post(CONFIG_MAPS, config_map())],
        409,
        {"message": 'object is being deleted: configmaps "c" already exists'},
    ),
    # Changing what cannot change.
    "a uid by PUT": (
        [
            post(CONFIG_MAPS, config_map()),
            put(f"{CONFIG_MAPS}/c", named(metadata={"name": "c", "uid": "u"})),
        ],
        409,
        {"reason": "Conflict"},
    ),
    "a uid by patch": (
        [post(CONFIG_MAPS, config_map()), merge(f"{CONFIG_MAPS}/c", {"metadata": {"uid": "u"}})],
        422,
        {"details.causes[0].message": f'Invalid value: "u": {IMMUTABLE}'},
    ),
    "an end by patch": (
        [
            post(CONFIG_MAPS, config_map()),
            merge(f"{CONFIG_MAPS}/c", {"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}),
        ],
        422,
        {"details.causes[0].field": "metadata.deletionTimestamp"},
    ),
    "a kind by patch": (
        [post(CONFIG_MAPS, config_map()), merge(f"{CONFIG_MAPS}/c", {"kind": "Pod"})],
        422,
        {"details.causes[0].field": "patch"},
    ),
    "no metadata by patch": (
        [post(CONFIG_MAPS, config_map()), merge(f"{CONFIG_MAPS}/c", {"metadata": None})],
        400,
        {
            "message": "the name of the object (c based on URL) was undeterminable: name must be"
            " provided"
        },
    ),
    "a version that is none": (
        [
            post(CONFIG_MAPS, config_map()),
            put(f"{CONFIG_MAPS}/c", named(metadata={"name": "c", "resourceVersion": "abc"})),
        ],
        500,
        {"message": 'strconv.ParseUint: parsing "abc": invalid syntax'},
    ),
    "another role by patch": (
        [post(BINDINGS, role_binding()), merge(f"{BINDINGS}/x", {"roleRef": {"name": "q"}})],
        422,
        {"details.causes[0].field": "roleRef"},
    ),
    "the description of a class": (
        [post(CLASSES, named(value=1)), merge(f"{CLASSES}/x", {"description": "d"})],
        200,
        {"metadata.generation": 1},
    ),
    "a node port no longer wanted": (
        [
            post(f"{NAMESPACE}/services", service(type="NodePort")),
            merge(f"{NAMESPACE}/services/s", {"spec": {"type": "ClusterIP"}}),
        ],
        200,
        {"spec.ports[0].nodePort": ABSENT, "spec.externalTrafficPolicy": ABSENT},
    ),
    # Deleting.
    "another uid": (
        [
            post(CONFIG_MAPS, config_map()),
            delete(f"{CONFIG_MAPS}/c", {"preconditions": {"uid": "u"}}),
        ],
        409,
        {"details.kind": "ConfigMap"},
    ),
    "a namespace has no grace": (
        [post("/api/v1/namespaces", named("n")), delete("/api/v1/namespaces/n")],
        200,
        {"metadata.deletionGracePeriodSeconds": ABSENT, "status.phase": "Terminating"},
    ),
    "an evicted pod": (
        [
            post(PODS, pod(nodeName="n")),
            post(f"{PODS}/p/eviction", named("p")),
            get(f"{PODS}/p"),
        ],
        200,
        {
            "status.conditions[0].type": "DisruptionTarget",
            "status.conditions[0].reason": "EvictionByEvictionAPI",
        },
    ),
    "an eviction of nobody": (
        [post(PODS, pod()), post(f"{PODS}/p/eviction", {})],
        400,
        {"message": "name in URL does not match name in Eviction object"},
    ),
    "a binding of nobody": (
        [post(PODS, pod()), post(f"{PODS}/p/binding", {"target": {"name": "n"}})],
        400,
        {"message": "name in URL does not match name in Binding object"},
    ),
    "a binding to nothing": (
        [post(PODS, pod()), post(f"{PODS}/p/binding", binding("p", ""))],
        500,
        {"reason": ABSENT, "message": "target.name: Required value"},
    ),
    # What is refused.
    "an event elsewhere": (
        [post(f"{NAMESPACE}/events", named(involvedObject={"namespace": "other"}))],
        422,
        {"details.causes[0].field": "involvedObject.namespace"},
    ),
    "an event about a node": (
        [post(f"{NAMESPACE}/events", named(involvedObject={"kind": "Node", "name": "n"}))],
        201,
        {},
    ),
    "an event of nobody": (
        [post(f"{NAMESPACE}/events", {**EVENT, "eventTime": "2024-01-01T00:00:00.000000Z"})],
        422,
        {"details.causes[0].field": "reportingComponent"},
    ),
    "a rule without verbs": (
        [post(ROLES, named(rules=[{"apiGroups": [""], "resources": ["pods"]}]))],
        422,
        {"details.causes[0].field": "rules[0].verbs"},
    ),
    "a binding of all to one namespace's role": (
        [post(f"{RBAC}/clusterrolebindings", role_binding())],
        422,
        {"details.causes[0].message": 'Unsupported value: "Role": supported values: "ClusterRole"'},
    ),
    "a limit below its minimum": (
        [
            post(
                f"{NAMESPACE}/limitranges",
                named(spec={"limits": [{"type": "Pod", "max": {"cpu": "1"}, "min": {"cpu": "2"}}]}),
            )
        ],
        422,
        {"details.causes[0].field": "spec.limits[0].min[cpu]"},
    ),
    "half a pod": (
        [post(f"{NAMESPACE}/resourcequotas", named(spec={"hard": {"pods": "0.5"}}))],
        422,
        {"details.causes[0].message": 'Invalid value: "500m": must be an integer'},
    ),
    "scopes that exclude each other": (
        [
            post(
                f"{NAMESPACE}/resourcequotas",
                named(spec={"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]}),
            )
        ],
        422,
        {"details.causes[0].field": "spec.scopes"},
    ),
    "a node port out of range": (
        [
            post(
                f"{NAMESPACE}/services",
                service(type="NodePort", ports=[{"port": 80, "nodePort": 5}]),
            )
        ],
        422,
        {"details.causes[0].field": "spec.ports[0].nodePort"},
    ),
    "a time without its microseconds": (
        [post(LEASES, named(spec={"renewTime": "2024-01-01T00:00:00Z"}))],
        400,
        {},
    ),
    "more ready than there are": (
        [
            post(f"{APPS}/deployments", DEPLOYMENT),
            merge(f"{APPS}/deployments/d/status", {"status": {"replicas": 1, "readyReplicas": 5}}),
        ],
        422,
        {"details.causes[0].message": "Invalid value: 5: cannot be greater than status.replicas"},
    ),
    "fewer than none active": (
        [post(f"{BATCH}/jobs", job()), merge(f"{BATCH}/jobs/j/status", {"status": {"active": -1}})],
        422,
        {"details.causes[0].field": "status.active"},
    ),
    "another quality of service": (
        [post(PODS, pod()), merge(f"{PODS}/p/status", {"status": {"qosClass": "Guaranteed"}})],
        422,
        {"details.causes[0].message": f'Invalid value: "Guaranteed": {IMMUTABLE}'},
    ),
    "a negative node": (
        [
            post("/api/v1/nodes", named("n")),
            merge("/api/v1/nodes/n/status", {"status": {"capacity": {"cpu": "-1"}}}),
        ],
        422,
        {"details.causes[0].field": "status.capacity.cpu"},
    ),
    "force without apply": (
        [post(CONFIG_MAPS, config_map()), merge(f"{CONFIG_MAPS}/c", {}, force="true")],
        422,
        {"details.causes[0].field": "force"},
    ),
    "a manager with a long name": (
        [post(CONFIG_MAPS, config_map()), merge(f"{CONFIG_MAPS}/c", {}, fieldManager="x" * 129)],
        422,
        {"details.causes[0].reason": "FieldValueTooLong"},
    ),
    # Definitions and their objects.
    "a default of the wrong type": (
        [
            post(
                DEFINITIONS,
                definition(
                    schema={
                        "type": "object",
                        "properties": {"a": {"type": "integer", "default": "x"}},
                    }
                ),
            )
        ],
        422,
        {"details.causes[0].field": "spec.validation.openAPIV3Schema.properties[a].default"},
    ),
    "a map without keys": (
        [
            post(
                DEFINITIONS,
                definition(
                    schema={
                        "type": "object",
                        "properties": {
                            "a": {
                                "type": "array",
                                "items": {"type": "object"},
                                "x-kubernetes-list-type": "map",
                            }
                        },
                    }
                ),
            )
        ],
        422,
        {"details.causes[0].reason": "FieldValueRequired"},
    ),
    "an object of another kind": (
        [post(DEFINITIONS, definition()), post(WIDGETS, {**widget(), "kind": "Other"})],
        422,
        {"details.kind": "Other", "details.causes[0].field": "kind"},
    ),
    # Reading.
    "items of a list": (
        [post(CONFIG_MAPS, config_map()), get(CONFIG_MAPS)],
        200,
        {"items[0].kind": ABSENT, "items[0].apiVersion": ABSENT, "items[0].metadata.name": "c"},
    ),
    "items of a custom kind": (
        [post(DEFINITIONS, definition()), post(WIDGETS, widget()), get(WIDGETS)],
        200,
        {"items[0].kind": "Widget"},
    ),
    "a limit on what is at hand": (
        [
            post(CONFIG_MAPS, config_map("a")),
            post(CONFIG_MAPS, config_map("b")),
            get(CONFIG_MAPS, resourceVersion="0", limit="1"),
        ],
        200,
        {"items[1].metadata.name": "b", "metadata.continue": ABSENT},
    ),
    "a field that cannot be selected": (
        [get(f"{APPS}/replicasets", fieldSelector="status.replicas=0")],
        400,
        {},
    ),
    "a bad number of seconds": ([get(CONFIG_MAPS, timeoutSeconds="x")], 400, {}),
    "metadata of a list": (
        [get(CONFIG_MAPS, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")],
        406,
        {"reason": "NotAcceptable"},
    ),
    "an unknown extent": (
        [get(CONFIG_MAPS, "application/json;as=Table;v=v1;g=meta.k8s.io", includeObject="X")],
        400,
        {},
    ),
    "any application format": ([get(CONFIG_MAPS, "application/*")], 406, {}),
    "a name that is a way up": ([get(f"{CONFIG_MAPS}/..")], 400, {"reason": "BadRequest"}),
    "a path that leads nowhere": ([get("/api/v1/nope")], 404, {"details": {}}),
    "a method that is not allowed": ([put(CONFIG_MAPS, {})], 405, {"details": {}}),
}


@pytest.mark.parametrize("case", CASES)
async def test_the_answer_is_kube_apiservers(server: Server, case: str) -> None:
    asks, status, facts = CASES[case]
    *before, last = asks
    for ask in before:
        await _asked(server, ask)
    said = await _asked(server, last)
    assert said.status == status, said.raw
    assert {path: _found(said.body, path) for path in facts} == facts


async def test_a_refusal_comes_with_its_warnings(server: Server) -> None:
    said = await server.post(PODS, {"metadata": {"name": "p"}, "odd": 1})
    assert said.status == 422
    assert "unknown field" in said.headers["warning"]


async def test_unknown_fields_are_named_in_the_order_they_were_sent(server: Server) -> None:
    body = {"metadata": {"name": "p", "a": 1}, "spec": {"b": 1, "containers": [{"c": 1}]}, "d": 1}
    said = await server.post(PODS, body, fieldValidation="Strict")
    named_fields = re.findall(r'unknown field "([^"]*)"', said.message)
    assert named_fields == ["metadata.a", "spec.b", "spec.containers[0].c", "d"]


async def _asked(server: Server, ask: Ask) -> Said:
    headers = {"accept": ask.accept} if ask.accept else {}
    if ask.method == "PATCH":
        headers["content-type"] = "application/merge-patch+json"
    return await server.ask(ask.method, ask.path, ask.body, headers=headers, **ask.query)


def _found(body: Any, path: str) -> Any:
    for part in re.findall(r"[^.\[\]]+", path):
        if isinstance(body, list):
            body = body[int(part)] if int(part) < len(body) else ABSENT
        elif isinstance(body, dict):
            body = body.get(part, ABSENT)
        else:
            return ABSENT
    return body
