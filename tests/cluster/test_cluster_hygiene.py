"""`up` and `down` in a world where files break, ports are taken and people press Ctrl-C."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from posse.client.posse_client import PosseClient
from posse.local.apiserver.journal import SqliteJournal
from posse.local.supervisor.home import Home
from tests.cluster.processes import Commands, eventually

pytestmark = pytest.mark.process

UP = "posse up --simulate 1"
THEIRS: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "posse",
    "contexts": [{"name": "posse", "context": {"cluster": "posse", "user": "posse"}}],
    "clusters": [{"name": "posse", "cluster": {"server": "https://prod.example"}}],
    "users": [{"name": "posse", "user": {"token": "precious"}}],
}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Commands]:
    """A home of its own; no process of it is left afterwards."""
    made = Commands(tmp_path)
    yield made
    made.run("posse down --purge")
    assert made.processes() == []


def start(commands: Commands, line: str) -> subprocess.Popen[str]:
    _, *words = line.split()
    return subprocess.Popen(
        [commands.program("posse"), *words],
        env=commands.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def refused(commands: Commands, line: str, code: int = 1) -> str:
    """The one line with which a command is refused; nothing runs afterwards."""
    done = commands.run(line, exits=code)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert commands.processes() == []
    return done.stderr


# Several at once, or one that does not come to its end.


def test_ups_and_a_down_at_once_leave_one_cluster_or_none(fresh: Commands) -> None:
    commands = [start(fresh, UP), start(fresh, UP)]
    eventually(lambda: Home(fresh.home).held("command"), "one of them has begun")
    commands.append(start(fresh, "posse down"))
    for each in commands:
        _, words = each.communicate(timeout=120)
        assert each.returncode == 0, words
    running = fresh.run("posse status", exits=None).returncode == 0
    assert bool(fresh.processes()) is running
    supervisors = [pid for pid in fresh.processes() if "supervise" in psutil.Process(pid).cmdline()]
    assert len(supervisors) == (1 if running else 0)


def test_an_interrupted_up_leaves_nothing(fresh: Commands) -> None:
    starting = start(fresh, UP)
    eventually(lambda: bool(fresh.services()), "the first service runs")
    starting.send_signal(signal.SIGINT)
    said, words = starting.communicate(timeout=60)
    assert (starting.returncode, said, words.strip()) == (130, "", "")
    assert fresh.processes() == []
    assert not fresh.kubeconfig.exists()


def test_a_cluster_ends_with_its_home(fresh: Commands) -> None:
    fresh.run(UP)
    shutil.rmtree(fresh.home)
    eventually(lambda: fresh.processes() == [], "no process of the cluster is left", 30)


# Files that are not as they should be.


def test_what_is_damaged_is_made_anew_and_no_job_is_lost(fresh: Commands) -> None:
    fresh.run(UP)
    fresh.run("posse submit mpi --name=kept --workers=1 --image=i c")
    fresh.run("posse down")
    home = Home(fresh.home)
    home.options.write_bytes(b"garbage")
    home.contexts.write_bytes(b"\xff\xfe")
    home.identity.write_bytes(b"")
    home.token("scheduler").write_bytes(b"")
    home.token("admin").unlink()
    home.key("node").unlink()
    home.certificate("apiserver").write_bytes(b"garbage")
    (home.path / "state.json").write_text('{"pid": 1}')
    fresh.run(UP)
    assert list(fresh.jobs()) == ["kept"]
    # While it runs, its supervisor mends what others read.
    for path in (home.state, home.options, home.address):
        path.write_bytes(b"garbage")
    eventually(lambda: bool(fresh.services()), "the state is told again", 10)
    assert "is already running" in fresh.run(UP).stderr
    assert "it runs with --gpus 0, not 3" in fresh.run(f"{UP} --gpus 3", exits=1).stderr


def _truncated(store: Path) -> None:
    SqliteJournal(store).close()
    store.write_bytes(store.read_bytes()[:5000])


def _garbage(store: Path) -> None:
    store.write_bytes(b"garbage" * 1000)


def _newer(store: Path) -> None:
    SqliteJournal(store).close()
    with sqlite3.connect(store) as database:
        database.execute("PRAGMA user_version = 9")
    database.close()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_truncated, "store.db cannot be read: database disk image is malformed"),
        (_garbage, "store.db cannot be read: file is not a database"),
        (_newer, "has format 9, and this version of Posse reads format 1"),
    ],
)
def test_a_store_that_cannot_be_read_is_left_as_it_is(
    fresh: Commands, damage: Callable[[Path], None], words: str
) -> None:
    home = Home(fresh.home)
    home.prepare()
    damage(home.store)
    before = home.store.read_bytes()
    assert words in refused(fresh, UP)
    assert home.store.read_bytes() == before


def test_another_version_of_the_program_is_named(commands: Commands) -> None:
    home = Home(commands.home)
    options = home.options.read_bytes()
    home.options.write_bytes(json.dumps({**json.loads(options), "version": "0.0.1"}).encode())
    try:
        words = commands.run("posse up --simulate 4 --gpus 2", exits=1).stderr
    finally:
        home.options.write_bytes(options)
    assert "it runs version 0.0.1, this is" in words


# Places that cannot be used.


def test_a_home_that_is_no_directory(fresh: Commands) -> None:
    fresh.home.write_text("a file")
    assert f"cannot use {fresh.home}" in refused(fresh, UP)
    assert "No cluster is running" in fresh.run("posse status", exits=1).stdout
    fresh.home.unlink()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_made(fresh: Commands) -> None:
    fresh.directory.chmod(0o500)
    try:
        assert f"cannot use {fresh.home}: Permission denied" in refused(fresh, UP)
    finally:
        fresh.directory.chmod(0o700)


def test_a_port_that_is_taken(fresh: Commands) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"port {port} is taken" in refused(fresh, f"{UP} --port {port}")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a: [", "not valid YAML"),
        (b"[" * 100_000, "not valid YAML"),
    ],
)
def test_a_kubeconfig_that_cannot_be_edited_stops_up_before_it_starts(
    fresh: Commands, content: bytes, words: str
) -> None:
    fresh.kubeconfig.write_bytes(content)
    assert words in refused(fresh, UP, code=5)
    assert fresh.kubeconfig.read_bytes() == content


def test_a_kubeconfig_that_is_a_directory(fresh: Commands) -> None:
    fresh.kubeconfig.mkdir()
    assert "Is a directory" in refused(fresh, UP, code=5)


# What is the user's stays the user's.


def test_down_puts_back_a_context_of_the_same_name_and_keeps_the_configuration(
    fresh: Commands,
) -> None:
    target = fresh.directory / "real-kubeconfig"
    target.write_text(yaml.safe_dump(THEIRS))
    target.chmod(0o400)
    fresh.kubeconfig.symlink_to(target)
    fresh.run(UP)
    written = yaml.safe_load(target.read_text())
    assert written["clusters"][0]["cluster"]["server"].startswith("https://127.0.0.1:")
    fresh.run(UP)
    (fresh.home / "config").write_text("namespace=mine\n")
    fresh.run("posse down --purge")
    assert fresh.kubeconfig.is_symlink()
    assert yaml.safe_load(target.read_text()) == THEIRS
    assert target.stat().st_mode & 0o777 == 0o400
    assert [path.name for path in fresh.home.iterdir()] == ["config"]
    (fresh.home / "config").unlink()


# Who may look.


def _secrets(commands: Commands) -> list[str]:
    return [path.read_text() for path in sorted((commands.home / "tokens").iterdir())]


def test_a_token_is_in_its_file_and_nowhere_else(commands: Commands) -> None:
    secrets = _secrets(commands)
    shown = [
        commands.run(f"posse {line}").stdout
        for line in ("status", "status -o json", "list -o yaml", "top node")
    ]
    with PosseClient(kubeconfig=commands.kubeconfig) as client:
        shown += [repr(happening) for job in client.jobs() for happening in client.events(job.name)]
    for log in sorted((commands.home / "logs").iterdir()):
        shown.append(log.read_text(errors="replace"))
    for pid in commands.processes():
        shown.append(" ".join(psutil.Process(pid).cmdline()))
        shown.append(repr(psutil.Process(pid).environ()))
    for file in sorted(commands.home.glob("*.json")):
        shown.append(file.read_text())
    assert [secret for secret in secrets if any(secret in text for text in shown)] == []


def test_what_is_kept_is_for_its_user_alone(commands: Commands) -> None:
    for path in [commands.home, *sorted(commands.home.rglob("*"))]:
        wanted = 0o700 if path.is_dir() else 0o600
        assert path.stat().st_mode & 0o777 == wanted, path


def test_nobody_listens_but_on_loopback(commands: Commands) -> None:
    listening = [
        connection.laddr.ip
        for pid in commands.processes()
        for connection in psutil.Process(pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert {ip for ip in listening if not ip.startswith("127.") and ip != "::1"} == set()
