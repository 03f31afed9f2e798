"""Requests and watches through a proxy, over real sockets."""

from __future__ import annotations

import asyncio
import base64
import ssl
from pathlib import Path

import pytest
import uvloop
import yaml

from posse.kube import connect
from posse.kube.config import Settings, load_kubeconfig
from posse.kube.errors import Unreachable
from posse.kube.proxies import Proxy, parse_proxy
from posse.objects.kinds import CONFIG_MAP
from posse.world import World
from tests.unit.kube.certificates import Authority
from tests.unit.kube.modelserver import ModelServer
from tests.unit.kube.proxyserver import ProxyServer
from tests.unit.kube.serving import serving, to

SIGNED = "Basic " + base64.b64encode(b"me:hush").decode()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def with_credentials(url: str) -> Proxy:
    return parse_proxy(url.replace("//", "//me:hush@"), "proxy-url")


def context(authority: Authority, folder: Path, name: str = "proxy") -> ssl.SSLContext:
    found = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    found.load_cert_chain(*authority.write(folder, name, address="127.0.0.1"))
    return found


async def verbs_through_a_proxy(authority: Authority, folder: Path, *, secure: bool) -> None:
    server, proxy = ModelServer(), ProxyServer()
    certificate, key = authority.write(folder, "inner.example")
    tls = context(authority, folder) if secure else None
    async with (
        serving(server, ssl_certfile=certificate, ssl_keyfile=key) as port,
        proxy.running(tls) as url,
    ):
        settings = Settings(
            server=f"https://127.0.0.1:{port}",
            ca_data=authority.pem,
            token="t0k",
            tls_server_name="inner.example",
            proxy=with_credentials(url),
        )
        connection = connect(settings, World.real())
        await connection.create(CONFIG_MAP, {"metadata": {"name": "a", "namespace": "ns"}})
        assert (await connection.get(CONFIG_MAP, "a", "ns"))["metadata"]["uid"] == "u1"
        watch = connection.watch(CONFIG_MAP, resource_version="0")
        assert (await anext(watch)).type == "ADDED"
        server.put("configmaps", "b")
        assert (await anext(watch)).resource_version == "2"
        await watch.aclose()
        await connection.close()
    # The first connection is kept and used again, so that there is one tunnel for all three.
    assert proxy.asked == [f"CONNECT 127.0.0.1:{port}"]
    assert proxy.headers[0]["proxy-authorization"] == SIGNED
    assert "authorization" not in proxy.headers[0]
    assert {request.headers["authorization"] for request in server.requests} == {"Bearer t0k"}
    assert not any("proxy-authorization" in request.headers for request in server.requests)


@pytest.mark.parametrize("secure", [False, True])
async def test_a_tunnel_to_a_secure_server(
    authority: Authority, tmp_path: Path, secure: bool
) -> None:
    await verbs_through_a_proxy(authority, tmp_path, secure=secure)


@pytest.mark.parametrize("secure", [False, True])
def test_a_tunnel_on_the_fast_event_loop(
    authority: Authority, tmp_path: Path, secure: bool
) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(verbs_through_a_proxy(authority, tmp_path, secure=secure))


async def test_plain_requests_are_handed_to_the_proxy_whole() -> None:
    server, proxy = ModelServer(), ProxyServer()
    async with serving(server) as port, proxy.running() as url:
        settings = Settings(
            server=f"http://127.0.0.1:{port}", token="t0k", proxy=with_credentials(url)
        )
        async with to(settings) as transport:
            assert (await transport.request("GET", "/api/v1/nope/x")).status == 404
    assert proxy.asked == [f"GET http://127.0.0.1:{port}/api/v1/nope/x"]
    assert proxy.headers[0]["proxy-authorization"] == SIGNED
    assert server.requests[0].path == "/api/v1/nope/x"


@pytest.mark.parametrize(
    ("refuses", "words"),
    [
        ("407 Proxy Authentication Required", "does not accept these credentials"),
        ("403 Forbidden", "the proxy answered 403 Forbidden"),
        ("502 Bad Gateway", "the proxy answered 502 Bad Gateway"),
    ],
)
async def test_a_proxy_that_refuses_is_named_and_its_password_is_not(
    refuses: str, words: str
) -> None:
    proxy = ProxyServer()
    proxy.refuses = refuses
    async with proxy.running() as url:
        settings = Settings(server="https://api.example:6443", proxy=with_credentials(url))
        async with to(settings) as transport:
            with pytest.raises(Unreachable, match=words) as caught:
                await transport.request("GET", "/")
    assert url in str(caught.value)
    assert "hush" not in str(caught.value)
    assert SIGNED not in str(caught.value)


async def test_no_proxy_there_is_said_of_the_proxy() -> None:
    settings = Settings(server="https://api.example:6443", proxy=Proxy("http://127.0.0.1:1"))
    async with to(settings) as transport:
        with pytest.raises(Unreachable, match=r"through the proxy http://127\.0\.0\.1:1: "):
            await transport.request("GET", "/")


async def test_a_secure_proxy_of_another_authority_gets_no_password(
    authority: Authority, tmp_path: Path
) -> None:
    proxy = ProxyServer()
    async with proxy.running(context(Authority("stranger"), tmp_path)) as url:
        settings = Settings(
            server="https://api.example", ca_data=authority.pem, proxy=with_credentials(url)
        )
        async with to(settings) as transport:
            with pytest.raises(Unreachable, match="certificate"):
                await transport.request("GET", "/")
    assert proxy.asked == []


async def test_the_proxy_of_a_kubeconfig_is_used_for_loopback_too(tmp_path: Path) -> None:
    server, proxy = ModelServer(), ProxyServer()
    async with serving(server) as port, proxy.running() as url:
        cluster = {"server": f"http://127.0.0.1:{port}", "proxy-url": url}
        document = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": cluster}],
            "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        }
        (tmp_path / "c").write_text(yaml.safe_dump(document))
        async with to(load_kubeconfig([tmp_path / "c"])) as transport:
            await transport.request("GET", "/x")
    assert proxy.asked == [f"GET http://127.0.0.1:{port}/x"]
