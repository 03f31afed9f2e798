"""What a review reads of other objects, and what it asks about people.

Two small Protocols: the webhook answers them over a connection, an API server from its own store.
"""

from __future__ import annotations

import logging
from typing import Protocol

import msgspec

from posse.admission.wire import Object, UserInfo
from posse.kube.errors import KubeError
from posse.objects.groups import Queue
from posse.objects.jobs.queues import DEFAULT_QUEUE
from posse.objects.keys import QUEUE_NAME
from posse.objects.kinds import NAMESPACE, QUEUE, Kind
from posse.objects.meta import from_raw
from posse.objects.raw import strings

_log = logging.getLogger(__name__)


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


async def queue_standing(reader: Reader, name: str) -> Standing:
    """The queue `default` is there even when no object says so."""
    try:
        found = await reader.get(QUEUE, name)
    except KubeError as error:
        _log.warning("queue %s cannot be read: %s", name, error)
        return Standing(doubt=f"queue {name!r} could not be looked at")
    if found is None:
        return Standing() if name == DEFAULT_QUEUE else Standing(f"queue {name!r} does not exist")
    try:
        queue = from_raw(found, Queue)
    except msgspec.ValidationError:
        return Standing(doubt=f"queue {name!r} cannot be understood")
    if queue.open:
        return Standing()
    return Standing(f"queue {name!r} is {queue.status.state.lower()} and takes in no new work")


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
