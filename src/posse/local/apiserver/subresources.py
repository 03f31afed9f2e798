"""The parts of objects with a path of their own: binding, a namespace's finalize.

`status` is written like the object itself, in `writing`; evictions are in `evicting`, logs in
`logs`.
"""

from __future__ import annotations

from posse.local.apiserver import statuses
from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.intake import WriteOptions, read_body, read_object
from posse.local.apiserver.requests import Request
from posse.local.apiserver.responses import Reply, json_reply
from posse.local.apiserver.routing import AnsweredTarget, Target
from posse.local.apiserver.store import Object, Stored
from posse.local.apiserver.writing import answer, check_preconditions, replace
from posse.objects.kinds import BINDING, POD, Kind
from posse.objects.meta import Key
from posse.objects.raw import mapping, mappings, text
from posse.objects.times import rfc3339
from posse.objects.validating.report import Report


async def bind(cluster: Cluster, request: Request, target: Target) -> Reply:
    """POST pods/<name>/binding: the only way a pod gets its node, and it gets one once."""
    options = WriteOptions.of(request, "CreateOptions")
    binding = await read_part(request, BINDING)
    name = text(mapping(binding, "metadata"), "name")
    if name != target.name:
        raise statuses.bad_request("name in URL does not match name in Binding object")
    return await _bound(cluster, binding, target.key, options)


async def bind_named(cluster: Cluster, request: Request, target: AnsweredTarget) -> Reply:
    """POST bindings: the pod is the one the binding is named after."""
    options = WriteOptions.of(request, "CreateOptions")
    binding = await read_part(request, BINDING)
    name = text(mapping(binding, "metadata"), "name")
    if not name:
        raise statuses.bad_request("name must be provided")
    return await _bound(cluster, binding, (target.namespace, name), options)


async def finalize(cluster: Cluster, request: Request, target: Target) -> Reply:
    """PUT namespaces/<name>/finalize: who emptied the namespace says so here."""
    options = WriteOptions.of(request, "UpdateOptions")
    context = cluster.context()
    sent = await read_object(request, target.resource, target.kind, options, context.warnings)
    if sent["metadata"].get("name") != target.name:
        raise statuses.bad_request("the name of the object does not match the name on the URL")
    stored = cluster.store.latest(target.resource.name, target.key)
    if stored is None:
        raise statuses.not_found(target.kind, target.key[1])
    check_preconditions(target.kind, sent["metadata"], stored, target.resource)
    new = dict(stored.obj)
    new["spec"] = {**mapping(new, "spec"), "finalizers": mapping(sent, "spec").get("finalizers")}
    if not new["spec"]["finalizers"]:
        del new["spec"]["finalizers"]
    outcome = replace(cluster, target.resource, stored, new, options.dry_run)
    return await answer(cluster, request, target, outcome, context)


async def read_part(request: Request, kind: Kind) -> Object:
    sent = (await read_body(request)).value
    if not isinstance(sent, dict) or sent.get("kind") not in (None, "", kind.kind):
        raise statuses.bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind})"
        )
    return sent


async def _bound(cluster: Cluster, binding: Object, key: Key, options: WriteOptions) -> Reply:
    node = mapping(binding, "target")
    report = Report()
    if text(node, "kind") not in ("", "Node"):
        report.unsupported("target.kind", text(node, "kind"), ["Node", "<empty>"])
    if not text(node, "name"):
        report.required("target.name")
    if report.errors:
        raise statuses.failed(str(report.errors[0]))
    resource = cluster.registry.resource(POD)
    stored = cluster.store.latest(resource.name, key)
    if stored is None:
        raise statuses.not_found(POD, key[1])
    _check_bindable(stored, mapping(binding, "metadata"))
    pod = _with_node(cluster, stored.obj, binding, text(node, "name"))
    outcome = replace(cluster, resource, stored, pod, options.dry_run)
    await cluster.durable(outcome.write)
    return json_reply(statuses.success(201), 201)


def _check_bindable(stored: Stored, asked: Object) -> None:
    pod, name = stored.obj, stored.key[1]
    uid, version = text(asked, "uid"), text(asked, "resourceVersion")
    if uid and uid != stored.uid:
        raise statuses.precondition(POD, name, "UID", uid, stored.uid)
    if version and version != str(stored.revision):
        is_ = str(stored.revision)
        raise statuses.precondition(POD, name, "ResourceVersion", version, is_)
    if pod["metadata"].get("deletionTimestamp") is not None:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif node := pod["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{node}"'
    elif pod["spec"].get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    else:
        return
    raise statuses.conflict(POD, name, why, "binding")


def _with_node(cluster: Cluster, pod: Object, binding: Object, node: str) -> Object:
    metadata = dict(pod["metadata"])
    for field in ("annotations", "labels"):
        if added := mapping(binding, "metadata", field):
            metadata[field] = {**(metadata.get(field) or {}), **added}
    status = with_condition(cluster, pod, "PodScheduled")
    # Whatever it was to have, it has a node now.
    status.pop("nominatedNodeName", None)
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": status,
    }


def with_condition(cluster: Cluster, pod: Object, name: str, **why: str) -> Object:
    """The pod's status with a condition that holds; one that held already keeps its time."""
    status = dict(pod.get("status") or {})
    conditions = list(mappings(status, "conditions"))
    at = next((i for i, one in enumerate(conditions) if one.get("type") == name), None)
    known = conditions[at] if at is not None else {}
    since = known.get("lastTransitionTime") if known.get("status") == "True" else None
    condition = {
        "type": name,
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": since or rfc3339(cluster.world.now()),
        **why,
    }
    if at is None:
        conditions.append(condition)
    else:
        conditions[at] = condition
    status["conditions"] = conditions
    return status
