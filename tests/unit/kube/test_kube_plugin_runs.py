"""When a plugin is run and for whom, on virtual time; and how, with real processes."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from posse.kube import plugin_runs
from posse.kube.errors import SignInFailed
from posse.kube.plugin_runs import PluginSignIn, run_plugin
from posse.kube.plugins import GROUP, Plugin, Terminal
from posse.objects.times import rfc3339
from posse.virtual.world import virtual_world

V1 = f"{GROUP}/v1"
PLUGIN = Plugin(user="jane", command="get-token")


def answer(token: str, expires: float = math.inf) -> bytes:
    status: dict[str, Any] = {"token": token}
    if expires < math.inf:
        status["expirationTimestamp"] = rfc3339(expires)
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status}).encode()


class Runs:
    """A plugin that counts its runs, takes a while, and gives what `gives` says."""

    def __init__(self, gives: Callable[[int], bytes] | None = None, takes: float = 0.0) -> None:
        self.world = virtual_world()
        self.count = 0
        self.takes = takes
        self.gives = gives or (lambda count: answer(f"t{count}"))
        self.sign_in = PluginSignIn(PLUGIN, self.world, self.run)

    async def run(self, plugin: Plugin) -> bytes:
        self.count += 1
        count = self.count
        await asyncio.sleep(self.takes)
        return self.gives(count)

    async def token(self) -> str:
        return (await self.sign_in.current()).authorization.removeprefix("Bearer ")


def failing(count: int) -> bytes:
    raise ValueError("it ended with exit code 1")


@pytest.mark.looptime
class TestWhen:
    async def test_what_never_expires_is_asked_for_once(self) -> None:
        runs = Runs()
        assert await runs.token() == "t1"
        await asyncio.sleep(10**6)
        assert await runs.token() == "t1"

    async def test_what_expires_is_asked_for_again_a_minute_before(self) -> None:
        runs = Runs()
        runs.gives = lambda count: answer(f"t{count}", runs.world.now() + 3600)
        assert await runs.token() == "t1"
        await asyncio.sleep(3530)
        assert await runs.token() == "t1"
        await asyncio.sleep(20)
        assert await runs.token() == "t2"

    async def test_what_is_short_lived_is_still_used_for_most_of_its_life(self) -> None:
        runs = Runs()
        runs.gives = lambda count: answer(f"t{count}", runs.world.now() + 30)
        assert await runs.token() == "t1"
        await asyncio.sleep(25)
        assert await runs.token() == "t1"
        await asyncio.sleep(4)
        assert await runs.token() == "t2"

    async def test_a_plugin_that_gives_the_same_until_its_end_is_not_run_for_every_request(
        self,
    ) -> None:
        runs = Runs()
        end = math.floor(runs.world.now()) + 3600
        runs.gives = lambda count: answer("same", end)
        await runs.token()
        await asyncio.sleep(3530)
        for _ in range(60):
            assert await runs.token() == "same"
            await asyncio.sleep(1)
        assert runs.count <= 4

    async def test_what_had_expired_when_it_came_is_used_once(self) -> None:
        runs = Runs()
        runs.gives = lambda count: answer(f"t{count}", runs.world.now() - 10)
        assert [await runs.token(), await runs.token()] == ["t1", "t2"]

    async def test_all_who_wait_share_one_run(self) -> None:
        runs = Runs(takes=5)
        assert await asyncio.gather(*(runs.token() for _ in range(20))) == ["t1"] * 20
        assert runs.count == 1

    async def test_all_who_wait_share_one_failure_and_the_next_tries_again(self) -> None:
        runs = Runs(failing, takes=5)
        found = await asyncio.gather(*(runs.token() for _ in range(20)), return_exceptions=True)
        assert {str(error) for error in found} == {
            "user 'jane' signs in with 'get-token', but it ended with exit code 1"
        }
        assert runs.count == 1
        runs.gives = lambda count: answer("good")
        assert await runs.token() == "good"

    async def test_a_run_outlives_whoever_asked_for_it_first(self) -> None:
        runs = Runs(takes=5)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(runs.token(), 1)
        assert await runs.token() == "t1"
        assert runs.count == 1

    async def test_a_failure_before_the_end_is_a_warning(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        runs = Runs()
        end = runs.world.now() + 3600
        runs.gives = lambda count: answer("first", end)
        await runs.token()
        runs.gives = failing
        await asyncio.sleep(3560)
        with caplog.at_level(logging.WARNING):
            assert [await runs.token(), await runs.token()] == ["first", "first"]
        assert len(caplog.records) == 1
        assert runs.count == 2
        await asyncio.sleep(41)
        with pytest.raises(SignInFailed):
            await runs.token()

    async def test_what_was_refused_is_asked_for_again_once_for_all(self) -> None:
        runs = Runs(takes=5)
        refused = await runs.sign_in.current()
        found = await asyncio.gather(*(runs.sign_in.renewed(refused) for _ in range(20)))
        assert {item.authorization if item else None for item in found} == {"Bearer t2"}
        late = await runs.sign_in.renewed(refused)
        assert late is not None
        assert late.authorization == "Bearer t2"
        assert runs.count == 2

    async def test_the_same_again_is_nothing_else_to_try(self) -> None:
        runs = Runs(lambda count: answer("same"), takes=5)
        refused = await runs.sign_in.current()
        found = await asyncio.gather(*(runs.sign_in.renewed(refused) for _ in range(20)))
        assert found == [None] * 20
        assert await runs.sign_in.renewed(refused) is None  # one whose 401 came late
        assert runs.count == 2

    async def test_closing_ends_a_run_under_way(self) -> None:
        runs = Runs(takes=10**6)
        waiting = asyncio.create_task(runs.token())
        await asyncio.sleep(1)
        await runs.sign_in.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    async def test_a_token_that_cannot_be_sent_is_not_shown(self) -> None:
        runs = Runs(lambda count: answer("hush\r\nhush"))
        with pytest.raises(SignInFailed, match="no token has") as caught:
            await runs.token()
        assert "hush" not in str(caught.value)


def script(folder: Path, text: str) -> str:
    file = folder / "get-token"
    file.write_text(f"#!{sys.executable} -IS\nimport json, os, signal, sys, time\n{text}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file)


def plugin(folder: Path, text: str, **fields: Any) -> Plugin:
    return Plugin(user="jane", command=script(folder, text), **fields)


async def test_the_program_gets_its_arguments_environment_and_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "ours")
    monkeypatch.setenv("BOTH", "ours")
    written = plugin(
        tmp_path,
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "print(json.dumps([sys.argv[1:], os.environ['OURS'], os.environ['BOTH'],"
        " info, sys.stdin.read()]))",
        args=("a b", "$HOME;`id`"),
        env=(("BOTH", "its"),),
        cluster=b'{"server":"https://east"}',
    )
    assert json.loads(await run_plugin(written)) == [
        ["a b", "$HOME;`id`"],
        "ours",
        "its",
        {
            "apiVersion": V1,
            "kind": "ExecCredential",
            "spec": {"cluster": {"server": "https://east"}, "interactive": False},
        },
        "",
    ]


async def test_a_bare_name_is_looked_for_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path, "print('found')")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert await run_plugin(PLUGIN) == b"found\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("print('hush'); sys.exit(3)", "exit code 3"),
        ("print('hush', file=sys.stderr); os.kill(os.getpid(), signal.SIGTERM)", "by signal 15"),
        ("sys.stdout.write('hush' * 10**6)", "far more"),
        ("while True: print('hush' * 1000)", "far more"),
    ],
)
async def test_a_program_that_fails_is_described_and_not_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        await run_plugin(plugin(tmp_path, text))
    assert "hush" not in str(caught.value)
    assert "hush" not in "".join(capfd.readouterr())


async def test_a_program_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_runs, "_PATIENCE", 3.0)
    text = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        f"if child: open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child}}')\n"
        "time.sleep(600)"
    )
    with pytest.raises(ValueError, match="within 3 s"):
        await run_plugin(plugin(tmp_path, text))
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        async with asyncio.timeout(10):
            while _alive(pid):  # noqa: ASYNC110 - what init reaps, it does not tell us
                await asyncio.sleep(0.01)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


async def test_giving_up_ends_the_program(tmp_path: Path) -> None:
    running = asyncio.create_task(
        run_plugin(plugin(tmp_path, f"open({str(tmp_path / 'on')!r}, 'w'); time.sleep(600)"))
    )
    async with asyncio.timeout(10):
        while not (tmp_path / "on").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 10)


async def test_a_program_that_is_not_there_comes_with_the_hint() -> None:
    missing = Plugin(user="jane", command="/nonexistent/get", install_hint="get it from there")
    with pytest.raises(SignInFailed) as caught:
        await PluginSignIn(missing, virtual_world()).current()
    assert str(caught.value) == (
        "user 'jane' signs in with 'get', but /nonexistent/get is not installed: get it from there"
    )


@pytest.mark.parametrize(
    ("mode", "content", "words"),
    [
        (0o600, f"#!{sys.executable}\n", "Permission denied"),
        (0o700, "no program", "Exec format error"),
    ],
)
async def test_a_file_that_is_no_program(
    tmp_path: Path, mode: int, content: str, words: str
) -> None:
    (tmp_path / "get-token").write_text(content)
    (tmp_path / "get-token").chmod(mode)
    with pytest.raises(ValueError, match=f"cannot be run: {words}"):
        await run_plugin(Plugin(user="jane", command=str(tmp_path / "get-token")))


async def test_what_cannot_be_an_argument_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be run"):
        await run_plugin(plugin(tmp_path, "", args=("a\0b",)))


class TestTerminal:
    """Whether file descriptor 0 is a terminal decides what a plugin may do with a person."""

    @pytest.fixture
    def terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "isatty", lambda fd: fd == 0)

    text = "print(json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']['interactive'])"

    async def test_one_that_needs_it_is_not_run_without(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="needs a terminal"):
            await run_plugin(plugin(tmp_path, self.text, terminal=Terminal.ALWAYS))

    @pytest.mark.usefixtures("terminal")
    @pytest.mark.parametrize(
        ("mode", "interactive"),
        [(Terminal.NEVER, b"False\n"), (Terminal.IF_AVAILABLE, b"True\n"),
         (Terminal.ALWAYS, b"True\n")],
    )  # fmt: skip
    async def test_one_that_may_use_it_is_told(
        self, tmp_path: Path, mode: Terminal, interactive: bytes
    ) -> None:
        assert await run_plugin(plugin(tmp_path, self.text, terminal=mode)) == interactive

    @pytest.mark.usefixtures("terminal")
    async def test_its_questions_reach_the_person(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        await run_plugin(plugin(tmp_path, "print('open this page', file=sys.stderr)"))
        assert capfd.readouterr().err == "open this page\n"

    @pytest.mark.usefixtures("terminal")
    async def test_one_that_hangs_is_ended_there_too(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(plugin_runs, "_PATIENCE_WITH_PEOPLE", 0.5)
        with pytest.raises(ValueError, match="did not end"):
            await run_plugin(plugin(tmp_path, "time.sleep(600)"))


def test_the_fast_event_loop_runs_and_ends_plugins_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_runs, "_PATIENCE", 1.0)

    async def both() -> bytes:
        with pytest.raises(ValueError, match="did not end"):
            await run_plugin(plugin(tmp_path, "time.sleep(600)"))
        return await run_plugin(plugin(tmp_path, "print('x')"))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(both()) == b"x\n"
