"""No path leads out of where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest

from posse.local.node.processes.confinement import (
    Escape,
    link_within,
    make_within,
    parts_of,
    write_new,
)
from posse.local.node.processes.layout import PodPlace, UnsafeName


@pytest.mark.parametrize("path", ["/etc", "..", "a/../../b", "a/..", "a\0b"])
def test_a_path_that_climbs_is_refused(path: str) -> None:
    with pytest.raises(Escape):
        parts_of(path)


@pytest.mark.parametrize(
    ("path", "parts"),
    [("", []), (".", []), ("a//b/./c", ["a", "b", "c"]), ("..a/b..", ["..a", "b.."])],
)
def test_a_path_that_stays_is_taken(path: str, parts: list[str]) -> None:
    assert parts_of(path) == parts


def test_directories_are_made_below_the_base(tmp_path: Path) -> None:
    assert make_within(tmp_path, "a/b") == tmp_path / "a/b"
    assert (tmp_path / "a/b").is_dir()
    assert make_within(tmp_path, "a/b") == tmp_path / "a/b"


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    outside, volume = tmp_path / "outside", tmp_path / "volume"
    outside.mkdir()
    volume.mkdir()
    (volume / "link").symlink_to(outside)
    for path in ("link", "link/x", "link/x/y"):
        with pytest.raises(Escape):
            make_within(volume, path)
    assert list(outside.iterdir()) == []


def test_a_file_at_the_end_is_a_file_and_on_the_way_is_an_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert make_within(tmp_path, "file") == tmp_path / "file"
    with pytest.raises(Escape):
        make_within(tmp_path, "file/x")


def test_a_link_replaces_an_empty_directory_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "target"
    base = tmp_path / "base"
    (base / "empty").mkdir(parents=True)
    (base / "full" / "x").mkdir(parents=True)
    link_within(base, "empty", target)
    link_within(base, "empty", target)
    link_within(base, "deep/er", target)
    assert (base / "empty").readlink() == target
    assert (base / "deep/er").readlink() == target
    with pytest.raises(Escape):
        link_within(base, "full", target)


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", ""])
def test_a_key_with_tricks_writes_nothing(tmp_path: Path, path: str) -> None:
    base = tmp_path / "base"
    base.mkdir()
    with pytest.raises(Escape):
        write_new(base, path, b"x", 0o644)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["base"]


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc", "x\0y", "n" * 300])
def test_a_name_with_tricks_is_no_directory(tmp_path: Path, name: str) -> None:
    place = PodPlace(tmp_path)
    with pytest.raises(UnsafeName):
        place.volume(name)
    with pytest.raises(UnsafeName):
        place.attempt(name, 0)
