"""Programs that a kubeconfig names to sign in with: what to run, and what they answer.

This is `client.authentication.k8s.io`, by which cloud providers hand out short-lived tokens. The
program gets an ExecCredential in its environment and prints one with a status. All of its output
is secret: none of it is ever shown, not even when it cannot be read.
"""

from __future__ import annotations

import base64
import math
import os
import re
from enum import Enum
from typing import Any

import msgspec

from posse.kube.errors import ConfigError
from posse.kube.kubeconfig import Entry
from posse.objects.times import parse_time

GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
_EXTENSION = f"{GROUP}/exec"
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|.)?")


class Terminal(Enum):
    """Whether a plugin may talk with the person at the terminal."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    user: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    api_version: str = _VERSIONS[0]
    terminal: Terminal = Terminal.IF_AVAILABLE
    install_hint: str = ""
    cluster: bytes | None = None  # the JSON of what the plugin may know of the cluster

    def __repr__(self) -> str:
        """Without arguments and environment, which may hold secrets."""
        return f"Plugin(command={self.command!r})"

    def question(self, *, interactive: bool) -> str:
        """The ExecCredential that the plugin finds in KUBERNETES_EXEC_INFO."""
        spec: dict[str, Any] = {"interactive": interactive}
        if self.cluster is not None:
            spec["cluster"] = msgspec.Raw(self.cluster)
        document = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(document).decode()


class Granted(msgspec.Struct, frozen=True):
    """What a plugin answered. Both a token and a certificate may be there; one of them is."""

    token: str
    certificate: str
    key: str
    expires: float

    def __repr__(self) -> str:
        return f"Granted(expires={self.expires})"


def read_plugin(user: Entry, cluster: Entry) -> Plugin | None:
    """The plugin of a user, for a cluster; None when the user has none."""
    written = user.part("exec")
    if written is None:
        return None
    version = written.text("apiVersion")
    if version not in _VERSIONS:
        raise ConfigError(
            f"{user.file}: the plugin of user {user.name!r} speaks {version or 'no apiVersion'!r}; "
            f"it must be {' or '.join(_VERSIONS)}"
        )
    if not (command := written.text("command")):
        raise ConfigError(f"{user.file}: the plugin of user {user.name!r} has no command")
    mode = written.text("interactiveMode") or Terminal.IF_AVAILABLE.value
    if mode not in {member.value for member in Terminal}:
        raise ConfigError(
            f"{user.file}: interactiveMode of user {user.name!r} must be "
            "Never, IfAvailable or Always"
        )
    return Plugin(
        user=user.name,
        # A bare name is looked for on PATH; anything else is a path beside the file.
        command=str(written.path("command")) if os.sep in command else command,
        args=written.texts("args"),
        env=_env(written),
        api_version=version,
        terminal=Terminal(mode),
        install_hint=" ".join(_ESCAPES.sub("", written.text("installHint")).split()),
        cluster=_cluster(cluster) if written.flag("provideClusterInfo") else None,
    )


def read_answer(plugin: Plugin, output: bytes) -> Granted:
    """What the plugin granted; ValueError says what is wrong with the answer, not what it was."""
    try:
        answer = msgspec.json.decode(output, type=_Answer)
    except (ValueError, RecursionError):
        raise ValueError("did not print an ExecCredential") from None
    if answer.kind != "ExecCredential":
        raise ValueError("did not print an ExecCredential")
    if answer.api_version != plugin.api_version:
        raise ValueError(f"did not answer in {plugin.api_version}, as it was asked to")
    status = answer.status or _Status()
    token = status.token or ""
    certificate = status.client_certificate_data or ""
    key = status.client_key_data or ""
    if not token and not certificate and not key:
        raise ValueError("gave neither a token nor a client certificate")
    if bool(certificate) != bool(key):
        raise ValueError("gave a client certificate without its key, or a key alone")
    expires = math.inf
    if status.expiration_timestamp:
        try:
            expires = parse_time(status.expiration_timestamp)
        except ValueError:
            raise ValueError("gave an expirationTimestamp that is not a time") from None
    return Granted(token, certificate, key, expires)


class _Status(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


def _env(written: Entry) -> tuple[tuple[str, str], ...]:
    """The variables to add; those of our own environment are all there, too."""
    items = written.fields.get("env") or []
    if not isinstance(items, list) or not all(
        isinstance(item, dict)
        and isinstance(item.get("name"), str)
        and isinstance(item.get("value", ""), str)
        for item in items
    ):
        raise ConfigError(
            f"{written.file}: env of {written.name!r} must be a list of names and values"
        )
    return tuple((item["name"], item.get("value", "")) for item in items)


def _cluster(cluster: Entry) -> bytes:
    """The cluster as the plugin may see it, with its authority's certificate inside."""
    authority = cluster.data("certificate-authority-data")
    if authority is None and (file := cluster.path("certificate-authority")) is not None:
        try:
            authority = file.read_bytes()
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    seen: dict[str, Any] = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(authority or b"").decode("ascii"),
        "proxy-url": cluster.text("proxy-url"),
        "disable-compression": cluster.flag("disable-compression"),
        "config": _extension(cluster),
    }
    return msgspec.json.encode({name: value for name, value in seen.items() if value})


def _extension(cluster: Entry) -> Any:
    """What the cluster's entry holds for plugins alone."""
    extensions = cluster.fields.get("extensions")
    for item in extensions if isinstance(extensions, list) else []:
        if isinstance(item, dict) and item.get("name") == _EXTENSION:
            return item.get("extension")
    return None
