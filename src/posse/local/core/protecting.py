"""Objects of storage that are deleted stay until nobody uses them."""

from __future__ import annotations

from posse.controllers.runtime import Context, Manifest, metadata_of
from posse.kube.errors import NotFound
from posse.objects.kinds import Kind


async def let_go(context: Context, kind: Kind, obj: Manifest, finalizer: str) -> None:
    """Nobody uses it any more: as far as we are concerned it may go."""
    metadata = metadata_of(obj)
    finalizers = list(metadata.get("finalizers") or [])
    if finalizer not in finalizers:
        return
    finalizers.remove(finalizer)
    changed = {"resourceVersion": metadata["resourceVersion"], "finalizers": finalizers or None}
    namespace = metadata.get("namespace") or ""
    try:
        await context.connection.patch(kind, metadata["name"], {"metadata": changed}, namespace)
    except NotFound:
        return
