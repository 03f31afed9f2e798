"""Which proxy is chosen, for which server, by whom."""

from __future__ import annotations

import base64

import pytest

from posse.kube.errors import ConfigError
from posse.kube.proxies import Proxy, is_excepted, parse_proxy, proxy_from

SERVER = "https://api.example.com:6443"


@pytest.mark.parametrize(
    ("server", "environment", "chosen"),
    [
        (SERVER, {}, None),
        (SERVER, {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        (SERVER, {"https_proxy": "http://p:3128"}, "http://p:3128"),
        (SERVER, {"HTTPS_PROXY": "http://p:1", "https_proxy": "http://q:2"}, "http://p:1"),
        (SERVER, {"HTTPS_PROXY": "", "https_proxy": "http://q:2"}, "http://q:2"),
        (SERVER, {"HTTPS_PROXY": "p:3128"}, "http://p:3128"),
        (SERVER, {"HTTPS_PROXY": "https://p"}, "https://p:443"),
        (SERVER, {"HTTPS_PROXY": "http://[fd00::1]"}, "http://[fd00::1]:80"),
        (SERVER, {"HTTP_PROXY": "http://p:3128"}, None),
        (SERVER, {"ALL_PROXY": "http://p:3128"}, None),
        ("http://api:8080", {"HTTP_PROXY": "http://p:3128"}, "http://p:3128"),
        ("http://api:8080", {"HTTPS_PROXY": "http://p:3128"}, None),
        ("http://api:8080", {"HTTP_PROXY": "http://p", "REQUEST_METHOD": "GET"}, None),
        (SERVER, {"HTTPS_PROXY": "http://p", "NO_PROXY": "example.com"}, None),
        (SERVER, {"HTTPS_PROXY": "http://p", "no_proxy": "example.com"}, None),
        (SERVER, {"HTTPS_PROXY": "http://p", "NO_PROXY": "example.org"}, "http://p:80"),
        ("https://localhost:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://LocalHost:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://127.8.9.1", {"HTTPS_PROXY": "http://p"}, None),
        ("https://[::1]:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://[::ffff:127.0.0.1]:6443", {"HTTPS_PROXY": "http://p"}, None),
        ("https://localhost:1", {"HTTPS_PROXY": "socks5://p"}, None),
    ],
)
def test_what_the_environment_wants(
    server: str, environment: dict[str, str], chosen: str | None
) -> None:
    found = proxy_from(environment, server)
    assert (found and found.url) == chosen


@pytest.mark.parametrize(
    ("exceptions", "host", "port", "excepted"),
    [
        ("", "a.example.com", 443, False),
        ("*", "a.example.com", 443, True),
        ("other,*", "10.0.0.1", 443, True),
        ("example.com", "example.com", 443, True),
        ("example.com", "a.b.example.com", 443, True),
        ("example.com", "notexample.com", 443, False),
        (".example.com", "a.example.com", 443, True),
        (".example.com", "example.com", 443, False),
        ("*.example.com", "a.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("EXAMPLE.com", "A.Example.COM", 443, True),
        ("example.com", "example.com.", 443, True),
        (" , x , example.com ,", "example.com", 443, True),
        ("example.com:6443", "example.com", 6443, True),
        ("example.com:6443", "example.com", 443, False),
        (":6443", "example.com", 6443, False),
        ("10.0.0.1", "10.0.0.1", 443, True),
        ("10.0.0.1:443", "10.0.0.1", 443, True),
        ("10.0.0.1:6443", "10.0.0.1", 443, False),
        ("0.0.1", "10.0.0.1", 443, False),
        ("10.0.0.0/8", "10.200.3.4", 443, True),
        ("10.0.0.5/8", "10.200.3.4", 443, True),
        ("10.0.0.0/8", "11.0.0.1", 443, False),
        ("10.0.0.0/8", "ten.example.com", 443, False),
        ("10.0.0.0/99,11.0.0.1", "11.0.0.1", 443, True),
        ("fd00::/8", "fd12::1", 443, True),
        ("fd00::/8", "10.0.0.1", 443, False),
        ("fd12::1", "fd12::1", 443, True),
        ("fd12:0::1", "fd12::1", 443, True),
        ("[fd12::1]:6443", "fd12::1", 6443, True),
        ("[fd12::1]:6443", "fd12::1", 443, False),
    ],
)
def test_exceptions(exceptions: str, host: str, port: int, excepted: bool) -> None:
    assert is_excepted(host, port, exceptions) is excepted


def test_credentials_are_taken_out_of_the_url_and_not_shown() -> None:
    proxy = parse_proxy("http://us%40er:p%3Ass@p:3128/", "here")
    assert proxy == Proxy("http://p:3128", "Basic " + base64.b64encode(b"us@er:p:ss").decode())
    assert repr(proxy) == "Proxy('http://p:3128')"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("socks5://me:hush@p:1080", "socks5 proxy, which is not supported"),
        ("socks5h://p:1080", "socks5h proxy"),
        ("ftp://me:hush@p", "not the address of a proxy"),
        ("p:3128", "not the address of a proxy"),
        ("http://", "not the address of a proxy"),
        ("http://me:hush@p:port", "not the address of a proxy"),
        ("http://[p:1", "not the address of a proxy"),
    ],
)
def test_what_is_no_proxy_is_refused_without_showing_a_password(url: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"HTTPS_PROXY.*{words}") as caught:
        parse_proxy(url, "HTTPS_PROXY")
    assert "hush" not in str(caught.value)
