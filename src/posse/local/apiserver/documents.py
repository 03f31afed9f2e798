"""The documents a server has about itself: health, version, discovery, OpenAPI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from posse.local.apiserver import discovery, negotiation, openapi, statuses, swagger
from posse.local.apiserver.registry import Registry
from posse.local.apiserver.requests import Request
from posse.local.apiserver.responses import JSON, Reply, json_reply, text_reply

_HEALTH = ("healthz", "livez", "readyz")
_GNOSTIC = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def open_to_all(request: Request) -> Reply | None:
    """What is answered without a token: nothing of it is secret."""
    segments = request.segments
    if segments and segments[0] in _HEALTH:
        return text_reply("ok")
    if segments == ["version"]:
        return json_reply(discovery.version_info())
    return None


class Documents:
    """Made from the registry and kept until it changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        self._kept: dict[str, Reply] = {}

    def find(self, request: Request) -> Reply | None:
        """The document at this path; None where the path is not one of a document."""
        match request.segments:
            case []:
                return self._keep("/", self._paths)
            case ["api"]:
                if _wants_aggregated(request):
                    return self._aggregated(core=True)
                return self._keep("api", discovery.api_versions)
            case ["apis"]:
                if _wants_aggregated(request):
                    return self._aggregated(core=False)
                return self._keep("apis", lambda: discovery.api_group_list(self._served()))
            case ["api", version]:
                return self._resources("", version)
            case ["apis", group]:
                return self._keep(
                    f"apis/{group}", lambda: discovery.api_group(self._served(), group)
                )
            case ["apis", group, version]:
                return self._resources(group, version)
            case ["openapi", "v2"]:
                return self._swagger(request)
            case ["openapi", "v3"]:
                return self._keep("openapi", lambda: openapi.index(self._described()))
            case ["openapi", "v3", "api", version]:
                return self._described_version("", version)
            case ["openapi", "v3", "apis", group, version]:
                return self._described_version(group, version)
            case _:
                return None

    def _resources(self, group: str, version: str) -> Reply:
        path = f"apis/{group}/{version}"
        return self._keep(path, lambda: discovery.api_resource_list(self._served(), group, version))

    def _aggregated(self, *, core: bool) -> Reply:
        reply = self._keep(f"aggregated/{core}", lambda: discovery.aggregated(self._served(), core))
        reply.content_type = _AGGREGATED.encode()
        return reply

    def _swagger(self, request: Request) -> Reply:
        accept = request.header("accept")
        if "protobuf" not in accept or "json" in accept:
            return self._keep("swagger", lambda: swagger.document(self._described()))
        return self._keep(
            "swagger/protobuf",
            lambda: swagger.protobuf(swagger.document(self._described())),
            _GNOSTIC,
        )

    def _described_version(self, group: str, version: str) -> Reply:
        path = f"openapi/{group}/{version}"
        return self._keep(path, lambda: openapi.document(self._described(), group, version))

    def _served(self) -> list[discovery.Served]:
        return self._registry.served()

    def _described(self) -> list[openapi.Described]:
        return self._registry.described()

    def _paths(self) -> dict[str, Any]:
        versions = [one.kind.api_version for one in self._served() if one.kind.group]
        groups = [one.kind.group for one in self._served() if one.kind.group]
        paths = sorted({f"/apis/{name}" for name in [*versions, *groups]})
        health = [f"/{name}" for name in _HEALTH]
        about = ["/openapi/v2", "/openapi/v3", "/version"]
        return {"paths": ["/api", "/api/v1", "/apis", *paths, *health, *about]}

    def _keep(self, name: str, make: Callable[[], Any], content_type: bytes = JSON) -> Reply:
        if self._generation != self._registry.generation:
            self._kept.clear()
            self._generation = self._registry.generation
        if (reply := self._kept.get(name)) is None:
            document = make()
            if document is None:
                raise statuses.no_such_path()
            reply = json_reply(document) if content_type == JSON else Reply(200, document)
            reply.content_type = content_type
            self._kept[name] = reply
        return reply


def _wants_aggregated(request: Request) -> bool:
    accept = request.header("accept")
    return negotiation.asks_for(accept, "apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
