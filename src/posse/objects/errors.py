"""What is wrong with one field of an object, in the words of the API."""

from __future__ import annotations

import msgspec

INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
NOT_SUPPORTED = "FieldValueNotSupported"
FORBIDDEN = "FieldValueForbidden"
DUPLICATE = "FieldValueDuplicate"
TYPE_INVALID = "FieldValueTypeInvalid"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
NOT_FOUND = "FieldValueNotFound"


class FieldError(msgspec.Struct, frozen=True):
    """`message` is all that follows the field in Kubernetes' sentence, its kind of error included.

    `str()` gives the whole: `spec.containers[0].name: Required value`.
    """

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"
