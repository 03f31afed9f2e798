"""Volumes, claims and endpoints: what is filled in and what is refused."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from posse.objects.defaulting import default
from posse.objects.kinds import (
    ENDPOINT_SLICE,
    ENDPOINTS,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    Kind,
)
from posse.objects.validating import validate_create, validate_update

Raw = dict[str, Any]


def made(kind: Kind, **fields: Any) -> Raw:
    metadata = {"name": "x"} | ({"namespace": "default"} if kind.namespaced else {})
    obj = {"metadata": metadata, **fields}
    default(kind, obj)
    return obj


def volume(**spec: Any) -> Raw:
    usual = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data"},
    }
    return made(PERSISTENT_VOLUME, spec=usual | spec)


def claim(**spec: Any) -> Raw:
    usual = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return made(PERSISTENT_VOLUME_CLAIM, spec=usual | spec)


def endpoints(*subsets: Raw) -> Raw:
    return made(ENDPOINTS, subsets=list(subsets))


def slice_(**fields: Any) -> Raw:
    usual = {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": []}
    return made(ENDPOINT_SLICE, **(usual | fields))


def test_what_is_left_open_is_filled_in() -> None:
    assert volume()["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume()["spec"]["hostPath"]["type"] == ""
    assert volume()["status"] == {"phase": "Pending"}
    assert claim()["spec"]["volumeMode"] == "Filesystem"
    assert claim(resources={"requests": {"storage": "1024Mi"}})["spec"]["resources"] == {
        "requests": {"storage": "1Gi"}
    }
    found = endpoints({"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 1}]})
    assert found["subsets"][0]["ports"][0]["protocol"] == "TCP"
    assert slice_(ports=[{"port": 1}])["ports"] == [{"port": 1, "name": "", "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("kind", "obj", "field", "words"),
    [
        (PERSISTENT_VOLUME, volume(), "", ""),
        (PERSISTENT_VOLUME, volume(accessModes=[]), "spec.accessModes", "Required"),
        (PERSISTENT_VOLUME, volume(accessModes=["Once"]), "spec.accessModes", "Unsupported"),
        (
            PERSISTENT_VOLUME,
            volume(accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
            "spec.accessModes",
            "may not use ReadWriteOncePod with other access modes",
        ),
        (PERSISTENT_VOLUME, volume(capacity={"storage": "0"}), "spec.capacity[storage]", "zero"),
        (PERSISTENT_VOLUME, volume(capacity={"cpu": "1"}), "spec.capacity", "Unsupported"),
        (PERSISTENT_VOLUME, volume(hostPath=None), "spec", "must specify a volume type"),
        (PERSISTENT_VOLUME, volume(nfs={"server": "s"}), "spec.nfs", "more than 1 volume type"),
        (PERSISTENT_VOLUME, volume(hostPath={"path": "/../x"}), "spec.hostPath.path", ".."),
        (
            PERSISTENT_VOLUME,
            volume(hostPath=None, local={"path": "/d"}),
            "spec.nodeAffinity",
            "node affinity",
        ),
        (
            PERSISTENT_VOLUME,
            volume(persistentVolumeReclaimPolicy="Keep"),
            "spec.persistentVolumeReclaimPolicy",
            "Unsupported",
        ),
        (PERSISTENT_VOLUME_CLAIM, claim(), "", ""),
        (PERSISTENT_VOLUME_CLAIM, claim(accessModes=[]), "spec.accessModes", "at least 1"),
        (PERSISTENT_VOLUME_CLAIM, claim(resources={}), "spec.resources[storage]", "Required"),
        (
            PERSISTENT_VOLUME_CLAIM,
            claim(resources={"requests": {"storage": "-1"}}),
            "spec.resources[storage]",
            "greater than zero",
        ),
        (PERSISTENT_VOLUME_CLAIM, claim(storageClassName="A B"), "spec.storageClassName", "RFC"),
        (PERSISTENT_VOLUME_CLAIM, claim(volumeMode="Disk"), "spec.volumeMode", "Unsupported"),
        (ENDPOINTS, endpoints({"addresses": [{"ip": "127.0.0.5"}]}), "", ""),
        (ENDPOINTS, endpoints({}), "subsets[0]", "must specify `addresses`"),
        (
            ENDPOINTS,
            endpoints({"addresses": [{"ip": "here"}]}),
            "subsets[0].addresses[0].ip",
            "valid IP address",
        ),
        (
            ENDPOINTS,
            endpoints({"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 0}]}),
            "subsets[0].ports[0].port",
            "between 1 and 65535",
        ),
        (ENDPOINT_SLICE, slice_(), "", ""),
        (ENDPOINT_SLICE, slice_(addressType=""), "addressType", "Required"),
        (ENDPOINT_SLICE, slice_(endpoints=[{}]), "endpoints[0].addresses", "at least 1 address"),
        (ENDPOINT_SLICE, slice_(ports=[{}, {}]), "ports[1].name", "Duplicate"),
    ],
)
def test_what_is_wrong_is_named(kind: Kind, obj: Raw, field: str, words: str) -> None:
    found = validate_create(kind, deepcopy(obj))
    if not field:
        assert found == []
        return
    assert [one for one in found if one.field == field and words in one.message], found


def test_a_claim_learns_its_volume_once() -> None:
    old, new = claim(), claim(volumeName="v")
    assert validate_update(PERSISTENT_VOLUME_CLAIM, new, old) == []
    (wrong,) = validate_update(PERSISTENT_VOLUME_CLAIM, claim(volumeName="w"), new)
    assert wrong.field == "spec"
    assert "immutable" in wrong.message


def test_only_a_bound_claim_may_grow() -> None:
    grown = {"requests": {"storage": "2Gi"}}
    old, new = claim(), claim(resources=grown)
    assert [one.field for one in validate_update(PERSISTENT_VOLUME_CLAIM, new, old)] == ["spec"]
    for one in (old, new):
        one["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    assert validate_update(PERSISTENT_VOLUME_CLAIM, new, old) == []
    fields = [one.field for one in validate_update(PERSISTENT_VOLUME_CLAIM, old, new)]
    assert fields == ["spec.resources.requests.storage"]


def test_a_volume_stays_where_it_is() -> None:
    moved = volume(hostPath={"path": "/elsewhere"})
    (wrong,) = validate_update(PERSISTENT_VOLUME, moved, volume())
    assert wrong.field == "spec.persistentvolumesource"
    assert validate_update(PERSISTENT_VOLUME, volume(claimRef={"name": "c"}), volume()) == []


def test_a_slice_keeps_its_family() -> None:
    (wrong,) = validate_update(ENDPOINT_SLICE, slice_(addressType="FQDN"), slice_())
    assert wrong.field == "addressType"
