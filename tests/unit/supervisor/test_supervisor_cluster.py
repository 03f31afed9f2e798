"""A whole cluster as processes: up, a kill -9, down."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.kube.errors import KubeError
from posse.local.supervisor.connecting import connect
from posse.local.supervisor.errors import ClusterError
from posse.local.supervisor.home import Home
from posse.local.supervisor.options import Options
from posse.local.supervisor.overseer import SERVICES
from posse.local.supervisor.reporting import Report, status
from posse.local.supervisor.starting import Started, foreground, up
from posse.local.supervisor.states import Address
from posse.local.supervisor.stopping import Stopped, down
from posse.objects.kinds import CONFIG_MAP, POD
from posse.world import World

pytestmark = pytest.mark.process

WORLD = World.real()
OPTIONS = Options(simulate=2, gpus=2)
BEFORE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "mine",
    "contexts": [{"name": "mine", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://example.invalid"}}],
    "users": [{"name": "u", "user": {}}],
}


class Cluster:
    """A home of its own and a kubeconfig of its own; nothing of the user's is opened."""

    def __init__(self, directory: Path) -> None:
        self.home = Home(directory / "home")
        self.kubeconfig = directory / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(BEFORE))
        self.kubeconfig.chmod(0o640)

    def up(self, options: Options = OPTIONS) -> Started:
        return asyncio.run(up(self.home, options, WORLD, kubeconfig=self.kubeconfig))

    def down(self, *, purge: bool = False) -> Stopped:
        return asyncio.run(down(self.home, purge=purge))

    def status(self) -> Report:
        return asyncio.run(status(self.home, WORLD))

    def pid(self, service: str) -> int:
        return next(s.pid for s in self.status().services if s.name == service)

    def ask(self, what: Callable[[Any], Awaitable[Any]]) -> Any:
        """Talk to the API server as its user; an unreachable one is asked again for a while."""

        async def asking() -> Any:
            address = self.home.load(self.home.address, Address)
            assert address is not None
            connection = connect(self.home, address, "admin", WORLD)
            try:
                async with asyncio.timeout(30):
                    while True:
                        try:
                            if (answer := await what(connection)) is not None:
                                return answer
                        except KubeError:
                            if self.status_is_down():
                                raise
                        await asyncio.sleep(0.05)
            finally:
                await connection.close()

        return asyncio.run(asking())

    def status_is_down(self) -> bool:
        return not self.home.held("supervisor")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    made.up()
    yield made
    made.down(purge=True)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.down(purge=True)


