"""`$(NAME)` in commands, arguments and values, as Kubernetes expands it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$$` is one `$`; a name that is not known stays as it was written."""

    def put(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        return variables.get(match[2], match[0])

    return _REFERENCE.sub(put, text)
