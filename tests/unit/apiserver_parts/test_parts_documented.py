"""The table of what is served is true."""

from __future__ import annotations

import re
from pathlib import Path

from posse.objects.kinds import BUILT_IN

_DOCUMENT = Path(__file__).parents[3] / "docs" / "architecture.md"


def test_the_document_names_every_kind_that_is_served_and_no_other() -> None:
    _, _, section = _DOCUMENT.read_text().partition("## What the embedded cluster serves")
    rows = [line.split("|") for line in section.splitlines() if line.startswith("|")][2:]
    told = [
        (group.replace("core", "").strip(), kind)
        for _, groups, kinds, *_ in rows
        for group in groups.split(",")
        for kind in re.findall(r"\w+", kinds)
    ]
    served = [(kind.group, kind.kind) for kind in BUILT_IN]
    assert [one for one in served if one not in told] == []
    assert sorted({kind for _, kind in told}) == sorted(kind for _, kind in served)
