"""Carrying a decision out: objects first, then the status, then the events that tell of it.

Every step can be done twice: creations are by name and owner, deletions by uid, the status by
resourceVersion. So a crash anywhere leaves nothing that the next look at the job does not mend.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from posse.controllers.jobs.actions import (
    Action,
    Blocked,
    Create,
    Decision,
    Delete,
    Keep,
    Merge,
    Provide,
    Say,
)
from posse.controllers.jobs.queueing import queued
from posse.controllers.runtime import (
    Context,
    ForeignObjectError,
    Key,
    Manifest,
    controlled_by,
    controller_of,
    create_owned,
    delete_exactly,
    is_leftover,
    key_of,
    metadata_of,
    uid_of,
)
from posse.kube.connection import Connection, Patch
from posse.kube.errors import Forbidden, Invalid, KubeError, NotFound
from posse.objects.kinds import POD, POD_GROUP, SERVICE, Kind

log = logging.getLogger(__name__)

RESOURCE_EXISTS = "ErrResourceExists"
FAILED_CREATE = "FailedCreate"
_MOST_AT_ONCE = 16
# Objects that come in a list do not carry their kind, and owners are compared by uid elsewhere.
_NO_DIFFERENCE = ("apiVersion", "kind", "ownerReferences")
_LONGEST_MESSAGE = 1024


async def perform(context: Context, kind: Kind, job: Manifest, decision: Decision) -> None:
    """Do it all; where an object cannot be had, still write the status, then raise.

    The caller's queue brings the job back after a raise.
    """
    trouble: KubeError | ForeignObjectError | None = None
    for batch in _batches(decision.actions):
        outcomes = await asyncio.gather(
            *(_perform_one(context, action) for action in batch), return_exceptions=True
        )
        for action, outcome in zip(batch, outcomes, strict=True):
            if outcome is True and isinstance(action, Create | Delete) and action.said is not None:
                _say(context, kind, job, action.said)
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for failure in failures:
            if not isinstance(failure, KubeError | ForeignObjectError):
                raise failure
            _tell(context, kind, job, failure)
            trouble = trouble or failure
        # A name that is taken stops nobody else; what failed otherwise would fail again.
        if failures and not isinstance(batch[0], Blocked):
            break
    if decision.status is not None:
        await _write_status(context, kind, job, decision.status)
    for said in decision.says:
        _say(context, kind, job, said)
    if trouble is not None:
        raise trouble


def _batches(actions: Sequence[Action]) -> Iterator[Sequence[Action]]:
    """One action after another; a run of pods and their services in growing batches.

    A quota or a webhook that refuses pods is met by one request, not by a thousand.
    """
    start, size = 0, 1
    while start < len(actions):
        if not _is_member_creation(actions[start]):
            yield actions[start : start + 1]
            start, size = start + 1, 1
            continue
        end = start
        while end < len(actions) and end - start < size and _is_member_creation(actions[end]):
            end += 1
        yield actions[start:end]
        start, size = end, min(size * 2, _MOST_AT_ONCE)


def _is_member_creation(action: Action) -> bool:
    return isinstance(action, Create) and action.kind in (POD, SERVICE)


async def _perform_one(context: Context, action: Action) -> bool:
    """Whether there was anything to be done."""
    connection = context.connection
    match action:
        case Create(kind, manifest, unless):
            if await _any_there(connection, unless, key_of(manifest)):
                return False
            if kind == POD_GROUP:
                manifest = await queued(connection, manifest)
            await create_owned(connection, kind, manifest)
        case Keep(kind, manifest):
            await _keep(context, kind, manifest)
        case Merge(kind, present, patch):
            await _merge(context, kind, present, patch)
        case Delete(kind, present):
            return await delete_exactly(connection, kind, present)
        case Provide(kind, manifest, fill):
            await _provide(context, kind, manifest, fill)
        case Blocked(kind, present):
            raise ForeignObjectError(kind, present)
    return True


async def _any_there(connection: Connection, kinds: Sequence[Kind], key: Key) -> bool:
    """Asked live: these kinds are not cached, and may not even be served."""
    for kind in kinds:
        try:
            await connection.get(kind, key[1], key[0])
        except NotFound:
            continue
        return True
    return False


async def _keep(context: Context, kind: Kind, manifest: Manifest) -> None:
    present = context.get(kind, key_of(manifest))
    owner = controller_of(manifest) or {}
    if present is None:
        present = await create_owned(context.connection, kind, manifest)
    if not controlled_by(present, str(owner.get("uid"))) or _is_ending(present):
        raise ForeignObjectError(kind, present)
    if changes := differences(present, manifest):
        await _merge(context, kind, present, changes)


async def _provide(context: Context, kind: Kind, manifest: Manifest, fill: Any) -> None:
    namespace, name = key_of(manifest)
    owner = controller_of(manifest) or {}
    try:
        present = await context.connection.get(kind, name, namespace)
    except NotFound:
        await create_owned(context.connection, kind, fill(context.world, manifest))
        return
    if not controlled_by(present, str(owner.get("uid"))) or _is_ending(present):
        raise ForeignObjectError(kind, present)


async def _merge(context: Context, kind: Kind, present: Manifest, patch: Mapping[str, Any]) -> None:
    """A uid in the patch makes the server refuse it for any other object of that name."""
    namespace, name = key_of(present)
    metadata = dict(patch.get("metadata") or {}) | {"uid": uid_of(present)}
    answer = await context.connection.patch(
        kind, name, dict(patch) | {"metadata": metadata}, namespace, how=Patch.MERGE
    )
    context.wrote(kind, present, answer)


async def _write_status(
    context: Context, kind: Kind, job: Manifest, status: Mapping[str, Any]
) -> None:
    """Under the resourceVersion that was decided upon: an outdated decision is refused."""
    try:
        answer = await context.connection.replace(
            kind, job | {"status": status}, subresource="status"
        )
    except NotFound:
        log.debug("%s %s/%s is gone", kind.kind, *key_of(job))
    else:
        context.wrote(kind, job, answer)


def differences(present: Any, desired: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that puts `desired`'s fields into `present`; {} where they are there."""
    changes: dict[str, Any] = {}
    for name, wanted in desired.items():
        found = present.get(name) if isinstance(present, dict) else None
        if name in _NO_DIFFERENCE or _says(found, wanted):
            continue
        if name == "data":
            # Keys that are no longer wanted go too.
            dropped = {key: None for key in found or {} if key not in wanted}
            changes[name] = dropped | wanted
        elif isinstance(wanted, dict):
            if inner := differences(found, wanted):
                changes[name] = inner
        else:
            changes[name] = wanted
    return changes


