"""Which proxy stands between us and a server: the kubeconfig's, else the environment's, else none.

The rules of the environment are those of kubectl: HTTPS_PROXY or HTTP_PROXY by the server's
scheme, NO_PROXY with names, addresses, networks and ports, and never a proxy to this machine.
A proxy that the kubeconfig names is used for whatever server it stands beside.
"""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

import msgspec

from posse.kube.errors import ConfigError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORTS = {"http": 80, "https": 443}


class Proxy(msgspec.Struct, frozen=True):
    """`url` has no credentials in it, and can be shown."""

    url: str
    authorization: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.url!r})"


def parse_proxy(text: str, where: str) -> Proxy:
    """The proxy of a URL, which errors do not show but say `where` it stands: it has passwords."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigError(f"{where} is not the address of a proxy") from None
    if parts.scheme.startswith("socks"):
        raise ConfigError(
            f"{where} names a {parts.scheme} proxy, which is not supported; "
            "name an http or https proxy"
        )
    if parts.scheme not in _PORTS or not host:
        raise ConfigError(f"{where} is not the address of a proxy such as http://proxy:3128")
    shown = f"[{host}]" if ":" in host else host
    return Proxy(
        f"{parts.scheme}://{shown}:{port or _PORTS[parts.scheme]}",
        _basic(unquote(parts.username or ""), unquote(parts.password or "")),
    )


def proxy_from(environment: Mapping[str, str], server: str) -> Proxy | None:
    """The proxy that the environment wants for a server, given as a complete URL."""
    parts = urlsplit(server)
    host, port = parts.hostname, parts.port or _PORTS[parts.scheme]
    # A CGI program's HTTP_PROXY comes from its caller's headers.
    if parts.scheme == "http" and environment.get("REQUEST_METHOD"):
        return None
    variable, text = _either(environment, f"{parts.scheme}_proxy")
    if not text or not host or _is_this_machine(host):
        return None
    if is_excepted(host, port, _either(environment, "no_proxy")[1]):
        return None
    return parse_proxy(text if "://" in text else f"http://{text}", variable)


def is_excepted(host: str, port: int, exceptions: str) -> bool:
    """Whether a list such as `10.0.0.0/8,.example.com,host:6443,*` covers the server.

    `example.com` covers itself and what is below it, `.example.com` only what is below it.
    """
    address = _address(host)
    for written in exceptions.lower().split(","):
        entry = written.strip()
        if entry == "*":
            return True
        if "/" in entry:
            if address is not None and _within(address, entry):
                return True
            continue
        name, at = _with_port(entry)
        if not name or (at and at != str(port)):
            continue
        if (exact := _address(name)) is not None:
            if exact == address:
                return True
        elif address is None and _covers(name, host.lower().rstrip(".")):
            return True
    return False


def _covers(name: str, host: str) -> bool:
    name = name.removeprefix("*")
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _within(address: Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _with_port(entry: str) -> tuple[str, str]:
    """The name or address of an exception, and its port if it has one."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _is_this_machine(host: str) -> bool:
    address = _address(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def _address(host: str) -> Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _either(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    """A variable in capitals or, if that is empty, in small letters, with the name it was under."""
    capitals = environment.get(name.upper(), "").strip()
    return (name.upper(), capitals) if capitals else (name, environment.get(name, "").strip())


def _basic(username: str, password: str) -> str:
    if not username and not password:
        return ""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
