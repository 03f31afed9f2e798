"""The cluster's names: who bears which, and what a text that holds them becomes."""

from __future__ import annotations

from typing import Any

import pytest

from posse.local.node.naming import NameBook, Reach, Unknown, node_name, read
from tests.unit.processes.rig import container, pod

Manifest = dict[str, Any]


def service(name: str, selector: dict[str, str] | None, *ports: Manifest, **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"selector": selector, "ports": list(ports), **spec}}


WORKER = pod(
    container("c", ports=[{"containerPort": 2222, "name": "tf"}]),
    name="j-worker-0",
    labels={"job": "j", "index": "0"},
)
LAUNCHED = pod(container("c"), name="m-0", labels={"job": "m"}, hostname="m-0", subdomain="m")
REACHES = {"j-worker-0": Reach("127.0.0.1", {2222: 40123}), "m-0": Reach("127.0.0.9")}
SERVICES = [
    service("j-worker-0", {"job": "j", "index": "0"}, {"port": 2222, "targetPort": "tf"}),
    service("web", {"job": "j"}, {"port": 80, "targetPort": 2222}),
    service("j-worker-1", {"job": "j", "index": "1"}, {"port": 2222}),
    service("m", {"job": "m"}),
    service("outside", None, {"port": 80}),
]


def book() -> NameBook:
    return read(
        [WORKER, LAUNCHED],
        SERVICES,
        lambda one: REACHES.get(one["metadata"]["name"]),
        Reach("127.0.0.1", {443: 6443}),
    )


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("j-worker-0.default.svc:2222", "127.0.0.1:40123"),
        ("j-worker-0.default.svc.cluster.local:2222", "127.0.0.1:40123"),
        ("j-worker-0.default:2222", "127.0.0.1:40123"),
        ("j-worker-0:2222", "127.0.0.1:40123"),
        ("web.default.svc:80", "127.0.0.1:40123"),
        ("web.default.svc:99", "127.0.0.1:99"),
        ('["j-worker-0.default.svc:2222","x"]', '["127.0.0.1:40123","x"]'),
        ("grpc://j-worker-0.default.svc:2222/a", "grpc://127.0.0.1:40123/a"),
        ("m-0.m.default.svc slots=2\n", "127.0.0.9 slots=2\n"),
        ("m-0.m slots=2", "127.0.0.9 slots=2"),
        ("kubernetes.default.svc:443", "127.0.0.1:6443"),
        # Not this cluster's, or not surely a name.
        ("j-worker-0", "j-worker-0"),
        ("other-j-worker-0:2222", "other-j-worker-0:2222"),
        ("example.com:443", "example.com:443"),
        ("outside.default.svc:80", "outside.default.svc:80"),
        ("J-WORKER-0.default.svc", "J-WORKER-0.default.svc"),
        ("my_j-worker-0:2222", "my_j-worker-0:2222"),
        ("v1.2.svc-x", "v1.2.svc-x"),
    ],
)
def test_a_text_is_resolved(text: str, resolved: str) -> None:
    assert book().resolve(text, "default") == resolved


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("j-worker-1.default.svc:2222", True),  # its Service is there, its pod is not
        ("m-1.m.default.svc", True),
        ("nobody.default.svc:1", False),
        ("x.y.elsewhere.svc", False),
    ],
)
def test_a_name_that_leads_nowhere_yet_is_told(text: str, declared: bool) -> None:
    with pytest.raises(Unknown) as caught:
        book().resolve(text, "default")
    assert caught.value.declared is declared
    assert caught.value.name == text.partition(":")[0]


def test_a_lenient_book_leaves_what_nobody_declared() -> None:
    assert book().lenient().resolve("nobody.default.svc:1", "default") == "nobody.default.svc:1"


def test_short_names_belong_to_their_namespace() -> None:
    assert book().resolve("j-worker-0:2222", "other") == "j-worker-0:2222"
    assert book().resolve("j-worker-0.default:2222", "other") == "127.0.0.1:40123"


def test_a_hosts_file_has_every_form_of_a_name() -> None:
    lines = {names[0]: (address, names) for address, names in book().hosts("default")}
    assert lines["m-0.m.default.svc.cluster.local"] == (
        "127.0.0.9",
        ["m-0.m.default.svc.cluster.local", "m-0.m.default.svc", "m-0.m.default", "m-0.m"],
    )
    assert "j-worker-1.default.svc.cluster.local" not in lines
    elsewhere = {names[0]: names for _, names in book().hosts("other")}
    assert elsewhere["web.default.svc.cluster.local"][-1] == "web.default"


def test_a_pod_that_is_over_bears_no_name() -> None:
    ended = {**LAUNCHED, "status": {"phase": "Succeeded"}}
    names = read([ended], SERVICES, lambda _: Reach("127.0.0.9"))
    with pytest.raises(Unknown):
        names.resolve("m-0.m.default.svc", "default")


@pytest.mark.parametrize(
    ("hostname", "name"),
    [
        ("Alices-MacBook.local", "alices-macbook.local"),
        ("gpu_box 1", "gpu-box-1"),
        ("-x-.-y-", "x.y"),
        ("", "localhost"),
        ("a" * 80, "a" * 63),
    ],
)
def test_a_machine_has_a_name_that_kubernetes_takes(hostname: str, name: str) -> None:
    assert node_name(hostname) == name
