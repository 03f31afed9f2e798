"""Objects as YAML that a person can read: in the order they were written, nothing abbreviated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml


class _PlainDumper(yaml.SafeDumper):
    """Writes equal parts out each time: an alias would be one more thing to understand."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def document(obj: Any, *, width: float = 100) -> str:
    return str(yaml.dump(obj, Dumper=_PlainDumper, sort_keys=False, width=width))


def documents(objects: Sequence[dict[str, Any]]) -> str:
    return "---\n".join(document(obj) for obj in objects)
