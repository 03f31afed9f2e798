"""Which server to talk to and as whom: from kubeconfig files, or from inside a pod."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from posse.kube.errors import ConfigError, NothingSelected
from posse.kube.impersonating import Impersonation, read_impersonation
from posse.kube.kubeconfig import Entry, Kubeconfig, KubeconfigFile, read_merged
from posse.kube.plugins import Plugin, read_plugin
from posse.kube.proxies import Proxy, parse_proxy, proxy_from

__all__ = [
    "ConfigError",
    "Kubeconfig",
    "KubeconfigFile",
    "NothingSelected",
    "Settings",
    "in_cluster",
    "kubeconfig_paths",
    "load_kubeconfig",
    "selected",
    "user_home",
]

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All that a transport needs.

    Where both a file and its content are given, content wins; but a token file has the word over
    a token, which is then what was in the file when the settings were written.
    """

    server: str
    namespace: str = "default"
    ca_file: Path | None = None
    ca_data: bytes | None = None
    client_cert_file: Path | None = None
    client_cert_data: bytes | None = None
    client_key_file: Path | None = None
    client_key_data: bytes | None = None
    token: str | None = None
    token_file: Path | None = None
    username: str = ""
    password: str = ""
    plugin: Plugin | None = None
    acting_as: Impersonation | None = None
    proxy: Proxy | None = None
    insecure: bool = False
    tls_server_name: str | None = None
    context: str = ""

    @property
    def url(self) -> str:
        """The server's address without a closing slash; it may have a path of its own.

        ConfigError when it is none.
        """
        server = self.server
        if "://" not in server:
            secure = self.ca_file or self.ca_data or self.insecure
            server = f"{'https' if secure else 'http'}://{server}"
        try:
            parts = urlsplit(server)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise ConfigError(f"{self.server!r} is not the address of a server")
        return server.rstrip("/")

    def __repr__(self) -> str:
        """Says where, never with what secret."""
        return f"Settings(server={self.server!r}, namespace={self.namespace!r})"


def kubeconfig_paths(environment: Mapping[str, str] | None = None) -> list[Path]:
    """The files of $KUBECONFIG, else ~/.kube/config; the first is the one to write to."""
    environment = os.environ if environment is None else environment
    named = [Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return named or [user_home(environment) / ".kube" / "config"]


def user_home(environment: Mapping[str, str] | None = None) -> Path:
    """The user's directory; the root for one whom nobody knows, as in a container with any uid."""
    environment = os.environ if environment is None else environment
    if environment.get("HOME"):
        return Path(environment["HOME"])
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def load_kubeconfig(
    paths: Sequence[Path | str] | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of a context, by default of the one selected, of the merged files."""
    environment = os.environ if environment is None else environment
    files = kubeconfig_paths(environment) if paths is None else [Path(path) for path in paths]
    settings = _settings(read_merged(files), context, files)
    return settings if settings.proxy else _proxied(settings, environment)


def selected(
    kubeconfig: Path | str | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    account: Path = _SERVICE_ACCOUNT,
) -> Settings:
    """The cluster that is meant: the one that is named, else the selected one, else the one that
    we are in. NothingSelected where there is none of them."""
    environment = os.environ if environment is None else environment
    files = [Path(kubeconfig)] if kubeconfig else None
    try:
        return load_kubeconfig(files, context, environment=environment)
    except NothingSelected as nothing:
        if files or context:
            raise
        try:
            return in_cluster(environment, account=account)
        except NothingSelected:
            raise nothing from None


def in_cluster(
    environment: Mapping[str, str] | None = None, *, account: Path = _SERVICE_ACCOUNT
) -> Settings:
    """The settings of a pod: the API server's address from its environment, the rest mounted.

    The token is named, not read: the kubelet replaces it while the pod runs.
    """
    environment = os.environ if environment is None else environment
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise NothingSelected("not inside a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set")
    token, authority = account / "token", account / "ca.crt"
    for path in (token, authority):
        if not path.is_file():
            raise NothingSelected(f"not inside a cluster: {path} does not exist")
    namespace = account / "namespace"
    settings = Settings(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        namespace=(namespace.read_text().strip() if namespace.is_file() else "") or "default",
        ca_file=authority,
        token_file=token,
    )
    return _proxied(settings, environment)


def _proxied(settings: Settings, environment: Mapping[str, str]) -> Settings:
    return msgspec.structs.replace(settings, proxy=proxy_from(environment, settings.url))


def _settings(merged: Kubeconfig, name: str | None, files: Sequence[Path]) -> Settings:
    where = ", ".join(str(path) for path in files)
    name = name or merged.current_context
    if not name:
        raise NothingSelected(
            f"no context is selected in {where}; name one with --context, or run `posse up`"
        )
    context = merged.contexts.get(name)
    if context is None:
        known = ", ".join(sorted(merged.contexts)) or "none"
        raise ConfigError(f"there is no context {name!r} in {where}; there are: {known}")
    cluster_name, user_name = context.text("cluster"), context.text("user")
    cluster = merged.clusters.get(cluster_name)
    if cluster is None:
        raise ConfigError(
            f"context {name!r} names cluster {cluster_name!r}, which is not in {where}"
        )
    server = cluster.text("server")
    if not server:
        raise ConfigError(f"cluster {cluster_name!r} has no server")
    user = merged.users.get(user_name)
    if user is None and user_name:
        raise ConfigError(f"context {name!r} names user {user_name!r}, which is not in {where}")
    settings = Settings(
        server=server,
        namespace=context.text("namespace") or "default",
        context=name,
        ca_file=cluster.path("certificate-authority"),
        ca_data=cluster.data("certificate-authority-data"),
        insecure=cluster.flag("insecure-skip-tls-verify"),
        tls_server_name=cluster.text("tls-server-name") or None,
        proxy=_named_proxy(cluster),
    )
    return settings if user is None else _signed(settings, user, cluster)


def _named_proxy(cluster: Entry) -> Proxy | None:
    url = cluster.text("proxy-url")
    return parse_proxy(url, f"proxy-url of cluster {cluster.name!r}") if url else None


def _signed(settings: Settings, user: Entry, cluster: Entry) -> Settings:
    """The settings with what the user signs in with. A token has the word over a plugin."""
    if user.fields.get("auth-provider"):
        raise ConfigError(
            f"user {user.name!r} signs in with 'auth-provider', which Kubernetes has removed; "
            "use an 'exec' plugin, a token or a client certificate"
        )
    token, token_file = user.text("token").strip(), user.path("tokenFile")
    if not token.isprintable():
        raise ConfigError(f"{user.file}: token of {user.name!r} holds control characters")
    username, password = user.text("username"), user.text("password")
    if (token or token_file) and (username or password):
        raise ConfigError(f"user {user.name!r} has both a token and a password; keep one of them")
    signed = msgspec.structs.replace(
        settings,
        token=token or None,
        token_file=token_file,
        username=username,
        password=password,
        client_cert_file=user.path("client-certificate"),
        client_cert_data=user.data("client-certificate-data"),
        client_key_file=user.path("client-key"),
        client_key_data=user.data("client-key-data"),
        acting_as=read_impersonation(user),
    )
    if token or token_file or username:
        return signed
    plugin = read_plugin(user, cluster)
    if plugin is not None and (signed.client_cert_file or signed.client_cert_data):
        raise ConfigError(
            f"user {user.name!r} has both an 'exec' plugin and a client certificate; "
            "keep one of them"
        )
    return msgspec.structs.replace(signed, plugin=plugin)
