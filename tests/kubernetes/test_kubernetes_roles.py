"""Roles: no more than is used, and no less than is needed.

Every story here and elsewhere rides under the roles of an installation. These make the services do
what few stories need; then the audit log of the whole run is held against the rules.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.admission.naming import KEPT_IN
from posse.client.installing.roles import READ
from posse.kube.errors import NotFound
from posse.objects import kinds
from posse.objects.keys import EXPECTS, GROUP_NAME, HELD, RESTARTS
from posse.objects.kinds import ROLE, Kind
from tests.cluster.backends import Riding
from tests.cluster.riding import cluster, mpi
from tests.cluster.test_cluster_tfjobs import replicas, tf_job
from tests.kubernetes.plane import ACCOUNTS, SYSTEM, ControlPlane
from tests.kubernetes.preparing import installation

Use = tuple[str, str, str, str]  # account, group, resource, verb

# Asked by an admission plugin that not every cluster has, about objects that have owners.
UNSEEN = "/finalizers"


async def test_what_few_tfjobs_need() -> None:
    """Replaced pods, services mended and cleaned, a group that is edited, an end after which
    nothing stays."""
    async with cluster(1, gpus=2) as running:
        job = tf_job(
            {"Worker": replicas(2, policy="ExitCode", lasts="1s", code=130)},
            "restarts",
            runPolicy={"schedulingPolicy": {"minAvailable": 2}},
        )
        await running.connection.create(kinds.TF_JOB, job, running.namespace)

        async def counted() -> bool:
            found = await running.connection.get(kinds.TF_JOB, "restarts", running.namespace)
            return RESTARTS in (found["metadata"].get("annotations") or {})

        await running.until(counted, "its restarts are counted")
        fewer = {"spec": {"runPolicy": {"schedulingPolicy": {"minAvailable": 1}}}}
        await running.connection.patch(kinds.TF_JOB, "restarts", fewer, running.namespace)
        await running.until(lambda: _needs(running, "restarts", 1), "the group needs one")

        astray = {"spec": {"selector": {"training.kubeflow.org/replica-index": "7"}}}
        await running.connection.patch(
            kinds.SERVICE, "restarts-worker-0", astray, running.namespace
        )

        async def mended() -> bool:
            found = await running.connection.get(
                kinds.SERVICE, "restarts-worker-0", running.namespace
            )
            return bool(found["spec"]["selector"]["training.kubeflow.org/replica-index"] == "0")

        await running.until(mended, "the service leads to its replica again")

        ends = tf_job(
            {"Worker": replicas(2, lasts="1s")},
            "ends",
            runPolicy={"cleanPodPolicy": "All", "ttlSecondsAfterFinished": 5},
        )
        await running.connection.create(kinds.TF_JOB, ends, running.namespace)
        await running.until(lambda: _gone(running, kinds.TF_JOB, "ends"), "the job is gone")


async def test_what_few_mpijobs_need() -> None:
    """A launcher that is parked, moved while it is, and taken away; a job that ends."""
    async with cluster(1, gpus=2) as running:
        manifest = mpi("parked", workers=1, gpus=1).manifest()
        manifest["spec"]["launcherCreationPolicy"] = "AtStartup"
        manifest["spec"].setdefault("runPolicy", {})["suspend"] = True
        await running.connection.create(kinds.MPI_JOB, manifest, running.namespace)
        await running.until(lambda: _parked(running, "parked", True), "the launcher is parked")
        await _suspend(running, "parked", False)
        await running.until(lambda: _parked(running, "parked", False), "the launcher is let go")
        await _suspend(running, "parked", True)
        await running.until(lambda: _parked(running, "parked", True), "it is parked again")
        moved = {"Launcher": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}
        await running.connection.patch(
            kinds.MPI_JOB, "parked", {"spec": {"mpiReplicaSpecs": moved}}, running.namespace
        )
        before = await running.connection.get(kinds.JOB, "parked-launcher", running.namespace)
        await _suspend(running, "parked", False)

        async def replaced() -> bool:
            try:
                now = await running.connection.get(kinds.JOB, "parked-launcher", running.namespace)
            except NotFound:
                return False
            return bool(now["metadata"]["uid"] != before["metadata"]["uid"])

        await running.until(replaced, "another launcher has taken its place")

        ends = mpi("ends", workers=1, gpus=1).manifest()
        ends["spec"].setdefault("runPolicy", {})["ttlSecondsAfterFinished"] = 1
        launcher = ends["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]
        launcher.setdefault("metadata", {})["annotations"] = {"posse.dev/simulated-duration": "1s"}
        await running.connection.create(kinds.MPI_JOB, ends, running.namespace)
        await running.until(lambda: _gone(running, kinds.MPI_JOB, "ends"), "the job is gone")


def _announced_in(dialect: Kind) -> str:
    return f"announced-in-{dialect.group.replace('.', '-')}"


async def test_seats_are_held_in_every_dialect() -> None:
    async with cluster(1, gpus=8) as running:
        expects = '[{"role": "launcher", "count": 1, "requests": {"nvidia.com/gpu": "1"}}]'
        for dialect in kinds.POD_GROUPS:
            name = _announced_in(dialect)
            group = {
                "metadata": {"name": name, "annotations": {EXPECTS: expects}},
                "spec": {"minMember": 1},
            }
            await running.connection.create(dialect, group, running.namespace)
            await running.connection.create(kinds.POD, _member(name), running.namespace)

        async def held() -> bool:
            found = [
                await running.connection.get(dialect, _announced_in(dialect), running.namespace)
                for dialect in kinds.POD_GROUPS
            ]
            return all(HELD in group["metadata"]["annotations"] for group in found)

        await running.until(held, "a seat is held in each")


@pytest.mark.parametrize("guarded", [False, True], ids=["evicted", "deleted"])
async def test_a_half_bound_gang_is_released(guarded: bool) -> None:
    """Evicted; and deleted, where a budget forbids that for good."""
    async with cluster(1, gpus=2) as running:
        await running.stop("scheduler")
        owner = await _owner(running)
        if guarded:
            budget = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
            spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"gang": "torn"}}}
            await running.connection.create(
                budget, {"metadata": {"name": "torn"}, "spec": spec}, running.namespace
            )
        group = {"metadata": {"name": "torn"}, "spec": {"minMember": 2}}
        await running.connection.create(kinds.POD_GROUP, group, running.namespace)
        made = []
        for index, gpus in enumerate((1, 2)):
            pod = _member("torn", f"torn-{index}", gpus=gpus, owner=owner)
            made.append(await running.connection.create(kinds.POD, pod, running.namespace))
        node = (await running.connection.list(kinds.NODE)).items[0]["metadata"]["name"]
        await running.connection.bind(
            "torn-0", running.namespace, node, uid=made[0]["metadata"]["uid"]
        )
        running.start("scheduler")

        async def released() -> bool:
            try:
                pod = await running.connection.get(kinds.POD, "torn-0", running.namespace)
            except NotFound:
                return True
            return pod["metadata"]["uid"] != made[0]["metadata"]["uid"] or bool(
                pod["metadata"].get("deletionTimestamp")
            )

        await running.until(released, "the bound member is let go", within=90)


async def test_what_repeats_is_one_event() -> None:
    async with cluster(1, gpus=1) as running:
        foreign = {
            "metadata": {"name": "taken-worker-0"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await running.connection.create(kinds.POD, foreign, running.namespace)
        job = tf_job({"Worker": replicas(1)}, "taken")
        await running.connection.create(kinds.TF_JOB, job, running.namespace)

        async def repeated() -> bool:
            events = (await running.connection.list(kinds.EVENT, running.namespace)).items
            return any(e["reason"] == "ErrResourceExists" and e.get("count", 1) > 1 for e in events)

        await running.until(repeated, "the event is counted")


async def test_a_user_with_edit_in_one_namespace_has_every_command(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with cluster(2, gpus=2) as running:
        alice = await _user(running, control_plane, tmp_path)
        submitted = "submit mpi --name=four --workers=2 --gpus=2 --image=train 'mpirun train'"
        assert "four created" in await alice(submitted)
        assert "waits" in await alice("why four") or "not waiting" in await alice("why four")
        assert "RUNNING" in await alice("wait four --for=running --timeout=60s")
        assert "four" in await alice("list")
        assert "RUNNING" in await alice("get four")
        assert "four-worker-1" in await alice("get four --events")
        await alice("logs four")
        assert "deleted" in await alice("delete four")
        assert "is forbidden" in await alice("-n default list", fails=5)


def test_no_role_has_a_wildcard_and_secrets_are_for_ssh_and_the_webhooks_own() -> None:
    with_secrets = []
    for role in _roles():
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]], role
            if any(resource.startswith("secrets") for resource in rule["resources"]):
                named = rule.get("resourceNames", [])
                with_secrets.append((role["metadata"]["name"], sorted(rule["verbs"]), named))
    assert sorted(with_secrets) == [
        ("posse-admission", ["get", "update"], [KEPT_IN]),
        ("posse-controllers-ssh", ["create", "get"], []),
    ]


@pytest.mark.parametrize("account", ACCOUNTS)
def test_what_an_account_is_told_that_it_may_do(control_plane: ControlPlane, account: str) -> None:
    """As `kubectl auth can-i --list` tells it: nothing with '*', and no secrets but for ssh keys
    and the webhook's certificate."""
    secrets: set[tuple[str, ...]] = set()
    for namespace in (SYSTEM, "default"):
        words = ("auth", "can-i", "--list", "-n", namespace)
        for allowed in _table(control_plane.kubectl(*words, user=account).stdout):
            resource, urls, names, verbs = (allowed[column] for column in _COLUMNS)
            assert "*" not in resource, allowed
            assert "*" not in verbs, allowed
            assert not resource or urls == "[]", allowed
            if resource == "secrets":
                secrets.add((namespace, names, verbs))
    allowed_secrets = {
        "posse-scheduler": set(),
        "posse-controllers": {(SYSTEM, "[]", "[get create]"), ("default", "[]", "[get create]")},
        "posse-admission": {(SYSTEM, f"[{KEPT_IN}]", "[get update]")},
    }
    assert secrets == allowed_secrets[account]


