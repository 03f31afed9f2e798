from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from posse.kube.config import (
    ConfigError,
    NothingSelected,
    in_cluster,
    kubeconfig_paths,
    load_kubeconfig,
    selected,
)
from posse.kube.impersonating import Impersonation

PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws"}


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config(
    name: str = "one", *, cluster: Any = None, user: Any = None, **context: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {"name": name, "cluster": {"server": f"https://{name}:6443"} | (cluster or {})}
        ],
        "users": [{"name": name, "user": {"token": f"token-{name}"} if user is None else user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name} | context}],
    }


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return path


def test_the_selected_context_gives_server_user_and_namespace(tmp_path: Path) -> None:
    settings = load_kubeconfig([write(tmp_path / "c", config(namespace="team"))])
    assert settings.server == "https://one:6443"
    assert settings.token == "token-one"
    assert settings.namespace == "team"
    assert settings.context == "one"


def test_files_merge_and_the_first_has_the_word(tmp_path: Path) -> None:
    other = config("two")
    other["clusters"].append({"name": "one", "cluster": {"server": "https://shadowed"}})
    files = [
        tmp_path / "missing",
        write(tmp_path / "a", config("one")),
        write(tmp_path / "b", other),
    ]
    assert load_kubeconfig(files).server == "https://one:6443"
    assert load_kubeconfig(files, "two").server == "https://two:6443"


def test_a_context_may_join_parts_of_several_files(tmp_path: Path) -> None:
    files = [
        write(
            tmp_path / "a",
            {
                "current-context": "mix",
                "contexts": [{"name": "mix", "context": {"cluster": "two", "user": "three"}}],
            },
        ),
        write(tmp_path / "b", config("two")),
        write(tmp_path / "c", config("three")),
    ]
    settings = load_kubeconfig(files)
    assert (settings.server, settings.token) == ("https://two:6443", "token-three")


def test_paths_are_relative_to_the_file_that_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = config(
        cluster={"certificate-authority": "pki/ca.crt"},
        user={"client-certificate": "/abs/crt", "client-key": "key", "tokenFile": "../token"},
    )
    write(tmp_path / "kube" / "config", document)
    monkeypatch.chdir(tmp_path)
    settings = load_kubeconfig(["kube/config"])
    assert settings.ca_file == tmp_path / "kube" / "pki" / "ca.crt"
    assert settings.client_cert_file == Path("/abs/crt")
    assert settings.client_key_file == tmp_path / "kube" / "key"
    assert settings.token_file == tmp_path / "kube" / ".." / "token"


def test_data_is_decoded(tmp_path: Path) -> None:
    document = config(
        cluster={
            "certificate-authority-data": b64("ca"),
            "insecure-skip-tls-verify": True,
            "tls-server-name": "inner",
        },
        user={"client-certificate-data": b64("crt"), "client-key-data": b64("key")},
    )
    settings = load_kubeconfig([write(tmp_path / "c", document)])
    assert settings.ca_data == b"ca"
    assert settings.client_cert_data == b"crt"
    assert settings.client_key_data == b"key"
    assert settings.insecure
    assert settings.tls_server_name == "inner"


def test_a_context_without_a_user_is_nobody(tmp_path: Path) -> None:
    document = config()
    del document["contexts"][0]["context"]["user"]
    assert load_kubeconfig([write(tmp_path / "c", document)]).token is None


def test_a_name_and_password_and_whom_to_act_as(tmp_path: Path) -> None:
    user = {"username": "me", "password": "p", "as": "jane", "as-groups": ["dev"]}
    settings = load_kubeconfig([write(tmp_path / "c", config(user=user))])
    assert (settings.username, settings.password) == ("me", "p")
    assert settings.acting_as == Impersonation(user="jane", groups=("dev",))


def test_a_plugin_signs_in_unless_there_is_a_token(tmp_path: Path) -> None:
    settings = load_kubeconfig([write(tmp_path / "c", config(user={"exec": PLUGIN}))])
    assert settings.plugin is not None
    assert settings.plugin.command == "aws"
    both = config(user={"exec": PLUGIN, "token": "t"})
    assert load_kubeconfig([write(tmp_path / "c", both)]).plugin is None


