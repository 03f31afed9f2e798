"""Names, labels, annotations, owners and finalizers: what every object must have right."""

from __future__ import annotations

from posse.objects import names
from posse.objects.kinds import NAMESPACE, SERVICE, Kind
from posse.objects.raw import Raw, listing, mapping, mappings, number, strings, text, texts
from posse.objects.validating.report import Report

ANNOTATIONS_LIMIT = 256 * 1024

_FREELY_NAMED = ("rbac.authorization.k8s.io", "policy")
_STRICT_ABOUT_FINALIZERS = ("", "apps", "batch", "scheduling.k8s.io")
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def check_metadata(report: Report, kind: Kind, obj: Raw) -> None:
    """Metadata of an object that is about to exist; its name has been generated already."""
    meta = mapping(obj, "metadata")
    rule = name_rule(kind)
    if generate := text(meta, "generateName"):
        problems = names.generated_name_problems(rule, generate)
        report.invalid("metadata.generateName", generate, *problems)
    if name := text(meta, "name"):
        report.invalid("metadata.name", name, *rule(name))
    else:
        report.required("metadata.name", "name or generateName is required")
    if namespace := text(meta, "namespace"):
        if kind.namespaced:
            problems = names.dns_label_problems(namespace)
            report.invalid("metadata.namespace", namespace, *problems)
        else:
            report.forbidden("metadata.namespace", "not allowed on this type")
    report.not_negative("metadata.generation", number(meta, "generation"))
    check_descriptions(report, kind, obj)


def check_descriptions(report: Report, kind: Kind, obj: Raw) -> None:
    """The parts of metadata that people may change at any time."""
    meta = mapping(obj, "metadata")
    check_labels(report, strings(meta, "labels"), "metadata.labels")
    check_annotations(report, strings(meta, "annotations"), "metadata.annotations")
    _check_owners(report, meta, "metadata.ownerReferences")
    _check_finalizers(report, meta, "metadata.finalizers")
    if kind.group in _STRICT_ABOUT_FINALIZERS:
        for index, finalizer in enumerate(texts(meta, "finalizers")):
            check_standard_finalizer(report, finalizer, f"metadata.finalizers[{index}]")


def check_standard_finalizer(report: Report, finalizer: str, field: str) -> None:
    if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        report.invalid(field, finalizer, detail)


def check_labels(report: Report, labels: dict[str, str], path: str) -> None:
    for key, value in labels.items():
        report.invalid(path, key, *names.qualified_name_problems(key))
        report.invalid(path, value, *names.label_value_problems(value))


def check_metadata_update(report: Report, new: Raw, old: Raw) -> None:
    """What nobody may change once the object exists."""
    after, before = mapping(new, "metadata"), mapping(old, "metadata")
    if before.get("deletionTimestamp") is not None:
        known = listing(before, "finalizers")
        added = sorted(str(f) for f in listing(after, "finalizers") if f not in known)
        if added:
            shown = ", ".join(f'"{finalizer}"' for finalizer in added)
            report.forbidden(
                "metadata.finalizers",
                "no new finalizers can be added if the object is being deleted, found new "
                f"finalizers []string{{{shown}}}",
            )
    for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"):
        if name in after:
            report.unchanged(f"metadata.{name}", after.get(name), before.get(name))


def name_rule(kind: Kind) -> names.NameRule:
    if kind in (NAMESPACE, SERVICE):
        return names.dns_label_problems
    if kind.group in _FREELY_NAMED:
        return _path_segment_problems
    return names.dns_subdomain_problems


def _path_segment_problems(name: str) -> list[str]:
    """Roles, bindings and budgets are named freely, as long as the name can stand in a URL."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{mark}'" for mark in "/%" if mark in name]


def check_annotations(report: Report, annotations: dict[str, str], path: str) -> None:
    size = 0
    for key, value in annotations.items():
        report.invalid(path, key, *names.annotation_key_problems(key))
        size += len(key.encode()) + len(value.encode("utf-8", "surrogatepass"))
    if size > ANNOTATIONS_LIMIT:
        report.too_long(path, ANNOTATIONS_LIMIT)


def _check_owners(report: Report, meta: Raw, path: str) -> None:
    controller = ""
    for owner in mappings(meta, "ownerReferences"):
        version, kind = text(owner, "apiVersion"), text(owner, "kind")
        if not version.rpartition("/")[2]:
            report.invalid(f"{path}.apiVersion", version, "version must not be empty")
        for field in ("kind", "name", "uid"):
            if not text(owner, field):
                report.invalid(f"{path}.{field}", text(owner, field), "must not be empty")
        if (version, kind) == ("v1", "Event"):
            report.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller") is True:
            found = f"{kind}/{text(owner, 'name')}"
            if controller:
                report.invalid(
                    path,
                    listing(meta, "ownerReferences"),
                    'Only one reference can have Controller set to true. Found "true" in '
                    f"references for {controller} and {found}",
                )
            controller = controller or found


def _check_finalizers(report: Report, meta: Raw, path: str) -> None:
    finalizers = [str(finalizer) for finalizer in listing(meta, "finalizers")]
    for finalizer in finalizers:
        report.invalid(path, finalizer, *names.qualified_name_problems(finalizer))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        report.invalid(
            path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"
        )
