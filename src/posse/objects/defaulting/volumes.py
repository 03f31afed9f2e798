"""Volumes: file modes, and an emptyDir where no source is given."""

from __future__ import annotations

from posse.objects.defaulting.containers import default_references
from posse.objects.defaulting.filling import fill
from posse.objects.quantity import QuantityError, canonical
from posse.objects.raw import Raw, mapping, mappings

_MODE = 0o644
_WITH_MODE = ("secret", "configMap", "downwardAPI", "projected")
_TOKEN_SECONDS = 3600


def default_volume(volume: Raw) -> None:
    if not any(value is not None for name, value in volume.items() if name != "name"):
        volume["emptyDir"] = {}
    for name in _WITH_MODE:
        if isinstance(volume.get(name), dict):
            fill(volume[name], "defaultMode", _MODE)
    if isinstance(volume.get("hostPath"), dict) and volume["hostPath"].get("type") is None:
        volume["hostPath"]["type"] = ""
    _tidy_size(mapping(volume, "emptyDir"))
    for item in mappings(volume, "downwardAPI", "items"):
        default_references(item)
    for source in mappings(volume, "projected", "sources"):
        for item in mappings(source, "downwardAPI", "items"):
            default_references(item)
        if isinstance(source.get("serviceAccountToken"), dict):
            fill(source["serviceAccountToken"], "expirationSeconds", _TOKEN_SECONDS)


def _tidy_size(empty_dir: Raw) -> None:
    if empty_dir.get("sizeLimit") is not None:
        try:
            empty_dir["sizeLimit"] = canonical(empty_dir["sizeLimit"])
        except QuantityError:
            return