_COLUMNS = ("Resources", "Non-Resource URLs", "Resource Names", "Verbs")


def _table(printed: str) -> list[dict[str, str]]:
    """kubectl's columns, each as wide as its head says."""
    head, *lines = printed.splitlines()
    starts = [head.index(column) for column in _COLUMNS]
    ends = [*starts[1:], None]
    return [
        {
            column: line[start:end].strip()
            for column, start, end in zip(_COLUMNS, starts, ends, strict=True)
        }
        for line in lines
    ]


def test_nothing_was_denied(control_plane: ControlPlane) -> None:
    """By a role; that a namespace on its way out takes nothing new is another matter."""
    denied = Counter(
        _use(event)
        for event in control_plane.audited()
        if _is_ours(event)
        and event.get("annotations", {}).get("authorization.k8s.io/decision") == "forbid"
    )
    assert denied == Counter()


def test_a_service_that_is_as_it_should_be_is_not_written_again(
    control_plane: ControlPlane,
) -> None:
    """Whatever this server leaves out and fills in."""
    patched = {
        event["objectRef"]["name"]
        for event in control_plane.audited()
        if _is_ours(event) and _use(event)[1:] == ("", "services", "patch")
    }
    assert patched <= {"restarts-worker-0"}, "that one was led astray"