def _says(found: Any, wanted: Any) -> bool:
    """Whether a server that leaves out what says nothing, and fills in defaults, has it so."""
    if isinstance(wanted, list) and isinstance(found, list):
        return len(found) == len(wanted) and all(map(_element_says, found, wanted))
    return found == wanted or (found is None and not wanted)


def _element_says(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(found, dict):
        return not differences(found, wanted)
    return bool(found == wanted)


def _is_ending(obj: Manifest) -> bool:
    return bool(metadata_of(obj).get("deletionTimestamp"))


def _say(context: Context, kind: Kind, job: Manifest, said: Say) -> None:
    message = said.message[:_LONGEST_MESSAGE]
    context.recorder.record(job, said.reason, message, warning=said.warning, kind=kind)


def _tell(context: Context, kind: Kind, job: Manifest, trouble: Exception) -> None:
    """An event where a person has to act; what passes by itself is not worth one."""
    if isinstance(trouble, ForeignObjectError):
        if trouble.ending or is_leftover(trouble.obj, kind, job):
            return
        reason, message = RESOURCE_EXISTS, str(trouble)
    elif isinstance(trouble, Forbidden) and trouble.namespace_ending:
        return
    elif isinstance(trouble, Forbidden | Invalid):
        reason, message = FAILED_CREATE, trouble.message
    else:
        return
    context.recorder.record(job, reason, message[:_LONGEST_MESSAGE], warning=True, kind=kind)
