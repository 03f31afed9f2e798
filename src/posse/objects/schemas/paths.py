"""Where in an object a check is, at the price of one small tuple a level.

A path is None at the root and (parent, step) below it; a step is a field's name, a list's index, or
a map's key in a tuple of its own. Most objects are right, so the text is made only for the fields
that are wrong.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Step: TypeAlias = str | int | tuple[str]
Path: TypeAlias = tuple[Any, Step] | None

NOWHERE = "<nil>"
"""What kube-apiserver calls the field of an error that has none, and of the whole object."""


def render(path: Path) -> str:
    """`spec.containers[0].name`; the root is the empty string."""
    steps: list[Step] = []
    while path is not None:
        path, step = path
        steps.append(step)
    text = ""
    for step in reversed(steps):
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if isinstance(step, str) else step[0]
            text += f".{name}" if text else name
    return text


def field_name(path: Path) -> str:
    """The path as an error's field, where the root has a name of its own."""
    return render(path) or NOWHERE


def fields_only(path: Path) -> str:
    """The same without indices and keys, as Go's JSON decoder names a field."""
    steps: list[str] = []
    while path is not None:
        path, step = path
        if isinstance(step, str):
            steps.append(step)
    return ".".join(reversed(steps))