@pytest.mark.parametrize(
    ("named", "environment", "chosen"),
    [
        (None, {}, None),
        (None, {"HTTPS_PROXY": "http://env:1"}, "http://env:1"),
        (None, {"HTTPS_PROXY": "http://env:1", "NO_PROXY": "one"}, None),
        ("http://named:2", {"HTTPS_PROXY": "http://env:1"}, "http://named:2"),
        ("http://named:2", {"NO_PROXY": "*"}, "http://named:2"),
        ("http://named:2", {"HTTPS_PROXY": "socks5://env:1"}, "http://named:2"),
    ],
)
def test_the_proxy_of_the_cluster_comes_before_that_of_the_environment(
    tmp_path: Path, named: str | None, environment: dict[str, str], chosen: str | None
) -> None:
    file = write(tmp_path / "c", config(cluster={"proxy-url": named}))
    settings = load_kubeconfig([file], environment=environment)
    assert (settings.proxy and settings.proxy.url) == chosen


def test_the_proxy_of_the_environment_is_chosen_by_the_whole_address(tmp_path: Path) -> None:
    """An address without a scheme is secure when there is an authority to check it by."""
    cluster = {"server": "api:6443", "certificate-authority-data": b64("ca")}
    file = write(tmp_path / "c", config(cluster=cluster))
    environment = {"HTTPS_PROXY": "http://s:1", "HTTP_PROXY": "http://p:1"}
    proxy = load_kubeconfig([file], environment=environment).proxy
    assert proxy is not None
    assert proxy.url == "http://s:1"


def without(document: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}


@pytest.mark.parametrize(
    ("document", "context", "words"),
    [
        (config(), "nope", ["'nope'", "one"]),
        (without(config(), "current-context"), None, ["no context is selected", "--context"]),
        (without(config(), "clusters"), None, ["cluster 'one'"]),
        (without(config(), "users"), None, ["user 'one'"]),
        (config(cluster={"server": ""}), None, ["no server"]),
        (config(cluster={"server": 5}), None, ["server", "must be text"]),
        (config(cluster={"insecure-skip-tls-verify": "yes"}), None, ["true or false"]),
        (config(cluster={"certificate-authority-data": "?"}), None, ["not base64"]),
        (config(user={"exec": {"command": "aws"}}), None, ["'one'", "no apiVersion", "v1beta1"]),
        (config(user={"auth-provider": {"name": "gcp"}}), None, ["'auth-provider'", "'exec'"]),
        (config(user={"token": "t", "username": "u"}), None, ["both a token and a password"]),
        (config(user={"tokenFile": "t", "password": "u"}), None, ["both a token and a password"]),
        (config(user={"exec": PLUGIN, "client-certificate": "c"}), None, ["both an 'exec'"]),
        (config(user={"exec": "aws"}), None, ["exec", "mapping"]),
        (config(cluster={"proxy-url": "socks5://p:1"}), None, ["proxy-url", "socks5"]),
        (config(cluster={"proxy-url": "p:1"}), None, ["proxy-url of cluster 'one'", "proxy"]),
        (config(user={"as-groups": ["a"]}), None, ["nobody to act as"]),
        (config(cluster={"server": "ftp://x"}), None, ["not the address of a server"]),
        ("a: [1", None, ["not valid YAML", "line"]),
        ("just words", None, ["not a kubeconfig"]),
        ("", None, ["no context is selected"]),
        ({"clusters": {"a": 1}}, None, ["clusters should be a list"]),
        ({"contexts": [{"context": {}}]}, None, ["contexts should be a list of named items"]),
        ({"users": [{"name": "a", "user": 7}]}, None, ["should be a mapping"]),
        ("\x00", None, ["not valid YAML"]),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    tmp_path: Path, document: Any, context: str | None, words: list[str]
) -> None:
    file = write(tmp_path / "c", document)
    with pytest.raises(ConfigError) as caught:
        load_kubeconfig([file], context)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_no_file_at_all_is_an_error_that_names_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="missing"):
        load_kubeconfig([tmp_path / "missing"])


