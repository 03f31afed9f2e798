"""The queue of a namespace, for groups of jobs that name none.

The webhook notes it on the job; where that was not at hand, the group is put there all the same.
"""

from __future__ import annotations

import logging

from posse.controllers.runtime import Manifest, key_of
from posse.kube.connection import Connection
from posse.kube.errors import Forbidden, NotFound
from posse.objects.keys import QUEUE_NAME
from posse.objects.kinds import NAMESPACE
from posse.objects.raw import mapping, text

log = logging.getLogger(__name__)


async def queued(connection: Connection, group: Manifest) -> Manifest:
    """The group, in its namespace's queue where it names none and the namespace does.

    Asked live, and once: a group stays in its queue when the namespace changes its own.
    """
    if group["spec"].get("queue"):
        return group
    name = key_of(group)[0]
    try:
        namespace = await connection.get(NAMESPACE, name)
    except (NotFound, Forbidden) as error:
        log.debug("namespace %s cannot be read: %s", name, error)
        return group
    queue = text(mapping(namespace, "metadata", "annotations"), QUEUE_NAME)
    return group | {"spec": group["spec"] | {"queue": queue}} if queue else group
