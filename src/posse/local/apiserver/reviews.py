"""Questions about who asks and what they may do: answered, never kept.

Whoever holds one of the cluster's tokens may do everything in it; nobody else is let in.
"""

from __future__ import annotations

from typing import Any

from posse.local.apiserver import statuses
from posse.local.apiserver.access import Tokens
from posse.local.apiserver.intake import WriteOptions, read_body
from posse.local.apiserver.negotiation import form
from posse.local.apiserver.requests import Request
from posse.local.apiserver.responses import Reply, json_reply
from posse.local.apiserver.routing import AnsweredTarget
from posse.local.apiserver.store import Object
from posse.objects import kinds
from posse.objects.kinds import Kind
from posse.objects.raw import mapping, text, texts
from posse.objects.schemas.core import core_schema
from posse.objects.times import rfc3339
from posse.objects.validating.report import Report
from posse.world import World

_ADMINISTRATORS = "system:masters"
_EVERYBODY = "system:authenticated"
_MAY = "holders of the cluster's tokens may do everything"
_MAY_NOT = "none of the cluster's tokens is theirs"


class Reviews:
    def __init__(self, tokens: Tokens, world: World) -> None:
        self._tokens = tokens
        self._world = world

    async def answer(self, request: Request, target: AnsweredTarget) -> Reply:
        form(request.header("accept"))
        WriteOptions.of(request, "CreateOptions")
        kind = target.kind
        review = await _read(request, kind)
        spec = mapping(review, "spec")
        if kind.namespaced:
            review["metadata"]["namespace"] = target.namespace
        _check(kind, review, spec)
        review["status"] = self._status(kind, spec, request.user)
        if kind == kinds.SELF_SUBJECT_REVIEW:
            review["metadata"] = {"creationTimestamp": rfc3339(self._world.now())}
        review = {"kind": kind.kind, "apiVersion": kind.api_version, **review}
        return json_reply(review, 201)

    def _status(self, kind: Kind, spec: Object, user: str) -> Object:
        if kind == kinds.SELF_SUBJECT_REVIEW:
            return {"userInfo": _user(user)}
        if kind == kinds.SELF_SUBJECT_ACCESS_REVIEW:
            return {"allowed": True, "reason": _MAY}
        if kind == kinds.SELF_SUBJECT_RULES_REVIEW:
            return {
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
        if kind == kinds.TOKEN_REVIEW:
            if holder := self._tokens.holder(text(spec, "token")):
                return {"authenticated": True, "user": _user(holder)}
            return {"user": {}, "error": "the token is none of this cluster's"}
        named = self._tokens.names(text(spec, "user")) or _ADMINISTRATORS in texts(spec, "groups")
        return {"allowed": named, "reason": _MAY if named else _MAY_NOT}


def _user(name: str) -> Object:
    return {"username": name, "groups": [_ADMINISTRATORS, _EVERYBODY]}


async def _read(request: Request, kind: Kind) -> Object:
    sent: Any = (await read_body(request)).value
    if not isinstance(sent, dict) or sent.get("kind") not in (None, "", kind.kind):
        raise statuses.bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind})"
        )
    if sent.get("apiVersion") not in (None, "", kind.api_version):
        raise statuses.bad_request(
            f"the API version in the data ({sent['apiVersion']}) does not match the expected API"
            f" version ({kind.api_version})"
        )
    schema = core_schema(kind)
    schema.prune(sent)
    if mistyped := schema.validate(sent):
        handled = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
        raise statuses.bad_request(f"{handled}: {mistyped[0].message}")
    metadata = sent.get("metadata") or {}
    sent["metadata"] = {name: value for name, value in metadata.items() if value}
    return sent


def _check(kind: Kind, review: Object, spec: Object) -> None:
    report = Report()
    if kind.group == kinds.SELF_SUBJECT_ACCESS_REVIEW.group:
        _check_question(report, kind, review, spec)
    elif kind == kinds.TOKEN_REVIEW and not text(spec, "token"):
        raise statuses.bad_request("token is required for TokenReview in authentication")
    if report.errors:
        raise statuses.invalid_object(kind, "", report.errors)


def _check_question(report: Report, kind: Kind, review: Object, spec: Object) -> None:
    if kind == kinds.SELF_SUBJECT_RULES_REVIEW:
        if not text(spec, "namespace"):
            raise statuses.bad_request("no namespace on request")
        return
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        report.invalid("spec.nonResourceAttributes", other, detail)
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        report.invalid("spec.resourceAttributes", None, detail)
    if kind != kinds.SELF_SUBJECT_ACCESS_REVIEW and not (spec.get("user") or spec.get("groups")):
        detail = "at least one of user or group must be specified"
        report.invalid("spec.user", "", detail)
    metadata = review["metadata"]
    if [name for name in metadata if not (kind.namespaced and name == "namespace")]:
        but = " except for namespace" if kind.namespaced else ""
        report.invalid("metadata", metadata, f"must be empty{but}")
    if kind.namespaced:
        namespace = text(resource, "namespace")
        if resource is not None and namespace != metadata["namespace"]:
            detail = "must match metadata.namespace"
            report.invalid("spec.resourceAttributes.namespace", namespace, detail)
        if other is not None:
            detail = "disallowed on this kind of request"
            report.invalid("spec.nonResourceAttributes", other, detail)
