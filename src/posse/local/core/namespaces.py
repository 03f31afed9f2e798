"""A namespace that is being deleted is emptied, kind by kind, and then let go."""

from __future__ import annotations

from posse.controllers.runtime import Context, Controller, Key, metadata_of
from posse.kube.errors import ApiError, NotFound
from posse.local.core.graph import Tracked
from posse.local.core.serving import ServedKinds
from posse.objects.kinds import EVENT, NAMESPACE, Kind

FINALIZER = "kubernetes"
LOOK_AGAIN = 0.5
METHOD_NOT_ALLOWED = 405


def namespace_controller(served: ServedKinds) -> Controller:
    async def reconcile(context: Context, key: Key) -> float | None:
        namespace = context.get(NAMESPACE, key)
        if namespace is None or not metadata_of(namespace).get("deletionTimestamp"):
            return None
        finalizers = (namespace.get("spec") or {}).get("finalizers") or []
        if FINALIZER not in finalizers:
            return None
        await served.known()
        left = 0
        for kind in (*served.kinds, EVENT):
            if kind.namespaced:
                left += await _empty(context, kind, key[1])
        if left:
            return LOOK_AGAIN
        kept = [name for name in finalizers if name != FINALIZER]
        emptied = {**namespace, "spec": {**(namespace.get("spec") or {}), "finalizers": kept}}
        try:
            await context.connection.replace(NAMESPACE, emptied, subresource="finalize")
        except NotFound:
            return None
        return None

    return Controller("namespace", NAMESPACE, reconcile)


async def _empty(context: Context, kind: Kind, namespace: str) -> int:
    """How many objects of the kind are still there after all were told to go."""
    connection = context.connection
    try:
        listing = await connection.list(kind, namespace, model=Tracked)
        if all(item.metadata.deleting for item in listing.items):
            return len(listing.items)
        await connection.delete_collection(kind, namespace, propagation="Background")
        return len((await connection.list(kind, namespace, model=Tracked)).items)
    except NotFound:  # the kind itself is gone
        return 0
    except ApiError as error:
        if error.code == METHOD_NOT_ALLOWED:
            return 0
        raise
