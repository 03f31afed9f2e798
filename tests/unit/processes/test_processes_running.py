"""Containers as processes, in both modes: how they start, end and are ended."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable

import pytest

from posse.local.node.processes.attempts import LOST
from posse.local.node.processes.shim import files
from posse.local.node.runtime import LogRequest, NotYet
from tests.unit.processes.rig import Rig, container, pod, shell

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ("exit 0", 0, "Completed"),
        ("exit 3", 3, "Error"),
        ("kill -TERM $$$$", 143, "Error"),
        ("kill -KILL $$$$", 137, "Error"),
        ("kill -SEGV $$$$", 139, "Error"),
    ],
)
async def test_an_end_is_reported_as_it_was(rig: Rig, script: str, code: int, reason: str) -> None:
    how, _ = await rig.run(pod(shell(script)))
    assert (how.code, how.reason) == (code, reason)


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("no-such-program", 'exec: "no-such-program": executable file not found in $PATH'),
        ("/no/such/file", 'exec: "/no/such/file": stat /no/such/file: no such file or directory'),
        ("/etc/passwd", 'exec: "/etc/passwd": permission denied'),
    ],
)
async def test_what_cannot_be_executed_is_a_start_error(
    rig: Rig, command: str, complaint: str
) -> None:
    how, _ = await rig.run(pod(container(command)))
    assert (how.code, how.reason, how.message) == (128, "StartError", complaint)


async def test_no_shell_reads_a_command(rig: Rig) -> None:
    _, text = await rig.run(pod(container("printf", "%s|", "$HOME", "`id`", "a b", "*", "")))
    assert text == "$HOME|`id`|a b|*||"


async def test_the_environment_holds_nothing_of_the_agents(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "mine")
    monkeypatch.setenv("POSSE_HOME", "mine")
    _, text = await rig.run(pod(container("env")))
    names = {line.partition("=")[0] for line in text.splitlines()}
    assert names - {"TMPDIR"} == {
        "PATH", "HOME", "HOSTNAME", "LANG", "POSSE_CONTAINER", "KUBERNETES_SERVICE_HOST",
        "KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS",
    }  # fmt: skip


async def test_a_container_has_no_descriptors_but_its_three(rig: Rig) -> None:
    _, text = await rig.run(pod(shell("ls /dev/fd/ | sort -n | tr '\\n' ' '")))
    # 3 is the directory that ls itself reads.
    assert text.split() in (["0", "1", "2"], ["0", "1", "2", "3"])


async def test_umask_and_signals_are_the_usual_ones(rig: Rig) -> None:
    _, text = await rig.run(pod(shell("umask; grep -E 'SigIgn|SigBlk' /proc/self/status")))
    lines = text.split()
    assert lines[0] == "0022"
    # Signals 32 and 33 are the C library's own: nobody but it can set them.
    usual = ~(0b11 << 31)
    assert [int(mask, 16) & usual for mask in lines[2::2]] == [0, 0]


async def test_output_says_when_and_where(rig: Rig) -> None:
    one = pod(shell("echo out; echo err >&2"))
    await rig.run(one)
    rows = [line.split(" ", 3) for line in rig.attempt(one).log.read_text().splitlines()]
    assert sorted((row[1], row[2], row[3]) for row in rows) == [
        ("stderr", "F", "err"),
        ("stdout", "F", "out"),
    ]
    assert all(len(row[0]) == len("2026-01-01T00:00:00.000000000Z") for row in rows)


async def test_a_line_of_ten_megabytes_and_binary_come_back_whole(rig: Rig) -> None:
    script = "head -c 10000000 /dev/zero | tr '\\0' x; echo; printf '\\000\\377\\n'"
    one = pod(shell(script))
    how, _ = await rig.run(one)
    assert how.code == 0
    data = b"".join([c async for c in rig.runtime.logs(one, "main", LogRequest())])
    assert data == b"x" * 10_000_000 + b"\n\x00\xff\n"


DAEMON = "(setsid sh -c 'setsid sleep 7777 >/dev/null 2>&1 &') ; (sleep 7777 &) ; echo up; "


async def test_when_the_command_ends_what_it_left_behind_ends_too(rig: Rig) -> None:
    one = pod(shell(DAEMON + "exit 5"))
    how, _ = await rig.run(one)
    assert how.code == 5
    assert rig.processes(one) == []


async def test_stopping_ends_the_whole_tree(rig: Rig) -> None:
    one = pod(shell(DAEMON + "sleep 7777"))
    await rig.start(one)
    await rig.printed(one, "up")
    assert len(rig.processes(one)) >= 3
    await rig.runtime.stop(one["metadata"]["uid"], 10.0)
    assert (await rig.over(one)).code == 143
    assert rig.processes(one) == []


async def test_a_container_may_end_itself_within_its_grace(rig: Rig) -> None:
    one = pod(shell("trap 'echo bye; exit 9' TERM; echo up; while :; do sleep 0.05; done"))
    await rig.start(one)
    await rig.printed(one, "up")
    await rig.runtime.stop(one["metadata"]["uid"], 30.0)
    assert (await rig.over(one)).code == 9
    assert "bye" in await rig.output(one)


async def test_who_ignores_the_signal_is_killed_after_its_grace(rig: Rig) -> None:
    one = pod(shell("trap '' TERM; echo up; while :; do sleep 0.05; done"))
    await rig.start(one)
    await rig.printed(one, "up")
    began = time.monotonic()
    await rig.runtime.stop(one["metadata"]["uid"], 1.0)
    assert (await rig.over(one)).code == 137
    assert time.monotonic() - began >= 1.0
    assert rig.processes(one) == []


async def test_a_pre_stop_hook_runs_before_the_signal(rig: Rig) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo hook > $HOME/hook"]}}}
    script = "trap 'cat $HOME/hook; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    one = pod(shell(script, lifecycle=hook))
    await rig.start(one)
    await rig.printed(one, "up")
    await rig.runtime.stop(one["metadata"]["uid"], 30.0)
    await rig.over(one)
    assert "hook" in await rig.output(one)


async def test_a_post_start_hook_that_fails_ends_the_container(rig: Rig) -> None:
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "exit 3"]}}}
    how, _ = await rig.run(pod(container("sleep", "7777", lifecycle=hook)))
    assert (how.code, how.reason) == (137, "PostStartHookError")


async def test_sidecars_end_after_the_others(rig: Rig) -> None:
    loop = "TERM; echo up; while :; do sleep 0.05; done"
    late = "trap 'test -e ${TMPDIR:-/tmp}/first && echo after; exit 0' " + loop
    first = "trap 'sleep 0.3; touch ${TMPDIR:-/tmp}/first; exit 0' " + loop
    one = pod(shell(first), initContainers=[shell(late, name="side", restartPolicy="Always")])
    await rig.start(one, "side")
    await rig.start(one)
    await rig.printed(one, "up", "side")
    await rig.printed(one, "up")
    await rig.runtime.stop(one["metadata"]["uid"], 20.0)
    assert "after" in await rig.output(one, "side")


async def test_containers_of_a_pod_share_its_volumes_and_tmp(rig: Rig) -> None:
    where = "${TMPDIR:-/tmp}"
    one = pod(
        shell(f"cat /data/f {where}/t", volumeMounts=[{"name": "d", "mountPath": "/data"}]),
        initContainers=[
            shell(
                f"echo volume > /data/f; echo tmp > {where}/t",
                name="init",
                volumeMounts=[{"name": "d", "mountPath": "/data"}],
            )
        ],
        volumes=[{"name": "d", "emptyDir": {}}],
    )
    await rig.start(one, "init")
    assert (await rig.over(one, "init")).code == 0
    _, text = await rig.run(one)
    assert text == "volume\ntmp\n"


async def test_each_attempt_has_a_root_of_its_own_and_the_last_two_keep_their_output(
    rig: Rig,
) -> None:
    one = pod(shell('cd "$HOME"; ls; touch mark; echo attempt'))
    for number in range(4):
        await rig.start(one, attempt=number)
        await rig.over(one, attempt=number)
    kept = [at.number for at in rig.place(one).attempts("main")]
    assert kept == [2, 3]
    assert rig.attempt(one, number=3).log.read_text().count("mark") == 0


async def test_without_a_command_a_container_waits_and_says_why(rig: Rig) -> None:
    with pytest.raises(NotYet, match=r'entrypoint of image "image" is unknown here.*`command`'):
        await rig.start(pod({"name": "main", "image": "image"}))


async def test_the_working_directory_is_made_where_it_is_missing(rig: Rig) -> None:
    one = pod(shell("pwd; touch here && ls", workingDir="/no/such/place"))
    how, text = await rig.run(one)
    assert how.code == 0
    assert text.splitlines()[0].endswith("/no/such/place")
    assert text.splitlines()[1] == "here"


async def test_who_needs_more_memory_than_it_may_is_killed(rig: Rig) -> None:
    script = "import time; x = bytearray(200 << 20); time.sleep(7777)"
    limits = {"limits": {"memory": "100Mi"}}
    how, _ = await rig.run(pod(container("python3", "-c", script, resources=limits)))
    assert (how.code, how.reason) == (137, "OOMKilled")


async def test_last_words_are_told(rig: Rig) -> None:
    one = pod(shell("printf farewell > /dev/termination-log; exit 1"))
    assert (await rig.run(one))[0].message == "farewell"
    loud = pod(
        shell("echo first; echo last; exit 1", terminationMessagePolicy="FallbackToLogsOnError")
    )
    assert (await rig.run(loud))[0].message == "first\nlast\n"


# What a crash leaves.


async def test_a_restarted_agent_goes_on_with_what_runs(rig: Rig) -> None:
    one = pod(shell("echo up; while [ ! -e ${TMPDIR:-/tmp}/go ]; do sleep 0.05; done; exit 7"))
    await rig.start(one)
    await rig.printed(one, "up")
    shim = (files.read_json(str(rig.attempt(one).state)) or {})["shim"]
    await rig.restart()
    await rig.runtime.adopt(one, "main", 0, time.time())
    assert (files.read_json(str(rig.attempt(one).state)) or {})["shim"] == shim
    (rig.place(one).tmp / "go").touch()
    assert (await rig.over(one)).code == 7


async def test_an_end_that_no_agent_saw_is_not_lost(rig: Rig) -> None:
    one = pod(shell("echo up; exit 6"))
    await rig.start(one)
    await rig.crash()
    at = rig.attempt(one)
    await _until(lambda: not at.alive())
    rig.exits.clear()
    await rig.restart()
    await rig.runtime.adopt(one, "main", 0, time.time())
    how = await rig.over(one)
    assert how.code == 6
    assert how.finished_at is not None


async def test_starting_again_what_an_earlier_agent_started_starts_nothing_twice(rig: Rig) -> None:
    one = pod(shell("echo up; sleep 7777"))
    await rig.start(one)
    await rig.printed(one, "up")
    await rig.restart()
    await rig.start(one)
    assert (await rig.output(one)).count("up") == 1


async def test_when_its_shim_is_killed_a_container_is_over_and_gone(rig: Rig) -> None:
    one = pod(shell(DAEMON + "sleep 7777"))
    await rig.start(one)
    await rig.printed(one, "up")
    os.kill((files.read_json(str(rig.attempt(one).state)) or {})["shim"], signal.SIGKILL)
    assert await rig.over(one) == LOST
    assert rig.processes(one) == []


async def test_when_its_first_process_is_killed_nothing_of_a_container_is_left(rig: Rig) -> None:
    one = pod(shell(DAEMON + "sleep 7777"))
    await rig.start(one)
    await rig.printed(one, "up")
    os.kill((files.read_json(str(rig.attempt(one).state)) or {})["warden"], signal.SIGKILL)
    assert (await rig.over(one)).code == 137
    assert rig.processes(one) == []


async def test_shim_and_first_process_killed_at_once_leave_nothing(rig: Rig) -> None:
    one = pod(shell(DAEMON + "sleep 7777"))
    await rig.start(one)
    await rig.printed(one, "up")
    state = files.read_json(str(rig.attempt(one).state)) or {}
    os.kill(state["warden"], signal.SIGSTOP)
    os.kill(state["shim"], signal.SIGKILL)
    os.kill(state["warden"], signal.SIGKILL)
    assert await rig.over(one) == LOST
    assert rig.processes(one) == []


async def test_what_nobody_watches_over_ends_by_itself(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("posse.local.node.processes.preparing.ORPHAN_AFTER", 1.0)
    one = pod(shell(DAEMON + "sleep 7777"))
    await rig.start(one)
    await rig.printed(one, "up")
    await rig.crash()
    rig.stop_watching()
    at = rig.attempt(one)
    await _until(lambda: not at.alive())
    assert rig.processes(one) == []
    said = files.read_json(str(at.exit)) or {}
    assert (said["code"], said["reason"]) == (143, "NodeLost")


async def test_a_pod_that_is_gone_is_ended_and_removed(rig: Rig) -> None:
    one = pod(shell(DAEMON + "mkdir -p $HOME/locked/x; chmod 0 $HOME/locked; sleep 7777"))
    await rig.start(one)
    await rig.printed(one, "up")
    path = rig.place(one).path
    rig.pods.clear()
    await rig.restart()
    await rig.until(lambda: not path.exists(), "its directory is gone")
    trash = rig.home / "pods" / ".removed"
    await rig.until(lambda: not any(trash.iterdir()), "what it left is gone")
    assert rig.processes(one) == []


async def test_a_pod_forgotten_in_the_middle_of_its_grace_ends_at_once(rig: Rig) -> None:
    one = pod(shell("trap '' TERM; echo up; while :; do sleep 0.05; done"))
    await rig.start(one)
    await rig.printed(one, "up")
    uid = one["metadata"]["uid"]
    stopping = asyncio.create_task(rig.runtime.stop(uid, 600.0))
    await asyncio.sleep(0)
    rig.runtime.forget(uid)
    rig.pods.clear()
    async with asyncio.timeout(30):
        await stopping


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
