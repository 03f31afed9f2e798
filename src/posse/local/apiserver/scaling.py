"""The `scale` subresource: how many of something, and nothing else about it."""

from __future__ import annotations

from typing import Any

from posse.local.apiserver import reading, statuses
from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.intake import WriteOptions, read_body
from posse.local.apiserver.negotiation import form
from posse.local.apiserver.patching import PatchError, apply_patch
from posse.local.apiserver.patching.copying import copied
from posse.local.apiserver.requests import Request
from posse.local.apiserver.responses import Reply, json_reply
from posse.local.apiserver.routing import Target
from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies.strategy import Scaling
from posse.local.apiserver.tables.reading import selector as selector_text
from posse.local.apiserver.writing import Change, update
from posse.objects.kinds import SCALE
from posse.objects.raw import mapping, number, text
from posse.objects.schemas.core import core_schema
from posse.objects.validating.report import Report


async def get(cluster: Cluster, request: Request, target: Target) -> Reply:
    form(request.header("accept"), transforms=False)
    await reading.fresh(cluster, reading.revision_of(request.query.get("resourceVersion", "")))
    stored = cluster.store.get(target.resource.name, target.key)
    if stored is None:
        raise statuses.not_found(target.kind, target.key[1])
    return json_reply(_scale(stored.obj, _scaling(target)))


async def put(cluster: Cluster, request: Request, target: Target) -> Reply:
    options = WriteOptions.of(request, "UpdateOptions")
    sent = (await read_body(request)).value
    return await _written(cluster, request, target, options, lambda _: sent)


async def patch(cluster: Cluster, request: Request, target: Target) -> Reply:
    options = WriteOptions.of(request, "PatchOptions")
    content_type = request.header("content-type")
    body = await read_body(request)

    def change(scale: Object) -> Object:
        try:
            return apply_patch(content_type, scale, body.value, SCALE)
        except PatchError as error:
            raise statuses.Refusal(error.code, error.reason, error.message) from error

    return await _written(cluster, request, target, options, change)


async def _written(
    cluster: Cluster, request: Request, target: Target, options: WriteOptions, change: Change
) -> Reply:
    """`change` makes a new scale of the one that is; the object follows it."""
    form(request.header("accept"), transforms=False)
    scaling = _scaling(target)
    context = cluster.context()

    def changed(old: Object) -> Object:
        current = _scale(old, scaling)
        if request.method == "PATCH":
            del current["metadata"]["resourceVersion"]
        scale = change(current)
        _check(scale, target)
        new: Object = copied(old)
        _put(new, scaling.wanted, number(mapping(scale, "spec"), "replicas") or 0)
        for name in ("uid", "resourceVersion"):
            new["metadata"].pop(name, None)
            if claimed := text(scale["metadata"], name):
                new["metadata"][name] = claimed
        return new

    whole = Target(target.resource, target.kind, target.namespace, target.name, None)
    outcome = update(cluster, context, whole, changed, options.dry_run, patched=True)
    if outcome.write is not None:
        await cluster.durable(outcome.write)
    else:
        await cluster.unchanged(target.resource.name, target.key)
    return json_reply(_scale(outcome.obj, scaling), warnings=context.warnings)


def _scaling(target: Target) -> Scaling:
    scaling = target.resource.strategy.scaling(target.kind)
    if scaling is None:
        raise statuses.no_such_path()
    return scaling


def _check(scale: Any, target: Target) -> None:
    if not isinstance(scale, dict) or scale.get("kind") not in (None, "", SCALE.kind):
        raise statuses.bad_request("the object provided is unrecognized (must be of type Scale)")
    schema = core_schema(SCALE)
    schema.prune(scale)
    if mistyped := schema.validate(scale):
        handled = 'Scale in version "v1" cannot be handled as a Scale'
        raise statuses.bad_request(f"{handled}: {mistyped[0].message}")
    metadata = scale["metadata"] = scale.get("metadata") or {}
    if (metadata.get("name") or target.name) != target.name:
        raise statuses.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL"
            f" ({target.name})"
        )
    report = Report()
    report.not_negative("spec.replicas", number(mapping(scale, "spec"), "replicas"))
    if report.errors:
        raise statuses.invalid_object(SCALE, target.key[1], report.errors)


def _scale(obj: Object, scaling: Scaling) -> Object:
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata = {name: obj["metadata"][name] for name in kept if name in obj["metadata"]}
    spec: Object = {}
    if wanted := number(mapping(obj, *scaling.wanted[:-1]), scaling.wanted[-1]):
        spec["replicas"] = wanted
    present = number(mapping(obj, *scaling.present[:-1]), scaling.present[-1])
    status: Object = {"replicas": present or 0}
    if chosen := _selector(obj, scaling):
        status["selector"] = chosen
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def _selector(obj: Object, scaling: Scaling) -> str:
    """Custom kinds keep it as text, built-in ones as a selector."""
    if not scaling.selector:
        return ""
    found = mapping(obj, *scaling.selector[:-1]).get(scaling.selector[-1])
    if isinstance(found, dict):
        return selector_text({"spec": {"selector": found}}, 0.0)
    return found if isinstance(found, str) else ""


def _put(obj: Object, path: tuple[str, ...], value: int) -> None:
    for name in path[:-1]:
        inner = obj.get(name)
        if not isinstance(inner, dict):
            inner = obj[name] = {}
        obj = inner
    obj[path[-1]] = value
