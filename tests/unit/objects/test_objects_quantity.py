"""Quantities mean what Kubernetes says they mean."""

from __future__ import annotations

from typing import Any

import pytest

from posse.objects.quantity import (
    MAX_BASE_UNITS,
    Quantity,
    QuantityError,
    base_units,
    canonical,
    canonical_milli,
    format_base_units,
    milli_units,
    parse,
)


@pytest.mark.parametrize(
    ("text", "milli", "whole"),
    [
        ("0", 0, 0),
        ("1", 1000, 1),
        ("+1", 1000, 1),
        ("-1", -1000, -1),
        ("5.", 5000, 5),
        (".5", 500, 1),
        ("0.5", 500, 1),
        ("1n", 1, 1),
        ("1u", 1, 1),
        ("1m", 1, 1),
        ("100m", 100, 1),
        ("1500m", 1500, 2),
        ("0.1n", 1, 1),
        ("1k", 10**6, 10**3),
        ("1M", 10**9, 10**6),
        ("1G", 10**12, 10**9),
        ("1T", 10**15, 10**12),
        ("1P", 10**18, 10**15),
        ("1E", MAX_BASE_UNITS, 10**18),
        ("1Ki", 2**10 * 1000, 2**10),
        ("1Mi", 2**20 * 1000, 2**20),
        ("1Gi", 2**30 * 1000, 2**30),
        ("1Ti", 2**40 * 1000, 2**40),
        ("1Pi", 2**50 * 1000, 2**50),
        ("1Ei", MAX_BASE_UNITS, 2**60),
        ("1.5Gi", 1536 * 2**20 * 1000, 1536 * 2**20),
        ("0.5Ki", 512_000, 512),
        ("1e3", 10**6, 1000),
        ("1E3", 10**6, 1000),
        ("1e-3", 1, 1),
        ("1e+3", 10**6, 1000),
        ("12.5e1", 125_000, 125),
        (2, 2000, 2),
        (0.5, 500, 1),
        (1e30, MAX_BASE_UNITS, MAX_BASE_UNITS),
        ("1000Ei", MAX_BASE_UNITS, MAX_BASE_UNITS),
        ("99999999999999999999", MAX_BASE_UNITS, MAX_BASE_UNITS),
        ("-99999999999999999999", -MAX_BASE_UNITS, -MAX_BASE_UNITS),
    ],
)
def test_base_units(text: str | int | float, milli: int, whole: int) -> None:
    assert base_units("cpu", text, "f") == milli
    assert base_units("memory", text, "f") == whole


@pytest.mark.parametrize(
    "nonsense",
    [
        "", " ", " 1", "1 ", "1 Gi", "1Gib", "1gi", "1K", "1kb", "0x10", "1e", "1e1.5", "e3",
        "1ee3", "NaN", "nan", "inf", "Infinity", "1e999", "1e-999", ".", "+", "-", "m", "Gi",
        "1..2", "1.2.3", "--1", "+-1", "1_000", "1,5", "١", "1\n", "9" * 200, None, True, [], {},
        float("nan"), float("inf"),
    ],
)  # fmt: skip
def test_nonsense_is_an_error_that_names_the_field(nonsense: Any) -> None:
    field = "spec.containers[0].resources.limits[nvidia.com/gpu]"
    with pytest.raises(QuantityError) as raised:
        base_units("nvidia.com/gpu", nonsense, field)
    assert raised.value.field == field
    assert raised.value.value is nonsense
    assert field in str(raised.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1Gib", "quantities must match the regular expression"),
        ("1e", "unable to parse quantity's suffix"),
        ("1..2", "unable to parse numeric part of quantity"),
    ],
)
def test_the_reason_is_in_kubernetes_words(text: str, why: str) -> None:
    with pytest.raises(QuantityError) as raised:
        parse(text)
    assert raised.value.why.startswith(why)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1025Mi", "1025Mi"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("100e1", "1e3"),
        ("1500m", "1500m"),
        ("1000", "1k"),
        ("100", "100"),
        ("0", "0"),
        ("0Gi", "0"),
        ("-0", "0"),
        ("512Ki", "512Ki"),
        ("1.1Ki", "1126400m"),
        ("0.5Ki", "512"),
        ("0.1n", "1n"),
        ("1000Ei", "9223372036854775807"),
        ("-1500m", "-1500m"),
        ("8", "8"),
        (8, "8"),
        (0.5, "500m"),
        ("+1", "+1"),
        ("1.500", "1.500"),
        ("0.500", "500m"),
    ],
)
def test_canonical_is_what_a_server_gives_back(text: str | int | float, written: str) -> None:
    assert canonical(text) == written


@pytest.mark.parametrize(("text", "written"), [("100.5m", "101m"), ("1m", "1m"), ("1n", "1m")])
def test_the_api_keeps_thousandths(text: str, written: str) -> None:
    assert canonical_milli(text) == written


@pytest.mark.parametrize(
    ("resource", "amount", "shown"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 2000, "2"),
        ("cpu", 0, "0"),
        ("memory", 2147483648, "2Gi"),
        ("memory", 1000, "1000"),
        ("ephemeral-storage", 10 * 2**30, "10Gi"),
        ("hugepages-2Mi", 4 * 2**20, "4Mi"),
        ("nvidia.com/gpu", 8, "8"),
        ("nvidia.com/gpu", 1000, "1000"),
        ("pods", 110, "110"),
    ],
)
def test_base_units_are_shown_with_their_suffix(resource: str, amount: int, shown: str) -> None:
    assert format_base_units(resource, amount) == shown
    assert base_units(resource, shown, "f") == amount


def test_equal_amounts_compare_equal_however_written() -> None:
    assert parse("1000m") == parse("1") == parse("1e0") == Quantity(10**9)
    assert parse("1Gi") > parse("1G")


def test_one_and_true_are_not_confused_by_the_cache() -> None:
    assert base_units("cpu", 1, "f") == 1000
    with pytest.raises(QuantityError):
        base_units("cpu", True, "f")
    assert milli_units(1.0) == 1000
