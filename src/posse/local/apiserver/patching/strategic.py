"""Strategic merge patches: merge patches that know which lists of a built-in kind are keyed.

Elements of a keyed list are merged by their key and stay in the server's order; elements that only
the patch has come first. Directives inside the patch ($patch, $retainKeys, $setElementOrder/<list>,
$deleteFromPrimitiveList/<list>) change how one map or list is merged, and never reach the object.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from posse.local.apiserver.patching.copying import same
from posse.local.apiserver.patching.refusal import malformed, unprocessable
from posse.objects.schemas.core import STRUCTS
from posse.objects.schemas.notation import Field, ListOf, MapOf, Named, Type

Map: TypeAlias = dict[str, Any]

_PATCH = "$patch"
_RETAIN_KEYS = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def merge(target: Map, patch: Map, of: Type | None) -> Map:
    """`target` is changed in place; `of` is the struct both are, None where nothing is known."""
    if _PATCH in patch:
        return _directed(patch)
    _retain(target, patch)
    ordered = _set_orders(target, patch, of)
    for key, value in patch.items():
        if key in ordered or key == _RETAIN_KEYS or key.startswith(_ORDER):
            continue
        if key.startswith(_DELETE):
            _delete_scalars(target, key.removeprefix(_DELETE), value)
        elif value is None:
            target.pop(key, None)
        else:
            _merge_member(target, key, value, _field(of, key))
    return target


def _merge_member(target: Map, key: str, value: Any, field: Field | None) -> None:
    present = target.get(key)
    replaced = field is not None and field.replaced
    if isinstance(present, dict) and isinstance(value, dict) and not replaced:
        target[key] = merge(present, value, field.type if field else None)
    elif isinstance(present, list) and isinstance(value, list):
        target[key] = _merge_lists(present, value, field)
    else:
        clean, keep = _without_directives(value)
        if keep:
            target[key] = clean
        else:
            target.pop(key, None)


def _field(of: Type | None, key: str) -> Field | None:
    match of:
        case Named(name) if name in STRUCTS:
            return STRUCTS[name].fields.get(key)
        case MapOf(item):
            return Field(key, item)
        case _:
            return None


def _directed(patch: Map) -> Map:
    directive = patch[_PATCH]
    if directive == "replace":
        rest, _ = _without_directives({k: v for k, v in patch.items() if k != _PATCH})
        return cast(Map, rest)
    if directive == "delete":
        return {}
    raise malformed(f"unknown patch type: {directive} in map: {patch}")


def _retain(target: Map, patch: Map) -> None:
    """$retainKeys names every member that may stay; the patch may set no other."""
    if _RETAIN_KEYS not in patch:
        return
    kept = patch[_RETAIN_KEYS]
    if not isinstance(kept, list):
        raise malformed("invalid patch format of retainKeys")
    for key, value in patch.items():
        is_directive = key == _RETAIN_KEYS or key.startswith((_ORDER, _DELETE))
        if value is not None and not is_directive and key not in kept:
            raise malformed("invalid patch format of retainKeys")
    for key in [key for key in target if key not in kept]:
        del target[key]


def _set_orders(target: Map, patch: Map, of: Type | None) -> frozenset[str]:
    """Merges the lists whose order the patch sets; answers which those are."""
    done = []
    for directive, order in patch.items():
        if not directive.startswith(_ORDER):
            continue
        key = directive.removeprefix(_ORDER)
        if not isinstance(order, list):
            raise malformed("invalid patch format of setElementOrder list")
        present, given = target.get(key), patch.get(key)
        if (present is not None and not isinstance(present, list)) or (
            given is not None and not isinstance(given, list)
        ):
            raise malformed("invalid patch format of setElementOrder list")
        field = _field(of, key)
        merge_key = (field.merge_key if field else None) or ""
        _check_order(given or [], order, merge_key)
        if present is None and given is None:
            continue
        done.append(key)
        if given is None:
            merged = list(present or [])
        elif present is None:
            merged = _without_directives(given)[0]
        else:
            merged = _merge_lists(list(present), given, field)
        target[key] = _in_order(merged, order, present or [], merge_key)
    return frozenset(done)


def _check_order(given: list[Any], order: list[Any], merge_key: str) -> None:
    """The patch's own elements must stand in the order it sets."""
    if not given or not order:
        return
    remaining = iter(order)
    for element in given:
        if isinstance(element, dict) and _PATCH in element:
            continue
        if not any(_alike(element, place, merge_key) for place in remaining):
            raise unprocessable(
                f"The order in patch list:\n{given}\n"
                f" doesn't match $setElementOrder list:\n{order}\n"
            )


