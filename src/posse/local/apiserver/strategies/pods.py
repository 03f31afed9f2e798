"""Pods: what admission adds to them, and how they wait for their node when deleted."""

from __future__ import annotations

from posse.local.apiserver import statuses
from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies import limits, priorities
from posse.local.apiserver.strategies.strategy import Context, Strategy
from posse.objects.kinds import SERVICE_ACCOUNT, Kind
from posse.objects.raw import mapping, mappings
from posse.objects.times import rfc3339

_TERMINAL = ("Succeeded", "Failed")


class Pods(Strategy):
    status_apart = True
    counts_generations = True
    returns_deleted = True

    def admit(self, context: Context, kind: Kind, obj: Object) -> None:
        if limits.admit(context, obj):
            # What a LimitRange added counts like what the author wrote, for the quality too.
            obj["status"] = {}
            self.default(kind, obj)
        self._admit_account(context, kind, obj)
        priorities.admit(context, obj)
        for condition in mappings(obj, "status", "conditions"):
            condition.setdefault("lastProbeTime", None)
            condition.setdefault("lastTransitionTime", rfc3339(context.world.now()))

    def prepare_status(self, context: Context, kind: Kind, new: Object, old: Object) -> Object:
        result = super().prepare_status(context, kind, new, old)
        owners = old["metadata"].get("ownerReferences")
        result["metadata"].pop("ownerReferences", None)
        if owners:
            result["metadata"]["ownerReferences"] = owners
        status = dict(result.get("status") or {})
        if qos := mapping(old, "status").get("qosClass"):
            status.setdefault("qosClass", qos)
        result["status"] = status
        return result

    def grace(self, obj: Object, asked: int | None) -> int | None:
        """A pod on a node waits for the node to stop it; any other may go at once."""
        spec = obj["spec"]
        period = asked if asked is not None else spec.get("terminationGracePeriodSeconds", 0)
        if not spec.get("nodeName") or mapping(obj, "status").get("phase") in _TERMINAL:
            return 0
        return 1 if period < 0 else int(period)

    def _admit_account(self, context: Context, kind: Kind, obj: Object) -> None:
        spec, metadata = obj["spec"], obj["metadata"]
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        if context.latest(SERVICE_ACCOUNT, metadata["namespace"], name) is None:
            raise statuses.forbidden(
                kind,
                metadata.get("name") or metadata.get("generateName", ""),
                f"error looking up service account {metadata['namespace']}/{name}:"
                f' serviceaccount "{name}" not found',
            )
