"""What a kubeconfig says about a plugin, and what the plugin's answers mean."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest

from posse.kube.errors import ConfigError
from posse.kube.kubeconfig import Entry
from posse.kube.plugins import GROUP, Plugin, Terminal, read_answer, read_plugin

V1 = f"{GROUP}/v1"
V1BETA1 = f"{GROUP}/v1beta1"


def read(cluster: dict[str, Any] | None = None, file: Path = Path("/k/c"), **fields: Any) -> Plugin:
    written = {"apiVersion": V1, "command": "get-token"} | fields
    found = read_plugin(
        Entry("jane", {"exec": written}, file),
        Entry("east", {"server": "https://east"} | (cluster or {}), file),
    )
    assert found is not None
    return found


def test_all_that_can_be_said_of_a_plugin() -> None:
    plugin = read(
        apiVersion=V1BETA1,
        args=["--cluster", "east"],
        env=[{"name": "PROFILE", "value": "p"}, {"name": "EMPTY"}],
        interactiveMode="Never",
        installHint="\x1b[31mget it\n from  there\x1b[0m",
        provideClusterInfo=False,
    )
    assert plugin == Plugin(
        user="jane",
        command="get-token",
        args=("--cluster", "east"),
        env=(("PROFILE", "p"), ("EMPTY", "")),
        api_version=V1BETA1,
        terminal=Terminal.NEVER,
        install_hint="get it from there",
    )


def test_empty_lists_may_be_null_as_kubectl_writes_them() -> None:
    plugin = read(args=None, env=None, interactiveMode=None)
    assert (plugin.args, plugin.env, plugin.terminal) == ((), (), Terminal.IF_AVAILABLE)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("get-token", "get-token"),
        ("./get-token", "/k/get-token"),
        ("bin/get-token", "/k/bin/get-token"),
        ("/opt/get-token", "/opt/get-token"),
    ],
)
def test_a_relative_path_starts_at_the_file_and_a_bare_name_is_for_path(
    command: str, path: str
) -> None:
    assert read(command=command).command == path


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"apiVersion": f"{GROUP}/v1alpha1"}, "v1alpha1.*must be"),
        ({"apiVersion": None}, "no apiVersion"),
        ({"command": ""}, "no command"),
        ({"command": ["a"]}, "must be text"),
        ({"args": "a b"}, "list of texts"),
        ({"args": [5]}, "list of texts"),
        ({"env": {"A": "b"}}, "names and values"),
        ({"env": [{"value": "hush"}]}, "names and values"),
        ({"env": [{"name": "A", "value": 5}]}, "names and values"),
        ({"interactiveMode": "Sometimes"}, "Never, IfAvailable or Always"),
        ({"provideClusterInfo": "yes"}, "true or false"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_said_in_one_line(
    fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        read(**fields)
    assert "\n" not in str(caught.value)
    assert "hush" not in str(caught.value)


def test_the_question_says_whether_there_is_somebody_to_ask() -> None:
    assert json.loads(read().question(interactive=True)) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": True},
    }


def test_the_question_has_the_cluster_if_the_plugin_is_to_know_it(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"pem")
    plugin = read(
        {
            "certificate-authority": "ca.crt",
            "tls-server-name": "inner",
            "proxy-url": "http://p:1",
            "extensions": [
                {"name": "other", "extension": 1},
                {"name": f"{GROUP}/exec", "extension": {"audience": "x"}},
            ],
        },
        tmp_path / "config",
        provideClusterInfo=True,
    )
    assert json.loads(plugin.question(interactive=False))["spec"] == {
        "interactive": False,
        "cluster": {
            "server": "https://east",
            "tls-server-name": "inner",
            "certificate-authority-data": base64.b64encode(b"pem").decode(),
            "proxy-url": "http://p:1",
            "config": {"audience": "x"},
        },
    }


def test_nothing_of_a_plugin_that_may_be_secret_is_shown() -> None:
    assert repr(read(args=["hush"], env=[{"name": "A", "value": "hush"}])) == (
        "Plugin(command='get-token')"
    )


def answer(status: Any, **fields: Any) -> bytes:
    document = {"apiVersion": V1, "kind": "ExecCredential", "status": status}
    return json.dumps(document | fields).encode()


def test_a_token_alone_is_good_for_ever() -> None:
    granted = read_answer(read(), answer({"token": "t"}) + b"\n")
    assert (granted.token, granted.certificate, granted.key) == ("t", "", "")
    assert granted.expires == math.inf


def test_a_certificate_with_a_time() -> None:
    granted = read_answer(
        read(),
        answer(
            {
                "clientCertificateData": "c",
                "clientKeyData": "k",
                "expirationTimestamp": "1970-01-01T01:00:10+01:00",
                "token": None,
            }
        ),
    )
    assert (granted.token, granted.certificate, granted.key, granted.expires) == ("", "c", "k", 10)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (b"", "did not print"),
        (b"hush", "did not print"),
        (b"\xff\xfe", "did not print"),
        (b"[" * 100_000, "did not print"),
        (b"[]", "did not print"),
        (b'{"token": "hush"}', "did not print"),
        (answer({"token": 5}), "did not print"),
        (answer({"token": "hush"}, kind="Secret"), "did not print"),
        (answer({"token": "hush"}, apiVersion=V1BETA1), "did not answer in"),
        (answer(None), "neither"),
        (answer({}), "neither"),
        (answer({"token": ""}), "neither"),
        (answer({"clientKeyData": "hush"}), "a key alone"),
        (answer({"token": "hush", "clientCertificateData": "hush"}), "without its key"),
        (answer({"token": "hush", "expirationTimestamp": "hush"}), "not a time"),
        (answer({"token": "hush", "expirationTimestamp": "2026-01-01T00:00:00"}), "not a time"),
    ],
)
def test_an_answer_of_no_use_is_described_and_not_shown(output: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        read_answer(read(), output)
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None
