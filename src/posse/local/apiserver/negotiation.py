"""Which form of an answer a client asks for in its Accept header."""

from __future__ import annotations

from enum import Enum

from posse.local.apiserver import statuses

_ACCEPTED = ("application/json", "application/yaml")


class Form(Enum):
    JSON = "JSON"
    YAML = "YAML"
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"


class Clause:
    """One media type of the header with its parameters."""

    __slots__ = ("media", "parameters", "quality")

    def __init__(self, text: str) -> None:
        media, *parameters = text.split(";")
        self.media = media.strip().lower()
        self.parameters: dict[str, str] = {}
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            self.parameters[name.strip().lower()] = value.strip()
        try:
            self.quality = float(self.parameters.get("q", "1"))
        except ValueError:
            self.quality = 0.0


def clauses(accept: str) -> list[Clause]:
    """Best first; equal ones in the order in which they were written."""
    if not accept.strip():
        return []
    found = [Clause(part) for part in accept.split(",") if part.strip()]
    return sorted((one for one in found if one.quality > 0), key=lambda one: -one.quality)


def form(accept: str, *, transforms: bool = True) -> Form:
    """The first form of the list that can be given; 406 if there is none.

    `transforms` says whether tables and bare metadata exist for what is asked.
    """
    if accept in ("", "application/json", "*/*"):
        return Form.JSON
    for clause in clauses(accept):
        media, parameters = clause.media, clause.parameters
        wanted = parameters.get("as")
        if wanted is not None:
            if (
                transforms
                and media == "application/json"
                and parameters.get("g") == "meta.k8s.io"
                and parameters.get("v") in ("v1", "v1beta1")
                and wanted in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
            ):
                return Form(wanted)
            continue
        if media in ("application/json", "*/*"):
            return Form.JSON
        if media == "application/yaml":
            return Form.YAML
    accepted = ", ".join(_ACCEPTED)
    raise statuses.not_acceptable(f"only the following media types are accepted: {accepted}")


def asks_for(accept: str, group: str, version: str, kind: str) -> bool:
    """Whether the best clause that can be answered asks for this document by name."""
    for clause in clauses(accept):
        if clause.media != "application/json":
            continue
        parameters = clause.parameters
        if "as" not in parameters:
            return False
        if (parameters.get("g"), parameters.get("v"), parameters["as"]) == (group, version, kind):
            return True
    return False
