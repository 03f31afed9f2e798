"""`status` and its bundle, on a cluster elsewhere and on this machine."""

from __future__ import annotations

import json
import socket
import tarfile
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest
import yaml

from posse.client.bundling import Bundle, gather
from posse.client.overview import look
from posse.objects import kinds
from tests.cluster.backends import Riding
from tests.cluster.processes import Commands, eventually
from tests.cluster.riding import cluster, mpi, training

pytestmark = pytest.mark.looptime

SECRET = "hunter2-hunter2"


async def test_leaders_nodes_and_waiting_gangs_are_seen_through_the_api_alone() -> None:
    async with cluster(4, gpus=2) as running:
        await training(running).submit(mpi("large", workers=5))

        async def told() -> bool:
            return (await waiting(running)).get("large") == "NotEnoughResources"

        await running.until(told, "it is said why the gang waits")
        seen = await look(running.connection, running.namespace)
        assert seen.problems == ()
        assert [(one.service, one.alive) for one in seen.leaders] == [
            ("scheduler", True),
            ("controllers", True),
        ]
        assert (seen.nodes, seen.nodes_ready, seen.gpus, seen.gpus_allocated) == (4, 4, 8, 0)
        assert any("10 GPUs" in gang.sentence for gang in seen.waiting)
        assert all(seen.kinds.values())


async def waiting(running: Riding) -> dict[str, str]:
    seen = await look(running.connection, running.namespace)
    return {gang.name: gang.reason for gang in seen.waiting if gang.namespace == running.namespace}


async def test_a_scheduler_that_is_gone_is_noticed_when_its_lease_has_run_out() -> None:
    async with cluster(1) as running:

        async def leads() -> bool:
            seen = await look(running.connection, running.namespace)
            return any(one.service == "scheduler" and one.alive for one in seen.leaders)

        await running.until(leads, "a scheduler leads")
        await running.stop("scheduler")
        await running.linger(30)
        seen = await look(running.connection, running.namespace)
        assert not seen.ready
        assert seen.problems[0].startswith("no scheduler leads: ")


async def test_a_bundle_has_no_value_of_any_environment_and_no_secret() -> None:
    async with cluster(1, gpus=2) as running:
        await running.connection.create(
            kinds.SECRET,
            {"metadata": {"name": "s"}, "stringData": {"password": SECRET}},
            running.namespace,
        )
        await training(running).submit(mpi("job", workers=1, env={"API_KEY": SECRET}))

        async def created() -> bool:
            listed = await running.connection.list(kinds.POD, running.namespace)
            return any(SECRET in json.dumps(pod) for pod in listed.items)

        await running.until(created, "the pods have it in their environment")
        bundle = Bundle()
        await gather(bundle, running.connection, running.namespace)
        assert {"pods.json", "nodes.json", "queues.json", "events.json"} <= set(bundle.files)
        assert "podgroups.scheduling.volcano.sh.json" in bundle.files
        for name, body in bundle.files.items():
            assert SECRET.encode() not in body, name
        pods = json.loads(bundle.files["pods.json"])["items"]
        names = [v["name"] for v in pods[0]["spec"]["containers"][0]["env"]]
        assert "API_KEY" in names


@pytest.mark.process
def test_the_cluster_of_this_machine_is_bundled_with_its_logs_and_without_its_tokens(
    empty: Commands, tmp_path: Path
) -> None:
    empty.run(f'posse submit mpi --name=job --workers=9 --gpus=2 --image=i --env=K={SECRET} "run"')
    eventually(lambda: len(empty.instances("job")) == 9, "its pods exist")
    file = tmp_path / "bundle.tar.gz"
    empty.run(f"posse status --bundle {file}")
    with tarfile.open(file) as archive:
        bodies = {
            name.removeprefix("posse-bundle/"): opened.read()
            for name in archive.getnames()
            if (opened := archive.extractfile(name)) is not None
        }
    assert {"status.json", "services.json", "pods.json", "logs/scheduler.log"} <= set(bodies)
    tokens = [path.read_bytes().strip() for path in (empty.home / "tokens").iterdir()]
    assert tokens
    for name, body in bodies.items():
        for secret in (SECRET.encode(), *tokens):
            assert secret not in body, name


