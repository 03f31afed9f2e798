"""What a scheduler records is decided again in the same way, anywhere."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from posse.engine.policy import Policy
from posse.scheduler import capturing
from posse.scheduler.replaying import ReplayError, replay
from posse.version import __version__
from tests.unit.scheduler.rig import Rig, group, pod

pytestmark = pytest.mark.looptime


def only(directory: Path) -> Path:
    (file,) = directory.iterdir()
    return file


async def recorded(directory: Path, policy: Policy | None = None) -> Path:
    """A term in which gangs start, wait, lose a member, end, and one half-bound is let go."""
    rig = Rig()
    rig.nodes(3)
    rig.gang("first", 2)
    rig.gang("large", 4)
    rig.api.put("podgroups", group("half", 2))
    rig.api.put("pods", pod("half-0", "half", nodeName="n2"))
    rig.api.put("pods", pod("half-1", "half", gpus=4))
    async with rig.running(capture=directory, policy=policy or Policy()):
        await rig.settle(60)
        rig.api.delete("pods", "first-0")
        await rig.settle(5)
        rig.api.delete("pods", "first-1")
        rig.gang("second", 2)
        await rig.settle(60)
    return only(directory)


async def test_a_record_gives_the_same_decisions_again(tmp_path: Path) -> None:
    result = replay(await recorded(tmp_path))
    assert result.first == []
    assert result.differing == 0
    assert result.decisions > 4
    assert not result.cut


async def test_every_term_has_a_record_of_its_own(tmp_path: Path) -> None:
    await recorded(tmp_path / "a")
    rig = Rig()
    rig.nodes(1)
    for _ in range(2):
        async with rig.running(capture=tmp_path / "b"):
            await rig.settle(30)
    assert len(list((tmp_path / "b").iterdir())) == 2


async def test_another_policy_shows_where_it_parts(tmp_path: Path) -> None:
    file = await recorded(tmp_path, Policy(release_after=5.0))
    result = replay(file, Policy(release_after=3600.0))
    assert result.differing
    (kind, decision), *_ = result.first[0].recorded
    assert (kind, decision["gang"]) == ("Release", "ns/half")
    assert all(kind != "Release" for kind, _ in result.first[0].decided)


async def test_a_forged_decision_is_found(tmp_path: Path) -> None:
    file = await recorded(tmp_path)
    text = file.read_text()
    seat = '"pod":"ns/first-0","node":"n'
    assert text.count(seat) == 1
    file.write_text(text.replace(seat, f"{seat}9"))
    assert replay(file).differing == 1


async def test_a_record_that_breaks_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    file = await recorded(tmp_path)
    whole = replay(file)
    data = file.read_bytes()
    file.write_bytes(data[: data.rindex(b"\n", 0, -1) - 7])
    result = replay(file)
    assert result.cut
    assert 0 < result.cycles <= whole.cycles
    assert result.differing == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: not a record of a scheduler"),
        ("garbage\n", "line 1: not a record of a scheduler"),
        ("{}\n", "line 1: not a record of a scheduler"),
        ('{"format": 9, "version": "", "began": "", "policy": {}}\n', "line 1: a record of format"),
        ('HEADER["set_pod", {}]\n', "line 2: "),
        ('HEADER["set_pod", {"facts": {"uid": 3}}]\n', "line 2: "),
        ('HEADER["validate", {}]\n', "line 2: "),
        ('HEADER["set_pod"]\n', "line 2: "),
        ("HEADER3\n", "line 2: "),
        ("HEADER{]\nHEADER", "line 2: "),
    ],
)
async def test_what_is_no_record_is_named(tmp_path: Path, text: str, says: str) -> None:
    header = msgspec.json.encode(capturing.Header(capturing.FORMAT, "1", "", Policy())).decode()
    file = tmp_path / "record"
    file.write_text(text.replace("HEADER", header + "\n"))
    with pytest.raises(ReplayError) as raised:
        replay(file)
    assert str(raised.value).startswith(says)


@pytest.mark.parametrize(
    ("near", "says"),
    [(__version__.encode(), "line 1: not a record of a scheduler: "), (b"first-0", "line ")],
)
async def test_a_damaged_record_is_named(tmp_path: Path, near: bytes, says: str) -> None:
    file = await recorded(tmp_path)
    before, found, after = file.read_bytes().partition(near)
    file.write_bytes(before + bytes([found[0], found[1] ^ 0x80]) + found[2:] + after)
    with pytest.raises(ReplayError) as raised:
        replay(file)
    assert str(raised.value).startswith(says)
    assert str(raised.value).endswith("it is damaged: not UTF-8")


async def test_a_directory_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    rig = Rig()
    rig.nodes(1)
    rig.gang("a", 1)
    async with rig.running(capture=file / "below"):
        await rig.until(lambda: len(rig.bound_of("a")) == 1)


async def test_a_record_that_grew_too_large_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(capturing, "LARGEST", 4096)
    file = await recorded(tmp_path)
    assert file.stat().st_size <= 4096
    assert any("nothing more is recorded" in r.getMessage() for r in caplog.records)
    assert replay(file).differing == 0


async def test_a_record_holds_facts_and_nothing_of_the_pods_insides(tmp_path: Path) -> None:
    rig = Rig()
    rig.nodes(1)
    secretive = pod("a-0", "a")
    secretive["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "value": "hunter2"}]
    secretive["metadata"]["annotations"]["note"] = "hunter3"
    rig.api.put("podgroups", group("a", 1))
    rig.api.put("pods", secretive)
    async with rig.running(capture=tmp_path):
        await rig.until(lambda: len(rig.bound_of("a")) == 1)
    text = only(tmp_path).read_text()
    assert "a-0" in text
    assert "hunter" not in text


async def test_the_methods_that_take_facts_are_all_found() -> None:
    told = capturing.told()
    assert {"set_node", "remove_node", "set_pod", "remove_pod", "set_group", "refute"} <= set(told)
    assert "set_holds" not in told
