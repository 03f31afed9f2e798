"""Bytes to an API server over TLS, with no library in between that would mend them."""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from posse.local.supervisor.home import Home
from posse.local.supervisor.states import Address
from tests.cluster.processes import Commands


class Answer(msgspec.Struct, frozen=True):
    """`code` is 0 where the connection was closed without a word."""

    code: int
    body: bytes

    @property
    def status(self) -> dict[str, Any]:
        """The Status that a refusal has for a body."""
        found = json.loads(self.body)
        assert found["kind"] == "Status", found
        assert found["code"] == self.code, found
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True)
class Wire:
    port: int
    authority: str
    token: str

    @staticmethod
    def to(commands: Commands) -> Wire:
        home = Home(commands.home)
        address = home.load(home.address, Address)
        assert address is not None
        return Wire(address.port, str(home.authority), home.token("admin").read_text())

    def connect(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=self.authority)
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        return context.wrap_socket(plain, server_hostname="localhost")

    def send(self, data: bytes) -> Answer:
        """Whatever it is; the answer's head and body, or that there was none."""
        with self.connect() as connection:
            # It may hang up while we are still talking, and may have said why.
            with suppress(OSError):
                connection.sendall(data)
            return _read(connection)

    def ask(
        self, method: str, path: str, body: bytes = b"", *, headers: dict[str, str] | None = None
    ) -> Answer:
        """A request that is whole; a header given replaces the usual one, "" leaves it out."""
        sent = {
            "Host": "localhost",
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Connection": "close",
            **(headers or {}),
        }
        head = f"{method} {path} HTTP/1.1\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in sent.items() if value != "")
        return self.send(head.encode("latin-1") + b"\r\n" + body)

    def post(self, path: str, value: Any) -> Answer:
        return self.ask("POST", path, json.dumps(value).encode())


def _read(connection: ssl.SSLSocket) -> Answer:
    received = b""
    # Where it is closed the hard way, what came before counts.
    with suppress(ConnectionError, ssl.SSLError):
        while chunk := connection.recv(65_536):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    return Answer(int(words[1]) if len(words) > 1 else 0, body)
