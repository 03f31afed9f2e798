"""Volumes in both modes: what they hold, who may change it, and what is waited for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from posse.local.node.runtime import NotYet
from tests.unit.processes.rig import Rig, mounted, pod, shell
from tests.unit.processes.rig import rig as make_rig

pytestmark = pytest.mark.process


def with_volume(script: str, volume: dict[str, Any], **mount: Any) -> dict[str, Any]:
    return pod(
        shell(script, volumeMounts=[mounted("v", "/vol", **mount)]),
        volumes=[{"name": "v", **volume}],
    )


async def test_a_config_map_is_a_directory_of_files(rig: Rig) -> None:
    await rig.config_map("m", {"a.txt": "one\n", "b": "two\n"})
    one = with_volume("cd /vol; cat a.txt b; ls -l a.txt", {"configMap": {"name": "m"}})
    _, text = await rig.run(one)
    assert text.startswith("one\ntwo\n-rw-r--r--")


async def test_items_choose_name_and_mode(rig: Rig) -> None:
    await rig.secret("s", {"key": "x", "other": "y"})
    items = [{"key": "key", "path": "deep/er", "mode": 0o400}]
    one = with_volume(
        "cd /vol; find . -type f; ls -l deep/er", {"secret": {"secretName": "s", "items": items}}
    )
    _, text = await rig.run(one)
    assert text.startswith("./deep/er\n-r--------")


async def test_a_projected_volume_joins_its_sources(rig: Rig) -> None:
    await rig.config_map("m", {"a": "map"})
    await rig.secret("s", {"b": "secret"})
    told = {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}
    sources = [{"configMap": {"name": "m"}}, {"secret": {"name": "s"}}, {"downwardAPI": told}]
    one = with_volume("cd /vol; grep . *", {"projected": {"sources": sources}})
    assert (await rig.run(one))[1] == "a:map\nb:secret\nname:pod\n"


async def test_the_downward_api_as_files(rig: Rig) -> None:
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
    ]
    one = with_volume("cat /vol/labels; echo; cat /vol/cpu", {"downwardAPI": {"items": items}})
    one["metadata"]["labels"] = {"a": "b"}
    assert (await rig.run(one))[1] == 'a="b"\n4'


@pytest.mark.parametrize(
    ("volume", "reason", "complaint"),
    [
        ({"configMap": {"name": "absent"}}, "ContainerCreating", 'configmap "absent" not found'),
        ({"secret": {"secretName": "absent"}}, "ContainerCreating", 'secret "absent" not found'),
        (
            {"configMap": {"name": "m", "items": [{"key": "no", "path": "x"}]}},
            "ContainerCreating",
            "references non-existent config key: no",
        ),
        (
            {"configMap": {"name": "m", "items": [{"key": "a", "path": "../x"}]}},
            "ContainerCreating",
            'must not contain ".."',
        ),
        (
            {"persistentVolumeClaim": {"claimName": "c"}},
            "VolumeNotSupported",
            "persistentVolumeClaim",
        ),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            "VolumeNotSupported",
            "serviceAccountToken",
        ),
        ({"hostPath": {"path": "/etc"}}, "HostPathNotAllowed", "--allow-host-path"),
    ],
)
async def test_what_cannot_be_had_is_waited_for(
    shared: Rig, volume: dict[str, Any], reason: str, complaint: str
) -> None:
    await shared.config_map("m", {"a": "1"})
    with pytest.raises(NotYet) as caught:
        await shared.start(with_volume("true", volume))
    assert caught.value.reason == reason
    assert complaint in caught.value.message


async def test_once_it_appears_the_pod_starts(rig: Rig) -> None:
    one = with_volume("cat /vol/a", {"configMap": {"name": "late"}})
    with pytest.raises(NotYet):
        await rig.start(one)
    await rig.config_map("late", {"a": "here\n"})
    assert (await rig.run(one))[1] == "here\n"


async def test_what_is_optional_is_an_empty_directory(rig: Rig) -> None:
    one = with_volume("ls -A /vol | wc -l", {"secret": {"secretName": "no", "optional": True}})
    assert (await rig.run(one))[1].strip() == "0"


async def test_a_sub_path_is_made_in_the_volume(rig: Rig) -> None:
    one = pod(
        shell("echo x > /vol/f; cat /whole/a/b/f", volumeMounts=[
            mounted("v", "/vol", subPath="a/b"), mounted("v", "/whole"),
        ]),
        volumes=[{"name": "v", "emptyDir": {}}],
    )  # fmt: skip
    assert (await rig.run(one))[1] == "x\n"


async def test_a_sub_path_may_be_one_file(rig: Rig) -> None:
    await rig.config_map("m", {"a": "one", "b": "two"})
    one = pod(
        shell("cat /place/file", volumeMounts=[mounted("v", "/place/file", subPath="b")]),
        volumes=[{"name": "v", "configMap": {"name": "m"}}],
    )
    assert (await rig.run(one))[1] == "two"


async def test_one_mount_may_lie_in_another(rig: Rig) -> None:
    one = pod(
        shell("echo i > /data/inner/f; ls /data; cat /in/f", volumeMounts=[
            mounted("inner", "/data/inner"), mounted("outer", "/data"), mounted("inner", "/in"),
        ]),
        volumes=[{"name": "inner", "emptyDir": {}}, {"name": "outer", "emptyDir": {}}],
    )  # fmt: skip
    assert (await rig.run(one))[1] == "inner\ni\n"


@pytest.mark.parametrize("sub", ["../../..", "/etc", "a/../../b"])
async def test_a_sub_path_that_climbs_is_waited_with(rig: Rig, sub: str) -> None:
    one = with_volume("true", {"emptyDir": {}}, subPath=sub)
    with pytest.raises(NotYet) as caught:
        await rig.start(one)
    assert caught.value.reason == "CreateContainerConfigError"


@pytest.mark.parametrize("sub", ["link", "link/deeper"])
async def test_a_link_planted_by_an_earlier_container_leads_nowhere(
    rig: Rig, tmp_path: Path, sub: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    one = pod(
        shell("touch /vol/planted", volumeMounts=[mounted("v", "/vol", subPath=sub)]),
        initContainers=[
            shell(f"ln -s {outside} /v/link", name="init", volumeMounts=[mounted("v", "/v")])
        ],
        volumes=[{"name": "v", "emptyDir": {}}],
    )  # fmt: skip
    await rig.start(one, "init")
    await rig.over(one, "init")
    with pytest.raises(NotYet, match="leads through a link"):
        await rig.start(one)
    assert [path.name for path in outside.iterdir()] == ["secret"]


async def test_an_allowed_directory_of_the_host_is_mounted(tmp_path: Path, mode: str) -> None:
    allowed = tmp_path / "allowed"
    (allowed / "data").mkdir(parents=True)
    (allowed / "escape").symlink_to("/etc")
    async with make_rig(tmp_path / "home", mode, allow=[allowed]) as rig:
        path = {"path": str(allowed / "data")}
        await rig.run(with_volume("echo hello > /vol/f", {"hostPath": path}))
        assert (allowed / "data" / "f").read_text() == "hello\n"
        made = {"path": str(allowed / "new"), "type": "DirectoryOrCreate"}
        await rig.run(with_volume("touch /vol/f", {"hostPath": made}))
        assert (allowed / "new" / "f").exists()
        for refused in (allowed / "escape", tmp_path, allowed / ".." / "home", tmp_path / "home"):
            with pytest.raises(NotYet) as caught:
                await rig.start(with_volume("true", {"hostPath": {"path": str(refused)}}))
            assert caught.value.reason == "HostPathNotAllowed"
        wrong = {"path": str(allowed / "data"), "type": "File"}
        with pytest.raises(NotYet, match="hostPath type check failed"):
            await rig.start(with_volume("true", {"hostPath": wrong}))
