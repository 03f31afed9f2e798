"""Kubernetes' verbs over a Transport, with typed answers and typed errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from enum import Enum
from typing import Any, Generic
from urllib.parse import quote

import msgspec

from posse.kube.decoding import T, WatchEvent, decode, decode_page
from posse.kube.encoding import (
    collection_path,
    deletion,
    document_of,
    dry,
    object_path,
    selection,
)
from posse.kube.errors import Gone
from posse.kube.identity import Malformed, Object, identify_loosely
from posse.kube.sending import Sender
from posse.kube.transport import Transport
from posse.kube.watching import Batch, follow
from posse.objects.kinds import POD, Kind
from posse.world import World

FIELD_MANAGER = "posse"
_LIST_TIMEOUT = 120.0
_RESTARTS = 3


class Patch(Enum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Listing(msgspec.Struct, Generic[T]):
    """Everything a list found, at one resourceVersion."""

    items: list[T]
    resource_version: str
    malformed: list[Malformed] = []


# Inside Connection, `list` is a verb.
Objects = list[Object]


class Connection:
    def __init__(self, transport: Transport, world: World, *, namespace: str = "default") -> None:
        self.transport = transport
        self.world = world
        self.namespace = namespace
        self._sender = Sender(transport, world)

    async def get(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        subresource: str | None = None,
        model: type[T] = dict,  # type: ignore[assignment]
    ) -> T:
        answer = await self._sender.read(object_path(kind, namespace, name, subresource))
        return decode(answer.body, model)

    async def list(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        model: type[T] = dict,  # type: ignore[assignment]
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        resource_version: str | None = None,
    ) -> Listing[T]:
        """All objects, following pages of `limit`; "" as namespace means all of them.

        A continue token that expires between pages starts the list afresh, so that the result is
        always one consistent state; the last try asks for everything in one answer.
        """
        query = selection(labels, fields)
        if resource_version is not None:
            query["resourceVersion"] = resource_version
        path = collection_path(kind, namespace)
        for _ in range(_RESTARTS):
            try:
                return await self._pages(path, query | _page_of(limit), kind, model)
            except _ContinueExpired:
                continue
        return await self._pages(path, query, kind, model)

    async def create(
        self,
        kind: Kind,
        obj: Object | msgspec.Struct,
        namespace: str = "",
        *,
        model: type[T] = dict,  # type: ignore[assignment]
        dry_run: bool = False,
    ) -> T:
        document = document_of(kind, obj)
        namespace = namespace or identify_loosely(document).namespace or self.namespace
        answer = await self._sender.write(
            "POST",
            kind.path(namespace),
            document,
            query={"fieldManager": FIELD_MANAGER} | dry(dry_run),
        )
        return decode(answer.body, model)

    async def replace(
        self,
        kind: Kind,
        obj: Object | msgspec.Struct,
        *,
        subresource: str | None = None,
        model: type[T] = dict,  # type: ignore[assignment]
        dry_run: bool = False,
    ) -> T:
        """PUT; with the resourceVersion in `obj` it fails as Conflict when the object has moved.

        A model holds only the fields it names: replacing with one drops all the others.
        """
        document = document_of(kind, obj)
        found = identify_loosely(document)
        answer = await self._sender.write(
            "PUT",
            object_path(kind, found.namespace or self.namespace, found.name, subresource),
            document,
            query={"fieldManager": FIELD_MANAGER} | dry(dry_run),
        )
        return decode(answer.body, model)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        how: Patch = Patch.MERGE,
        subresource: str | None = None,
        model: type[T] = dict,  # type: ignore[assignment]
        dry_run: bool = False,
        field_manager: str = FIELD_MANAGER,
        force: bool = False,
    ) -> T:
        """`patch` is a list of operations for Patch.JSON, an object otherwise.

        `force` takes fields from other managers; it means something to Patch.APPLY alone.
        """
        query = {"fieldManager": field_manager} | dry(dry_run)
        if force:
            query["force"] = "true"
        answer = await self._sender.write(
            "PATCH",
            object_path(kind, namespace, name, subresource),
            patch,
            query=query,
            content_type=how.value,
        )
        return decode(answer.body, model)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace: int | None = None,
        propagation: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """The server's answer: the object, when it lives on until its finalizers are done."""
        options = deletion(uid, resource_version, grace, propagation)
        answer = await self._sender.write(
            "DELETE", object_path(kind, namespace, name), options, query=dry(dry_run)
        )
        return decode(answer.body, dict)

    async def delete_collection(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        grace: int | None = None,
        propagation: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Deletes what the selectors match, in one namespace: "" is refused, not "everywhere"."""
        if kind.namespaced and not namespace:
            raise ValueError(f"deleting {kind.qualified} needs a namespace")
        await self._sender.write(
            "DELETE",
            kind.path(namespace),
            deletion(None, None, grace, propagation),
            query=selection(labels, fields) | dry(dry_run),
        )

    async def bind(
        self, name: str, namespace: str, node: str, *, uid: str, resource_version: str = ""
    ) -> None:
        """Gives the pod its node, if it is still that pod; Conflict when it already has one."""
        metadata = {"name": name, "namespace": namespace, "uid": uid}
        if resource_version:
            metadata["resourceVersion"] = resource_version
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        await self._sender.write("POST", object_path(POD, namespace, name, "binding"), binding)

    async def evict(self, name: str, namespace: str, *, uid: str, dry_run: bool = False) -> None:
        """Asks for the pod to go; TooManyRequests when a disruption budget refuses it now."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {
                "preconditions": {"uid": uid},
                **({"dryRun": ["All"]} if dry_run else {}),
            },
        }
        await self._sender.write(
            "POST", object_path(POD, namespace, name, "eviction"), eviction, attempts=1
        )

    async def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        resource_version: str,
        model: type[T] = dict,  # type: ignore[assignment]
        labels: str = "",
        fields: str = "",
        timeout_seconds: int = 300,
        bookmarks: bool = True,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Events after `resource_version` until the server ends the watch.

        Raises what an ERROR event says (Gone: list again) and Unreachable when the stream is cut.
        """
        batches = self.watch_batches(
            kind,
            namespace,
            resource_version=resource_version,
            model=model,
            labels=labels,
            fields=fields,
            timeout_seconds=timeout_seconds,
            bookmarks=bookmarks,
        )
        try:
            async for batch in batches:
                for event in batch:
                    yield event
        finally:
            await batches.aclose()

    def watch_batches(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        resource_version: str,
        model: type[T] = dict,  # type: ignore[assignment]
        labels: str = "",
        fields: str = "",
        timeout_seconds: int = 300,
        bookmarks: bool = True,
    ) -> AsyncGenerator[Batch[T], None]:
        """As `watch`, but the events that arrived together come together."""
        query = selection(labels, fields) | {
            "watch": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        }
        if bookmarks:
            query["allowWatchBookmarks"] = "true"
        return follow(self._sender, collection_path(kind, namespace), query, kind, model)

    async def logs(
        self,
        name: str,
        namespace: str,
        *,
        container: str | None = None,
        follow: bool = False,
        tail_lines: int | None = None,
        since_seconds: int | None = None,
        since_time: str | None = None,
        timestamps: bool = False,
        previous: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """A container's output as it comes, in chunks that know nothing of lines."""
        options: dict[str, Any] = {
            "container": container,
            "follow": "true" if follow else None,
            "tailLines": tail_lines,
            "sinceSeconds": since_seconds,
            "sinceTime": since_time,
            "timestamps": "true" if timestamps else None,
            "previous": "true" if previous else None,
        }
        query = {key: str(value) for key, value in options.items() if value is not None}
        path = object_path(POD, namespace, name, "log")
        async with self._sender.stream(path, query, accept="*/*") as chunks:
            async for chunk in chunks:
                yield chunk

    async def resources(self, group: str, version: str) -> Objects:
        """The APIResources of one group and version; NotFound when it is not served."""
        root = f"/apis/{quote(group, safe='')}" if group else "/api"
        answer = await self._sender.read(f"{root}/{quote(version, safe='')}")
        found: Objects = decode(answer.body, dict).get("resources") or []
        return found

    async def groups(self) -> Objects:
        """The APIGroups served, with their versions; the core group has none and is left out."""
        answer = await self._sender.read("/apis")
        found: Objects = decode(answer.body, dict).get("groups") or []
        return found

    async def version(self) -> Object:
        return decode((await self._sender.read("/version")).body, dict)

    async def close(self) -> None:
        await self.transport.close()

    async def _pages(
        self, path: str, query: Mapping[str, str], kind: Kind, model: type[T]
    ) -> Listing[T]:
        listing: Listing[T] = Listing([], "", [])
        asked = dict(query)
        while True:
            try:
                answer = await self._sender.read(path, asked, timeout=_LIST_TIMEOUT)
            except Gone as error:
                if "continue" not in asked:
                    raise
                raise _ContinueExpired(error.code, error.reason, error.message) from error
            meta, items, bad = decode_page(answer.body, kind, model)
            listing.items += items
            listing.malformed += bad
            listing.resource_version = meta.resource_version
            if not meta.more:
                return listing
            # The token carries the version; servers refuse both together.
            asked.pop("resourceVersion", None)
            asked["continue"] = meta.more


class _ContinueExpired(Gone):
    """The pages read so far are of a state that cannot be read on: begin again."""


def _page_of(limit: int) -> dict[str, str]:
    return {"limit": str(limit)} if limit else {}
