"""AdmissionReview of admission.k8s.io/v1: what an API server asks, and how it is answered."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from msgspec import field

from posse.admission.patching import Operation
from posse.objects.errors import FieldError
from posse.objects.meta import FrozenStruct, KubeStruct, Nullable

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"

# API servers log what is longer, and cut it.
_LONGEST_WARNING = 256
_MOST_WARNINGS = 16

Object = dict[str, Any]


class MalformedReview(ValueError):
    """The body is no question that this webhook understands."""


class GroupVersionKind(FrozenStruct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class UserInfo(KubeStruct):
    username: str = ""
    uid: str = ""
    groups: Nullable[list[str]] = field(default_factory=list)
    extra: Nullable[dict[str, list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.groups is None:
            self.groups = []
        if self.extra is None:
            self.extra = {}


class AdmissionRequest(KubeStruct, kw_only=True):
    """`kind` is what `object` is in now; `request_kind` is what the user wrote it in."""

    uid: str
    kind: GroupVersionKind
    operation: str
    request_kind: GroupVersionKind | None = None
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: Nullable[UserInfo] = field(default_factory=UserInfo)
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.user_info is None:
            self.user_info = UserInfo()

    @property
    def written_kind(self) -> GroupVersionKind:
        return self.request_kind or self.kind


class Review(msgspec.Struct, frozen=True):
    """The answer. A denial has a code, a reason and a message, as a Status has."""

    allowed: bool = True
    code: int = 0
    reason: str = ""
    message: str = ""
    causes: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: tuple[Operation, ...] = ()


class _Question(KubeStruct, kw_only=True):
    api_version: str
    kind: str
    request: AdmissionRequest


_decoder = msgspec.json.Decoder(_Question)


def read(body: bytes) -> AdmissionRequest:
    try:
        question = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedReview(f"not an {KIND}: {error}") from None
    if (question.api_version, question.kind) != (API_VERSION, KIND):
        found = f"{question.kind} of {question.api_version}"
        raise MalformedReview(f"this webhook answers {KIND} of {API_VERSION}, not {found:.200}")
    if not question.request.uid:
        raise MalformedReview(f"not an {KIND}: its request has no uid")
    return question.request


def written(uid: str, review: Review) -> bytes:
    response: Object = {"uid": uid, "allowed": review.allowed}
    if not review.allowed:
        response["status"] = _status(review)
    if review.warnings:
        response["warnings"] = _shown(review.warnings)
    if review.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(review.patch)).decode()
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _status(review: Review) -> Object:
    status: Object = {
        "status": "Failure",
        "code": review.code,
        "reason": review.reason,
        "message": review.message,
    }
    if review.causes:
        status["details"] = {
            "causes": [
                {"field": cause.field, "reason": cause.reason, "message": cause.message}
                for cause in review.causes
            ]
        }
    return status


def _shown(warnings: tuple[str, ...]) -> list[str]:
    return [
        text if len(text) <= _LONGEST_WARNING else f"{text[: _LONGEST_WARNING - 3]}..."
        for text in warnings[:_MOST_WARNINGS]
    ]
