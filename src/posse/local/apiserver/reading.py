"""GET of one object, and LIST."""

from __future__ import annotations

import asyncio
import base64
import binascii

import msgspec

from posse.local.apiserver import negotiation, statuses
from posse.local.apiserver.cluster import Cluster
from posse.local.apiserver.rendering import View
from posse.local.apiserver.requests import Request
from posse.local.apiserver.responses import Reply
from posse.local.apiserver.routing import Target
from posse.local.apiserver.selectors import Selector, field_selector, label_selector
from posse.local.apiserver.store import Expired, Object, Stored
from posse.objects import errors
from posse.objects.errors import FieldError
from posse.objects.kinds import Kind
from posse.objects.meta import Key
from posse.objects.selectors import SelectorError

_PATIENCE = 3.0  # seconds to wait for a revision that is still to come
_LOST = (
    "The provided continue parameter is too old to display a consistent list result. You can start"
    " a new list without the continue parameter, or use the continue token in this response to"
    " retrieve the remainder of the results. Continuing with the provided token results in an"
    " inconsistent list - objects that were created, modified, or deleted between the time the"
    " first chunk was returned and now may show up in the list."
)


class Selection:
    """Which objects of a collection a request is about."""

    __slots__ = ("_fields", "_labels", "everything", "namespace")

    def __init__(self, namespace: str | None, labels: Selector, fields: Selector) -> None:
        self.namespace = namespace
        self._labels = labels
        self._fields = fields
        self.everything = labels.empty and fields.empty

    @staticmethod
    def of(request: Request, kind: Kind, namespace: str | None) -> Selection:
        try:
            labels = label_selector(request.query.get("labelSelector", ""))
            fields = field_selector(request.query.get("fieldSelector", ""), kind)
        except SelectorError as error:
            raise statuses.bad_request(str(error)) from error
        return Selection(namespace, labels, fields)

    def selects(self, stored: Stored) -> bool:
        if self.namespace is not None and stored.key[0] != self.namespace:
            return False
        return self.everything or self.accepts(stored.obj)

    def accepts(self, obj: Object) -> bool:
        """The selectors alone, of an object known to be in the namespace."""
        return self._labels.matches(obj) and self._fields.matches(obj)


class Token(msgspec.Struct, rename="camel"):
    """Where a list goes on: after `start`, in the state of `rv` (0: whatever is there)."""

    rv: int
    start: tuple[str, str]

    def text(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @staticmethod
    def read(text: str) -> Token:
        try:
            padded = text + "=" * (-len(text) % 4)
            return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=Token)
        except (binascii.Error, ValueError, msgspec.DecodeError) as error:
            raise statuses.bad_request(
                "invalid continue token: continue key is not valid"
            ) from error


def view_of(cluster: Cluster, request: Request, target: Target) -> View:
    form = negotiation.form(request.header("accept"))
    include = request.query.get("includeObject", "")
    if form is negotiation.Form.TABLE and include not in ("", "None", "Metadata", "Object"):
        raise statuses.bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}":'
            " must be 'Metadata', 'Object', 'None', or empty"
        )
    return View(cluster, target.resource, target.kind, form, include)


async def get(cluster: Cluster, request: Request, target: Target) -> Reply:
    view = view_of(cluster, request, target)
    if view.form is negotiation.Form.PARTIAL_LIST:
        raise statuses.not_acceptable(
            "you requested PartialObjectMetadataList, but the requested object is not a list"
            f" (*core.{target.kind.kind})"
        )
    await fresh(cluster, revision_of(request.query.get("resourceVersion", "")))
    stored = cluster.store.get(target.resource.name, target.key)
    if stored is None:
        raise statuses.not_found(target.kind, target.key[1])
    return view.reply(stored)


