"""What namespaces promise: a pod sees its own files, names and processes, and nobody's secrets."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from posse.local.node.processes.isolation.namespaces import CREDENTIALS
from tests.unit.processes.rig import Rig, container, mounted, pod, shell
from tests.unit.processes.rig import rig as make_rig

pytestmark = pytest.mark.process


def _mounts() -> str:
    return Path("/proc/mounts").read_text()


async def test_a_pod_has_its_own_names(isolated: Rig) -> None:
    one = pod(
        shell("hostname; cat /etc/hostname; grep $(IP) /etc/hosts", env=[
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
        ]),
        name="me", hostname="me-0", subdomain="us",
    )  # fmt: skip
    _, text = await isolated.run(one)
    address = one["status"]["podIP"]
    whole = "me-0.us.default.svc.cluster.local"
    assert text.splitlines() == [
        "me-0",
        "me-0",
        f"{address}\t{whole} me-0",
        f"{address}\t{whole} me-0.us.default.svc me-0.us.default me-0.us",
    ]


async def test_two_pods_serve_the_same_port_and_find_each_other_by_name(isolated: Rig) -> None:
    await isolated.service("one", {"app": "one"}, {"port": 7001})
    await isolated.service("two", {"app": "two"}, {"port": 7001})
    script = (
        "import socket, sys, time\n"
        "server = socket.create_server((socket.gethostbyname(socket.gethostname()), 7001))\n"
        "print('up', flush=True)\n"
        "peer = sys.argv[1]\n"
        "while True:\n"
        "    try: socket.create_connection((peer, 7001)).close(); break\n"
        "    except OSError: time.sleep(0.05)\n"
        "print('met', flush=True); time.sleep(600)\n"
    )
    one = pod(
        container("python3", "-c", script, "two.default.svc"), name="one", labels={"app": "one"}
    )
    two = pod(container("python3", "-c", script, "two"), name="two", labels={"app": "two"})
    await isolated.start(one)
    await isolated.printed(one, "up")
    await isolated.start(two)
    isolated.runtime.pods_changed()
    await isolated.printed(one, "met")
    await isolated.printed(two, "met")


async def test_the_hosts_file_follows_who_comes_and_goes(isolated: Rig) -> None:
    await isolated.service("late", {"app": "late"})
    one = pod(shell("until grep -q late.default.svc /etc/hosts; do sleep 0.05; done; echo met"))
    await isolated.start(one)
    late = isolated.admit(pod(container("true"), name="late", labels={"app": "late"}))
    isolated.runtime.pods_changed()
    assert "met" in await isolated.printed(one, "met")
    del isolated.pods[late["metadata"]["uid"]]


async def test_a_pod_sees_only_its_own_processes(isolated: Rig) -> None:
    _, text = await isolated.run(pod(shell("ls /proc | grep -c '^[0-9]'")))
    assert int(text) <= 5


async def test_nobody_elses_files_can_be_read(isolated: Rig, tmp_path: Path) -> None:
    other = pod(shell("echo secret > ${TMPDIR:-/tmp}/mine; echo up; sleep 7777"), name="other")
    await isolated.start(other)
    await isolated.printed(other, "up")
    (isolated.home / "store.db").write_text("store")
    (isolated.home / "tokens").mkdir()
    (isolated.home / "tokens" / "admin").write_text("token")
    paths = [
        isolated.home, isolated.home / "store.db", isolated.home / "tokens" / "admin",
        isolated.place(other).path, isolated.place(other).tmp / "mine",
    ]  # fmt: skip
    script = "; ".join(f"cat {path} {path}/* 2>/dev/null" for path in paths)
    _, text = await isolated.run(pod(shell(f"{script}; echo end")))
    assert text == "end\n"


async def test_credentials_are_covered_where_their_directory_is_shown(
    namespaces: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if namespaces:
        pytest.skip(namespaces)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")  # so that it is shown
    for name, text in ((".kube/config", "mine"), (".ssh/id", "mine"), ("tool", "shown")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    async with make_rig(tmp_path / "posse", "namespaces") as rig:
        (rig.home / "store.db").write_text("mine")
        script = f"cd {tmp_path}; cat tool .kube/* .ssh/* posse/store.db posse/pods/*/pod.json"
        count = f"ls {tmp_path}/posse | wc -l"
        _, text = await rig.run(pod(shell(f"({script}) 2>/dev/null; {count}; echo end")))
    assert text == "shown0\nend\n"


async def test_what_is_hidden_cannot_be_uncovered(isolated: Rig) -> None:
    script = (
        "umount -l /proc/sys; mount -o remount,rw /usr; mount -t tmpfs none /mnt; "
        "unshare -Ur sh -c 'umount /proc/sys; umount /tmp; mount -o remount,rw,bind /usr'; "
        "touch /usr/planted; grep -h Cap /proc/self/status"
    )
    _, text = await isolated.run(pod(shell(script)))
    assert "planted" not in os.listdir("/usr")  # noqa: PTH208
    capabilities = [line.split()[1] for line in text.splitlines() if line.startswith("Cap")]
    assert capabilities == ["0" * 16] * 5


async def test_the_machine_cannot_be_changed(isolated: Rig) -> None:
    script = (
        "for d in / /etc /usr /var /sys /proc/sys/kernel /dev; do "
        "touch $d/planted 2>/dev/null && echo wrote $d; done; "
        "(echo x > /proc/sys/kernel/hostname) 2>/dev/null && echo wrote sysctl; "
        "ls /dev | grep -E '^(sd|vd|nvme|mem|kmsg)'; echo end"
    )
    _, text = await isolated.run(pod(shell(script)))
    wrote = [line for line in text.splitlines() if line.startswith("wrote")]
    assert set(wrote) <= {"wrote /", "wrote /dev"}  # its own root and devices
    assert text.splitlines()[-1] == "end"
    assert len(text.splitlines()) == len(wrote) + 1
    assert not {"planted"} & {*os.listdir("/"), *os.listdir("/dev")}  # noqa: PTH208


async def test_read_only_means_it(isolated: Rig) -> None:
    one = pod(
        shell("touch /vol/x && echo wrote; touch /x && echo wrote; echo end",
              volumeMounts=[mounted("v", "/vol", readOnly=True)],
              securityContext={"readOnlyRootFilesystem": True}),
        volumes=[{"name": "v", "emptyDir": {}}],
    )  # fmt: skip
    _, text = await isolated.run(one)
    assert [line for line in text.splitlines() if "touch" not in line] == ["end"]


async def test_a_container_is_the_user_it_asks_to_be(isolated: Rig) -> None:
    asked = {"runAsUser": 1234, "runAsGroup": 56}
    one = pod(shell("id -u; id -g; touch $HOME/x /tmp/x && ls -n /tmp/x", securityContext=asked))
    _, text = await isolated.run(one)
    assert text.split()[:2] == ["1234", "56"]
    assert "1234 56" in text


async def test_a_mount_point_is_made_where_the_machine_has_none(isolated: Rig) -> None:
    one = pod(
        shell("echo x > /usr/share/no/such/f; ls /usr/share | wc -l; cat /usr/share/no/such/f",
              volumeMounts=[mounted("v", "/usr/share/no/such")]),
        volumes=[{"name": "v", "emptyDir": {}}],
    )  # fmt: skip
    _, text = await isolated.run(one)
    count, content = text.split()
    assert int(count) == len(os.listdir("/usr/share")) + 1  # noqa: PTH208
    assert content == "x"


async def test_mounts_are_gone_with_their_container(isolated: Rig) -> None:
    before = _mounts()
    one = pod(shell("echo up; sleep 7777"))
    await isolated.start(one)
    await isolated.printed(one, "up")
    assert _mounts() == before
    await isolated.runtime.stop(one["metadata"]["uid"], 0.0)
    assert _mounts() == before


async def test_python_and_what_is_on_the_path_work_inside(isolated: Rig) -> None:
    how, text = await isolated.run(pod(container("python3", "-c", "import numpy; print('ok')")))
    assert (how.code, text) == (0, "ok\n")


def test_what_holds_credentials_is_known() -> None:
    assert {".kube", ".posse", ".arena", ".ssh"} <= set(CREDENTIALS)


async def test_a_terminal_and_shared_memory_are_there(isolated: Rig) -> None:
    script = "import os, pty; pty.openpty(); open('/dev/shm/x', 'w').write('1'); print('ok')"
    assert (await isolated.run(pod(container("python3", "-c", script))))[1] == "ok\n"


async def test_pods_do_not_see_each_others_tmp(isolated: Rig) -> None:
    pods = [
        pod(shell("ls /tmp | grep -c planted; touch /tmp/planted"), name=f"p{n}") for n in range(5)
    ]
    texts = await asyncio.gather(*(isolated.run(one) for one in pods))
    assert {text.strip() for _, text in texts} == {"0"}