def test_every_rule_was_used(control_plane: ControlPlane) -> None:
    used = {_use(event) for event in control_plane.audited() if _is_ours(event)}
    unused = [
        (account, *rule)
        for account, *rule in _granted()
        if not any((account, *rule[:2], verb) in used for verb in _alike(rule[2]))
    ]
    assert unused == []


def _alike(verb: str) -> tuple[str, ...]:
    return READ if verb in READ else (verb,)


def _granted() -> Iterator[Use]:
    """What the accounts may do, one by one."""
    made = installation()
    roles = {(role["kind"], role["metadata"]["name"]): role for role in _roles()}
    for binding in made:
        if not binding["kind"].endswith("RoleBinding"):
            continue
        role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        for rule in role["rules"]:
            for resource in rule["resources"]:
                if resource.endswith(UNSEEN):
                    continue
                for verb in rule["verbs"]:
                    yield binding["subjects"][0]["name"], rule["apiGroups"][0], resource, verb


def _roles() -> list[dict[str, Any]]:
    return [obj for obj in installation() if obj["kind"] in ("Role", "ClusterRole")]


def _is_ours(event: dict[str, Any]) -> bool:
    user: str = event["user"]["username"]
    return user.startswith(f"system:serviceaccount:{SYSTEM}:posse-")


