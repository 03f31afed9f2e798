"""A client that slept for too long: what it remembers, the API server has forgotten."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from posse.kube.transport import Headers, Query, Stream, Transport


class Memory:
    """A transport whose watches, when told so, go on from a version long forgotten."""

    def __init__(self, transport: Transport) -> None:
        self.forgets = False
        self.forgotten: list[str] = []
        self._transport = transport
        self.request = transport.request
        self.close = transport.close

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        headers: Headers | None = None,
        body: bytes | None = None,
    ) -> AbstractAsyncContextManager[Stream]:
        asked = dict(query or {})
        if self.forgets and asked.get("resourceVersion"):
            asked["resourceVersion"] = "1"
            self.forgotten.append(path)
        return self._transport.stream(method, path, query=asked, headers=headers, body=body)
