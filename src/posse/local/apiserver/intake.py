"""From the body of a request to an object of the kind it was sent to."""

from __future__ import annotations

from typing import Any

from posse.local.apiserver import statuses
from posse.local.apiserver.bodies import BadBody, Body, decode_body
from posse.local.apiserver.registry import Resource
from posse.local.apiserver.requests import Request
from posse.local.apiserver.store import Object
from posse.objects import errors
from posse.objects.errors import FieldError
from posse.objects.kinds import Kind
from posse.objects.validating.report import Report

_DIRECTIVES = ("Ignore", "Strict", "Warn")
_MANAGER_LIMIT = 128


class WriteOptions:
    """What a write says in its query: whether it counts, and how exactly its fields are read."""

    __slots__ = ("dry_run", "validation")

    def __init__(self, dry_run: bool, validation: str) -> None:
        self.dry_run = dry_run
        self.validation = validation

    @staticmethod
    def of(request: Request, what: str) -> WriteOptions:
        """`what` is the name of the options in messages: CreateOptions, UpdateOptions, ..."""
        report = Report()
        dry_run = is_dry_run(report, request.query.get("dryRun"))
        validation = request.query.get("fieldValidation") or "Warn"
        if validation not in _DIRECTIVES:
            report.unsupported("fieldValidation", validation, ("", *_DIRECTIVES))
        if len(request.query.get("fieldManager", "").encode()) > _MANAGER_LIMIT:
            report.too_long("fieldManager", _MANAGER_LIMIT)
        applies = "apply-patch" in request.header("content-type")
        if what == "PatchOptions" and "force" in request.query and not applies:
            report.forbidden("force", "may not be specified for non-apply patch")
        if report.errors:
            raise statuses.invalid(what, "meta.k8s.io", "", report.errors)
        return WriteOptions(dry_run, validation)


def is_dry_run(report: Report, value: Any) -> bool:
    """`All`, in the query or as a list in the options of a body."""
    values = value if isinstance(value, list) else [value] if value else []
    if any(one != "All" for one in values):
        report.unsupported("dryRun", values, ["All"])
    return bool(values)


async def read_body(request: Request) -> Body:
    return decoded(request, await request.body())


def decoded(request: Request, body: bytes) -> Body:
    try:
        return decode_body(request.header("content-type"), body)
    except BadBody as error:
        raise statuses.Refusal(error.code, error.reason, error.message) from error


async def read_object(
    request: Request, resource: Resource, kind: Kind, options: WriteOptions, warnings: list[str]
) -> Object:
    """The object of a POST or PUT: of this kind, of these fields, every field of its type."""
    body = await read_body(request)
    obj = body.value
    if not isinstance(obj, dict):
        raise statuses.bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): not an object"
        )
    _check_kind(obj, kind, resource.custom)
    surplus = shaped(obj, resource, kind)
    surplus = [f'duplicate field "{path}"' for path in body.duplicates] + surplus
    if surplus and options.validation == "Strict":
        raise statuses.bad_request(f"{_handled(kind)}: strict decoding error: {', '.join(surplus)}")
    if options.validation == "Warn":
        warnings += surplus
    return obj


def read_patched(
    obj: Object, resource: Resource, kind: Kind, options: WriteOptions, duplicates: list[str]
) -> list[str]:
    """The same for an object that a patch has made; returns the warnings."""
    _check_same_kind(obj, resource, kind)
    try:
        surplus = shaped(obj, resource, kind)
    except statuses.Refusal as refusal:
        raise _unpatchable(obj, str(refusal).partition(": ")[2]) from refusal
    surplus = [f'duplicate field "{path}"' for path in duplicates] + surplus
    if surplus and options.validation == "Strict":
        raise _unpatchable(obj, f"strict decoding error: {', '.join(surplus)}")
    return surplus if options.validation == "Warn" else []


def _check_same_kind(obj: Object, resource: Resource, kind: Kind) -> None:
    """A patch cannot make another kind of object."""
    named, version = obj.get("kind"), obj.get("apiVersion")
    if named == kind.kind and version == kind.api_version:
        return
    if not resource.custom:
        why = f'no kind "{named}" is registered for version "{version}" at this path'
        raise _unpatchable(obj, why)
    report = Report()
    if version != kind.api_version:
        report.invalid("apiVersion", version, f"must be {kind.api_version}")
    if named != kind.kind:
        report.invalid("kind", named, f"must be {kind.kind}")
    name = (obj.get("metadata") or {}).get("name", "")
    raise statuses.invalid(str(named), kind.group, name, report.errors)


def shaped(obj: Object, resource: Resource, kind: Kind) -> list[str]:
    """Drops what the kind does not have, in words; 400 where a value has the wrong type."""
    unknown = resource.strategy.prune(kind, obj)
    if mistyped := resource.strategy.mistyped(kind, obj):
        raise statuses.bad_request(f"{_handled(kind)}: {mistyped[0].message}")
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    obj["kind"], obj["apiVersion"] = kind.kind, kind.api_version
    return [f'unknown field "{path}"' for path in unknown]


def _check_kind(obj: Object, kind: Kind, custom: bool) -> None:
    """A built-in kind may leave out what the path already says; a custom one may not."""
    named, version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(named, str | None) or not isinstance(version, str | None):
        raise statuses.bad_request("couldn't get version/kind; kind and apiVersion must be strings")
    if custom and not named:
        raise statuses.bad_request("Object 'Kind' is missing in the object sent")
    if custom and not version:
        raise statuses.bad_request("Object 'apiVersion' is missing in the object sent")
    if version and version != kind.api_version:
        raise statuses.bad_request(
            f"the API version in the data ({version}) does not match the expected API version"
            f" ({kind.api_version})"
        )
    if named and named != kind.kind and custom:
        report = Report()
        report.invalid("kind", named, f"must be {kind.kind}")
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        raise statuses.invalid(named, kind.group, str(name or ""), report.errors)
    if named and named != kind.kind:
        raise statuses.bad_request(
            f'{named} in version "{kind.version}" cannot be handled as a {kind.kind}: no kind'
            f' "{named}" is served here'
        )


def _handled(kind: Kind) -> str:
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'


def _unpatchable(obj: Any, why: str) -> statuses.Refusal:
    """The object itself is left out of the message: it may be long, and it may be a Secret."""
    problem = FieldError("patch", errors.INVALID, f"Invalid value: {why}")
    return statuses.invalid("", "", "", [problem])
