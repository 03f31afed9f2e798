from __future__ import annotations

from typing import Any

import msgspec
import pytest

from posse.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    from_answer,
    from_status,
)
from tests.unit.kube.modelserver import TOO_LARGE, status


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", BadRequest),
        (401, "Unauthorized", Unauthorized),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (405, "MethodNotAllowed", ApiError),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (409, "", Conflict),
        (410, "Gone", Gone),
        (410, "Expired", Gone),
        (415, "UnsupportedMediaType", ApiError),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", ServerError),
        (503, "ServiceUnavailable", ServerError),
        (504, "Timeout", ServerError),
    ],
)
def test_code_and_reason_choose_the_type(code: int, reason: str, expected: type[ApiError]) -> None:
    error = from_status(status(code, reason, "what happened", name="x"))
    assert type(error) is expected
    assert (error.code, error.reason, error.message) == (code, reason, "what happened")
    assert error.details == {"name": "x"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"reason": "Expired"}, Gone),
        ({"reason": "Conflict", "code": "409"}, Conflict),
        ({"reason": 5, "message": None, "details": []}, ServerError),
        ({}, ServerError),
    ],
)
def test_a_status_without_a_usable_code_is_still_typed(
    document: dict[str, Any], expected: type[ApiError]
) -> None:
    error = from_status(document)
    assert type(error) is expected
    assert str(error)


def test_an_already_existing_object_is_no_conflict_to_retry() -> None:
    assert not isinstance(from_status(status(409, "AlreadyExists")), Conflict)


def test_retry_after_comes_from_the_header_before_the_details() -> None:
    body = msgspec.json.encode(status(429, "TooManyRequests", retryAfterSeconds=9))
    assert from_answer(429, {"retry-after": "2"}, body).retry_after == 2.0
    assert from_answer(429, {}, body).retry_after == 9.0
    assert from_answer(429, {"retry-after": "Fri, 31 Dec"}, b"slow down").retry_after is None


@pytest.mark.parametrize("body", [b"", b"<html>bad gateway</html>", b"\xff\xfe", b"[1]", b'"x"'])
def test_an_answer_that_is_no_status_is_a_one_line_error(body: bytes) -> None:
    error = from_answer(502, {}, body)
    assert type(error) is ServerError
    assert "502" in str(error)
    assert "\n" not in str(error)


def test_a_version_from_the_future_is_told_apart_from_other_failures() -> None:
    by_cause, by_words = (
        from_status(TOO_LARGE),
        from_status(status(504, "Timeout", "Too large resource version: 12, current: 7")),
    )
    other = from_status(status(504, "Timeout", "etcd did not answer"))
    assert isinstance(by_cause, ServerError) and by_cause.too_large_version
    assert isinstance(by_words, ServerError) and by_words.too_large_version
    assert isinstance(other, ServerError) and not other.too_large_version
