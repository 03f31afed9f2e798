"""Events in any order, also late ones: the view never learns that something was undone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.engine.view import View
from posse.kube.cache import Change
from posse.objects.groups import PodGroup
from posse.objects.kinds import Kind
from posse.objects.pods import Pod
from posse.scheduler.reading.claims import Claims
from posse.scheduler.reading.quarantine import Quarantine
from posse.scheduler.reading.reader import Reader
from tests.unit.scheduler.rig import group, pod


class Silent:
    def record(
        self, regarding: Any, reason: str, message: str, *, warning: bool = False, kind: Kind
    ) -> None:
        pass


@pytest.fixture
def view() -> View:
    return View()


@pytest.fixture
def reader(view: View) -> Reader:
    return Reader(view, Claims(), Quarantine(Silent()))


def a_pod(version: str, name: str = "g-0", **fields: Any) -> Pod:
    document = pod(name, "g", **fields)
    document["metadata"] |= {"namespace": "ns", "uid": name, "resourceVersion": version}
    return msgspec.convert(document, Pod)


def a_group(version: str, phase: str = "", least: int = 1, uid: str = "g") -> PodGroup:
    document = group("g", least)
    document["metadata"] |= {"namespace": "ns", "uid": uid, "resourceVersion": version}
    return msgspec.convert(document | {"status": {"phase": phase}}, PodGroup)


def node_of(view: View, uid: str) -> str | None:
    return view.members[uid].facts.node


@pytest.mark.parametrize("versions", [("4", "5"), ("x", "a"), ("5", "4")])
def test_a_pod_that_was_seen_on_a_node_stays_there(
    view: View, reader: Reader, versions: tuple[str, str]
) -> None:
    early, late = versions
    reader.pod(Change(None, a_pod(early)))
    reader.pod(Change(None, a_pod(late, nodeName="n0")))
    reader.pod(Change(None, a_pod(early)))
    assert node_of(view, "g-0") == "n0"


def test_what_was_read_live_is_not_overwritten_by_what_the_cache_tells_late(
    reader: Reader,
) -> None:
    reader.pod(Change(None, a_pod("3")))
    reader.fact(a_pod("5"))
    reader.pod(Change(None, a_pod("4")))
    known = reader.pod_of("g-0")
    assert known is not None
    assert known.metadata.resource_version == "5"


def test_a_server_that_was_restored_is_believed(reader: Reader) -> None:
    reader.pod(Change(None, a_pod("30")))
    reader.pod(Change(None, a_pod("7")))
    known = reader.pod_of("g-0")
    assert known is not None
    assert known.metadata.resource_version == "7"


def test_a_live_reading_of_a_pod_that_is_gone_does_not_bring_it_back(
    view: View, reader: Reader
) -> None:
    reader.pod(Change(None, a_pod("3")))
    reader.pod(Change(a_pod("3"), None))
    reader.fact(a_pod("4", nodeName="n0"))
    assert "g-0" not in view.members


def test_our_write_to_a_group_that_is_gone_does_not_bring_it_back(reader: Reader) -> None:
    reader.group(Change(None, a_group("1")))
    reader.group(Change(a_group("1"), None))
    reader.wrote(a_group("2", "Inqueue"))
    reader.refresh()
    assert reader.musters == {}


def test_our_write_to_a_group_does_not_speak_for_its_successor(reader: Reader) -> None:
    reader.group(Change(None, a_group("1", uid="new")))
    reader.wrote(a_group("2", "Running", uid="old"))
    found = reader.musters["ns/g"].group
    assert found is not None
    assert found.metadata.uid == "new"


def test_a_phase_is_believed_at_first_sight_only(reader: Reader) -> None:
    reader.group(Change(None, a_group("1", "Running", least=2)))
    reader.pod(Change(None, a_pod("2")))
    reader.refresh()
    assert not reader.musters["ns/g"].ran
    reader.pod(Change(None, a_pod("3", nodeName="n0")))
    reader.group(Change(None, a_group("4", "Running", least=2)))
    reader.refresh()
    assert not reader.musters["ns/g"].ran


def test_a_gang_that_an_earlier_leader_started_has_run(reader: Reader) -> None:
    reader.pod(Change(None, a_pod("2", nodeName="n0")))
    reader.group(Change(None, a_group("1", "Running", least=2)))
    reader.refresh()
    assert reader.musters["ns/g"].ran


def test_a_pod_that_changes_its_group_leaves_the_old_one(view: View, reader: Reader) -> None:
    reader.pod(Change(None, a_pod("1")))
    moved = a_pod("2")
    moved.metadata.annotations["scheduling.k8s.io/group-name"] = "other"
    reader.pod(Change(None, moved))
    reader.refresh()
    assert list(reader.musters) == ["ns/other"]
    assert view.members["g-0"].facts.gang == "ns/other"


def test_nothing_is_left_of_what_is_gone(view: View, reader: Reader) -> None:
    reader.group(Change(None, a_group("1")))
    reader.pod(Change(None, a_pod("2", nodeName="n0")))
    reader.refresh()
    reader.pod(Change(a_pod("2"), None))
    reader.group(Change(a_group("1"), None))
    reader.refresh()
    assert reader.musters == {}
    assert view.members == {}
    assert view.gangs == {}
