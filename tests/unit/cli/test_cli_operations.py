"""What the manual says of numbers and keys is what there is; which cluster `status` means."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from posse.admission.metrics import AdmissionMetrics
from posse.cli.options import App, Globals
from posse.cli.targeting import elsewhere
from posse.controllers.metrics import ControllersMetrics
from posse.kube.config import ConfigError
from posse.kube.expiry import CertificateDays
from posse.kube.metering import ServiceMetrics
from posse.local.supervisor.home import Home
from posse.local.supervisor.states import Address
from posse.scheduler.metrics import SchedulerMetrics
from posse.world import World

MANUAL = (Path(__file__).parents[3] / "docs" / "operations.md").read_text(encoding="utf-8")


def _names(measure: Callable[[CollectorRegistry, World], ServiceMetrics]) -> set[str]:
    registry, world = CollectorRegistry(), World.real()
    measure(registry, world)
    CertificateDays(registry, world, {})
    totals = {"counter": "_total"}
    return {f"{family.name}{totals.get(family.type, '')}" for family in registry.collect()}


@pytest.mark.parametrize("measure", [SchedulerMetrics, ControllersMetrics, AdmissionMetrics])
def test_every_number_is_in_the_manual(
    measure: Callable[[CollectorRegistry, World], ServiceMetrics],
) -> None:
    missing = [name for name in sorted(_names(measure)) if f"| `{name}` |" not in MANUAL]
    assert missing == []


def test_the_manual_speaks_of_no_other_numbers() -> None:
    known = _names(SchedulerMetrics) | _names(ControllersMetrics) | _names(AdmissionMetrics)
    told = set(re.findall(r"\bposse_[a-z_]+", MANUAL))
    assert sorted(name for name in told if name not in known) == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home whose cluster listens on port 7777, and a kubeconfig with three contexts."""
    servers = {
        "posse": "https://127.0.0.1:7777",
        "stale": "https://127.0.0.1:9999",
        "far": "https://far.example:6443",
    }
    named: list[dict[str, Any]] = [
        {"name": name, "context": {"cluster": name, "user": name}} for name in servers
    ]
    kubeconfig = {
        "current-context": "far",
        "clusters": [{"name": n, "cluster": {"server": s}} for n, s in servers.items()],
        "users": [{"name": name, "user": {"token": "t"}} for name in servers],
        "contexts": named,
    }
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(kubeconfig))
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    made = Home(tmp_path / "posse")
    made.prepare()
    made.save(made.address, Address(7777))
    return made


def _app(**options: str) -> App:
    return App(Globals(**options), "posse")


def test_the_selected_context_is_meant(home: Home) -> None:
    there = elsewhere(_app(), home)
    assert there is not None
    assert there.context == "far"


def test_the_context_of_this_machine_is_this_machine(home: Home) -> None:
    assert elsewhere(_app(context="posse"), home) is None


def test_another_port_of_this_machine_is_another_cluster(home: Home) -> None:
    there = elsewhere(_app(context="stale"), home)
    assert there is not None


def test_our_own_context_of_a_cluster_that_is_gone_is_this_machine(home: Home) -> None:
    home.address.unlink()
    assert elsewhere(_app(context="posse"), home) is None


def test_without_any_context_this_machine_is_meant(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    assert elsewhere(_app(), home) is None


def test_a_context_that_is_not_there_is_an_error(home: Home) -> None:
    with pytest.raises(ConfigError, match="there is no context 'absent'"):
        elsewhere(_app(context="absent"), home)


def test_a_kubeconfig_that_cannot_be_read_is_an_error_and_not_this_machine(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_text("contexts: 7")
    monkeypatch.setenv("KUBECONFIG", str(broken))
    with pytest.raises(ConfigError, match="contexts should be a list"):
        elsewhere(_app(), home)
