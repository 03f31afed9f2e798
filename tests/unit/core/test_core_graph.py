"""The graph of owners and dependents."""

from __future__ import annotations

from posse.local.core.graph import Entry, Graph
from posse.objects.kinds import JOB, POD
from posse.objects.meta import ObjectMeta, OwnerReference


def owner(uid: str, *, blocks: bool = False, name: str = "j") -> OwnerReference:
    return OwnerReference(
        api_version="batch/v1", kind="Job", name=name, uid=uid, block_owner_deletion=blocks
    )


def pod(uid: str, *owners: OwnerReference) -> Entry:
    meta = ObjectMeta(name=uid, namespace="d", uid=uid, owner_references=list(owners))
    return Entry(POD, meta)


def test_dependents_are_known_before_their_owner_is() -> None:
    graph = Graph()
    graph.put(pod("p", owner("j")))
    assert [entry.uid for entry in graph.dependents("j")] == ["p"]


def test_an_object_that_changes_its_owner_is_no_longer_the_old_ones() -> None:
    graph = Graph()
    graph.put(pod("p", owner("a")))
    graph.put(pod("p", owner("b")))
    assert graph.dependents("a") == []
    assert [entry.uid for entry in graph.dependents("b")] == ["p"]


def test_a_removed_object_depends_on_nobody() -> None:
    graph = Graph()
    graph.put(pod("p", owner("a")))
    graph.remove("p")
    assert graph.dependents("a") == []


def test_only_references_that_say_so_block_the_owner() -> None:
    graph = Graph()
    graph.put(pod("p", owner("j", blocks=True), owner("k")))
    assert [entry.uid for entry in graph.blocking("j")] == ["p"]
    assert graph.blocking("k") == []


def test_a_reference_means_an_object_by_uid_name_kind_and_namespace() -> None:
    job = Entry(JOB, ObjectMeta(name="j", namespace="d", uid="u"))
    assert job.is_meant_by(owner("u"), "d")
    assert not job.is_meant_by(owner("other"), "d")
    assert not job.is_meant_by(owner("u", name="k"), "d")
    assert not job.is_meant_by(owner("u"), "elsewhere")


def test_a_reference_in_an_older_version_means_the_same_object() -> None:
    job = Entry(JOB, ObjectMeta(name="j", namespace="d", uid="u"))
    reference = OwnerReference(api_version="batch/v1beta1", kind="Job", name="j", uid="u")
    assert job.is_meant_by(reference, "d")
