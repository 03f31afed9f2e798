"""Built-in kinds: their fields, and what Go's decoder would say."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from posse.objects.kinds import BUILT_IN, CUSTOM_RESOURCE_DEFINITION, POD, SECRET, Kind
from posse.objects.schemas import notation
from posse.objects.schemas.core import STRUCTS, core_schema, metadata_schema
from posse.objects.schemas.descriptions import DESCRIPTIONS
from posse.objects.schemas.notation import ListOf, MapOf, Named, Type


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.kind)
def test_every_built_in_kind_has_its_head(kind: Kind) -> None:
    schema = core_schema(kind)
    value = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "n"}, "x": 1}
    assert schema.prune(value) == ["x"]
    assert schema.validate(value) == []


def test_every_struct_named_exists() -> None:
    scalars = {"string", "int", "long", "float", "bool", "quantity", "intstr", "time", "microtime",
               "bytes", "any", "JSONSchemaPropsOrBool"}  # fmt: skip

    def named(of: Type) -> str:
        match of:
            case ListOf(item) | MapOf(item):
                return named(item)
            case Named(name):
                return name

    used = {named(field.type) for struct in STRUCTS.values() for field in struct.fields.values()}
    assert used - scalars <= STRUCTS.keys()


def test_merge_keys_are_fields_of_what_they_key() -> None:
    for struct in STRUCTS.values():
        for field in struct.fields.values():
            if field.merge_key:
                assert isinstance(field.type, ListOf) and isinstance(field.type.item, Named)
                assert field.merge_key in STRUCTS[field.type.item.name].fields, field


def test_a_kind_of_the_same_name_in_another_group_is_not_built_in() -> None:
    with pytest.raises(KeyError):
        core_schema(Kind("batch.volcano.sh", "v1alpha1", "Job", "jobs"))


def test_unknown_fields_are_dropped_wherever_they_are() -> None:
    value = pod(containers=[{"name": "c", "imagee": "x", "env": [{"name": "A", "val": 1}]}], foo={})
    value["metadata"]["odd"] = 1
    assert sorted(core_schema(POD).prune(value)) == [
        "metadata.odd",
        "spec.containers[0].env[0].val",
        "spec.containers[0].imagee",
        "spec.foo",
    ]
    assert value == pod(containers=[{"name": "c", "env": [{"name": "A"}]}])


def test_null_is_the_same_as_absent() -> None:
    value = pod(
        nodeName=None, containers=[None, {"name": "c", "args": [None]}], nodeSelector={"a": None}
    )
    value["metadata"]["creationTimestamp"] = None
    assert core_schema(POD).prune(value) == []
    assert value == pod(containers=[{}, {"name": "c", "args": [""]}], nodeSelector={"a": ""})


def test_a_whole_pod_passes_untouched() -> None:
    value = pod(
        containers=[
            {
                "name": "c", "image": "i", "command": ["a"],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1", "memory": 1024, "nvidia.com/gpu": "2"}},
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                "readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 1},
                "securityContext": {"runAsUser": 2**40, "capabilities": {"add": ["SYS_PTRACE"]}},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }
        ],
        volumes=[{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}},
        tolerations=[{"operator": "Exists", "tolerationSeconds": 30}],
        topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z",
                                    "whenUnsatisfiable": "DoNotSchedule"}],
        schedulingGates=[{"name": "g"}], hostNetwork=True, overhead={"cpu": "10m"},
    )  # fmt: skip
    moment = "2024-01-02T03:04:05Z"
    ready = {
        "type": "Ready",
        "status": "True",
        "lastProbeTime": moment,
        "lastTransitionTime": moment,
    }
    value["status"] = {"phase": "Running", "startTime": moment, "conditions": [ready]}
    before = copy.deepcopy(value)
    assert core_schema(POD).prune(value) == []
    assert core_schema(POD).validate(value) == []
    assert value == before


GO = "json: cannot unmarshal"


@pytest.mark.parametrize(
    ("spec", "field", "said"),
    [
        (
            {"activeDeadlineSeconds": "5"},
            "spec.activeDeadlineSeconds",
            f"{GO} string into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            {"priority": 1.5},
            "spec.priority",
            f"{GO} number 1.5 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"priority": 2**31},
            "spec.priority",
            f"{GO} number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            {"hostNetwork": "yes"},
            "spec.hostNetwork",
            f"{GO} string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            {"containers": {}},
            "spec.containers",
            f"{GO} object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"containers": [{"env": [{"name": "A", "value": 1}]}]},
            "spec.containers[0].env[0].value",
            f"{GO} number into Go struct field EnvVar.spec.containers.env.value of type string",
        ),
        (
            {"nodeSelector": {"a": True}},
            "spec.nodeSelector.a",
            f"{GO} bool into Go struct field PodSpec.spec.nodeSelector of type string",
        ),
        (
            {"containers": [{"resources": {"limits": {"cpu": "1 core"}}}]},
            "spec.containers[0].resources.limits.cpu",
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            {"containers": [{"resources": {"limits": {"cpu": "1KiB"}}}]},
            "spec.containers[0].resources.limits.cpu",
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            {"containers": [{"resources": {"limits": {"cpu": "1ee"}}}]},
            "spec.containers[0].resources.limits.cpu",
            "unable to parse quantity's suffix",
        ),
        (
            {"containers": [{"livenessProbe": {"tcpSocket": {"port": True}}}]},
            "spec.containers[0].livenessProbe.tcpSocket.port",
            f"{GO} bool into Go value of type int32",
        ),
    ],
)
def test_wrong_types_in_the_words_of_the_decoder(
    spec: dict[str, Any], field: str, said: str
) -> None:
    [error] = core_schema(POD).validate(pod(**spec))
    assert (error.field, error.message) == (field, said)
    assert error.reason == "FieldValueTypeInvalid"


@pytest.mark.parametrize("stamp", ["now", "2024-01-02", "2024-13-02T03:04:05Z", 5])
def test_times_must_be_times(stamp: Any) -> None:
    [error] = metadata_schema().validate({"creationTimestamp": stamp})
    assert error.field == "creationTimestamp"


@pytest.mark.parametrize("data", ["aGk=", "", "aG\nk="])
def test_data_of_secrets_is_base64(data: str) -> None:
    assert core_schema(SECRET).validate({"data": {"k": data}}) == []


@pytest.mark.parametrize(("data", "at"), [("a?", 1), ("YQ", 2), ("a b=", 1)])
def test_data_that_is_not_base64_is_refused(data: str, at: int) -> None:
    [error] = core_schema(SECRET).validate({"data": {"k": data}})
    assert error.message == f"illegal base64 data at input byte {at}"


def test_definitions_are_checked_down_to_their_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"typ": "string", "items": {"odd": 1}}},
              "additionalProperties": True}  # fmt: skip
    value = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}}
    at = "spec.versions[0].schema.openAPIV3Schema.properties.a"
    assert core_schema(CUSTOM_RESOURCE_DEFINITION).prune(value) == [f"{at}.typ", f"{at}.items.odd"]


@pytest.mark.parametrize("text", ["A: x:", "A: b\nA: c", "A: !"])
def test_the_notation_refuses_what_it_does_not_know(text: str) -> None:
    with pytest.raises(ValueError, match="A"):
        notation.read(text)


def test_what_is_described_exists() -> None:
    for described in DESCRIPTIONS:
        struct, _, field = described.partition(".")
        assert struct in STRUCTS
        assert not field or field in STRUCTS[struct].fields, described
