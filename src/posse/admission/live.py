"""Reading and asking over a connection to the API server."""

from __future__ import annotations

from posse.admission.lookups import Access
from posse.admission.wire import Object, UserInfo
from posse.kube.connection import Connection
from posse.kube.errors import NotFound
from posse.objects.kinds import SUBJECT_ACCESS_REVIEW, Kind
from posse.objects.raw import mapping


class LiveReader:
    """Reads what is there now: a cache that lags would refuse work for a queue just made."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        try:
            return await self._connection.get(kind, name, namespace)
        except NotFound:
            return None

    async def list(self, kind: Kind) -> list[Object]:
        return (await self._connection.list(kind, limit=500)).items


class LiveAuthorizer:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def allows(self, user: UserInfo, access: Access) -> bool:
        asked = {
            "user": user.username,
            "uid": user.uid,
            "groups": user.groups,
            "extra": user.extra,
            "resourceAttributes": {
                "verb": access.verb,
                "group": access.group,
                "resource": access.resource,
                "subresource": access.subresource,
                "namespace": access.namespace,
                "name": access.name,
            },
        }
        answer = await self._connection.create(SUBJECT_ACCESS_REVIEW, {"spec": asked})
        return mapping(answer, "status").get("allowed") is True
