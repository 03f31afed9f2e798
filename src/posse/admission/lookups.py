"""What a review reads of other objects, and what it asks about people.

Two small Protocols: the webhook answers them over a connection, an API server from its own store.
"""

from __future__ import annotations

import logging
from typing import Protocol

import msgspec

from posse.admission.wire import Object, UserInfo
from posse.kube.errors import KubeError
from posse.objects.access import NamespaceRule, is_selector
from posse.objects.groups import Queue
from posse.objects.jobs.queues import DEFAULT_QUEUE
from posse.objects.keys import NAMESPACES, QUEUE_NAME
from posse.objects.kinds import NAMESPACE, QUEUE, Kind
from posse.objects.meta import from_raw
from posse.objects.raw import strings
from posse.objects.selectors import SelectorError

_log = logging.getLogger(__name__)
_DEEPEST = 16


class Reader(Protocol):
    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """The object as it is now, None where there is none. KubeError when nobody can say."""
        ...

    async def list(self, kind: Kind) -> list[Object]:
        """All of a kind, in the whole cluster."""
        ...


class Access(msgspec.Struct, frozen=True):
    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class Authorizer(Protocol):
    async def allows(self, user: UserInfo, access: Access) -> bool:
        """Whether the user may do that themselves. KubeError when nobody can say."""
        ...


class Standing(msgspec.Struct, frozen=True):
    """How a queue takes in new work. At most one of the two is said.

    `refusal`: it does not. `doubt`: that could not be found out.
    """

    refusal: str = ""
    doubt: str = ""


async def queue_standing(reader: Reader, name: str, namespace: str) -> Standing:
    """How the queue takes in work of this namespace, and those that it is part of.

    The queue `default` is there even when no object says so.
    """
    try:
        lineage = await _lineage(reader, name)
        if not lineage:
            known = name == DEFAULT_QUEUE
            return Standing() if known else Standing(f"queue {name!r} does not exist")
        for queue in lineage:
            if not queue.open:
                state = queue.status.state.lower()
                return Standing(
                    f"queue {queue.metadata.name!r} is {state} and takes in no new work"
                )
        return await _admitted(reader, lineage, namespace)
    except KubeError as error:
        _log.warning("queue %s cannot be read: %s", name, error)
        return Standing(doubt=f"queue {name!r} could not be looked at")
    except msgspec.ValidationError:
        return Standing(doubt=f"queue {name!r} cannot be understood")


async def _lineage(reader: Reader, name: str) -> list[Queue]:
    """The queue and its ancestors, as far as they exist and as they do not go round in a circle."""
    lineage: list[Queue] = []
    seen: list[str] = []
    while name and name not in seen and len(seen) < _DEEPEST:
        seen.append(name)
        found = await reader.get(QUEUE, name)
        if found is None:
            break
        lineage.append(from_raw(found, Queue))
        name = lineage[-1].spec.parent
    return lineage


async def _admitted(reader: Reader, lineage: list[Queue], namespace: str) -> Standing:
    """What the queue says of namespaces, else its nearest ancestor that says anything."""
    name = lineage[0].metadata.name
    for queue in lineage:
        text = queue.metadata.annotations.get(NAMESPACES)
        if text is None:
            continue
        try:
            rule = NamespaceRule(text)
        except SelectorError:
            return Standing(f"queue {name!r} is shut: {NAMESPACES} cannot be understood")
        labels = {}
        if is_selector(text):
            found = await reader.get(NAMESPACE, namespace)
            labels = strings(found, "metadata", "labels")
        if rule.admits(namespace, labels):
            return Standing()
        return Standing(f"queue {name!r} is not for namespace {namespace!r}")
    return Standing()


async def namespace_queue(reader: Reader, namespace: str) -> str:
    """The queue of a namespace's work that names none; "" where nobody says, or nobody knows."""
    if not namespace:
        return ""
    try:
        found = await reader.get(NAMESPACE, namespace)
    except KubeError as error:
        _log.warning("namespace %s cannot be read: %s", namespace, error)
        return ""
    return strings(found, "metadata", "annotations").get(QUEUE_NAME, "")
