"""What stands in for namespaces: mapped ports, resolved names, rewritten paths."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from posse.local.node.runtime import NotYet
from tests.unit.processes.rig import Rig, container, mounted, pod, shell

pytestmark = pytest.mark.process

PORT = [{"containerPort": 2222}]


async def test_ports_are_mapped_to_free_ones_and_kept(shared: Rig) -> None:
    one = pod(shell("echo $POSSE_PORT_2222 $(POSSE_PORT_2222)", ports=PORT))
    _, text = await shared.run(one)
    first, second = text.split()
    assert first == second != "2222"
    await shared.restart()
    record = json.loads(shared.place(one).record.read_text())
    assert record["ports"] == {"2222": int(first)}


async def test_two_pods_never_have_the_same_port(shared: Rig) -> None:
    pods = [shared.admit(pod(container("x", ports=PORT), name=f"p{n}")) for n in range(50)]
    ports = [json.loads(shared.place(p).record.read_text())["ports"]["2222"] for p in pods]
    assert len(set(ports)) == 50


async def test_names_arrive_as_addresses_and_mapped_ports(shared: Rig) -> None:
    await shared.service("w-0", {"index": "0"}, {"port": 2222})
    await shared.service("w-1", {"index": "1"}, {"port": 2222})
    await shared.config_map(
        "hosts", {"hostfile": "w-0.default.svc slots=1\nw-1.default.svc:2222\n"}
    )
    cluster = '{"worker":["w-0.default.svc:2222","w-1.default.svc:2222"]}'
    one = pod(
        shell("echo $CLUSTER; cat /etc/mpi/hostfile; echo $0 w-1.default.svc:2222",
              ports=PORT, env=[{"name": "CLUSTER", "value": cluster}],
              volumeMounts=[mounted("h", "/etc/mpi")]),
        labels={"index": "0"}, volumes=[{"name": "h", "configMap": {"name": "hosts"}}],
    )  # fmt: skip
    with pytest.raises(NotYet, match=r"w-1\.default\.svc leads to no pod yet") as caught:
        await shared.start(one)
    assert caught.value.reason == "WaitingForNames"
    peer = shared.admit(pod(container("x", ports=PORT), name="peer", labels={"index": "1"}))
    _, text = await shared.run(one)

    def port(of: dict[str, object]) -> int:
        return int(json.loads(shared.place(of).record.read_text())["ports"]["2222"])

    there = f"127.0.0.1:{port(peer)}"
    lines = text.splitlines()
    assert json.loads(lines[0]) == {"worker": [f"127.0.0.1:{port(one)}", there]}
    assert lines[1:3] == ["127.0.0.1 slots=1", there]
    assert lines[3].endswith(there)
    # The object's own files are as they were written.
    assert "w-0.default.svc" in (shared.place(one).volume("h") / "hostfile").read_text()


async def test_a_name_that_nobody_declares_is_given_up_after_a_while(
    shared: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = pod(container("echo", "nobody.default.svc:80"))
    with pytest.raises(NotYet):
        await shared.start(one)
    monkeypatch.setattr("posse.local.node.processes.preparing.UNKNOWN_NAME_PATIENCE", -1.0)
    _, text = await shared.run(one)
    assert text == "nobody.default.svc:80\n"
    assert shared.warnings == [
        ("UnknownName", "nobody.default.svc is no name of this cluster and is left as it is")
    ]


async def test_mount_paths_are_rewritten_where_they_are_paths(shared: Rig) -> None:
    one = pod(
        container("printf", "%s\\n", "/data", "--dir=/data/x", "a:/data:b", "/database",
                  "/mnt/data", "http://data", '"/data"',
                  volumeMounts=[mounted("v", "/data")], env=[{"name": "D", "value": "/data"}]),
        volumes=[{"name": "v", "emptyDir": {}}],
    )  # fmt: skip
    _, text = await shared.run(one)
    here = str(shared.attempt(one).root / "data")
    assert text.splitlines() == [
        here, f"--dir={here}/x", f"a:{here}:b", "/database", "/mnt/data", "http://data",
        f'"{here}"',
    ]  # fmt: skip


async def test_a_container_starts_in_its_own_root_with_a_home_and_a_tmp(shared: Rig) -> None:
    one = pod(shell('pwd; cd "$HOME" && pwd; cd "$TMPDIR" && pwd; touch x'))
    _, text = await shared.run(one)
    at = shared.attempt(one)
    assert text.split() == [str(at.root), str(at.root / "root"), str(shared.place(one).tmp)]


@pytest.mark.parametrize(
    ("fields", "spec", "complaint"),
    [
        ({"securityContext": {"privileged": True}}, {}, "privileged"),
        ({"securityContext": {"runAsUser": os.geteuid() + 1}}, {}, "runAsUser"),
        ({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}, {}, "SYS_ADMIN"),
        ({}, {"hostPID": True}, "hostPID"),
        ({}, {"hostAliases": [{"ip": "1.2.3.4", "hostnames": ["x"]}]}, "hostAliases"),
    ],
)
async def test_what_this_mode_lacks_is_waited_with(
    shared: Rig, fields: dict[str, Any], spec: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(NotYet, match=complaint) as caught:
        await shared.start(pod(container("true", **fields), **spec))
    assert caught.value.reason == "NotSupportedHere"
