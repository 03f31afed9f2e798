"""DELETE of one object and of a selection of them."""

from __future__ import annotations

from typing import Any

from posse.local.apiserver import statuses
from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.intake import decoded, is_dry_run
from posse.local.apiserver.reading import Selection, view_of
from posse.local.apiserver.registry import Resource
from posse.local.apiserver.requests import Request
from posse.local.apiserver.responses import Reply, json_reply
from posse.local.apiserver.routing import Target
from posse.local.apiserver.store import Object, Stored
from posse.local.apiserver.strategies import namespaces
from posse.local.apiserver.strategies.strategy import Context
from posse.local.apiserver.writing import Outcome, is_over, replace
from posse.objects.kinds import JOB, NAMESPACE, Kind
from posse.objects.raw import mapping
from posse.objects.times import parse_time, rfc3339
from posse.objects.validating.report import Report

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
_POLICIES = ("Foreground", "Background", "Orphan")
_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to"
    " remove them or set propagationPolicy=Orphan to suppress this warning"
)


class DeleteOptions:
    """How an object is to go; from the body, or from the query where there is no body."""

    __slots__ = ("dry_run", "grace", "orphan", "policy", "uid", "version")

    def __init__(
        self,
        *,
        grace: int | None = None,
        policy: str = "",
        orphan: bool | None = None,
        uid: str = "",
        version: str = "",
        dry_run: bool = False,
    ) -> None:
        self.grace = grace
        self.policy = policy
        self.orphan = orphan
        self.uid = uid
        self.version = version
        self.dry_run = dry_run

    @staticmethod
    async def of(request: Request) -> DeleteOptions:
        body = await request.body()
        said: Any = decoded(request, body).value if body.strip() else None
        if not said:
            said = {
                "gracePeriodSeconds": request.whole("gracePeriodSeconds"),
                "propagationPolicy": request.query.get("propagationPolicy"),
                "orphanDependents": request.flag("orphanDependents"),
                "dryRun": request.query.get("dryRun"),
            }
        elif isinstance(said, dict) and not said.get("dryRun"):
            said = {**said, "dryRun": request.query.get("dryRun")}
        return DeleteOptions.read(said)

    @staticmethod
    def read(said: Any) -> DeleteOptions:
        if not isinstance(said, dict):
            raise statuses.bad_request("the DeleteOptions provided are not an object")
        if said.get("kind") not in (None, "", "DeleteOptions"):
            raise statuses.bad_request(f"{said['kind']} cannot be handled as a DeleteOptions")
        report = Report()
        grace, orphan = said.get("gracePeriodSeconds"), said.get("orphanDependents")
        policy = said.get("propagationPolicy") or ""
        conditions = mapping(said, "preconditions")
        uid, version = conditions.get("uid") or "", conditions.get("resourceVersion") or ""
        if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
            raise statuses.bad_request("DeleteOptions: gracePeriodSeconds must be an integer")
        if not all(isinstance(one, str) for one in (policy, uid, version)):
            raise statuses.bad_request("DeleteOptions: a field has the wrong type")
        if orphan is not None and policy:
            report.invalid(
                "propagationPolicy",
                policy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        elif policy and policy not in _POLICIES:
            report.unsupported("propagationPolicy", policy, [*_POLICIES, "nil"])
        dry_run = is_dry_run(report, said.get("dryRun"))
        if report.errors:
            raise statuses.invalid("DeleteOptions", "meta.k8s.io", "", report.errors)
        return DeleteOptions(
            grace=grace, policy=policy, orphan=orphan, uid=uid, version=version, dry_run=dry_run
        )


async def delete(cluster: Cluster, request: Request, target: Target) -> Reply:
    view = view_of(cluster, request, target)
    options = await DeleteOptions.of(request)
    context = cluster.context()
    outcome = remove(cluster, context, target.resource, target.kind, target.key, options)
    await cluster.durable(outcome.write)
    if outcome.gone and not target.resource.strategy.returns_deleted:
        details = statuses.named(target.kind, target.key[1], uid=outcome.obj["metadata"]["uid"])
        return json_reply(statuses.success(details=details), warnings=context.warnings)
    accepted = not outcome.gone and options.orphan is False
    return view.reply_object(outcome.obj, 202 if accepted else 200, context.warnings)


async def delete_collection(cluster: Cluster, request: Request, target: Target) -> Reply:
    """Each object on its own; one that meanwhile went is no error."""
    if target.kind.namespaced and target.namespace is None:
        raise statuses.method_not_allowed()
    view = view_of(cluster, request, target)
    options = await DeleteOptions.of(request)
    selection = Selection.of(request, target.kind, target.namespace)
    context = cluster.context()
    deleted: list[Stored] = []
    last = None
    for stored in cluster.store.objects(target.resource.name, target.namespace):
        latest = cluster.store.latest(target.resource.name, stored.key)
        if latest is None or not selection.selects(latest):
            continue
        outcome = remove(cluster, context, target.resource, target.kind, stored.key, options)
        deleted.append(latest)
        last = outcome.write or last
    await cluster.durable(last)
    warnings = list(dict.fromkeys(context.warnings))
    reply = view.reply_list(deleted, {"resourceVersion": str(cluster.store.revision)})
    reply.add_warnings(warnings)
    return reply


def remove(
    cluster: Cluster,
    context: Context,
    resource: Resource,
    kind: Kind,
    key: tuple[str, str],
    options: DeleteOptions,
) -> Outcome:
    """Decides a deletion: at once, or marked until grace, finalizers and contents are done."""
    stored = cluster.store.latest(resource.name, key)
    if stored is None:
        raise statuses.not_found(kind, key[1])
    check(kind, stored, options)
    marked = _marked(cluster, context, resource, kind, stored.obj, options)
    if marked is None:
        return Outcome(stored.obj, None)
    if options.dry_run:
        return Outcome(marked, None, gone=is_over(resource, marked))
    if is_over(resource, marked):
        graceful = resource.strategy.grace(stored.obj, options.grace) is not None
        write = cluster.store.remove(resource.name, key, marked if graceful else None)
        return Outcome(write.stored.obj, write, gone=True)
    return replace(cluster, resource, stored, marked)


def check(kind: Kind, stored: Stored, options: DeleteOptions) -> None:
    """Whether this is the object, in the state, that was to be deleted."""
    name = stored.key[1]
    if options.uid and options.uid != stored.uid:
        raise statuses.not_the_one(kind, name, "UID", options.uid, stored.uid)
    if options.version and options.version != str(stored.revision):
        is_ = str(stored.revision)
        raise statuses.not_the_one(kind, name, "ResourceVersion", options.version, is_)
    if kind == NAMESPACE:
        namespaces.check_deletable(name)


def _marked(
    cluster: Cluster,
    context: Context,
    resource: Resource,
    kind: Kind,
    obj: Object,
    options: DeleteOptions,
) -> Object | None:
    """The object as it waits for its end; None where it already waits and nothing shortens that."""
    strategy = resource.strategy
    marked = {**obj, "metadata": dict(obj["metadata"])}
    metadata = marked["metadata"]
    _set_propagation(context, resource, kind, metadata, options)
    was = metadata.get("deletionTimestamp")
    grace = strategy.grace(obj, options.grace)
    if was is None:
        seconds = grace or 0
        metadata["deletionTimestamp"] = rfc3339(cluster.world.now() + seconds)
        if strategy.marks_grace:
            metadata["deletionGracePeriodSeconds"] = seconds
            if "generation" in metadata:
                metadata["generation"] += 1
        strategy.begin_deletion(context, kind, marked)
        return marked
    remaining = metadata.get("deletionGracePeriodSeconds") or 0
    if grace is not None and options.grace is not None:
        shorter = 1 if options.grace < 0 else options.grace
        if shorter < remaining:
            metadata["deletionTimestamp"] = rfc3339(parse_time(was) - remaining + shorter)
            metadata["deletionGracePeriodSeconds"] = shorter
            return marked
    changed = metadata.get("finalizers") != obj["metadata"].get("finalizers")
    return marked if changed or is_over(resource, marked) else None


def _set_propagation(
    context: Context, resource: Resource, kind: Kind, metadata: Object, options: DeleteOptions
) -> None:
    """The finalizers by which the garbage collector knows what to do with dependents."""
    policy = options.policy
    if options.orphan is not None:
        policy = "Orphan" if options.orphan else "Background"
    finalizers: list[str] = list(metadata.get("finalizers") or [])
    if not policy:
        if FOREGROUND in finalizers or ORPHAN in finalizers:
            return
        policy = resource.strategy.default_propagation
        if policy == "Orphan" and kind == JOB:
            context.warnings.append(_PRESERVED)
        if not policy:
            return
    finalizers = [one for one in finalizers if one not in (FOREGROUND, ORPHAN)]
    if policy == "Foreground":
        finalizers.append(FOREGROUND)
    elif policy == "Orphan":
        finalizers.append(ORPHAN)
    metadata.pop("finalizers", None)
    if finalizers:
        metadata["finalizers"] = finalizers
