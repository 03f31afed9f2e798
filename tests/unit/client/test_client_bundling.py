"""What a bundle holds, and what it never holds."""

from __future__ import annotations

import json
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest

from posse.client import redacting
from posse.client.bundling import Bundle, log_files

SECRET = "hunter2-hunter2"


def _pod() -> dict[str, Any]:
    """A pod with the secret in every place that people put one."""
    container = {
        "name": "train",
        "image": "train:1",
        "command": ["sh", "-c", f"train --key {SECRET}"],
        "args": [f"--password={SECRET}"],
        "env": [
            {"name": "API_KEY", "value": SECRET},
            {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ],
        "envFrom": [{"secretRef": {"name": "s"}}],
        "resources": {"limits": {"nvidia.com/gpu": "2"}},
        "livenessProbe": {
            "httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]},
            "exec": {"command": [SECRET]},
        },
        "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    ended = {"exitCode": 1, "reason": "Error", "message": f"last words: {SECRET}"}
    return {
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "labels": {"app": "x"},
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": f'{{"env":"{SECRET}"}}',
                "posse.dev/gang": "false",
            },
            "managedFields": [{"manager": SECRET}],
        },
        "spec": {
            "nodeName": "n0",
            "nodeSelector": {"zone": "a"},
            "containers": [container],
            "initContainers": [container | {"name": "first"}],
            "ephemeralContainers": [container],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "claim"}},
                {"name": "odd", "csi": {"volumeAttributes": {"password": SECRET}}},
            ],
            "imagePullSecrets": [{"name": "pull"}],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "train", "restartCount": 3, "state": {"terminated": ended}},
                {"name": "other", "lastState": {"terminated": ended}, "state": {"running": {}}},
            ],
        },
    }


def test_a_pod_keeps_what_scheduling_is_about() -> None:
    kept = redacting.pod(_pod())
    assert kept["metadata"]["name"] == "p"
    assert kept["spec"]["nodeSelector"] == {"zone": "a"}
    first = kept["spec"]["containers"][0]
    assert first["image"] == "train:1"
    assert first["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    assert [variable["name"] for variable in first["env"]] == ["API_KEY", "FROM"]
    assert kept["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "claim"}
    ended = kept["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended == {"exitCode": 1, "reason": "Error"}


@pytest.mark.parametrize("kind", ["pod", "node", "event", "metadata"])
def test_no_secret_is_left_in_an_object(kind: str) -> None:
    assert SECRET not in json.dumps(getattr(redacting, kind)(_pod()))


def test_no_secret_is_left_in_a_deployment() -> None:
    made = {"metadata": {"name": "d"}, "spec": {"replicas": 2, "template": _pod()}}
    kept = redacting.deployment(made)
    assert SECRET not in json.dumps(kept)
    assert kept["spec"]["template"]["spec"]["containers"][0]["image"] == "train:1"


def test_annotations_of_strangers_keep_their_names_alone() -> None:
    kept = redacting.metadata(_pod())["annotations"]
    assert kept == {
        "kubectl.kubernetes.io/last-applied-configuration": "<left out>",
        "posse.dev/gang": "false",
    }


@pytest.mark.parametrize("odd", [None, [], "x", 3, {"containers": "x", "volumes": 3}])
def test_odd_objects_are_kept_as_far_as_they_make_sense(odd: Any) -> None:
    assert redacting.pod({"metadata": odd, "spec": odd, "status": odd})["metadata"] == {}
    assert redacting.environment_values({"spec": odd}) == []


@pytest.mark.parametrize(
    ("prose", "without"),
    [
        ("Authorization: Bearer abcdefgh12345678", "abcdefgh12345678"),
        ("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl in a log", "eyJzdWIiOiJ4In0"),
        ("pulling https://me:pa55word@registry/x failed", "pa55word"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE cut off", "MIIE"),
        ('{"password": "opensesame"}', "opensesame"),
        ("token=abc.def", "abc.def"),
    ],
)
def test_what_looks_like_a_credential_goes(prose: str, without: str) -> None:
    assert without not in redacting.scrub(prose, ())


@pytest.mark.parametrize(
    "prose",
    [
        "10 GPUs are asked and the cluster has 8",
        "lease kube-system/posse-scheduler: held by one",
        "the API server answers at https://127.0.0.1:6443/api",
        "pod ns/basic-training-0 could not be bound to node-3",
    ],
)
def test_what_does_not_stays(prose: str) -> None:
    assert redacting.scrub(prose, ("secret-value",)) == prose


def test_known_secrets_go_from_logs_and_documents_wherever_they_stand(tmp_path: Path) -> None:
    bundle = Bundle(["the-admin-token"])
    bundle.keep_secret([SECRET, 'quo"ted-value'])
    log = tmp_path / "scheduler.log"
    log.write_text(f"a {SECRET} b the-admin-token c\n")
    log.with_name("scheduler.log.1").write_text("earlier the-admin-token\n")
    log_files(bundle, {"scheduler": log, "absent": tmp_path / "absent.log"})
    bundle.document("status.json", {"why": f'{SECRET} and quo"ted-value'})
    bundle.objects("pods.json", [{"status": {"message": "with the-admin-token"}}])
    everything = b"".join(bundle.files.values()).decode()
    assert list(bundle.files) == ["logs/scheduler.log", "status.json", "pods.json"]
    assert "earlier" in everything
    for secret in (SECRET, "the-admin-token", "ted-value"):
        assert secret not in everything


def test_a_bundle_is_for_its_owner_alone_and_equal_for_equal_files(tmp_path: Path) -> None:
    made = []
    for name in ("one.tar.gz", "two.tar.gz"):
        bundle = Bundle()
        bundle.document("b.json", {"x": 1})
        bundle.prose("a.log", b"line\n")
        bundle.missing["c.json"] = "not allowed"
        bundle.write(tmp_path / name, 1_700_000_000.0)
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1]
    assert stat.S_IMODE((tmp_path / "one.tar.gz").stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.tar.gz", "two.tar.gz"]
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        names = archive.getnames()
        opened = archive.extractfile("posse-bundle/missing.json")
        assert opened is not None
        assert json.load(opened) == {"c.json": "not allowed"}
    assert names == [f"posse-bundle/{name}" for name in ("a.log", "b.json", "missing.json")]


def test_what_a_node_or_a_scheduler_has_written_quotes_no_environment() -> None:
    pod = _pod()
    pod["status"] |= {
        "message": f"could not start with {SECRET}",
        "conditions": [{"type": "Ready", "message": f"API_KEY is {SECRET}"}],
        "containerStatuses": [
            {"name": "train", "state": {"waiting": {"reason": "Error", "message": f"no {SECRET}"}}}
        ],
    }
    bundle = Bundle()
    bundle.keep_secret(redacting.environment_values(pod))
    bundle.objects("pods.json", [redacting.pod(pod)])
    (kept,) = json.loads(bundle.files["pods.json"])["items"]
    assert SECRET not in json.dumps(kept)
    assert kept["status"]["message"] == "could not start with <left out>"
    assert kept["status"]["containerStatuses"][0]["state"]["waiting"]["message"] == "no <left out>"


def test_cleaning_twice_is_cleaning_once() -> None:
    once = redacting.scrub("token=abcdefgh and https://u:p@h and Bearer abcdefgh", ())
    assert once == "token=<left out> and https://<left out>@h and Bearer <left out>"
    assert redacting.scrub(once, ()) == once
