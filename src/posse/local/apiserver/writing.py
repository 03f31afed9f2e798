"""POST, PUT and PATCH of objects, and of their status.

Each write is decided in one step (`create`, `update`), on the latest state of the store, without
yielding to the event loop; what comes before is reading the request, what comes after is waiting
for the journal.
"""

from __future__ import annotations

from collections.abc import Callable

from posse.local.apiserver import statuses
from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.intake import WriteOptions, read_body, read_object, read_patched
from posse.local.apiserver.patching import PatchError, apply_patch, check_format
from posse.local.apiserver.reading import view_of
from posse.local.apiserver.registry import Resource
from posse.local.apiserver.requests import Request
from posse.local.apiserver.responses import Reply
from posse.local.apiserver.routing import Target
from posse.local.apiserver.store import Object, Stored, Write
from posse.local.apiserver.strategies import namespaces, quotas
from posse.local.apiserver.strategies.strategy import Context, key_of, same
from posse.objects.kinds import Kind
from posse.objects.meta import Key
from posse.objects.times import rfc3339
from posse.objects.validating.report import Report

_GENERATED_ROOM = 58  # a generated name is a DNS label: 63 less the suffix
_ATTEMPTS = 8
_FORGOTTEN = ("selfLink", "managedFields")
_NOT_YET = (
    *_FORGOTTEN, "uid", "resourceVersion", "generation", "creationTimestamp",
    "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
_OWN = ("generation", "creationTimestamp")  # the server's own, whatever is sent
_KEPT = ("uid", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace")

Change = Callable[[Object], Object]


class Outcome:
    """What a write decided: the object as it will be, and its way to the journal.

    No write means that nothing changes (a dry run, or an object that is already so). `gone` means
    that the change took the object away.
    """

    __slots__ = ("gone", "obj", "write")

    def __init__(self, obj: Object, write: Write | None, *, gone: bool = False) -> None:
        self.obj = obj
        self.write = write
        self.gone = gone


async def post(cluster: Cluster, request: Request, target: Target) -> Reply:
    if target.kind.namespaced and target.namespace is None:
        raise statuses.method_not_allowed()
    view = view_of(cluster, request, target)
    options = WriteOptions.of(request, "CreateOptions")
    context = cluster.context(request.warnings)
    obj = await read_object(request, target.resource, target.kind, options, context.warnings)
    metadata = obj["metadata"]
    if target.namespace is not None:
        if (metadata.get("namespace") or target.namespace) != target.namespace:
            raise _elsewhere()
        metadata["namespace"] = target.namespace
    outcome = create(cluster, context, target.resource, target.kind, obj, options.dry_run)
    await cluster.durable(outcome.write)
    if outcome.write is not None:
        return view.reply(outcome.write.stored, 201, context.warnings)
    return view.reply_object(outcome.obj, 201, context.warnings)


async def put(cluster: Cluster, request: Request, target: Target) -> Reply:
    options = WriteOptions.of(request, "UpdateOptions")
    context = cluster.context(request.warnings)
    obj = await read_object(request, target.resource, target.kind, options, context.warnings)

    def change(_: Object) -> Object:
        return obj

    if _makes(cluster, target, obj):
        outcome = create(cluster, context, target.resource, target.kind, obj, options.dry_run)
        return await answer(cluster, request, target, outcome, context, 201)
    outcome = update(cluster, context, target, change, options.dry_run)
    return await answer(cluster, request, target, outcome, context)


def _makes(cluster: Cluster, target: Target, obj: Object) -> bool:
    """Some kinds may be created by putting them where nothing is; `obj` is made ready for that."""
    if not target.resource.strategy.create_on_update or target.part is not None:
        return False
    if cluster.store.latest(target.resource.name, target.key) is not None:
        return False
    metadata = obj["metadata"]
    _check_place(target, metadata)
    if uid := metadata.get("uid"):
        raise statuses.precondition(target.kind, target.key[1], "UID", uid, "")
    metadata.pop("resourceVersion", None)
    if target.kind.namespaced:
        metadata["namespace"] = target.key[0]
    return True


async def patch(cluster: Cluster, request: Request, target: Target) -> Reply:
    options = WriteOptions.of(request, "PatchOptions")
    content_type = request.header("content-type")
    try:
        check_format(content_type, target.kind)  # whether or not there is something to patch
    except PatchError as error:
        raise statuses.Refusal(error.code, error.reason, error.message) from error
    body = await read_body(request)
    context = cluster.context(request.warnings)

    def change(current: Object) -> Object:
        try:
            patched = apply_patch(content_type, current, body.value, target.kind)
        except PatchError as error:
            raise statuses.Refusal(error.code, error.reason, error.message) from error
        context.warnings += read_patched(
            patched, target.resource, target.kind, options, body.duplicates
        )
        return patched

    outcome = update(cluster, context, target, change, options.dry_run, patched=True)
    return await answer(cluster, request, target, outcome, context)


async def answer(
    cluster: Cluster,
    request: Request,
    target: Target,
    outcome: Outcome,
    context: Context,
    status: int = 200,
) -> Reply:
    """The reply to a change, once what it says is durable."""
    view = view_of(cluster, request, target)
    if outcome.write is not None:
        await cluster.durable(outcome.write)
    else:
        await cluster.unchanged(target.resource.name, target.key)
    return view.reply_object(outcome.obj, status, context.warnings)


def create(
    cluster: Cluster,
    context: Context,
    resource: Resource,
    kind: Kind,
    obj: Object,
    dry_run: bool = False,
) -> Outcome:
    """Decides a creation. `obj` has its namespace, and becomes the store's."""
    strategy, metadata = resource.strategy, obj["metadata"]
    if metadata.get("resourceVersion"):
        raise statuses.failed("resourceVersion should not be set on objects to be created")
    if not kind.namespaced:
        metadata.pop("namespace", None)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = _generated(cluster, resource, kind, metadata)
    if kind.namespaced:
        namespaces.check_open(context, kind, metadata["namespace"], metadata.get("name", ""))
    _begin_metadata(cluster, metadata, counted=strategy.counts_generations)
    if strategy.has_status(kind) and not strategy.keeps_status_on_create:
        obj.pop("status", None)
    strategy.default(kind, obj)
    if metadata.get("name"):
        strategy.admit(context, kind, obj)
        strategy.prepare_create(context, kind, obj)
    if problems := strategy.validate_create(kind, obj):
        raise statuses.invalid_object(kind, metadata.get("name", ""), problems)
    key = key_of(obj)
    if (known := cluster.store.latest(resource.name, key)) is not None:
        ending = known.obj["metadata"].get("deletionTimestamp") is not None
        raise statuses.already_exists(kind, key[1], ending=ending)
    if kind.namespaced:
        quotas.check(context, kind, obj)
    obj = _arranged(resource, obj)
    if dry_run:
        return Outcome(obj, None)
    write = cluster.store.put(resource.name, obj)
    for other, made in strategy.created(context, kind, obj):
        make(cluster, other, made)
    return Outcome(obj, write)


def make(cluster: Cluster, kind: Kind, obj: Object) -> Write | None:
    """Creates one of the server's own objects, unless it is there."""
    resource = cluster.registry.resource(kind)
    metadata = obj["metadata"]
    key = (metadata.get("namespace") or "", metadata["name"])
    if cluster.store.latest(resource.name, key) is not None:
        return None
    obj["kind"], obj["apiVersion"] = kind.kind, kind.api_version
    return create(cluster, cluster.context(), resource, kind, obj).write


def update(
    cluster: Cluster,
    context: Context,
    target: Target,
    change: Change,
    dry_run: bool,
    *,
    patched: bool = False,
) -> Outcome:
    """Decides a change of an object or of its status. `change` makes a new one of the old."""
    resource, kind = target.resource, target.kind
    stored = cluster.store.latest(resource.name, target.key)
    if stored is None:
        raise statuses.not_found(kind, target.key[1])
    old = _in_version(stored.obj, kind)
    new = change(old)
    _check_place(target, new["metadata"])
    check_preconditions(kind, new["metadata"], stored, resource, patched=patched)
    strategy = resource.strategy
    strategy.default(kind, new)
    _keep_metadata(new["metadata"], old["metadata"])
    if target.part == "status":
        new = strategy.prepare_status(context, kind, new, old)
        problems = strategy.validate_status(kind, new, old)
    else:
        if strategy.has_status(kind):
            _keep_status(new, old)
        strategy.prepare_update(context, kind, new, old)
        strategy.admit_update(context, kind, new, old)
        if strategy.counts_generations:
            new["metadata"]["generation"] = strategy.next_generation(kind, new, old)
        problems = strategy.validate_update(kind, new, old)
    if problems:
        raise statuses.invalid_object(kind, target.key[1], problems)
    return replace(cluster, resource, stored, new, dry_run)


def replace(
    cluster: Cluster, resource: Resource, stored: Stored, new: Object, dry_run: bool = False
) -> Outcome:
    """The last step of every change: nothing if it is none, the end if that is what remains."""
    metadata = new["metadata"] = dict(new["metadata"])
    metadata["resourceVersion"] = str(stored.revision)
    new = _arranged(resource, new)
    if same(new, stored.obj):
        return Outcome(stored.obj, None)
    ends = is_over(resource, new)
    if dry_run:
        return Outcome(new, None)
    if ends:
        write = cluster.store.remove(resource.name, stored.key, new)
    else:
        write = cluster.store.put(resource.name, new)
    return Outcome(write.stored.obj, write, gone=ends)


def is_over(resource: Resource, obj: Object) -> bool:
    """A deleted object goes when no finalizer, no grace and nothing of its kind holds it."""
    metadata = obj["metadata"]
    return (
        metadata.get("deletionTimestamp") is not None
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not resource.strategy.holds(obj)
    )


def check_preconditions(
    kind: Kind, metadata: Object, stored: Stored, resource: Resource, *, patched: bool = False
) -> None:
    """The identity and the version that the sent object claims to replace."""
    uid, version = metadata.get("uid") or "", metadata.get("resourceVersion") or ""
    name = stored.key[1]
    if uid and uid != stored.uid and not patched:
        raise statuses.precondition(kind, name, "UID", uid, stored.uid)
    if not version or version == "0":
        if not resource.strategy.unconditional_update and not patched:
            report = Report()
            report.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise statuses.invalid(kind.plural, kind.group, name, report.errors)
    elif not (version.isascii() and version.isdigit()):
        raise statuses.failed(f'strconv.ParseUint: parsing "{version}": invalid syntax')
    elif version != str(stored.revision):
        raise statuses.modified(kind, name)


def _check_place(target: Target, metadata: Object) -> None:
    """An object cannot be moved: it says where it is, and that is where it was sent."""
    name, namespace = metadata.get("name") or "", metadata.get("namespace") or ""
    if not name:
        raise statuses.bad_request(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be"
            " provided"
        )
    if name != target.key[1]:
        raise statuses.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        )
    if not target.kind.namespaced:
        metadata.pop("namespace", None)
    elif namespace and namespace != target.key[0]:
        raise _elsewhere()


def _elsewhere() -> statuses.Refusal:
    return statuses.bad_request(
        "the namespace of the provided object does not match the namespace sent on the request"
    )


def _in_version(obj: Object, kind: Kind) -> Object:
    if obj["apiVersion"] == kind.api_version:
        return obj
    return {**obj, "apiVersion": kind.api_version}


def _begin_metadata(cluster: Cluster, metadata: Object, *, counted: bool) -> None:
    for field in _NOT_YET:
        metadata.pop(field, None)
    metadata["uid"] = cluster.world.uid()
    metadata["creationTimestamp"] = rfc3339(cluster.world.now())
    if counted:
        metadata["generation"] = 1
    _drop_empty(metadata)


def _keep_metadata(new: Object, old: Object) -> None:
    for field in _FORGOTTEN:
        new.pop(field, None)
    for field in _OWN:
        new.pop(field, None)
        if field in old:
            new[field] = old[field]
    for field in _KEPT:
        if new.get(field) in (None, "") and field in old:
            new[field] = old[field]
    _drop_empty(new)


def _drop_empty(metadata: Object) -> None:
    for field in ("labels", "annotations", "finalizers", "ownerReferences", "generateName"):
        if field in metadata and not metadata[field]:
            del metadata[field]


def _keep_status(new: Object, old: Object) -> None:
    new.pop("status", None)
    if "status" in old:
        new["status"] = old["status"]


def _arranged(resource: Resource, obj: Object) -> Object:
    """The stored form: one version, and the order in which people read an object."""
    rest = {k: v for k, v in obj.items() if k not in ("kind", "apiVersion", "metadata", "status")}
    arranged = {
        "kind": resource.storage.kind,
        "apiVersion": resource.storage.api_version,
        "metadata": obj["metadata"],
        **rest,
    }
    if "status" in obj:
        arranged["status"] = obj["status"]
    return arranged


def _generated(cluster: Cluster, resource: Resource, kind: Kind, metadata: Object) -> str:
    base: str = metadata["generateName"][:_GENERATED_ROOM]
    name = base
    for _ in range(_ATTEMPTS):
        name = base + cluster.world.suffix(5)
        key: Key = (metadata.get("namespace") or "", name)
        if cluster.store.latest(resource.name, key) is None:
            return name
    refusal = statuses.already_exists(kind, name)
    refusal.status["message"] += (
        ", the server was not able to generate a unique name for the object"
    )
    refusal.status["details"]["retryAfterSeconds"] = 1
    raise refusal