def alive(pid: int) -> bool:
    """Some process of ours has that pid and is not merely waiting to be reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_everything_runs_when_up_returns(cluster: Cluster) -> None:
    report = cluster.status()
    assert report.ready
    assert (report.nodes, report.nodes_ready) == (2, 2)
    assert [service.name for service in report.services] == list(SERVICES)
    assert all(service.pid for service in report.services)


def test_nobody_else_can_read_what_it_keeps(cluster: Cluster) -> None:
    for path in sorted(cluster.home.path.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0, f"{path} has mode {mode:o}"


def test_no_secret_is_on_a_command_line(cluster: Cluster) -> None:
    tokens = [path.read_text() for path in sorted((cluster.home.path / "tokens").iterdir())]
    for service in cluster.status().services:
        command = Path(f"/proc/{service.pid}/cmdline").read_text()
        environment = Path(f"/proc/{service.pid}/environ").read_text()
        assert not any(token in command + environment for token in tokens)


def test_the_context_is_selected_and_the_rest_of_the_kubeconfig_kept(cluster: Cluster) -> None:
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    assert document["current-context"] == "posse"
    assert [context["name"] for context in document["contexts"]] == ["mine", "posse"]
    assert stat.S_IMODE(cluster.kubeconfig.stat().st_mode) == 0o640


def test_up_again_finds_it_running(cluster: Cluster) -> None:
    before = cluster.status().pid
    started = cluster.up()
    assert started.already
    assert started.pid == before


def test_up_with_other_options_names_the_difference(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="--gpus 2, not 8"):
        cluster.up(Options(simulate=2, gpus=8))


def test_a_pod_runs_and_its_log_comes_through_the_api_server(cluster: Cluster) -> None:
    spec = {"containers": [{"name": "main", "image": "i"}]}

    async def running(connection: Any) -> Any:
        pod = await connection.get(POD, "logged", "default")
        return True if pod["status"]["phase"] == "Running" else None

    async def log(connection: Any) -> Any:
        return b"".join([chunk async for chunk in connection.logs("logged", "default")])

    body = {"metadata": {"name": "logged", "namespace": "default"}, "spec": spec}
    cluster.ask(lambda connection: connection.create(POD, body))
    cluster.ask(running)
    assert cluster.ask(log) == b"simulated: this container runs nothing\n"


@pytest.mark.parametrize("service", SERVICES)
def test_a_killed_service_is_back_and_nothing_acknowledged_is_lost(
    cluster: Cluster, service: str
) -> None:
    name = f"kept-{service}"
    body = {"metadata": {"name": name, "namespace": "default"}, "data": {"a": "b"}}
    cluster.ask(lambda connection: connection.create(CONFIG_MAP, body))
    killed = cluster.pid(service)
    os.kill(killed, signal.SIGKILL)
    found = cluster.ask(lambda connection: connection.get(CONFIG_MAP, name, "default"))
    assert found["data"] == {"a": "b"}

    async def back() -> None:
        async with asyncio.timeout(30):
            while True:
                report = await status(cluster.home, WORLD)
                entry = next(s for s in report.services if s.name == service)
                if report.ready and entry.pid not in (0, killed):
                    return
                await asyncio.sleep(0.05)

    asyncio.run(back())


def test_no_service_outlives_a_killed_supervisor_and_up_starts_afresh(fresh: Cluster) -> None:
    fresh.up()
    report = fresh.status()
    os.kill(report.pid, signal.SIGKILL)

    async def ended() -> None:
        async with asyncio.timeout(20):
            while any(alive(s.pid) for s in report.services):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            # Its services die with the thread that started them; its lock goes with the last one.
            while (await status(fresh.home, WORLD)).running:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    asyncio.run(ended())
    assert not fresh.up().already
    assert fresh.status().ready


def test_down_leaves_no_process_and_puts_the_context_back(fresh: Cluster) -> None:
    fresh.up()
    report = fresh.status()
    assert fresh.down().was_running
    assert not any(alive(pid) for pid in (report.pid, *(s.pid for s in report.services)))
    assert yaml.safe_load(fresh.kubeconfig.read_text()) == BEFORE
    assert not fresh.status().running
    assert not fresh.down().was_running


def test_a_cluster_in_the_foreground_ends_with_whoever_runs_it(fresh: Cluster) -> None:
    async def in_front() -> Report:
        ready = asyncio.Event()
        running = asyncio.create_task(
            foreground(
                fresh.home,
                OPTIONS,
                WORLD,
                kubeconfig=fresh.kubeconfig,
                on_ready=lambda _: ready.set(),
            )
        )
        async with asyncio.timeout(60):
            await ready.wait()
        report = await status(fresh.home, WORLD)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return report

    report = asyncio.run(in_front())
    assert report.ready
    assert not any(alive(service.pid) for service in report.services)
    assert yaml.safe_load(fresh.kubeconfig.read_text()) == BEFORE


def test_two_ups_at_once_make_one_cluster(fresh: Cluster) -> None:
    async def both() -> list[Started]:
        return await asyncio.gather(
            *(up(fresh.home, OPTIONS, WORLD, kubeconfig=fresh.kubeconfig) for _ in range(2))
        )

    first, second = asyncio.run(both())
    assert sorted([first.already, second.already]) == [False, True]
    assert first.pid == second.pid


def test_a_taken_port_is_said_before_anything_starts(fresh: Cluster) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=f"port {port} is taken"):
            fresh.up(Options(simulate=1, port=port))
    assert not fresh.status().running


def test_a_cluster_that_can_never_start_says_why_at_once(fresh: Cluster) -> None:
    fresh.home.prepare()
    garbage = b"this is no database" * 100
    fresh.home.store.write_bytes(garbage)
    with pytest.raises(ClusterError, match=r"store\.db cannot be read: file is not a database"):
        fresh.up()
    assert not fresh.status().running
    assert fresh.home.store.read_bytes() == garbage


def test_purge_deletes_what_the_cluster_kept_and_not_the_users_configuration(
    fresh: Cluster,
) -> None:
    fresh.up()
    (fresh.home.path / "config").write_text("namespace=default\n")
    fresh.down(purge=True)
    assert [path.name for path in fresh.home.path.iterdir()] == ["config"]
