"""How a mistake in a job is worded: as the API itself would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from posse.objects.errors import INVALID, NOT_SUPPORTED, REQUIRED, FieldError


def non_negative(field: str, value: int | None) -> Iterable[FieldError]:
    if value is not None and value < 0:
        yield invalid(field, value, "must be greater than or equal to 0")


def one_of(field: str, value: str, supported: Sequence[str]) -> Iterable[FieldError]:
    if value not in supported:
        known = ", ".join(f'"{item}"' for item in supported)
        yield FieldError(
            field, NOT_SUPPORTED, f'Unsupported value: "{value}": supported values: {known}'
        )


def required(field: str, why: str) -> FieldError:
    return FieldError(field, REQUIRED, f"Required value: {why}")


def invalid(field: str, value: object, why: str) -> FieldError:
    shown = f'"{value}"' if isinstance(value, str) else value
    return FieldError(field, INVALID, f"Invalid value: {shown}: {why}")
