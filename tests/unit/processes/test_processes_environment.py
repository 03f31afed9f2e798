"""What a container is told: variables, the downward API, commands."""

from __future__ import annotations

from typing import Any

import pytest

from posse.local.node.processes.environment import variables
from posse.local.node.processes.expansion import expand
from posse.local.node.processes.fields import Facts, field_value, resource_value
from posse.local.node.processes.launching import command_of
from posse.local.node.processes.sources import Entries
from posse.local.node.runtime import NotYet
from tests.unit.processes.rig import container, pod

FACTS = Facts("127.64.0.1", "127.0.0.1", {"cpu": "4", "memory": "8Gi"})


class Given:
    """Objects by (kind, name)."""

    def __init__(self, **objects: Entries) -> None:
        self._objects = objects

    async def config_map(self, namespace: str, name: str) -> Entries | None:
        return self._objects.get(f"map_{name}")

    async def secret(self, namespace: str, name: str) -> Entries | None:
        return self._objects.get(f"secret_{name}")


async def env_of(given: Given | None = None, **fields: Any) -> dict[str, str]:
    one = container("c", **fields)
    return await variables(pod(one), one, {}, given or Given(), FACTS)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "a"),
        ("x$(A)y$(B)z", "xaybz"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$a"),
        ("$(NO)", "$(NO)"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
        ("$$", "$"),
        ("$()", "$()"),
        ("", ""),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expanded: str) -> None:
    assert expand(text, {"A": "a", "B": "b"}) == expanded


async def test_a_variable_sees_those_before_it_and_not_those_after() -> None:
    env = await env_of(
        env=[
            {"name": "LATER", "value": "$(FIRST)"},
            {"name": "FIRST", "value": "1"},
            {"name": "SECOND", "value": "$(FIRST)2"},
            {"name": "FIRST", "value": "again-$(FIRST)"},
        ]
    )
    assert env == {"LATER": "$(FIRST)", "FIRST": "again-1", "SECOND": "12"}


async def test_whole_objects_come_first_and_with_their_prefix() -> None:
    given = Given(map_m={"a": b"map", "not ok": b"x"}, secret_s={"b": b"secret\n"})
    env = await env_of(
        given,
        envFrom=[
            {"configMapRef": {"name": "m"}, "prefix": "M_"},
            {"secretRef": {"name": "s"}},
            {"configMapRef": {"name": "absent", "optional": True}},
        ],
        env=[{"name": "BOTH", "value": "$(M_a)$(b)"}],
    )
    assert env == {"M_a": "map", "b": "secret\n", "BOTH": "mapsecret\n"}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"envFrom": [{"configMapRef": {"name": "m"}}]}, 'configmap "m" not found'),
        ({"envFrom": [{"secretRef": {"name": "s"}}]}, 'secret "s" not found'),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            'secret "s" not found',
        ),
        (
            {
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "here", "key": "k"}}}
                ]
            },
            "couldn't find key k in ConfigMap default/here",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.hostPID"}}}]},
            "unsupported fieldPath: spec.hostPID",
        ),
    ],
)
async def test_what_is_missing_is_waited_for(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(NotYet) as caught:
        await env_of(Given(map_here={}), **fields)
    assert caught.value.reason == "CreateContainerConfigError"
    assert caught.value.message == complaint


async def test_what_is_optional_is_left_out() -> None:
    absent = {"name": "absent", "key": "k", "optional": True}
    no_key = {"name": "here", "key": "k", "optional": True}
    env = await env_of(
        Given(map_here={}),
        env=[
            {"name": "A", "valueFrom": {"secretKeyRef": absent}},
            {"name": "B", "valueFrom": {"configMapKeyRef": no_key}},
        ],
    )
    assert env == {}


async def test_bytes_of_a_secret_that_are_no_text_survive() -> None:
    reference = {"secretKeyRef": {"name": "s", "key": "k"}}
    env = await env_of(
        Given(secret_s={"k": b"\xff\xfe"}), env=[{"name": "A", "valueFrom": reference}]
    )
    assert env["A"].encode("utf-8", "surrogateescape") == b"\xff\xfe"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "pod"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", "web"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['a/b']", "c"),
        ("metadata.labels", 'app="web"\nquote="a\\"b"'),
        ("spec.nodeName", "this"),
        ("spec.serviceAccountName", "default"),
        ("status.podIP", "127.64.0.1"),
        ("status.podIPs", "127.64.0.1"),
        ("status.hostIP", "127.0.0.1"),
    ],
)
def test_a_pod_is_told_of_itself(path: str, value: str) -> None:
    one = pod(container("c"), labels={"app": "web", "quote": 'a"b'})
    one["metadata"] |= {"uid": "u-1", "annotations": {"a/b": "c"}}
    assert field_value(one, path, FACTS) == value


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", None, "2"),
        ("limits.cpu", "1m", "1500"),
        ("requests.cpu", "1", "1"),
        ("limits.memory", "1Mi", "64"),
        ("limits.memory", "0", "67108864"),
        ("requests.memory", "1Mi", "64"),
        ("limits.ephemeral-storage", "1", "0"),
    ],
)
def test_a_container_is_told_what_it_may_use(
    resource: str, divisor: str | None, value: str
) -> None:
    resources = {"limits": {"cpu": "1500m", "memory": "64Mi"}, "requests": {"cpu": "250m"}}
    one = pod(container("c", resources=resources))
    reference = {"resource": resource, **({"divisor": divisor} if divisor else {})}
    assert resource_value(one, reference, "main", FACTS) == value


def test_without_a_limit_the_node_is_the_limit() -> None:
    one = pod(container("c"))
    assert resource_value(one, {"resource": "limits.cpu"}, "main", FACTS) == "4"
    reference = {"resource": "limits.memory", "divisor": "1Gi"}
    assert resource_value(one, reference, "main", FACTS) == "8"


def test_command_and_arguments_are_one_and_expanded() -> None:
    one = {"command": ["run", "$(A)"], "args": ["--x=$(A)", "$$(A)"]}
    assert command_of(one, {"A": "1"}) == ("run", "1", "--x=1", "$(A)")
