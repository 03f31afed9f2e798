"""Quantities against exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from posse.objects.quantity import (
    MAX_BASE_UNITS,
    QuantityError,
    base_units,
    canonical,
    format_base_units,
    parse,
)

SUFFIXES: dict[str, Fraction] = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18), "Ki": Fraction(2**10), "Mi": Fraction(2**20),
    "Gi": Fraction(2**30), "Ti": Fraction(2**40), "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip
EXPONENTS = {f"{mark}{power}": Fraction(10) ** power for mark in "eE" for power in range(-20, 21)}
FACTORS = {**SUFFIXES, **EXPONENTS}

digits = st.text("0123456789", max_size=20)


@st.composite
def quantities(draw: st.DrawFn) -> tuple[str, Fraction]:
    """A quantity's text and the number it stands for."""
    sign = draw(st.sampled_from(["", "+", "-"]))
    whole, part = draw(digits), draw(st.one_of(st.none(), digits))
    if not whole and not part:
        whole = "0"
    number = whole if part is None else f"{whole}.{part}"
    suffix = draw(st.sampled_from(sorted(FACTORS)))
    value = Fraction(int(whole + (part or "")), 10 ** len(part or "")) * FACTORS[suffix]
    return f"{sign}{number}{suffix}", -value if sign == "-" else value


def rounded_away(value: Fraction) -> int:
    return math.ceil(value) if value >= 0 else math.floor(value)


def capped(value: int) -> int:
    return max(-MAX_BASE_UNITS, min(MAX_BASE_UNITS, value))


@given(quantities())
def test_parse_is_exact_to_the_billionth(quantity: tuple[str, Fraction]) -> None:
    text, value = quantity
    assert parse(text).nano == rounded_away(value * 10**9)


@given(quantities())
def test_base_units_round_away_from_zero_once(quantity: tuple[str, Fraction]) -> None:
    text, value = quantity
    in_nano = Fraction(rounded_away(value * 10**9), 10**9)
    assert base_units("cpu", text, "f") == capped(rounded_away(in_nano * 1000))
    assert base_units("memory", text, "f") == capped(rounded_away(in_nano))


@given(quantities())
def test_canonical_means_the_same_and_is_stable(quantity: tuple[str, Fraction]) -> None:
    text, value = quantity
    written = canonical(text)
    if abs(value) <= MAX_BASE_UNITS:
        assert parse(written) == parse(text)
    assert canonical(written) == written


@given(st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(0, MAX_BASE_UNITS))
def test_what_is_shown_reads_back(resource: str, amount: int) -> None:
    assert base_units(resource, format_base_units(resource, amount), "f") == amount


@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_an_error_with_the_field(text: str) -> None:
    try:
        amount = base_units("memory", text, "the.field")
    except QuantityError as error:
        assert error.field == "the.field"
    else:
        assert -MAX_BASE_UNITS <= amount <= MAX_BASE_UNITS


@given(st.floats())
def test_a_number_means_what_its_text_means(number: float) -> None:
    try:
        amount = base_units("memory", number, "f")
    except QuantityError:
        assert not math.isfinite(number) or abs(number) >= 1e99 or abs(number) < 1e-98
    else:
        in_nano = Fraction(rounded_away(Fraction(repr(number)) * 10**9), 10**9)
        assert amount == capped(rounded_away(in_nano))