def _free_ports() -> int:
    """The first of two neighbouring ports that nobody listens on."""
    for _ in range(100):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            return port
    raise AssertionError("no two neighbouring ports are free")


def _page(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.process
def test_services_tell_their_numbers_and_a_policy_in_the_home_freezes_the_scheduler(
    tmp_path: Path,
) -> None:
    commands = Commands(tmp_path)
    port = _free_ports()
    commands.home.mkdir(mode=0o700)
    (commands.home / "policy.yaml").write_text("frozen: true\n")
    try:
        commands.run(f"posse up --simulate 1 --gpus 2 --metrics-port {port}")
        for each in (port, port + 1):
            eventually(partial(_ready, each), "it is ready")
            assert _page(each, "healthz") == "ok\n"
        assert 'posse_leader{lease="posse-controllers"} 1.0' in _page(port + 1, "metrics")
        commands.run('posse submit mpi --name=job --workers=1 --gpus=2 --image=i "run"')
        eventually(lambda: "would start" in _log(commands), "the decision is logged")
        assert "posse_scheduler_frozen 1.0" in _page(port, "metrics")
        assert {i["node"] for i in commands.instances("job")} == {"N/A"}
        (commands.home / "policy.yaml").write_text("frozen: false\n")
        eventually(
            lambda: {i["status"] for i in commands.instances("job")} == {"Running"}, "it runs"
        )
        page = _page(port, "metrics")
        assert "posse_scheduler_frozen 0.0" in page
        assert 'posse_certificate_days_left{certificate="apiserver"}' in page
    finally:
        commands.run("posse down --purge")


def _ready(port: int) -> bool:
    try:
        return _page(port, "readyz") == "ok\n"
    except urllib.error.HTTPError:
        return False


def _log(commands: Commands) -> str:
    return (commands.home / "logs" / "scheduler.log").read_text()


@pytest.mark.process
def test_the_same_cluster_under_another_name_is_seen_as_any_other(
    empty: Commands, tmp_path: Path
) -> None:
    elsewhere = yaml.safe_load(empty.kubeconfig.read_text())
    server = elsewhere["clusters"][0]["cluster"]["server"]
    elsewhere["clusters"][0]["cluster"]["server"] = server.replace("127.0.0.1", "localhost")
    elsewhere["contexts"][0]["name"] = "far"
    elsewhere["current-context"] = "far"
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(elsewhere))
    page = empty.run(f"posse status --kubeconfig {file}").stdout
    assert "Context:     far" in page
    assert "LEADER OF" in page
    seen = json.loads(empty.run(f"posse --config {file} status -o json").stdout)
    assert [leader["alive"] for leader in seen["leaders"]] == [True, True]
    assert "SERVICE" in empty.run("posse status").stdout
    away = server.replace(server.rpartition(":")[2], "1")
    elsewhere["clusters"][0]["cluster"]["server"] = away.replace("127.0.0.1", "localhost")
    file.write_text(yaml.safe_dump(elsewhere))
    assert "no answer" in empty.run(f"posse status --kubeconfig {file}", exits=5).stderr


@pytest.mark.process
def test_on_this_machine_too_it_is_said_who_waits_and_why(empty: Commands) -> None:
    empty.run('posse submit mpi --name=vast --workers=99 --gpus=8 --image=i "run"')
    eventually(lambda: "today's nodes" in empty.run("posse status").stdout, "its verdict is shown")
    row = next(line for line in empty.run("posse status").stdout.splitlines() if "vast" in line)
    assert row.split()[:2] == ["default", "vast"]
