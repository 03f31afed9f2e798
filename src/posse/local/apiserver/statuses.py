"""Answers that are not an object: Kubernetes' Status, for refusals and for plain success."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from posse.objects.errors import FieldError
from posse.objects.kinds import Kind

Status = dict[str, Any]


class Refusal(Exception):
    """A request that is not carried out; `status` is the body of the answer."""

    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status: Status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": details,
            "code": code,
        }
        if details is None:
            del self.status["details"]
        if not reason:
            del self.status["reason"]

    @property
    def retry_after(self) -> int | None:
        seconds: int | None = self.status.get("details", {}).get("retryAfterSeconds")
        return seconds


def success(code: int = 200, details: dict[str, Any] | None = None) -> Status:
    status: Status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
    }
    if details is not None:
        status["details"] = details
    if code != 200:
        status["code"] = code
    return status


def named(kind: Kind, name: str, **more: Any) -> dict[str, Any]:
    """The `details` that say which object is meant, by its resource."""
    details: dict[str, Any] = {"name": name, "group": kind.group, "kind": kind.plural, **more}
    return {key: value for key, value in details.items() if value != ""}


def bad_request(message: str) -> Refusal:
    return Refusal(400, "BadRequest", message)


def unauthorized() -> Refusal:
    return Refusal(401, "Unauthorized", "Unauthorized")


def forbidden(
    kind: Kind, name: str, why: str, causes: list[dict[str, str]] | None = None
) -> Refusal:
    subject = f'{kind.qualified} "{name}"' if name else kind.qualified
    more = {"causes": causes} if causes else {}
    return Refusal(403, "Forbidden", f"{subject} is forbidden: {why}", named(kind, name, **more))


def not_found(kind: Kind, name: str) -> Refusal:
    return Refusal(404, "NotFound", f'{kind.qualified} "{name}" not found', named(kind, name))


def no_such_path() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed(
    what: str = "the server does not allow this method on the requested resource",
) -> Refusal:
    return Refusal(405, "MethodNotAllowed", what, {})


def not_acceptable(why: str) -> Refusal:
    return Refusal(406, "NotAcceptable", why)


def already_exists(kind: Kind, name: str, *, ending: bool = False) -> Refusal:
    """`ending`: the one that exists is being deleted, so trying again may succeed."""
    message = f'{kind.qualified} "{name}" already exists'
    if ending:
        message = f"object is being deleted: {message}"
    return Refusal(409, "AlreadyExists", message, named(kind, name))


def conflict(kind: Kind, name: str, why: str, part: str = "") -> Refusal:
    """`part` names the subresource that was written, as in `pods/binding`."""
    subject = kind.qualified
    details = named(kind, name)
    if part:
        plural = f"{kind.plural}/{part}"
        subject = f"{plural}.{kind.group}" if kind.group else plural
        details["kind"] = plural
    message = f'Operation cannot be fulfilled on {subject} "{name}": {why}'
    return Refusal(409, "Conflict", message, details)


def modified(kind: Kind, name: str) -> Refusal:
    return conflict(
        kind,
        name,
        "the object has been modified; please apply your changes to the latest version and try"
        " again",
    )


def precondition(kind: Kind, name: str, what: str, asked: str, is_: str) -> Refusal:
    why = f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {is_}"
    return conflict(kind, name, why)


def not_the_one(kind: Kind, name: str, what: str, asked: str, is_: str) -> Refusal:
    """A deletion that was meant for another object, or another state, of the same name."""
    happened = "deleted and then recreated" if what == "UID" else "modified"
    message = (
        f'Operation cannot be fulfilled on {kind.kind} "{name}": the {what} in the'
        f" precondition ({asked}) does not match the {what} in record ({is_}). The object might"
        f" have been {happened}"
    )
    details = {"name": name, "group": kind.group, "kind": kind.kind}
    return Refusal(
        409, "Conflict", message, {key: value for key, value in details.items() if value}
    )


def expired(message: str) -> Refusal:
    return Refusal(410, "Expired", message)


def too_large(limit: int) -> Refusal:
    return Refusal(
        413,
        "RequestEntityTooLarge",
        f"Request entity too large: limit is {limit}",
    )


def invalid(kind: str, group: str, name: str, problems: Sequence[FieldError]) -> Refusal:
    """422 with one cause for each field that is wrong."""
    unique = list(dict.fromkeys(str(problem) for problem in problems))
    told = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    qualified = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {
        "name": name,
        "group": group,
        "kind": kind,
        "causes": [
            {"reason": problem.reason, "message": problem.message, "field": problem.field}
            for problem in problems
        ],
    }
    details = {key: value for key, value in details.items() if value != ""}
    return Refusal(422, "Invalid", f'{qualified} "{name}" is invalid: {told}', details)


def invalid_object(kind: Kind, name: str, problems: Sequence[FieldError]) -> Refusal:
    return invalid(kind.kind, kind.group, name, problems)


def failed(message: str) -> Refusal:
    """What kube-apiserver answers where it does not say whose fault it was."""
    return Refusal(500, "", message)


def internal_error(message: str) -> Refusal:
    return Refusal(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        {"causes": [{"message": message}]},
    )


def too_large_revision(asked: int, current: int) -> Refusal:
    return Refusal(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        {
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ],
            "retryAfterSeconds": 1,
        },
    )
