"""Whether a node is one of those that a pod, or a volume, names by labels and fields."""

from __future__ import annotations

import re
from collections.abc import Mapping

from posse.objects.affinities import Expression, NodeSelector, NodeSelectorTerm

_NUMBER = re.compile(r"[+-]?[0-9]+")
_FIELDS = ("metadata.name",)


def selects_node(selector: NodeSelector, name: str, labels: Mapping[str, str]) -> bool:
    """One term is enough; a term that asks for nothing, or for nonsense, selects nobody."""
    fields = {"metadata.name": name}
    return any(_holds(term, labels, fields) for term in selector.node_selector_terms)


def _holds(term: NodeSelectorTerm, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    return all(_matches(wanted, labels) for wanted in term.match_expressions) and all(
        _is_field(wanted) and _matches(wanted, fields) for wanted in term.match_fields
    )


def _is_field(wanted: Expression) -> bool:
    return wanted.key in _FIELDS and wanted.operator in ("In", "NotIn") and len(wanted.values) == 1


def _matches(wanted: Expression, labels: Mapping[str, str]) -> bool:
    value = labels.get(wanted.key)
    match wanted.operator:
        case "In":
            return value in wanted.values
        case "NotIn":
            return bool(wanted.values) and value not in wanted.values
        case "Exists":
            return value is not None and not wanted.values
        case "DoesNotExist":
            return value is None and not wanted.values
        case "Gt" | "Lt":
            return _compares(wanted, value)
        case _:
            return False


def _compares(wanted: Expression, value: str | None) -> bool:
    if value is None or len(wanted.values) != 1:
        return False
    bound = wanted.values[0]
    if not _NUMBER.fullmatch(value) or not _NUMBER.fullmatch(bound):
        return False
    return int(value) > int(bound) if wanted.operator == "Gt" else int(value) < int(bound)
