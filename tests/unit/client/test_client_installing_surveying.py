"""Who is recognised, and who is alive: seen on an API server, on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from posse.client.installing.doors import Door, doors_of
from posse.client.installing.owners import Owner, flags_of, image_name, recognise
from posse.client.installing.surveying import Survey, look
from posse.kube.connection import Connection
from posse.kube.inprocess import AsgiTransport
from posse.local.apiserver.app import ApiServer
from posse.local.apiserver.journal import MemoryJournal
from posse.local.apiserver.store import Store
from posse.objects import kinds
from posse.objects.keys import INSTALLED_LABEL
from posse.virtual.world import virtual_world

OURS = "posse-system"
TRAINING_LEASE = "1ca428e5.training-operator.kubeflow.org"


def deployment(
    name: str, image: str, *args: str, replicas: int = 1, marked: bool = False
) -> dict[str, Any]:
    labels = {INSTALLED_LABEL: "true"} if marked else {}
    container = {"name": "main", "image": image, "args": list(args)}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container]},
            },
        },
    }


@asynccontextmanager
async def server(*namespaces: str) -> AsyncIterator[Connection]:
    """An API server, and nobody who does anything about what it holds."""
    world = virtual_world()
    made = ApiServer(
        Store(MemoryJournal()),
        world,
        tokens={"t": "system:admin"},
        node_transport=lambda node: AsgiTransport(made),
    )
    await made.start()
    headers = {"authorization": "Bearer t", "host": "localhost"}
    connection = Connection(AsgiTransport(made, headers), world)
    try:
        for namespace in namespaces:
            await connection.create(kinds.NAMESPACE, {"metadata": {"name": namespace}})
        yield connection
    finally:
        await connection.close()


async def hold(connection: Connection, namespace: str, name: str) -> dict[str, Any]:
    spec = {
        "holderIdentity": "somebody",
        "leaseDurationSeconds": 15,
        "renewTime": "2020-01-01T00:00:00.000000Z",
    }
    return await connection.create(
        kinds.LEASE, {"metadata": {"name": name}, "spec": spec}, namespace
    )


async def renew(connection: Connection, lease: dict[str, Any], every: float) -> None:
    metadata = lease["metadata"]
    for count in range(1_000):
        await asyncio.sleep(every)
        moved = {"spec": {"renewTime": f"2020-01-01T00:00:00.{count + 1:06d}Z"}}
        await connection.patch(kinds.LEASE, metadata["name"], moved, metadata["namespace"])


async def surveyed_while(
    connection: Connection, lease: dict[str, Any], every: float = 2.0
) -> Survey:
    renewing = asyncio.create_task(renew(connection, lease, every))
    try:
        return await look(connection, OURS)
    finally:
        renewing.cancel()
        await asyncio.gather(renewing, return_exceptions=True)


@pytest.mark.parametrize(
    ("made", "program"),
    [
        (deployment("training-operator", "kubeflow/training-operator:v1.9"), "training-operator"),
        (deployment("ops", "mirror:5000/x/training-operator@sha256:ab"), "training-operator"),
        (deployment("mpi-operator", "mpioperator/mpi-operator:0.6"), "mpi-operator"),
        (deployment("volcano-scheduler", "anything"), "volcano"),
        (deployment("s", "volcanosh/vc-scheduler:v1.12"), "volcano"),
        (deployment("kube-batch", "kubesigs/kube-batch:v0.5"), "kube-batch"),
        (deployment("second", "mirror/kube-scheduler:v1.36"), None),
        (deployment("web", "nginx:1"), None),
        (deployment("volcano-admission", "volcanosh/vc-webhook-manager:v1"), None),
    ],
    ids=lambda value: value["metadata"]["name"] if isinstance(value, dict) else str(value),
)
def test_programs_are_recognised(made: dict[str, Any], program: str | None) -> None:
    found = recognise(made)
    assert (found[0].program if found else None) == program


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (["--a=1", "--a=2"], {"a": ["1", "2"]}),
        (["--a=1,2"], {"a": ["1", "2"]}),
        (["-a", "1", "-b=2"], {"a": ["1"], "b": ["2"]}),
        (["--on", "--a=1"], {"on": [], "a": ["1"]}),
        ([], {}),
    ],
)
def test_flags_are_read_as_go_reads_them(words: list[str], flags: dict[str, list[str]]) -> None:
    assert flags_of({"args": words}) == flags


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("posse", "posse"),
        ("a/b/posse:1", "posse"),
        ("host:5000/posse", "posse"),
        ("host:5000/posse@sha256:00", "posse"),
        ("", ""),
    ],
)
def test_an_image_has_a_name(reference: str, name: str) -> None:
    assert image_name(reference) == name


@pytest.mark.looptime
async def test_an_empty_cluster_is_surveyed_at_once() -> None:
    async with server() as connection:
        began = connection.world.monotonic()
        survey = await look(connection, OURS)
        assert survey.owners == ()
        assert survey.installed is None
        assert "servicemonitors.monitoring.coreos.com" in survey.unserved
        assert connection.world.monotonic() - began < 1


@pytest.mark.looptime
async def test_a_deployment_without_a_lease_is_alive_while_it_has_replicas() -> None:
    async with server("kubeflow") as connection:
        made = deployment("training-operator", "training-operator", "--enable-scheme=tfjob")
        await connection.create(kinds.DEPLOYMENT, made, "kubeflow")
        (owner,) = (await look(connection, OURS)).owners
        assert owner == Owner(
            "training-operator",
            "kubeflow",
            "training-operator",
            kinds=("TFJob",),
            alive="its Deployment has 1 replica",
        )
        scaled = {"spec": {"replicas": 0}}
        await connection.patch(kinds.DEPLOYMENT, "training-operator", scaled, "kubeflow")
        (owner,) = (await look(connection, OURS)).owners
        assert owner.alive == ""


@pytest.mark.looptime
async def test_a_lease_that_moves_is_alive_however_old_its_clock_says_it_is() -> None:
    async with server("kubeflow") as connection:
        await connection.create(
            kinds.DEPLOYMENT, deployment("training-operator", "training-operator"), "kubeflow"
        )
        lease = await hold(connection, "kubeflow", TRAINING_LEASE)
        (owner,) = (await surveyed_while(connection, lease)).owners
        assert owner.alive == f"its lease kubeflow/{TRAINING_LEASE} is being renewed"


@pytest.mark.looptime
async def test_a_lease_that_stands_still_for_as_long_as_it_lasts_is_nobodys() -> None:
    async with server("kubeflow") as connection:
        await connection.create(
            kinds.DEPLOYMENT, deployment("training-operator", "training-operator"), "kubeflow"
        )
        await hold(connection, "kubeflow", TRAINING_LEASE)
        began = connection.world.monotonic()
        (owner,) = (await look(connection, OURS)).owners
        assert owner.alive == ""
        assert 15 <= connection.world.monotonic() - began < 20


@pytest.mark.looptime
@pytest.mark.parametrize("renewed", [True, False])
async def test_a_lease_without_a_deployment_counts_only_while_it_is_renewed(renewed: bool) -> None:
    async with server("mpi-operator") as connection:
        lease = await hold(connection, "mpi-operator", "mpi-operator")
        survey = (
            await surveyed_while(connection, lease) if renewed else await look(connection, OURS)
        )
        assert [owner.program for owner in survey.owners] == (["mpi-operator"] if renewed else [])


@pytest.mark.looptime
async def test_a_lease_that_was_released_is_free_at_once() -> None:
    async with server("mpi-operator") as connection:
        await hold(connection, "mpi-operator", "mpi-operator")
        freed = {"spec": {"holderIdentity": ""}}
        await connection.patch(kinds.LEASE, "mpi-operator", freed, "mpi-operator")
        began = connection.world.monotonic()
        assert (await look(connection, OURS)).owners == ()
        assert connection.world.monotonic() - began < 1


@pytest.mark.looptime
async def test_volcano_owns_the_names_that_its_flags_say() -> None:
    async with server("volcano-system") as connection:
        made = deployment("volcano-scheduler", "vc-scheduler", "--scheduler-name=gold")
        await connection.create(kinds.DEPLOYMENT, made, "volcano-system")
        lease = await hold(connection, "volcano-system", "gold")
        (owner,) = (await surveyed_while(connection, lease)).owners
        assert owner.names == ("gold",)
        assert "volcano-system/gold" in owner.alive


@pytest.mark.looptime
async def test_posse_here_is_what_is_installed_and_posse_elsewhere_is_somebody_else() -> None:
    async with server(OURS, "elsewhere") as connection:
        scheduler = deployment(
            "posse-scheduler", "mirror/posse:1", "scheduler", "--claim=posse,volcano", marked=True
        )
        controllers = deployment(
            "posse-controllers", "mirror/posse:1", "controllers", "--kinds=TFJob", marked=True
        )
        for made in (scheduler, controllers):
            await connection.create(kinds.DEPLOYMENT, made, OURS)
        here = await look(connection, OURS)
        assert here.owners == ()
        assert here.installed is not None
        assert here.installed.kinds == ("TFJob",)
        assert here.installed.claims == ("posse", "volcano")
        assert here.installed.image == "mirror/posse:1"
        there = await look(connection, "elsewhere")
        assert there.installed is None
        assert [(o.program, o.kinds, o.names) for o in there.owners] == [
            ("posse controllers", ("TFJob",), ()),
            ("posse scheduler", (), ("posse", "volcano")),
        ]


@pytest.mark.looptime
async def test_posses_own_lease_is_nobody_elses() -> None:
    async with server(OURS) as connection:
        lease = await hold(connection, OURS, "posse-scheduler")
        assert (await surveyed_while(connection, lease)).owners == ()


def webhook(name: str, *resources: str, policy: str = "Fail", group: str = "kubeflow.org") -> Any:
    rule = {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": list(resources),
    }
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": policy,
        "clientConfig": {"service": {"namespace": "kubeflow", "name": "training-operator"}},
        "rules": [rule],
    }


@pytest.mark.parametrize("marked", [False, True], ids=["somebody's", "ours"])
def test_webhooks_of_others_that_hold_up_our_kinds_are_found(marked: bool) -> None:
    labels = {INSTALLED_LABEL: "true"} if marked else {}
    hooks = [
        webhook("tf.x.dev", "tfjobs"),
        webhook("any.x.dev", "*"),
        webhook("ignored.x.dev", "tfjobs", policy="Ignore"),
        webhook("other.x.dev", "pytorchjobs"),
        webhook("policy.x.dev", "*", group="*"),
    ]
    configuration = {"metadata": {"name": "training", "labels": labels}, "webhooks": hooks}
    found = doors_of(kinds.VALIDATING_WEBHOOK_CONFIGURATION, configuration)
    by = "validatingwebhookconfiguration/training", "kubeflow/training-operator"
    wanted = [
        Door(by[0], "tf.x.dev", by[1], ("TFJob",)),
        Door(by[0], "any.x.dev", by[1], ("MPIJob", "TFJob")),
    ]
    assert found == ([] if marked else wanted)
