from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from posse.kube.errors import ConfigError
from posse.kube.impersonating import Impersonation, read_impersonation
from posse.kube.kubeconfig import Entry


def user(**fields: Any) -> Entry:
    return Entry("u", {key.replace("_", "-"): value for key, value in fields.items()}, Path("c"))


@pytest.mark.parametrize("prefix", ["as", "act-as"])
def test_both_ways_to_write_it(prefix: str) -> None:
    fields = {
        prefix: "jane",
        f"{prefix}-uid": "7",
        f"{prefix}-groups": ["dev", "ops"],
        f"{prefix}-user-extra": {"scopes": ["b", "a"], "acme.com/Team": ["x"]},
    }
    assert read_impersonation(Entry("u", fields, Path("c"))) == Impersonation(
        user="jane",
        uid="7",
        groups=("dev", "ops"),
        extra=(("acme.com/Team", ("x",)), ("scopes", ("b", "a"))),
    )


def test_a_header_for_each_value_with_names_that_may_stand_there() -> None:
    asked = Impersonation(
        user="jane",
        uid="7",
        groups=("dev", "system:masters"),
        extra=(("scopes", ("b", "a")), ("acme.com/Té%am", ("x",))),
    )
    assert asked.headers() == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "system:masters"),
        ("Impersonate-Extra-scopes", "b"),
        ("Impersonate-Extra-scopes", "a"),
        ("Impersonate-Extra-acme.com%2Ft%C3%A9%25am", "x"),
    ]


def test_nobody_and_empty_fields_are_nobody() -> None:
    assert read_impersonation(user()) is None
    empty: dict[str, Any] = {"as_groups": None, "as_user_extra": {}, "as_uid": ""}
    assert read_impersonation(user(**empty)) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"as_groups": ["dev"]}, "nobody to act as"),
        ({"as_uid": "7"}, "nobody to act as"),
        ({"as_user_extra": {"a": ["b"]}}, "nobody to act as"),
        ({"as": "j", "as_groups": "dev"}, "list of texts"),
        ({"as": "j", "as_user_extra": ["dev"]}, "mapping"),
        ({"as": "j", "as_user_extra": {"a": "b"}}, "list of texts"),
        ({"as": "j\r\nX-Evil: 1"}, "printable"),
        ({"as": "j", "as_groups": ["a\nb"]}, "printable"),
    ],
)
def test_what_cannot_be_meant_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        read_impersonation(user(**fields))
    assert "\n" not in str(caught.value)
