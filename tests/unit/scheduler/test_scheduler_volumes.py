"""What claims say about where a pod can run, and which keep it waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from posse.engine.facts import LARGEST
from posse.engine.fit.terms import Choice, NodeTerm, Requirement
from posse.engine.view import View
from posse.kube.cache import Change
from posse.objects.kinds import Kind
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.objects.volumes import (
    CsiDriver,
    CsiNode,
    CsiStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from posse.scheduler.reading import volumes
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.quarantine import Quarantine
from posse.scheduler.reading.reader import Reader
from posse.scheduler.reading.volumes import NotYet, Shelves
from tests.unit.scheduler.rig import node, pod

Object = dict[str, Any]
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def a_claim(
    name: str = "data", *, volume: str = "", bound: bool = True, phase: str = "", **spec: Any
) -> PersistentVolumeClaim:
    annotations = (BOUND if volume and bound else {}) | spec.pop("annotations", {})
    meta = {"name": name, "namespace": "ns", "uid": name, "annotations": annotations}
    meta |= spec.pop("metadata", {})
    fields = {"volumeName": volume, "accessModes": ["ReadWriteOnce"]} | spec
    document = {"metadata": meta, "spec": fields, "status": {"phase": phase}}
    return msgspec.convert(document, PersistentVolumeClaim)


def a_volume(name: str = "v", labels: Object | None = None, **spec: Any) -> PersistentVolume:
    document = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"]} | spec,
        "status": {"phase": "Available"},
    }
    return msgspec.convert(document, PersistentVolume)


def a_class(name: str = "late", mode: str = "WaitForFirstConsumer", **fields: Any) -> StorageClass:
    document = {"metadata": {"name": name}, "provisioner": "ebs", "volumeBindingMode": mode}
    return msgspec.convert(document | fields, StorageClass)


def a_csi_node(**counts: int | None) -> CsiNode:
    """Its drivers, and how many volumes each attaches, if it says."""
    drivers = [
        {"name": name} | ({} if count is None else {"allocatable": {"count": count}})
        for name, count in counts.items()
    ]
    return msgspec.convert({"metadata": {"name": "n"}, "spec": {"drivers": drivers}}, CsiNode)


def user(*claims: str, **spec: Any) -> Pod:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    document = pod("p", volumes=volumes + spec.pop("volumes", []), **spec)
    document["metadata"] |= {"namespace": "ns", "uid": "p"}
    return msgspec.convert(document, Pod)


def shelves(*things: Any) -> Shelves:
    found = Shelves(["n3"])
    for thing in things:
        match thing:
            case PersistentVolumeClaim():
                found.set_claim(thing.key, thing)
            case PersistentVolume():
                found.set_volume(thing.metadata.name, thing)
            case StorageClass():
                found.set_class(thing.metadata.name, thing)
            case CsiDriver():
                found.set_driver(thing.metadata.name, thing)
            case CsiStorageCapacity():
                found.set_capacity(thing.key, thing)
            case CsiNode():
                found.set_limits(thing.metadata.name, thing)
    return found


def on(key: str, *values: str) -> NodeTerm:
    return NodeTerm((Requirement(key, "In", values),))


def affinity(key: str, *values: str) -> Object:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}


def choices(*things: Any, asking: Pod | None = None) -> tuple[Choice, ...]:
    found = shelves(*things).read(asking or user("data"))
    assert found is not None
    return found.choices


def test_a_pod_without_claims_has_nothing_to_say() -> None:
    assert shelves().read(user(volumes=[{"name": "x", "emptyDir": {}}])) is None


def test_a_bound_claim_binds_its_pod_to_the_nodes_that_reach_the_volume() -> None:
    volume = a_volume(**affinity("zone", "a"))
    assert choices(a_claim(volume="v"), volume) == (Choice((on("zone", "a"),), "ns/data"),)


def test_a_volume_that_is_everywhere_binds_nobody() -> None:
    assert choices(a_claim(volume="v"), a_volume()) == ()


def test_a_volume_labelled_with_zones_is_in_them() -> None:
    zone = "topology.kubernetes.io/zone"
    (found,) = choices(a_claim(volume="v"), a_volume(labels={zone: "a__b"}))
    assert found.matches("n", {zone: "a"})
    assert found.matches("n", {zone: "b"})
    assert not found.matches("n", {zone: "c"})
    assert found.matches("n", {}), "a node that says nothing of where it is"


def test_a_volume_with_an_old_label_is_found_by_nodes_with_the_new_one() -> None:
    old, new = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"
    (found,) = choices(a_claim(volume="v"), a_volume(labels={old: "a"}))
    assert found.matches("n", {old: "a"})
    assert found.matches("n", {new: "a"})
    assert not found.matches("n", {new: "b"})


WAITS = [
    ("claim data, which does not exist", []),
    ("claim data, which is not bound", [a_claim()]),
    ("claim data, which is not bound", [a_claim(volume="v", bound=False), a_volume()]),
    (
        "claim data, which is not bound",
        [a_claim(storageClassName="now"), a_class("now", "Immediate")],
    ),
    ("storage class none of claim data, which does not exist", [a_claim(storageClassName="none")]),
    ("volume v of claim data, which does not exist", [a_claim(volume="v")]),
    ("claim data, whose volume v is lost", [a_claim(volume="v", phase="Lost")]),
    (
        "claim data, which is being deleted",
        [a_claim(volume="v", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), a_volume()],
    ),
]


@pytest.mark.parametrize(("why", "things"), WAITS, ids=lambda each: str(each)[:50])
def test_a_claim_that_is_not_ready_is_named(why: str, things: list[Any]) -> None:
    with pytest.raises(NotYet, match=why):
        shelves(*things).read(user("data"))


@pytest.mark.parametrize(("why", "things"), WAITS, ids=lambda each: str(each)[:50])
def test_a_pod_that_sits_already_waits_for_no_claim(why: str, things: list[Any]) -> None:
    assert shelves(*things).read(user("data", nodeName="n")) is not None


def test_a_claim_made_for_one_pod_must_be_its_own() -> None:
    asking = user(volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}])
    with pytest.raises(NotYet, match="its claim p-scratch, which is still to be made"):
        shelves(a_claim("p-scratch", volume="v"), a_volume()).read(asking)
    own = a_claim("p-scratch", volume="v", metadata={"ownerReferences": [{"uid": "p"}]})
    assert shelves(own, a_volume()).read(asking) is not None


def test_a_claim_for_one_pod_alone() -> None:
    found = shelves(a_claim(volume="v", accessModes=["ReadWriteOncePod"]), a_volume())
    read = found.read(user("data"))
    assert read is not None
    assert read.exclusive == ("ns/data",)


LATE = a_claim(storageClassName="late", resources={"requests": {"storage": "5Gi"}})


def test_a_volume_to_be_made_anywhere_binds_nobody() -> None:
    assert choices(LATE, a_class()) == ()


def test_a_volume_to_be_made_where_its_class_allows() -> None:
    allowed = [
        {"matchLabelExpressions": [{"key": "zone", "values": ["b", "a"]}]},
        {"matchLabelExpressions": [{"key": "rack", "values": ["r"]}]},
    ]
    assert choices(LATE, a_class(allowedTopologies=allowed)) == (
        Choice((on("zone", "a", "b"), on("rack", "r")), "ns/data"),
    )


def test_a_volume_to_be_made_where_there_is_capacity_for_it() -> None:
    driver = msgspec.convert(
        {"metadata": {"name": "ebs"}, "spec": {"storageCapacity": True}}, CsiDriver
    )

    def capacity(name: str, size: str, zone: str, of: str = "late") -> CsiStorageCapacity:
        document = {
            "metadata": {"name": name, "namespace": "ns"},
            "storageClassName": of,
            "capacity": size,
            "nodeTopology": {"matchLabels": {"zone": zone}},
        }
        return msgspec.convert(document, CsiStorageCapacity)

    found = choices(
        LATE,
        a_class(),
        driver,
        capacity("1", "4Gi", "a"),
        capacity("2", "5Gi", "b"),
        capacity("3", "9Gi", "c", of="other"),
    )
    assert found == (Choice((on("zone", "b"),), "ns/data"),)
    assert choices(LATE, a_class(), driver) == (Choice((), "ns/data"),)


def test_a_volume_that_exists_and_would_do() -> None:
    local = a_class(provisioner="kubernetes.io/no-provisioner")
    small = a_volume(
        "s", storageClassName="late", capacity={"storage": "1Gi"}, **affinity("h", "x")
    )
    good = a_volume("g", storageClassName="late", **affinity("h", "y"))
    taken = a_volume("t", storageClassName="late", claimRef={"name": "other"}, **affinity("h", "z"))
    found = choices(LATE, local, small, good, taken)
    assert found == (Choice((on("h", "y"),), "ns/data"),)
    assert choices(LATE, local) == (Choice((), "ns/data"),)


def test_a_claim_that_has_its_node_keeps_it() -> None:
    chosen = a_claim(
        storageClassName="late", annotations={"volume.kubernetes.io/selected-node": "n3"}
    )
    (found,) = choices(chosen, a_class())
    assert found.matches("n3", {})
    assert not found.matches("n1", {})


def test_a_node_that_is_gone_holds_nobody() -> None:
    chosen = a_claim(
        storageClassName="late", annotations={"volume.kubernetes.io/selected-node": "n9"}
    )
    assert choices(chosen, a_class()) == ()


def test_attach_limits_are_a_resource_once_some_node_has_one() -> None:
    volume = a_volume(csi={"driver": "ebs", "volumeHandle": "h1"})
    found = shelves(a_claim(volume="v"), volume)
    read = found.read(user("data"))
    assert read is not None
    assert read.attachments == ()
    said = a_csi_node(ebs=2, quiet=None)
    assert found.set_limits("n", said)
    assert not found.set_limits("n", said)
    read = found.read(user("data"))
    assert read is not None
    assert read.attachments == (("attachable-volumes-csi-ebs", 1),)
    assert found.attachable("n") == {"attachable-volumes-csi-ebs": 2}
    assert found.attachable("elsewhere") == {"attachable-volumes-csi-ebs": LARGEST}


def test_a_driver_has_limits_until_the_last_node_that_says_so_is_gone() -> None:
    found = shelves()
    steps = [
        ("n1", a_csi_node(ebs=2, nfs=9), True, {"ebs": 2, "nfs": 9}),
        ("n2", a_csi_node(ebs=3), False, {"ebs": 3, "nfs": LARGEST}),
        ("n1", a_csi_node(ebs=4, nfs=9), False, {"ebs": 4, "nfs": 9}),
        ("n1", a_csi_node(ebs=4, nfs=None), True, {"ebs": 4}),
        ("n1", None, False, {"ebs": LARGEST}),
        ("n1", None, False, {"ebs": LARGEST}),
        ("n2", a_csi_node(), True, {}),
    ]
    for where, said, others, attaches in steps:
        assert found.set_limits(where, said) == others
        expected = {f"attachable-volumes-csi-{name}": n for name, n in attaches.items()}
        assert found.attachable(where) == expected


# -- as things come and go -----------------------------------------------------------------------


def local(name: str = "g", node: str = "y", **spec: Any) -> PersistentVolume:
    """A volume of the class of LATE, on one node."""
    return a_volume(name, **({"storageClassName": "late"} | affinity("h", node) | spec))


def room(size: str) -> CsiStorageCapacity:
    topology = {"matchLabels": {"zone": "a"}}
    meta = {"name": "c", "namespace": "ns"}
    document = {"metadata": meta, "storageClassName": "late", "capacity": size}
    return msgspec.convert(document | {"nodeTopology": topology}, CsiStorageCapacity)


def counting_driver(counts: bool) -> CsiDriver:
    document = {"metadata": {"name": "ebs"}, "spec": {"storageCapacity": counts}}
    return msgspec.convert(document, CsiDriver)


BY_HAND = a_class(provisioner="kubernetes.io/no-provisioner")
EVERYWHERE: tuple[Choice, ...] = ()


def only(*terms: NodeTerm) -> tuple[Choice, ...]:
    return (Choice(terms, "ns/data"),)


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        ([BY_HAND], lambda s: s.set_volume("g", local()), only(on("h", "y"))),
        ([BY_HAND, local()], lambda s: s.set_volume("g", None), only()),
        ([BY_HAND, local()], lambda s: s.set_volume("g", local(node="z")), only(on("h", "z"))),
        (
            [BY_HAND, local()],
            lambda s: s.set_volume("g", local(claimRef={"name": "other"})),
            only(),
        ),
        (
            [BY_HAND, local()],
            lambda s: s.set_volume("g", local(storageClassName="other")),
            only(),
        ),
        (
            [BY_HAND, local(storageClassName="other")],
            lambda s: s.set_volume("g", local()),
            only(on("h", "y")),
        ),
        (
            [BY_HAND, local()],
            lambda s: s.set_volume("g", local(capacity={"storage": "1Gi"})),
            only(),
        ),
        ([BY_HAND, local()], lambda s: s.set_class("late", a_class()), EVERYWHERE),
        ([a_class()], lambda s: s.set_driver("ebs", counting_driver(True)), only()),
        ([a_class(), counting_driver(True)], lambda s: s.set_driver("ebs", None), EVERYWHERE),
        (
            [a_class(), counting_driver(True), room("1Gi")],
            lambda s: s.set_capacity(("ns", "c"), room("9Gi")),
            only(on("zone", "a")),
        ),
        (
            [a_class(), counting_driver(True), room("9Gi")],
            lambda s: s.set_capacity(("ns", "c"), None),
            only(),
        ),
    ],
)
def test_where_a_claim_may_go_is_told_anew_when_storage_changes(
    before: list[Any], change: Callable[[Shelves], None], after: tuple[Choice, ...]
) -> None:
    found = shelves(LATE, *before)
    first = found.read(user("data"))
    assert first is not None
    assert first.choices != after
    change(found)
    then = found.read(user("data"))
    assert then is not None
    assert then.choices == after


def test_volumes_that_would_do_come_the_smallest_first_then_by_name() -> None:
    large = local("a", capacity={"storage": "20Gi"})
    found = shelves(BY_HAND, large, local("c"), local("b"))
    assert [each.metadata.name for each in found.matching(LATE)] == ["b", "c", "a"]


class Silent:
    def record(
        self, regarding: Any, reason: str, message: str, *, warning: bool = False, kind: Kind
    ) -> None:
        pass


class Readings:
    """A reader of pods whose claims wait, and how often their claims were read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pods: int) -> None:
        self.view = View()
        self.reader = Reader(self.view, Claims(), Quarantine(Silent()))
        self.storage = self.reader.storage
        self.read: Counter[str] = Counter()
        read = Shelves.read

        def counted(shelves: Shelves, pod: Pod) -> Any:
            self.read[pod.metadata.uid] += 1
            return read(shelves, pod)

        self.storage.storage_class(Change(None, BY_HAND))
        for index in range(pods):
            # Each asks for another size.
            size = {"requests": {"storage": f"{index + 1}Mi"}}
            claim = a_claim(f"c{index}", storageClassName="late", resources=size)
            self.storage.claim(Change(None, claim))
            asking = user(f"c{index}")
            asking.metadata.name = asking.metadata.uid = f"p{index}"
            self.reader.pod(Change(None, asking))
        self.reader.refresh()
        monkeypatch.setattr(Shelves, "read", counted)

    def nodes_of(self, uid: str) -> tuple[Choice, ...]:
        return self.view.members[uid].facts.shape.constraints.choices


