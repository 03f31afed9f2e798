"""CustomResourceDefinitions: what makes one right, and what the server says about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from posse.local.apiserver.store import Object
from posse.local.apiserver.strategies.strategy import Context, Strategy
from posse.objects import names
from posse.objects.errors import FieldError
from posse.objects.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from posse.objects.raw import mapping, mappings, text
from posse.objects.schemas.structural import Schema, SchemaError
from posse.objects.times import rfc3339
from posse.objects.validating.report import Report

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_APPROVED = "api-approved.kubernetes.io"
_COLUMN_TYPES = ("integer", "number", "string", "boolean", "date")
_SCHEMA = "schema.openAPIV3Schema"


class Definitions(Strategy):
    marks_grace = False
    status_apart = True
    counts_generations = True
    unconditional_update = False

    def default(self, kind: Kind, obj: Object) -> None:
        spec = obj.get("spec")
        if not isinstance(spec, dict):
            return
        called = spec.get("names")
        if isinstance(called, dict) and called.get("kind"):
            called.setdefault("singular", called["kind"].lower())
            called.setdefault("listKind", called["kind"] + "List")
        spec.setdefault("conversion", {"strategy": "None"})

    def prepare_create(self, context: Context, kind: Kind, obj: Object) -> None:
        obj["status"] = _status(context, obj, {})

    def prepare_update(self, context: Context, kind: Kind, new: Object, old: Object) -> None:
        new["status"] = _status(context, new, mapping(old, "status"))

    def validate_create(self, kind: Kind, obj: Object) -> list[FieldError]:
        return [*super().validate_create(kind, obj), *_problems(obj)]

    def validate_update(self, kind: Kind, new: Object, old: Object) -> list[FieldError]:
        report = Report()
        established = _condition(old, "Established") == "True"
        if established:
            for field in ("group", "scope"):
                report.unchanged(
                    f"spec.{field}", mapping(new, "spec").get(field), old["spec"][field]
                )
            for field in ("plural", "kind"):
                now, before = mapping(new, "spec", "names"), old["spec"]["names"]
                report.unchanged(f"spec.names.{field}", now.get(field), before[field])
        return [
            *super().validate_update(kind, new, old),
            *(one for one in _problems(new) if not (established and one.field == "metadata.name")),
            *report.errors,
        ]

    def begin_deletion(self, context: Context, kind: Kind, obj: Object) -> None:
        """The definition stays until the last of its objects is gone."""
        finalizers = obj["metadata"].get("finalizers") or []
        if CLEANUP not in finalizers:
            obj["metadata"]["finalizers"] = [*finalizers, CLEANUP]
        conditions = list(mappings(obj, "status", "conditions"))
        message = "CustomResourceDefinition marked for deletion; its objects go first"
        terminating = _made(context, "Terminating", "True", "InstanceDeletionPending", message)
        obj["status"] = {**mapping(obj, "status"), "conditions": [*conditions, terminating]}


def is_established(definition: Object) -> bool:
    return _condition(definition, "Established") == "True"


def is_terminating(definition: Object) -> bool:
    return definition["metadata"].get("deletionTimestamp") is not None


def compiled(version: dict[str, Any]) -> Schema:
    return Schema.compile(mapping(version, "schema", "openAPIV3Schema"))


def _condition(definition: Object, kind: str) -> str:
    for condition in mappings(definition, "status", "conditions"):
        if condition.get("type") == kind:
            return text(condition, "status")
    return ""


def _status(context: Context, definition: Object, before: dict[str, Any]) -> dict[str, Any]:
    """Names are accepted unless another definition of the group has them; then it is served."""
    spec = mapping(definition, "spec")
    taken = _taken(context, definition)
    conditions: list[dict[str, Any]] = []
    if taken:
        conditions += [
            _made(context, "NamesAccepted", "False", "NamesConflict", taken),
            _made(context, "Established", "False", "NotAccepted", "not all names are accepted"),
        ]
        accepted = before.get("acceptedNames") or {"kind": "", "plural": ""}
    else:
        conditions += [
            _made(context, "NamesAccepted", "True", "NoConflicts", "no conflicts found"),
            _made(
                context,
                "Established",
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        ]
        accepted = mapping(spec, "names")
    known = {condition.get("type"): condition for condition in mappings(before, "conditions")}
    kept = [
        known[new["type"]]
        if new["type"] in known and known[new["type"]].get("status") == new["status"]
        else new
        for new in conditions
    ]
    others = [one for kind, one in known.items() if kind not in ("NamesAccepted", "Established")]
    stored = list(before.get("storedVersions") or [])
    for version in mappings(spec, "versions"):
        if version.get("storage") and version.get("name") not in stored:
            stored.append(version["name"])
    return {"conditions": [*kept, *others], "acceptedNames": accepted, "storedVersions": stored}


def _made(context: Context, kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": rfc3339(context.world.now()),
        "reason": reason,
        "message": message,
    }


def _taken(context: Context, definition: Object) -> str:
    """In words, which of the names another definition of the same group already has."""
    own = definition["metadata"]["name"]
    group = mapping(definition, "spec").get("group")
    called = mapping(definition, "spec", "names")
    others = sorted(
        context.store.all_latest(CUSTOM_RESOURCE_DEFINITION.qualified), key=lambda one: one.key
    )
    for other in others:
        if other.key[1] == own or mapping(other.obj, "spec").get("group") != group:
            continue
        theirs = mapping(other.obj, "status", "acceptedNames")
        resources = [
            theirs.get("plural"),
            theirs.get("singular"),
            *(theirs.get("shortNames") or []),
        ]
        kinds = [theirs.get("kind"), theirs.get("listKind")]
        wanted = [called.get("plural"), called.get("singular"), *(called.get("shortNames") or [])]
        for name in wanted:
            if name and name in resources:
                return f'"{name}" is already in use'
        for name in (called.get("kind"), called.get("listKind")):
            if name and name in kinds:
                return f'"{name}" is already in use'
    return ""


def _problems(definition: Object) -> list[FieldError]:
    report = Report()
    spec, metadata = mapping(definition, "spec"), mapping(definition, "metadata")
    called = mapping(spec, "names")
    group, plural = text(spec, "group"), text(called, "plural")
    if text(metadata, "name") != f"{plural}.{group}":
        report.invalid(
            "metadata.name", text(metadata, "name"), 'must be spec.names.plural+"."+spec.group'
        )
    if not group:
        report.required("spec.group")
    else:
        report.invalid("spec.group", group, *names.dns_subdomain_problems(group))
        if "." not in group:
            report.invalid("spec.group", group, "should be a domain with at least one dot")
    _check_approval(report, group, mapping(metadata, "annotations"))
    report.one_of("spec.scope", text(spec, "scope"), ("Cluster", "Namespaced"))
    for field, rule in (
        ("plural", names.dns_1035_label_problems),
        ("singular", names.dns_1035_label_problems),
    ):
        _check_name(report, field, text(called, field), rule)
    for field in ("kind", "listKind"):
        value = text(called, field)
        if not value:
            report.required(f"spec.names.{field}")
        else:
            problems = names.dns_1035_label_problems(value.lower())
            report.invalid(f"spec.names.{field}", value, *problems)
    if text(called, "kind") and text(called, "kind") == text(called, "listKind"):
        report.invalid(
            "spec.names.listKind", text(called, "listKind"), "kind and listKind may not be the same"
        )
    for index, short in enumerate(called.get("shortNames") or []):
        report.invalid(
            f"spec.names.shortNames[{index}]", short, *names.dns_1035_label_problems(short)
        )
    strategy = text(mapping(spec, "conversion"), "strategy") or "None"
    if strategy != "None":
        report.unsupported("spec.conversion.strategy", strategy, ["None"])
    if spec.get("preserveUnknownFields"):
        report.invalid(
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in"
            " spec.versions[*].schema instead",
        )
    return [*report.errors, *_version_problems(spec)]


def _check_approval(report: Report, group: str, annotations: dict[str, Any]) -> None:
    """Groups of the Kubernetes project itself are not for everyone."""
    if group != "k8s.io" and not group.endswith((".k8s.io", ".kubernetes.io")):
        return
    field = f"metadata.annotations[{_APPROVED}]"
    value = text(annotations, _APPROVED)
    if not value:
        report.required(
            field,
            'protected groups must have approval annotation "api-approved.kubernetes.io", see'
            " https://github.com/kubernetes/enhancements/pull/1111",
        )
    elif not value.startswith(("unapproved", "https://", "http://")):
        report.invalid(
            field,
            value,
            'protected groups must have approval annotation "api-approved.kubernetes.io" with'
            ' either a URL or a reason starting with "unapproved", see'
            " https://github.com/kubernetes/enhancements/pull/1111",
        )


def _check_name(report: Report, field: str, value: str, rule: names.NameRule) -> None:
    if not value:
        report.required(f"spec.names.{field}")
    else:
        report.invalid(f"spec.names.{field}", value, *rule(value))


def _version_problems(spec: dict[str, Any]) -> Iterator[FieldError]:
    report = Report()
    versions = mappings(spec, "versions")
    seen: list[str] = []
    stored = 0
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}]"
        name = text(version, "name")
        if not name:
            report.required(f"{at}.name")
        else:
            report.invalid(f"{at}.name", name, *names.dns_1035_label_problems(name))
            if name in seen:
                report.invalid(f"{at}.name", name, "must contain unique version names")
            seen.append(name)
        stored += version.get("storage") is True
        within = _within(versions, index)
        for number, column in enumerate(mappings(version, "additionalPrinterColumns")):
            _check_column(report, column, f"{within}.additionalPrinterColumns[{number}]")
        scale = mapping(version, "subresources").get("scale")
        if isinstance(scale, dict):
            for path in ("specReplicasPath", "statusReplicasPath"):
                _check_path(report, text(scale, path), f"{within}.subresources.scale.{path}")
    if stored != 1:
        report.invalid(
            "spec.versions",
            _brief(versions),
            "must have exactly one version marked as storage version",
        )
    yield from report.errors
    for index, version in enumerate(versions):
        at = f"spec.versions[{index}].{_SCHEMA}"
        schema = mapping(version, "schema", "openAPIV3Schema")
        if not schema:
            missing = Report()
            missing.required(at)
            yield from missing.errors
            continue
        try:
            Schema.compile(schema)
        except SchemaError as error:
            for problem in error.problems:
                field = "spec.validation.openAPIV3Schema" if len(versions) == 1 else at
                if problem.field:
                    field += f".{problem.field}"
                yield FieldError(field, problem.reason, problem.message)


def _within(versions: list[dict[str, Any]], index: int) -> str:
    """Where the server says a version's settings are: those of an only one belong to the whole."""
    return "spec" if len(versions) == 1 else f"spec.versions[{index}]"


def _check_column(report: Report, column: dict[str, Any], where: str) -> None:
    if not text(column, "name"):
        report.required(f"{where}.name")
    kind = text(column, "type")
    if not kind:
        report.required(f"{where}.type")
    elif kind not in _COLUMN_TYPES:
        report.invalid(f"{where}.type", kind, f"must be one of {','.join(sorted(_COLUMN_TYPES))}")
    _check_path(report, text(column, "jsonPath"), f"{where}.JSONPath")


def _check_path(report: Report, path: str, where: str) -> None:
    if not path:
        report.required(where)
    elif not path.startswith("."):
        report.invalid(where, path, "must be a simple json path starting with .")


def _brief(versions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Versions without their schemas: a message is for people."""
    return [
        {key: version.get(key) for key in ("name", "served", "storage")} for version in versions
    ]
