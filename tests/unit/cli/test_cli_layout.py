from __future__ import annotations

import pytest

from posse.cli.layout import columns, short_age


def test_columns_are_padded_by_two_spaces_and_end_without_any() -> None:
    assert columns([("NAME", "NODE"), ("a", "N/A"), ("worker-0", "x")], "  ") == (
        "  NAME      NODE\n  a         N/A\n  worker-0  x"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (59.9, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"),
        (86_400, "1d"), (86_400 * 364, "364d"), (86_400 * 365, "1y"), (-3, "0s"),
    ],
)  # fmt: skip
def test_an_age_is_one_unit(seconds: float, text: str) -> None:
    assert short_age(seconds) == text