def _delete_scalars(target: Map, key: str, gone: Any) -> None:
    if not isinstance(gone, list):
        raise malformed("invalid patch format of primitive list")
    present = target.get(key)
    if isinstance(present, list):
        target[key] = [item for item in present if not any(same(item, one) for one in gone)]


def _merge_lists(present: list[Any], given: list[Any], field: Field | None) -> list[Any]:
    if field is None or field.merge_key is None:
        return list(_without_directives(given)[0])
    if field.merge_key == "":
        return _merge_scalars(present, given)
    if not all(isinstance(element, dict) for element in (*present, *given)):
        raise malformed("invalid patch format of primitive list")
    item = field.type.item if isinstance(field.type, ListOf) else None
    return _merge_keyed(present, given, field.merge_key, item)


def _merge_scalars(present: list[Any], given: list[Any]) -> list[Any]:
    merged: list[Any] = []
    for item in (*present, *given):
        if not any(same(item, other) for other in merged):
            merged.append(item)
    return _in_order(merged, given, present, "")


def _merge_keyed(
    present: list[Map], given: list[Map], merge_key: str, item: Type | None
) -> list[Map]:
    kept, wanted, replaced = _apply_element_directives(present, given, merge_key)
    if replaced:
        return [_without_directives(element)[0] for element in wanted]
    merged = list(kept)
    for element in wanted:
        if merge_key not in element:
            raise malformed(f"map: {element} does not contain declared merge key: {merge_key}")
        for index, other in enumerate(merged):
            if merge_key in other and same(other[merge_key], element[merge_key]):
                merged[index] = merge(other, element, item)
                break
        else:
            merged.append(_without_directives(element)[0])
    return _in_order(merged, wanted, kept, merge_key)


def _apply_element_directives(
    present: list[Map], given: list[Map], merge_key: str
) -> tuple[list[Map], list[Map], bool]:
    """What `$patch` leaves of the list, the patch's other elements, and whether they replace it."""
    kept, wanted, replaced = list(present), [], False
    for element in given:
        match element.get(_PATCH):
            case None:
                wanted.append(element)
            case "delete":
                if merge_key not in element:
                    raise malformed(
                        f"map: {element} does not contain declared merge key: {merge_key}"
                    )
                gone = element[merge_key]
                kept = [
                    one for one in kept if merge_key not in one or not same(one[merge_key], gone)
                ]
            case "replace":
                replaced = True
            case "merge":
                raise malformed("merging lists cannot yet be specified in the patch")
            case other:
                raise malformed(f"unknown patch type: {other} in map: {element}")
    return kept, wanted, replaced


def _in_order(merged: list[Any], order: list[Any], before: list[Any], merge_key: str) -> list[Any]:
    """Elements named in `order` follow it; the rest keep the place they had among them `before`."""
    named = [item for item in merged if _position(order, item, merge_key) >= 0]
    named.sort(key=lambda item: _position(order, item, merge_key))
    rest = [item for item in merged if _position(order, item, merge_key) < 0]
    rest.sort(key=lambda item: _position(before, item, merge_key))
    result: list[Any] = []
    while rest and named:
        left = _position(before, rest[0], merge_key)
        right = _position(before, named[0], merge_key)
        result.append(rest.pop(0) if 0 <= left < right else named.pop(0))
    return [*result, *rest, *named]


def _position(order: list[Any], item: Any, merge_key: str) -> int:
    for index, other in enumerate(order):
        if _alike(item, other, merge_key):
            return index
    return -1


def _alike(one: Any, other: Any, merge_key: str) -> bool:
    if not merge_key:
        return same(one, other)
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    return merge_key in one and merge_key in other and same(one[merge_key], other[merge_key])


def _without_directives(value: Any) -> tuple[Any, bool]:
    """What a patch adds where nothing was; false for a map that was only a directive."""
    if isinstance(value, dict):
        if _PATCH in value:
            return None, False
        cleaned = {
            key: _without_directives(item)
            for key, item in value.items()
            if item is not None and key != _RETAIN_KEYS and not key.startswith((_ORDER, _DELETE))
        }
        return {key: item for key, (item, keep) in cleaned.items() if keep}, True
    if isinstance(value, list):
        return [item for item, keep in map(_without_directives, value) if keep], True
    return value, True
