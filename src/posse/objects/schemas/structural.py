"""Structural schemas, compiled once and run on every write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from posse.objects.errors import FieldError
from posse.objects.schemas.absence import defaulter
from posse.objects.schemas.pruning import pruner
from posse.objects.schemas.structure import problems
from posse.objects.schemas.values import checker


class SchemaError(ValueError):
    """The schema is not structural; the fields of `problems` are relative to the schema."""

    def __init__(self, found: list[FieldError]) -> None:
        super().__init__("; ".join(str(problem) for problem in found))
        self.problems = found


class Schema:
    """What an API server does to an object because of its kind's schema."""

    __slots__ = ("_default", "_prune", "_validate")

    def __init__(
        self,
        prune: Callable[[dict[str, Any]], list[str]],
        default: Callable[[dict[str, Any]], None],
        validate: Callable[[dict[str, Any]], list[FieldError]],
    ) -> None:
        self._prune = prune
        self._default = default
        self._validate = validate

    @staticmethod
    def compile(openapi: dict[str, Any]) -> Schema:
        """From an `openAPIV3Schema`; SchemaError lists everything that makes it not structural."""
        if found := problems(openapi):
            raise SchemaError(found)
        prune, default, check = pruner(openapi, root=True), defaulter(openapi), checker(openapi)

        def prune_object(obj: dict[str, Any]) -> list[str]:
            unknown: list[str] = []
            if prune is not None:
                prune(obj, None, unknown)
            return sorted(unknown)

        def default_object(obj: dict[str, Any]) -> None:
            if default is not None:
                default(obj)

        def check_object(obj: dict[str, Any]) -> list[FieldError]:
            found: list[FieldError] = []
            if check is not None:
                check(obj, None, found)
            return list(dict.fromkeys(found))  # logic may find one mistake several times

        return Schema(prune_object, default_object, check_object)

    def prune(self, obj: dict[str, Any]) -> list[str]:
        """Removes the fields the schema does not know and answers their paths."""
        return self._prune(obj)

    def default(self, obj: dict[str, Any]) -> None:
        """Fills in what is absent, in place; drops nulls that mean absence."""
        self._default(obj)

    def validate(self, obj: dict[str, Any]) -> list[FieldError]:
        """What is wrong with the object's values; empty for a right one."""
        return self._validate(obj)