def _use(event: dict[str, Any]) -> Use:
    about = event.get("objectRef") or {}
    resource = about.get("resource", event["requestURI"])
    if about.get("subresource"):
        resource = f"{resource}/{about['subresource']}"
    account = event["user"]["username"].rpartition(":")[2]
    return account, about.get("apiGroup", ""), resource, event["verb"]


async def _user(
    running: Riding, plane: ControlPlane, directory: Path
) -> Callable[..., Awaitable[str]]:
    """Somebody who has `edit` in the story's namespace, and nothing else."""
    binding = {
        "metadata": {"name": "alice"},
        "roleRef": {"apiGroup": ROLE.group, "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": ROLE.group, "kind": "User", "name": "alice"}],
    }
    await running.connection.create(kinds.ROLE_BINDING, binding, running.namespace)
    config = yaml.safe_load(plane.kubeconfig().read_text())
    config["users"][0]["user"]["as"] = "alice"
    file = directory / "alice.kubeconfig"
    file.write_text(yaml.safe_dump(config))

    async def run(words: str, fails: int = 0) -> str:
        namespace = () if words.startswith("-n") else ("-n", running.namespace)
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "posse", *namespace, *shlex.split(words)),
            env={"KUBECONFIG": str(file), "HOME": str(directory), "PATH": os.environ["PATH"]},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await program.communicate()
        assert program.returncode == fails, f"{words}: {said.decode()}"
        return said.decode()

    return run


async def _needs(running: Riding, group: str, members: int) -> bool:
    found = await running.connection.get(kinds.POD_GROUP, group, running.namespace)
    return bool(found["spec"].get("minMember") == members)


async def _gone(running: Riding, kind: Kind, name: str) -> bool:
    try:
        await running.connection.get(kind, name, running.namespace)
    except NotFound:
        return True
    return False


async def _suspend(running: Riding, job: str, suspended: bool) -> None:
    patch = {"spec": {"runPolicy": {"suspend": suspended}}}
    await running.connection.patch(kinds.MPI_JOB, job, patch, running.namespace)


async def _parked(running: Riding, job: str, parked: bool) -> bool:
    try:
        found = await running.connection.get(kinds.JOB, f"{job}-launcher", running.namespace)
    except NotFound:
        return False
    return bool(found["spec"].get("suspend")) is parked


async def _owner(running: Riding) -> dict[str, Any]:
    """Somebody who would make its pods anew, and does not do so here."""
    config = await running.connection.create(
        kinds.CONFIG_MAP, {"metadata": {"name": "owner"}}, running.namespace
    )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": config["metadata"]["uid"],
        "controller": True,
    }


def _member(
    group: str, name: str = "", *, gpus: int = 1, owner: dict[str, Any] | None = None
) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "train",
        "resources": {"limits": {"nvidia.com/gpu": gpus}},
    }
    return {
        "metadata": {
            "name": name or f"{group}-0",
            "labels": {"gang": group},
            "annotations": {GROUP_NAME: group},
            **({"ownerReferences": [owner]} if owner else {}),
        },
        "spec": {"schedulerName": "posse", "containers": [container]},
    }