async def list_objects(cluster: Cluster, request: Request, target: Target) -> Reply:
    view = view_of(cluster, request, target)
    if view.form is negotiation.Form.PARTIAL:
        raise statuses.not_acceptable(
            "you requested PartialObjectMetadata, but the requested object is a list"
            f" (*core.{target.kind.kind}List)"
        )
    selection = Selection.of(request, target.kind, target.namespace)
    limit = max(0, request.whole("limit") or 0)
    if request.query.get("resourceVersion") == "0":
        limit = 0  # served from what is at hand, which is not cut into pieces
    request.whole("timeoutSeconds")
    at, start = await _snapshot(cluster, request, limit)
    try:
        items = cluster.store.objects(target.resource.name, target.namespace, at)
    except Expired as error:
        raise _too_old(request, error) from error
    shown_at = cluster.store.revision if at is None else at
    if start is not None:
        items = [stored for stored in items if stored.key > start]
    if not selection.everything:
        items = [stored for stored in items if selection.accepts(stored.obj)]
    metadata: Object = {"resourceVersion": str(shown_at)}
    if limit and len(items) > limit:
        metadata["continue"] = Token(shown_at, items[limit - 1].key).text()
        if selection.everything:
            metadata["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return view.reply_list(items, metadata)


async def _snapshot(
    cluster: Cluster, request: Request, limit: int
) -> tuple[int | None, Key | None]:
    """The revision to show (None: the present one) and the key to begin after."""
    text = request.query.get("resourceVersion", "")
    match = request.query.get("resourceVersionMatch", "")
    token = request.query.get("continue", "")
    check_list_options(request, watch=False)
    if token:
        if text not in ("", "0"):
            raise statuses.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        read = Token.read(token)
        if read.rv > cluster.store.revision:
            raise statuses.expired(_LOST)
        return (read.rv or None), read.start
    try:
        revision = revision_of(text)
    except statuses.Refusal as refusal:
        raise statuses.bad_request(f"invalid resource version: {refusal}") from refusal
    await fresh(cluster, revision)
    exact = match == "Exact" or (not match and limit > 0 and revision > 0)
    return (revision if exact else None), None


def check_list_options(request: Request, *, watch: bool) -> None:
    """The combinations of options that mean nothing: 422, as kube-apiserver words it."""
    revision = request.query.get("resourceVersion", "")
    match = request.query.get("resourceVersionMatch", "")
    initial = request.flag("sendInitialEvents") if "sendInitialEvents" in request.query else None
    field, forbidden = "resourceVersionMatch", ""
    if initial is not None and not watch:
        field, forbidden = "sendInitialEvents", "sendInitialEvents is forbidden for list"
    elif watch and initial is None and match:
        forbidden = (
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )
    elif initial is not None and match != "NotOlderThan":
        forbidden = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    elif not watch and match and not revision:
        forbidden = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif (watch or match) and request.query.get("continue"):
        forbidden = "resourceVersionMatch is forbidden when continue is provided"
    elif match == "Exact" and revision == "0":
        forbidden = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if forbidden:
        problem = FieldError(field, errors.FORBIDDEN, f"Forbidden: {forbidden}")
    elif match not in ("", "Exact", "NotOlderThan"):
        supported = 'supported values: "Exact", "NotOlderThan", ""'
        why = f'Unsupported value: "{match}": {supported}'
        problem = FieldError(field, errors.NOT_SUPPORTED, why)
    else:
        return
    raise statuses.invalid("ListOptions", "meta.k8s.io", "", [problem])


def revision_of(text: str) -> int:
    """A resourceVersion of the query; none is 0."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise statuses.failed(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}":'
            " invalid syntax"
        )
    return int(text)


async def fresh(cluster: Cluster, revision: int) -> None:
    """Waits a little for a state at least as new; 504 if it does not come."""
    if revision <= cluster.store.revision:
        return
    try:
        async with asyncio.timeout(_PATIENCE):
            await cluster.store.reached(revision)
    except TimeoutError:
        raise statuses.too_large_revision(revision, cluster.store.revision) from None


def _too_old(request: Request, error: Expired) -> statuses.Refusal:
    if not request.query.get("continue"):
        return statuses.expired(str(error))
    refusal = statuses.expired(_LOST)
    token = Token.read(request.query["continue"])
    refusal.status["metadata"] = {"continue": Token(0, token.start).text()}
    return refusal
