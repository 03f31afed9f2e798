"""The marks on everything that an installation made.

An object without Posse's mark is somebody else's, whatever its name: it is not changed, and it is
not removed.
"""

from __future__ import annotations

from typing import Any

from posse.objects.keys import INSTALLED_LABEL
from posse.version import __version__

SELECTOR = f"{INSTALLED_LABEL}=true"
VERSION_LABEL = "app.kubernetes.io/version"
MANAGED_BY = "app.kubernetes.io/managed-by"


def part_labels(component: str) -> dict[str, str]:
    """What tells the pods of one program from those of another; never changed by an upgrade."""
    return {"app.kubernetes.io/name": "posse", "app.kubernetes.io/component": component}


def labels(component: str = "") -> dict[str, str]:
    own = part_labels(component) if component else {"app.kubernetes.io/name": "posse"}
    return own | {
        "app.kubernetes.io/part-of": "posse",
        VERSION_LABEL: __version__,
        INSTALLED_LABEL: "true",
    }


def metadata(name: str, *, component: str = "", namespace: str = "") -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "labels": labels(component)}


def is_marked(obj: dict[str, Any]) -> bool:
    return labels_of(obj).get(INSTALLED_LABEL) == "true"


def labels_of(obj: dict[str, Any]) -> dict[str, str]:
    found = (obj.get("metadata") or {}).get("labels")
    return found if isinstance(found, dict) else {}