def test_kubeconfig_names_files_else_the_home_directory_does() -> None:
    assert kubeconfig_paths({"KUBECONFIG": "/a::/b"}) == [Path("/a"), Path("/b")]
    assert kubeconfig_paths({"HOME": "/home/x"}) == [Path("/home/x/.kube/config")]
    assert kubeconfig_paths({"KUBECONFIG": "", "HOME": "/h"}) == [Path("/h/.kube/config")]


def test_who_has_no_home_is_at_home_in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    assert kubeconfig_paths({}) == [Path("/.kube/config")]


def test_no_secret_shows_when_settings_are_printed(tmp_path: Path) -> None:
    document = config(user={"token": "geheim", "client-key-data": b64("schluessel")})
    settings = load_kubeconfig([write(tmp_path / "c", document)])
    for text in (repr(settings), str(settings), f"{settings}"):
        assert "geheim" not in text
        assert "schluessel" not in text


@pytest.fixture
def account(tmp_path: Path) -> Path:
    for name, content in (("token", "t"), ("ca.crt", "c"), ("namespace", "posse-system\n")):
        (tmp_path / name).write_text(content)
    return tmp_path


INSIDE = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_inside_a_pod(account: Path) -> None:
    settings = in_cluster(INSIDE, account=account)
    assert settings.server == "https://10.0.0.1:443"
    assert settings.namespace == "posse-system"
    assert settings.token_file == account / "token"
    assert settings.ca_file == account / "ca.crt"


def test_inside_a_pod_with_ipv6(account: Path) -> None:
    environment = INSIDE | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert in_cluster(environment, account=account).server == "https://[fd00::1]:443"


def test_a_pod_behind_a_proxy(account: Path) -> None:
    proxied = INSIDE | {"HTTPS_PROXY": "http://p:1"}
    proxy = in_cluster(proxied, account=account).proxy
    assert proxy is not None
    assert proxy.url == "http://p:1"
    excepted = proxied | {"NO_PROXY": INSIDE["KUBERNETES_SERVICE_HOST"] + "/24"}
    assert in_cluster(excepted, account=account).proxy is None


@pytest.mark.parametrize("missing", ["KUBERNETES_SERVICE_HOST", "token", "ca.crt"])
def test_outside_of_a_pod_says_so(account: Path, missing: str) -> None:
    environment = without(INSIDE, missing)
    (account / missing).unlink(missing_ok=True)
    with pytest.raises(ConfigError, match="not inside a cluster"):
        in_cluster(environment, account=account)


def test_whoever_is_inside_of_a_cluster_and_names_none_means_that_one(account: Path) -> None:
    inside = INSIDE | {"KUBECONFIG": str(account / "missing")}
    assert selected(environment=inside, account=account).server == "https://10.0.0.1:443"


def test_a_selected_context_has_the_word_over_the_cluster_around(account: Path) -> None:
    file = write(account / "c", config())
    inside = INSIDE | {"KUBECONFIG": str(file)}
    assert selected(environment=inside, account=account).server == "https://one:6443"


@pytest.mark.parametrize("named", [{"kubeconfig": "/missing"}, {"context": "absent"}])
def test_what_is_named_is_never_replaced_by_the_cluster_around(
    account: Path, named: dict[str, str]
) -> None:
    inside = INSIDE | {"KUBECONFIG": str(account / "missing")}
    with pytest.raises(ConfigError, match="no kubeconfig"):
        selected(**named, environment=inside, account=account)


@pytest.mark.parametrize("missing", ["KUBERNETES_SERVICE_HOST", "token"])
def test_outside_of_a_cluster_the_missing_kubeconfig_is_named(account: Path, missing: str) -> None:
    environment = without(INSIDE, missing) | {"KUBECONFIG": str(account / "missing")}
    (account / missing).unlink(missing_ok=True)
    with pytest.raises(NothingSelected, match="no kubeconfig"):
        selected(environment=environment, account=account)


def test_a_broken_kubeconfig_is_not_passed_over(account: Path) -> None:
    inside = INSIDE | {"KUBECONFIG": str(write(account / "c", "clusters: 7"))}
    with pytest.raises(ConfigError, match="clusters should be a list") as caught:
        selected(environment=inside, account=account)
    assert not isinstance(caught.value, NothingSelected)
