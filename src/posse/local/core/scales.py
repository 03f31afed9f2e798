"""How many pods the controllers of given pods are meant to have.

A ReplicaSet of a Deployment counts for what the Deployment asks; any other controller says its
number through its `scale` subresource.
"""

from __future__ import annotations

from posse.controllers.runtime import Context, Manifest, controller_of, key_of, metadata_of, uid_of
from posse.kube.errors import NotFound
from posse.local.core.serving import ServedKinds
from posse.objects.kinds import DEPLOYMENT, REPLICA_SET, Kind
from posse.objects.raw import mapping, number, text


class UnknownScaleError(Exception):
    """Why nobody can say how many pods there should be."""


class Scales:
    def __init__(self, served: ServedKinds) -> None:
        self._served = served

    async def expected(self, context: Context, pods: list[Manifest]) -> tuple[int, list[str]]:
        """The sum over all controllers of the pods, and the names of pods that have none."""
        scales: dict[str, int] = {}
        unmanaged: list[str] = []
        asked: dict[str, None] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is None:
                unmanaged.append(key_of(pod)[1])
            elif text(owner, "uid") not in asked:
                asked[text(owner, "uid")] = None
                found = await self._scale(context, key_of(pod)[0], dict(owner))
                if found is None:
                    name = key_of(pod)[1]
                    raise UnknownScaleError(f'found no controllers for pod "{name}"')
                uid, scale = found
                scales[uid] = scale
        return sum(scales.values()), unmanaged

    async def _scale(
        self, context: Context, namespace: str, owner: Manifest
    ) -> tuple[str, int] | None:
        """The uid of whoever decides on the number, and the number."""
        group, name = text(owner, "apiVersion").rpartition("/")[0], text(owner, "name")
        if (group, text(owner, "kind")) == (REPLICA_SET.group, REPLICA_SET.kind):
            replica_set = context.get(REPLICA_SET, (namespace, name))
            if replica_set is not None and uid_of(replica_set) == owner.get("uid"):
                above = controller_of(replica_set)
                if above is None or above.get("kind") != DEPLOYMENT.kind:
                    return uid_of(replica_set), _replicas(replica_set)
                deployment = context.get(DEPLOYMENT, (namespace, text(above, "name")))
                if deployment is not None and uid_of(deployment) == above.get("uid"):
                    return uid_of(deployment), _replicas(deployment)
        return await self._subresource(context, namespace, owner, group)

    async def _subresource(
        self, context: Context, namespace: str, owner: Manifest, group: str
    ) -> tuple[str, int] | None:
        await self._served.known()
        kind = self._served.find(group, text(owner, "kind"))
        if kind is None:
            asked = f"{text(owner, 'kind')}.{group}" if group else text(owner, "kind")
            raise UnknownScaleError(f'no matches for kind "{asked}"')
        try:
            scale: Manifest = await context.connection.get(
                kind, text(owner, "name"), namespace, subresource="scale"
            )
        except NotFound:
            if not await self._scales(context, kind):
                why = f"{kind.qualified} does not implement the scale subresource"
                raise UnknownScaleError(why) from None
            return None
        if metadata_of(scale).get("uid") != owner.get("uid"):
            return None
        return str(owner.get("uid")), number(mapping(scale, "spec"), "replicas") or 0

    async def _scales(self, context: Context, kind: Kind) -> bool:
        resources = await context.connection.resources(kind.group, kind.version)
        return any(one.get("name") == f"{kind.plural}/scale" for one in resources)


def _replicas(workload: Manifest) -> int:
    replicas = number(mapping(workload, "spec"), "replicas")
    return 1 if replicas is None else replicas
