"""Jobs, Deployments, ReplicaSets, Nodes and the kinds that are simply kept."""

from __future__ import annotations

from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies import priorities
from posse.local.apiserver.strategies.strategy import Context, Scaling, Strategy, same
from posse.objects.defaulting import job_selector
from posse.objects.kinds import Kind
from posse.objects.raw import mapping


class Plain(Strategy):
    """Kept as written."""


class Put(Strategy):
    """Kept as written, and made by a PUT as well as by a POST."""

    create_on_update = True


class Returned(Strategy):
    """Kept as written; DELETE answers with the object."""

    returns_deleted = True


class Leases(Put):
    unconditional_update = False


class Quotas(Strategy):
    status_apart = True
    returns_deleted = True


class Budgets(Strategy):
    """Whoever writes one has read it: a budget is not overwritten unseen."""

    status_apart = True
    counts_generations = True
    unconditional_update = False


class Nodes(Strategy):
    """A node is created by its agent, which already knows its status."""

    status_apart = True
    keeps_status_on_create = True


class Slices(Strategy):
    counts_generations = True


class Workloads(Strategy):
    """Deployments and ReplicaSets."""

    status_apart = True
    counts_generations = True

    def scaling(self, kind: Kind) -> Scaling | None:
        return Scaling(("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))


class Jobs(Strategy):
    status_apart = True
    counts_generations = True
    default_propagation = "Orphan"

    def prepare_create(self, context: Context, kind: Kind, obj: Object) -> None:
        """A Job finds its pods by its uid, unless its author chose the selector."""
        metadata, template = obj["metadata"], mapping(obj, "spec", "template")
        unlabelled = same(metadata.get("labels"), mapping(template, "metadata").get("labels"))
        job_selector(obj, metadata["uid"])
        if unlabelled and (labels := mapping(template, "metadata", "labels")):
            metadata["labels"] = dict(labels)


class PriorityClasses(Strategy):
    counts_generations = True

    def admit(self, context: Context, kind: Kind, obj: Object) -> None:
        priorities.check_single_default(context, kind, obj)

    def admit_update(self, context: Context, kind: Kind, new: Object, old: Object) -> None:
        priorities.check_single_default(context, kind, new)

    def next_generation(self, kind: Kind, new: Object, old: Object) -> int:
        """What counts of a class cannot change."""
        generation: int = old["metadata"].get("generation", 1)
        return generation
