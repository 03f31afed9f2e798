"""The pods, names and keys that an MPIJob's members get."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from posse.controllers.jobs.grouping import GangSettings, Mark
from posse.controllers.mpi import hosts, ssh, templates
from posse.objects.jobs.mpi.spec import Job, read
from tests.unit.controllers.builders import mpi_job, template, world

MARK = Mark("annotations", "scheduling.k8s.io/group-name", "train")
GANG = GangSettings()


def job(**fields: Any) -> Job:
    return read(mpi_job(**fields))


def worker(index: int = 0, **fields: Any) -> dict[str, Any]:
    return templates.worker_pod(job(**fields), index, MARK, GANG, "")


def launcher(**fields: Any) -> dict[str, Any]:
    return templates.launcher_job(job(**fields), MARK, GANG)


def launcher_pod(**fields: Any) -> dict[str, Any]:
    return dict(launcher(**fields)["spec"]["template"])


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item["value"] for item in container["env"]}


def test_a_worker_is_a_named_host_of_the_job() -> None:
    pod = worker(1)
    assert pod["metadata"]["name"] == pod["spec"]["hostname"] == "train-worker-1"
    assert pod["spec"]["subdomain"] == "train"
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["spec"]["dnsConfig"]["searches"] == ["train.ns.svc.cluster.local"]


def test_worker_labels_and_annotations() -> None:
    metadata = worker(1)["metadata"]
    assert metadata["labels"] == {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "train",
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "1",
        "training.kubeflow.org/job-role": "worker",
    }
    assert metadata["annotations"] == {
        "volcano.sh/task-spec": "worker",
        "scheduling.k8s.io/group-name": "train",
    }


def test_a_worker_without_a_command_serves_ssh() -> None:
    assert worker()["spec"]["containers"][0]["command"] == ["/usr/sbin/sshd", "-De"]


@pytest.mark.parametrize("field", ["command", "args"])
def test_a_workers_own_command_stays(field: str) -> None:
    given = template(containers=[{"name": "main", field: ["sleep", "1"]}])
    container = worker(worker=given)["spec"]["containers"][0]
    assert container[field] == ["sleep", "1"]
    assert ("command" in container) == (field == "command")


def test_a_template_passes_through() -> None:
    given = template(tolerations=[{"key": "gpu"}], volumes=[{"name": "data", "emptyDir": {}}])
    given["metadata"] = {"labels": {"team": "vision"}, "annotations": {"note": "mine"}}
    given["spec"]["unheard"] = {"of": "here"}
    pod = worker(worker=given)
    assert pod["metadata"]["labels"]["team"] == "vision"
    assert pod["metadata"]["annotations"]["note"] == "mine"
    assert pod["spec"]["unheard"] == {"of": "here"}
    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["data", "ssh-auth"]


def test_a_template_is_never_changed() -> None:
    raw = mpi_job()
    before = json.dumps(raw)
    templates.worker_pod(read(raw), 0, MARK, GANG, "")
    templates.launcher_job(read(raw), MARK, GANG)
    assert json.dumps(raw) == before


def test_the_hosts_own_network_still_resolves_the_clusters_names() -> None:
    assert (
        worker(worker=template(hostNetwork=True))["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"
    )


@pytest.mark.parametrize(("path", "mode"), [("/root/.ssh", 0o600), ("/home/mpi/.ssh", None)])
def test_keys_are_mounted_where_asked(path: str, mode: int | None) -> None:
    spec = worker(sshAuthMountPath=path)["spec"]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "ssh-auth", "mountPath": path}]
    secret = spec["volumes"][0]["secret"]
    assert secret["secretName"] == "train-ssh"
    assert secret.get("defaultMode") == mode
    assert {item["path"]: item["key"] for item in secret["items"]} == {
        "id_rsa": "ssh-privatekey",
        "id_rsa.pub": "ssh-publickey",
        "authorized_keys": "ssh-publickey",
    }


def test_the_launchers_job() -> None:
    run = {"backoffLimit": 3, "activeDeadlineSeconds": 600, "ttlSecondsAfterFinished": 120}
    made = launcher(run=run)
    assert made["metadata"]["name"] == "train-launcher"
    for field, value in run.items():
        assert made["spec"][field] == value
    assert made["spec"]["podReplacementPolicy"] == "Failed"
    assert "suspend" not in made["spec"]
    assert launcher_pod()["spec"]["restartPolicy"] == "OnFailure"


def test_a_launcher_that_is_moved_has_not_failed() -> None:
    """Its Job may say so only of pods that are not restarted in place."""
    raw = mpi_job()
    raw["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    made = templates.launcher_job(read(raw), MARK, GANG)
    (rule,) = made["spec"]["podFailurePolicy"]["rules"]
    assert rule["action"] == "Ignore"
    assert rule["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert "podFailurePolicy" not in launcher()["spec"]


def test_a_launcher_outlives_the_reading_of_its_end() -> None:
    assert launcher(run={"ttlSecondsAfterFinished": 0})["spec"]["ttlSecondsAfterFinished"] == 60


def test_the_launcher_finds_its_hostfile() -> None:
    spec = launcher_pod()["spec"]
    assert {"name": "mpi-job-config", "mountPath": "/etc/mpi"} in spec["containers"][0][
        "volumeMounts"
    ]
    volume = next(item for item in spec["volumes"] if item["name"] == "mpi-job-config")
    assert volume["configMap"]["name"] == "train-config"
    assert [item["mode"] for item in volume["configMap"]["items"]] == [0o444, 0o555]


@pytest.mark.parametrize(
    ("implementation", "variables"),
    [
        (
            "OpenMPI",
            {
                "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
                "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
                "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
                "OMPI_MCA_orte_set_default_slots": "2",
            },
        ),
        (
            "Intel",
            {
                "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
                "I_MPI_PERHOST": "2",
            },
        ),
        (
            "MPICH",
            {
                "HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "HYDRA_LAUNCH_EXTRA_ARGS": "-o ConnectionAttempts=10",
            },
        ),
    ],
)
def test_the_launchers_environment(implementation: str, variables: dict[str, str]) -> None:
    pod = launcher_pod(mpiImplementation=implementation, slotsPerWorker=2)
    assert environment(pod["spec"]["containers"][0]) == {
        "K_MPI_JOB_ROLE": "launcher",
        **variables,
        "NVIDIA_VISIBLE_DEVICES": "",
        "NVIDIA_DRIVER_CAPABILITIES": "",
    }


def test_a_launcher_that_works_too_sees_its_gpus_and_is_number_0() -> None:
    pod = launcher_pod(runLauncherAsWorker=True)
    assert "NVIDIA_VISIBLE_DEVICES" not in environment(pod["spec"]["containers"][0])
    assert pod["metadata"]["labels"]["training.kubeflow.org/replica-index"] == "0"
    first = worker(0, runLauncherAsWorker=True)
    assert first["metadata"]["labels"]["training.kubeflow.org/replica-index"] == "1"


HOSTFILES: list[tuple[str, dict[str, Any], str, str]] = [
    (
        "OpenMPI",
        {"slotsPerWorker": 2},
        "",
        "train-worker-0.train.ns.svc slots=2\ntrain-worker-1.train.ns.svc slots=2\n",
    ),
    (
        "Intel",
        {"mpiImplementation": "Intel"},
        "",
        "train-worker-0.train.ns.svc:1\ntrain-worker-1.train.ns.svc:1\n",
    ),
    (
        "MPICH, the launcher works too",
        {"mpiImplementation": "MPICH", "runLauncherAsWorker": True, "workers": 1},
        "",
        "train-launcher.train.ns.svc:1\ntrain-worker-0.train.ns.svc:1\n",
    ),
    (
        "a cluster domain",
        {"workers": 1},
        "cluster.local",
        "train-worker-0.train.ns.svc.cluster.local slots=1\n",
    ),
    ("no workers", {"workers": None}, "", ""),
]


@pytest.mark.parametrize(
    ("fields", "domain", "expected"),
    [row[1:] for row in HOSTFILES],
    ids=[row[0] for row in HOSTFILES],
)
def test_hostfile(fields: dict[str, Any], domain: str, expected: str) -> None:
    assert hosts.hostfile(job(**fields), domain) == expected


def test_discover_hosts_lists_who_runs() -> None:
    script = hosts.discover_hosts(job(), ["train-worker-1"], "")
    assert script == "#!/bin/sh\necho train-worker-1.train.ns.svc\n"


def test_the_service_has_no_address_and_finds_the_members() -> None:
    service = hosts.service(job())
    assert service["metadata"]["name"] == "train"
    assert service["spec"]["clusterIP"] == "None"
    labels = worker()["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["spec"]["selector"].items() <= launcher_pod()["metadata"]["labels"].items()


def test_the_secret_holds_a_pair_of_keys_that_belong_together() -> None:
    secret = ssh.with_keys(world(), ssh.secret(job()))
    assert secret["type"] == "kubernetes.io/ssh-auth"
    pem = b64decode(secret["data"]["ssh-privatekey"])
    assert pem.startswith(b"-----BEGIN EC PRIVATE KEY-----")
    private = serialization.load_pem_private_key(pem, None)
    line = b64decode(secret["data"]["ssh-publickey"])
    assert line.startswith(b"ecdsa-sha2-nistp521 ")
    assert line.endswith(b"\n")
    public = serialization.load_ssh_public_key(line)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    assert isinstance(public, ec.EllipticCurvePublicKey)
    assert private.public_key().public_numbers() == public.public_numbers()


def test_keys_come_from_the_world_alone() -> None:
    one, same, other = (ssh.with_keys(world(seed), ssh.secret(job()))["data"] for seed in (1, 1, 2))
    assert one == same
    assert one != other


@pytest.mark.parametrize("extreme", [b"\x00" * 74, b"\xff" * 74])
def test_every_number_the_world_can_give_is_a_key(extreme: bytes) -> None:
    class Fixed:
        def entropy(self, size: int) -> bytes:
            return extreme[:size]

    secret = ssh.with_keys(Fixed(), ssh.secret(job()))  # type: ignore[arg-type]
    assert secret["data"]["ssh-privatekey"]
