"""Namespaces: they end only when they are empty."""

from __future__ import annotations

from posse.local.apiserver import statuses
from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies.strategy import Context, Strategy
from posse.objects.kinds import NAMESPACE, SERVICE_ACCOUNT, Kind
from posse.objects.raw import mapping

_PERMANENT = ("default", "kube-system", "kube-public")


class Namespaces(Strategy):
    marks_grace = False
    status_apart = True

    def created(self, context: Context, kind: Kind, obj: Object) -> list[tuple[Kind, Object]]:
        return [(SERVICE_ACCOUNT, default_account(obj["metadata"]["name"]))]

    def prepare_update(self, context: Context, kind: Kind, new: Object, old: Object) -> None:
        new["spec"] = old.get("spec", {})

    def begin_deletion(self, context: Context, kind: Kind, obj: Object) -> None:
        obj["status"] = {**mapping(obj, "status"), "phase": "Terminating"}

    def holds(self, obj: Object) -> bool:
        return bool(mapping(obj, "spec").get("finalizers"))


def default_account(namespace: str) -> Object:
    """The account that pods of a namespace run under when they name none."""
    return {"metadata": {"name": "default", "namespace": namespace}}


def check_deletable(name: str) -> None:
    if name in _PERMANENT:
        raise statuses.forbidden(NAMESPACE, name, "this namespace may not be deleted")


def check_open(context: Context, kind: Kind, namespace: str, name: str) -> None:
    """Nothing is created in a namespace that does not exist or is ending."""
    found = context.latest(NAMESPACE, "", namespace)
    if found is None:
        raise statuses.not_found(NAMESPACE, namespace)
    if found["metadata"].get("deletionTimestamp") is not None:
        raise statuses.forbidden(
            kind,
            name,
            f"unable to create new content in namespace {namespace} because it is being terminated",
            [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {namespace} is being terminated",
                    "field": "metadata.namespace",
                }
            ],
        )
