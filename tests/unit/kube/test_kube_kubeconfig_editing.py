from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.kube import kubeconfig
from posse.kube.config import ConfigError, KubeconfigFile, load_kubeconfig

CLUSTER = {"server": "https://127.0.0.1:6443", "certificate-authority-data": "Y2E="}
USER = {"token": "t"}

THEIRS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "work",
    "preferences": {"colors": True},
    "clusters": [{"name": "work", "cluster": {"server": "https://work", "extensions": [{"a": 1}]}}],
    "users": [{"name": "me", "user": {"exec": {"command": "aws", "args": ["eks", "0123"]}}}],
    "contexts": [{"name": "work", "context": {"cluster": "work", "user": "me"}}],
    "unknown": {"übrig": ["1.0", "yes", "0x10"]},
}


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(THEIRS, allow_unicode=True), encoding="utf-8")
    return path


def add(path: Path, **options: Any) -> str:
    return KubeconfigFile(path).add("posse", cluster=CLUSTER, user=USER, **options)


def test_adding_selects_and_returns_the_one_before(file: Path) -> None:
    assert add(file, namespace="team") == "work"
    settings = load_kubeconfig([file])
    assert (settings.server, settings.token) == ("https://127.0.0.1:6443", "t")
    assert (settings.context, settings.namespace) == ("posse", "team")


def test_adding_again_replaces_and_does_not_forget_the_one_before(file: Path) -> None:
    add(file)
    assert KubeconfigFile(file).add("posse", cluster={"server": "https://new"}, user=USER) == ""
    assert load_kubeconfig([file]).server == "https://new"
    assert [item["name"] for item in read(file)["contexts"]] == ["work", "posse"]


def test_adding_without_selecting(file: Path) -> None:
    add(file, select=False)
    assert read(file)["current-context"] == "work"
    assert load_kubeconfig([file], "posse").token == "t"


def test_removing_restores_everything_as_it_was(file: Path) -> None:
    before = add(file)
    KubeconfigFile(file).remove("posse", restore=before)
    assert read(file) == THEIRS


def test_a_selection_made_meanwhile_stays(file: Path) -> None:
    add(file)
    document = read(file)
    document["current-context"] = "mine"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    KubeconfigFile(file).remove("posse", restore="work")
    assert read(file)["current-context"] == "mine"


def test_a_context_that_is_gone_is_not_restored(file: Path) -> None:
    add(file)
    KubeconfigFile(file).remove("posse", restore="deleted meanwhile")
    assert read(file)["current-context"] == ""


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config"
    assert add(file) == ""
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert load_kubeconfig([file]).context == "posse"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_the_mode_is_kept(file: Path, mode: int) -> None:
    file.chmod(mode)
    add(file)
    assert stat.S_IMODE(file.stat().st_mode) == mode


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link"
    link.parent.mkdir()
    link.symlink_to(file)
    add(link)
    assert link.is_symlink()
    assert read(file)["current-context"] == "posse"


def test_removing_from_no_file_makes_none(tmp_path: Path) -> None:
    KubeconfigFile(tmp_path / "none").remove("posse")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_and_null_sections_are_filled(tmp_path: Path) -> None:
    for text in ("", "clusters: null\nusers:\ncontexts: []\n"):
        file = tmp_path / "config"
        file.write_text(text)
        add(file)
        assert load_kubeconfig([file]).token == "t"


@pytest.mark.parametrize("text", ["a: [1", "- 1", "users: 5"])
def test_a_file_that_cannot_be_understood_is_left_alone(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError):
        add(file)
    assert file.read_text() == text
    assert [path.name for path in file.parent.iterdir()] == ["config"]


def test_a_failed_write_leaves_the_old_file_and_no_litter(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space"):
        add(file)
    assert read(file) == THEIRS
    assert [path.name for path in file.parent.iterdir()] == ["config"]


def test_a_lock_that_is_never_released_ends_in_a_sentence(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig, "_LOCK_POLLS", 2)
    lock = file.with_name("config.lock")
    lock.touch()
    with pytest.raises(ConfigError, match=r"config\.lock"):
        add(file)
    assert lock.exists()
    assert read(file) == THEIRS


def test_writers_at_once_lose_nothing(file: Path) -> None:
    def write(index: int) -> None:
        KubeconfigFile(file).add(f"c{index}", cluster=CLUSTER, user=USER)

    writers = [threading.Thread(target=write, args=(index,)) for index in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    names = sorted(item["name"] for item in read(file)["contexts"])
    assert names == sorted(["work", *(f"c{index}" for index in range(8))])
    assert not file.with_name("config.lock").exists()
