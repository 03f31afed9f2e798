"""The chart in the hands of a real helm: the same installation, on a control plane of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.admission.naming import KEPT_IN
from tests.cluster import tools
from tests.kubernetes.bare import Bare, bare_plane, hopeless
from tests.kubernetes.plane import SYSTEM, ControlPlane

pytestmark = pytest.mark.process

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "posse"
# Without a cluster, a helm believes in the version that it was built with.
TEMPLATE = "template posse CHART --kube-version=1.36"
CHOICES = {
    "nothing": ("", ""),
    "image and replicas": (
        "--set image=mirror/posse:9 --set replicas=3",
        "--image=mirror/posse:9 --replicas=3",
    ),
    "one kind": ("--set kinds={MPIJob}", "--kinds=MPIJob"),
    "the other kind": ("--set kinds={TFJob}", "--kinds=TFJob"),
    "scheduler names": ("--set claims={posse,team}", "--claim=posse,team"),
    "a namespace": ("--set namespace=gangs", "-n gangs"),
}

Helm = Callable[[str], str]


@pytest.fixture(scope="module")
def bare(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    tools.helm()  # where there is none, a plane is not worth its while
    with bare_plane(control_plane.programs, tmp_path_factory.mktemp("helm")) as made:
        yield made


@pytest.fixture
def helm(bare: Bare, tmp_path: Path) -> Helm:
    def run(words: str) -> str:
        done = subprocess.run(
            [tools.helm(), *words.replace("CHART", str(CHART)).split()],
            env={"HOME": str(tmp_path), "KUBECONFIG": str(bare.plane.kubeconfig())},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, f"helm {words}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


def by_name(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Without what the chart says to Helm alone; of a template left out its comment remains."""
    made = {}
    for obj in filter(None, yaml.safe_load_all(text)):
        annotations = obj["metadata"].get("annotations") or {}
        if annotations.pop("helm.sh/resource-policy", None) and not annotations:
            del obj["metadata"]["annotations"]
        made[obj["kind"], obj["metadata"]["name"]] = obj
    return made


def without_definitions(
    made: dict[tuple[str, str], dict[str, Any]],
) -> dict[tuple[str, str], dict[str, Any]]:
    return {key: obj for key, obj in made.items() if key[0] != "CustomResourceDefinition"}


@pytest.mark.parametrize("choice", CHOICES)
def test_the_chart_makes_what_an_installation_would(bare: Bare, helm: Helm, choice: str) -> None:
    values, words = CHOICES[choice]
    rendered = by_name(helm(f"{TEMPLATE} --include-crds {values}"))
    installed = by_name(bare.posse(f"install --dry-run -o yaml {words}")[0])
    assert without_definitions(rendered) == without_definitions(installed)
    # A chart has its definitions, whatever is chosen.
    assert rendered.items() >= installed.items()


def test_a_chart_says_what_it_cannot_be_given(helm: Helm) -> None:
    with pytest.raises(AssertionError, match="/kinds/0"):
        helm(f"{TEMPLATE} --set kinds={{Pod}}")


def test_monitors_come_where_the_cluster_has_them(helm: Helm) -> None:
    told = "--api-versions monitoring.coreos.com/v1/ServiceMonitor"
    rendered = by_name(helm(f"{TEMPLATE} {told}"))
    monitors = [name for kind, name in rendered if kind == "ServiceMonitor"]
    assert sorted(monitors) == ["posse-admission", "posse-controllers", "posse-scheduler"]


def test_a_release_comes_is_upgraded_and_goes(bare: Bare, helm: Helm, tmp_path: Path) -> None:
    helm("install posse CHART")
    assert bare.arguments("posse-controllers")
    _, said = bare.posse("install", code=1)
    assert "let Helm upgrade it" in said
    with bare.answering(tmp_path):
        before = bare.get("secret", KEPT_IN, SYSTEM)
        helm("upgrade posse CHART --set replicas=3 --set kinds={TFJob}")
        deployment = bare.get("deployment", "posse-scheduler", SYSTEM)
        after = bare.get("secret", KEPT_IN, SYSTEM)
        assert deployment is not None and before is not None and after is not None
        assert deployment["spec"]["replicas"] == 3
        assert after["data"] == before["data"]
        assert bare.refuses(hopeless("probe")), "the trust is still there"
    assert bare.get("queue", "default") is not None
    assert bare.get("configmap", "posse-policy", SYSTEM) is not None
    assert bare.get("clusterrole", "posse-controllers-ssh") is None
    helm("uninstall posse")
    assert bare.names("deployments,clusterroles,validatingwebhookconfigurations,secrets") == []
    assert bare.get("queue", "default") is not None
    assert bare.get("crd", "tfjobs.kubeflow.org") is not None
