"""Objects of a CustomResourceDefinition: its schemas decide, version by version."""

from __future__ import annotations

from typing import Any

from posse.local.apiserver import statuses
from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies.definitions import compiled, is_terminating
from posse.local.apiserver.strategies.strategy import Context, Scaling, Strategy
from posse.objects import errors, validating
from posse.objects.errors import FieldError
from posse.objects.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from posse.objects.raw import mapping, text
from posse.objects.schemas.core import metadata_schema


class Instances(Strategy):
    counts_generations = True
    unconditional_update = False

    def __init__(self, definition: Object) -> None:
        self._definition = definition["metadata"]["name"]
        versions: list[dict[str, Any]] = definition["spec"]["versions"]
        self._schemas = {version["name"]: compiled(version) for version in versions}
        self._status = {
            version["name"]: mapping(version, "subresources").get("status") is not None
            for version in versions
        }

        self._scalings = {version["name"]: _scaling(version) for version in versions}

    def scaling(self, kind: Kind) -> Scaling | None:
        return self._scalings[kind.version]

    def has_status(self, kind: Kind) -> bool:
        return self._status[kind.version]

    def prune(self, kind: Kind, obj: Object) -> list[str]:
        unknown = self._schemas[kind.version].prune(obj)
        metadata = obj.get("metadata")
        if isinstance(metadata, dict):
            unknown += [f"metadata.{path}" for path in metadata_schema().prune(metadata)]
        return unknown

    def mistyped(self, kind: Kind, obj: Object) -> list[FieldError]:
        metadata = obj.get("metadata")
        if metadata is None:
            return []
        if not isinstance(metadata, dict):
            return [FieldError("metadata", errors.TYPE_INVALID, "metadata must be an object")]
        return metadata_schema().validate(metadata)

    def default(self, kind: Kind, obj: Object) -> None:
        self._schemas[kind.version].default(obj)

    def admit(self, context: Context, kind: Kind, obj: Object) -> None:
        definition = context.latest(CUSTOM_RESOURCE_DEFINITION, "", self._definition)
        if definition is None or is_terminating(definition):
            raise statuses.method_not_allowed(
                "create not allowed while custom resource definition is terminating"
            )

    def validate_create(self, kind: Kind, obj: Object) -> list[FieldError]:
        return [*self._schemas[kind.version].validate(obj), *validating.validate_create(kind, obj)]

    def validate_update(self, kind: Kind, new: Object, old: Object) -> list[FieldError]:
        problems = self._schemas[kind.version].validate(new)
        return [*problems, *validating.validate_update(kind, new, old)]

    def prepare_status(self, context: Context, kind: Kind, new: Object, old: Object) -> Object:
        """Only the status; not even a label of the sent object counts."""
        sent = new["metadata"].get("resourceVersion")
        result = super().prepare_status(context, kind, new, old)
        result["metadata"] = dict(old["metadata"])
        if sent is not None:
            result["metadata"]["resourceVersion"] = sent
        return result

    def validate_status(self, kind: Kind, new: Object, old: Object) -> list[FieldError]:
        return self._schemas[kind.version].validate(new)


def _scaling(version: dict[str, Any]) -> Scaling | None:
    scale = mapping(version, "subresources").get("scale")
    if not isinstance(scale, dict):
        return None
    wanted, present, selector = (
        tuple(text(scale, name).removeprefix(".").split(".")) if text(scale, name) else ()
        for name in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    )
    return Scaling(wanted, present, selector)
