"""The way from an API server to Services, where no kube-proxy is: it asks here for each connection.

An API server that is told so (its egress selection) dials nobody in the cluster itself. It names
the cluster IP and port of a Service to a proxy, which knows where on loopback that is served.
"""

from __future__ import annotations

import selectors
import socket
import socketserver
import tempfile
import threading
from pathlib import Path
from typing import Any

_WITHIN = 10.0


class Gateway:
    """`routes`: from `address:port` of a Service to a port on loopback; all others lead nowhere."""

    def __init__(self) -> None:
        self.routes: dict[str, int] = {}
        self.asked: list[str] = []
        # The name of a socket is short, and a test's own directory may lie deep.
        self._place = tempfile.TemporaryDirectory(prefix="posse-")
        self._socket = Path(self._place.name) / "gateway"
        self._server = _Server(str(self._socket), _Connection)
        self._server.gateway = self
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def configuration(self) -> dict[str, Any]:
        """For an API server's `--egress-selector-config-file`."""
        transport = {"uds": {"udsName": str(self._socket)}}
        connection = {"proxyProtocol": "HTTPConnect", "transport": transport}
        return {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": connection}],
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._place.cleanup()


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False
    gateway: Gateway


class _Connection(socketserver.BaseRequestHandler):
    request: socket.socket
    server: _Server

    def handle(self) -> None:
        place = self._asked_for()
        gateway = self.server.gateway
        gateway.asked.append(place)
        port = gateway.routes.get(place)
        try:
            if port is None:
                raise ConnectionRefusedError(place)
            far = socket.create_connection(("127.0.0.1", port), _WITHIN)
        except OSError:
            self.request.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        with far:
            self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            _join(self.request, far)

    def _asked_for(self) -> str:
        """The words of `CONNECT place HTTP/1.1`; nothing else is said before it is answered."""
        self.request.settimeout(_WITHIN)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = self.request.recv(4096)
            if not piece:
                return ""
            head += piece
        return head.decode("latin-1").split()[1]


def _join(near: socket.socket, far: socket.socket) -> None:
    """Until either side has nothing more to say."""
    near.settimeout(None)
    far.settimeout(None)
    with selectors.DefaultSelector() as ready:
        ready.register(near, selectors.EVENT_READ, far)
        ready.register(far, selectors.EVENT_READ, near)
        while True:
            for key, _ in ready.select():
                source, other = key.fileobj, key.data
                assert isinstance(source, socket.socket)
                try:
                    piece = source.recv(65536)
                    if not piece:
                        return
                    other.sendall(piece)
                except OSError:
                    return