def test_however_many_volumes_come_a_pod_is_read_again_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Readings(monkeypatch, pods=3)
    for index in range(20):
        found.storage.volume(Change(None, local(f"v{index}", f"h{index}")))
        found.storage.csi_capacity(Change(None, room(f"{index}Gi")))
    found.reader.refresh()
    assert found.read == {"p0": 1, "p1": 1, "p2": 1}
    (choice,) = found.nodes_of("p2")
    assert set(choice.terms) == {on("h", f"h{index}") for index in range(20)}
    found.reader.refresh()
    assert found.read.total() == 3, "nothing has changed since"


def test_what_a_volume_says_is_parsed_when_it_comes_however_many_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: Counter[str] = Counter()
    reach = volumes.reach

    def counted(volume: PersistentVolume, name: str) -> list[Choice]:
        parsed[volume.metadata.name] += 1
        return reach(volume, name)

    monkeypatch.setattr(volumes, "reach", counted)
    found = Readings(monkeypatch, pods=5)
    for index in range(3):
        found.storage.volume(Change(None, local(f"v{index}")))
        found.reader.refresh()
    assert parsed == {"v0": 1, "v1": 1, "v2": 1}


def test_a_claim_whose_volume_is_named_by_nobody_is_read_again_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Readings(monkeypatch, pods=2)
    found.storage.claim(Change(None, a_claim("c0", volume="v")))
    found.reader.refresh()
    assert "p0" not in found.view.members
    found.storage.volume(Change(None, local("v")))
    found.reader.refresh()
    (choice,) = found.nodes_of("p0")
    assert choice.terms == (on("h", "y"),)


def test_a_claim_is_free_to_go_elsewhere_when_its_node_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Readings(monkeypatch, pods=1)
    there = msgspec.convert(node("n3"), Node)
    found.reader.node(Change(None, there))
    chosen = {"volume.kubernetes.io/selected-node": "n3"}
    late = a_claim("c0", storageClassName="late", annotations=chosen)
    found.storage.claim(Change(None, late))
    found.storage.volume(Change(None, local("v")))
    found.reader.refresh()
    assert found.nodes_of("p0")[0].matches("n3", {})
    found.reader.node(Change(there, None))
    found.reader.refresh()
    assert found.nodes_of("p0")[0].terms == (on("h", "y"),)
