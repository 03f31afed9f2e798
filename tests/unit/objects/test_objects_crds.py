"""The definitions are structural, complete, and what deploy/crds holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.objects.crds import definitions
from posse.objects.crds.__main__ import main, rendered
from posse.objects.kinds import (
    INCUBATOR_POD_GROUP,
    MPI_JOB,
    POD_GROUP,
    QUEUE,
    SIGS_POD_GROUP,
    TF_JOB,
    Kind,
)

ROOT = Path(__file__).parents[3]
BY_NAME = {definition["metadata"]["name"]: definition for definition in definitions()}


KINDS = [POD_GROUP, QUEUE, MPI_JOB, TF_JOB, INCUBATOR_POD_GROUP, SIGS_POD_GROUP]


def versions(kind: Kind) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in BY_NAME[kind.qualified]["spec"]["versions"]}


def version(kind: Kind) -> dict[str, Any]:
    """The one in which objects are stored."""
    [stored] = [one for one in versions(kind).values() if one["storage"]]
    assert isinstance(stored, dict)
    return stored


def schema(kind: Kind, *path: str) -> dict[str, Any]:
    """The schema at a path of properties; `*` steps into a mapping's values."""
    found: dict[str, Any] = version(kind)["schema"]["openAPIV3Schema"]
    for step in path:
        found = found["additionalProperties"] if step == "*" else found["properties"][step]
    return found


def test_deployed_definitions_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["--check"]) == 0


def test_drift_is_found_whichever_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    (tmp_path / "left-over.yaml").write_text("kind: Old\n")
    (tmp_path / "queues.scheduling.volcano.sh.yaml").write_text("")
    assert main(["--check"], tmp_path) == 1
    out = capsys.readouterr().out
    assert "left-over.yaml" in out and "queues.scheduling.volcano.sh.yaml" in out


def test_the_files_say_what_the_data_say() -> None:
    assert [yaml.safe_load(text) for text in rendered().values()] == definitions()


def test_every_caller_gets_its_own_copy() -> None:
    definitions()[0]["spec"].clear()
    assert definitions()[0]["spec"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.qualified)
def test_a_definition_serves_its_kind(kind: Kind) -> None:
    spec = BY_NAME[kind.qualified]["spec"]
    assert (spec["group"], spec["names"]["plural"]) == (kind.group, kind.plural)
    assert spec["names"].get("shortNames", []) == list(kind.short_names)
    assert spec["scope"] == ("Namespaced" if kind.namespaced else "Cluster")
    assert version(kind)["name"] == kind.version
    assert version(kind)["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.qualified)
def test_every_schema_is_structural(kind: Kind) -> None:
    def visit(node: dict[str, Any], path: str) -> None:
        typed = "type" in node or node.get("x-kubernetes-int-or-string")
        assert typed, f"{path} has no type"
        assert not ("properties" in node and "additionalProperties" in node), path
        for name, child in node.get("properties", {}).items():
            visit(child, f"{path}.{name}")
        for name in ("items", "additionalProperties"):
            if name in node:
                visit(node[name], f"{path}.{name}")

    visit(version(kind)["schema"]["openAPIV3Schema"], kind.kind)


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        (
            POD_GROUP,
            [
                ("STATUS", ".status.phase", 0),
                ("minMember", ".spec.minMember", 0),
                ("RUNNINGS", ".status.running", 0),
                ("AGE", ".metadata.creationTimestamp", 0),
                ("QUEUE", ".spec.queue", 1),
            ],
        ),
        (
            MPI_JOB,
            [
                ("State", ".status.conditions[-1:].type", 0),
                ("Age", ".metadata.creationTimestamp", 0),
            ],
        ),
    ],
    ids=["PodGroup", "MPIJob"],
)
def test_printer_columns(kind: Kind, columns: list[tuple[str, str, int]]) -> None:
    found = version(kind)["additionalPrinterColumns"]
    assert [(c["name"], c["jsonPath"], c.get("priority", 0)) for c in found] == columns


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        (POD_GROUP, ("spec", "queue"), "default"),
        (QUEUE, ("spec", "weight"), 1),
        (MPI_JOB, ("spec", "slotsPerWorker"), 1),
        (MPI_JOB, ("spec", "sshAuthMountPath"), "/root/.ssh"),
        (MPI_JOB, ("spec", "launcherCreationPolicy"), "AtStartup"),
        (MPI_JOB, ("spec", "mpiImplementation"), "OpenMPI"),
        (MPI_JOB, ("spec", "runLauncherAsWorker"), False),
        (MPI_JOB, ("spec", "runPolicy", "suspend"), False),
    ],
)
def test_defaults(kind: Kind, path: tuple[str, ...], value: object) -> None:
    assert schema(kind, *path)["default"] == value


def test_templates_pass_through_untouched() -> None:
    template = schema(MPI_JOB, "spec", "mpiReplicaSpecs", "*", "template")
    assert template["x-kubernetes-preserve-unknown-fields"] is True
    assert "properties" not in template


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (POD_GROUP, ("spec", "minResources", "*")),
        (QUEUE, ("spec", "capability", "*")),
        (QUEUE, ("spec", "guarantee", "resource", "*")),
        (MPI_JOB, ("spec", "runPolicy", "schedulingPolicy", "minResources", "*")),
    ],
)
def test_amounts_are_numbers_or_text(kind: Kind, path: tuple[str, ...]) -> None:
    assert schema(kind, *path)["x-kubernetes-int-or-string"] is True


def test_an_mpi_job_without_roles_is_refused() -> None:
    assert schema(MPI_JOB, "spec")["required"] == ["mpiReplicaSpecs"]


def test_tf_jobs_are_served_in_three_versions_and_stored_in_one() -> None:
    assert {name: one["storage"] for name, one in versions(TF_JOB).items()} == {
        "v1": True,
        "v1beta2": False,
        "v1beta1": False,
    }


def test_versions_of_tf_jobs_know_the_same_fields() -> None:
    """What the stored version did not know would be lost."""

    def fields(node: Any) -> Any:
        if not isinstance(node, dict):
            return node
        return {key: fields(value) for key, value in node.items() if key != "default"}

    first, *others = [one["schema"] for one in versions(TF_JOB).values()]
    assert all(fields(other) == fields(first) for other in others)


def test_older_tf_jobs_clean_up_what_runs_unless_told_otherwise() -> None:
    found = {
        name: one["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
            "cleanPodPolicy"
        ].get("default")
        for name, one in versions(TF_JOB).items()
    }
    assert found == {"v1": None, "v1beta2": "Running", "v1beta1": "Running"}


def test_a_protected_group_says_that_nobody_approved_it() -> None:
    annotations = BY_NAME[INCUBATOR_POD_GROUP.qualified]["metadata"]["annotations"]
    assert annotations == {
        "api-approved.kubernetes.io": "unapproved, kube-batch compatibility",
    }
