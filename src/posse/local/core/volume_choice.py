"""Which volume a claim gets. Pure: claims and volumes in, one of them out."""

from __future__ import annotations

from posse.controllers.runtime import Key, Manifest, key_of, metadata_of, uid_of
from posse.objects.quantity import QuantityError, parse
from posse.objects.raw import mapping, text, texts
from posse.objects.validating.placement import selects
from posse.objects.volumes import class_of


def claimed(volume: Manifest) -> Key | None:
    """Whose it is, or is promised to."""
    reference = mapping(volume, "spec", "claimRef")
    return (text(reference, "namespace"), text(reference, "name")) if reference else None


def choose(claim: Manifest, volumes: list[Manifest], *, waits: bool) -> Manifest | None:
    """The volume promised to the claim, else the smallest that will do.

    For a claim that waits for its first consumer somebody else chooses: only a promise counts.
    """
    fitting = []
    for volume in volumes:
        reference = mapping(volume, "spec", "claimRef")
        if reference:
            if claimed(volume) == key_of(claim) and text(reference, "uid") in ("", uid_of(claim)):
                return volume
        elif (
            not waits and _fits(claim, volume) and not metadata_of(volume).get("deletionTimestamp")
        ):
            fitting.append(volume)
    return min(fitting, key=lambda one: (_storage(one, "capacity"), key_of(one)), default=None)


def _fits(claim: Manifest, volume: Manifest) -> bool:
    asked, offered = mapping(claim, "spec"), mapping(volume, "spec")
    labels = mapping(volume, "metadata", "labels")
    return (
        class_of(claim) == class_of(volume)
        and asked.get("volumeMode") == offered.get("volumeMode")
        and all(mode in texts(offered, "accessModes") for mode in texts(asked, "accessModes"))
        and _storage(volume, "capacity") >= _storage(claim, "resources", "requests")
        and ("selector" not in asked or selects(mapping(asked, "selector"), labels))
    )


def _storage(obj: Manifest, *path: str) -> int:
    try:
        return parse(mapping(obj, "spec", *path).get("storage") or "0").nano
    except QuantityError:
        return 0
