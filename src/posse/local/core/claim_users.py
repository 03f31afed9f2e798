"""Which pods use which claims, and the claims that come and go with one pod."""

from __future__ import annotations

from copy import deepcopy

from posse.controllers.runtime import Context, Key, Manifest, key_of, metadata_of, owner_reference
from posse.kube.errors import AlreadyExists
from posse.local.core.pods import deleting, terminal
from posse.objects.kinds import PERSISTENT_VOLUME_CLAIM, POD
from posse.objects.raw import mapping, mappings, text


class Users:
    """Made anew by a restart, since every pod is looked at then."""

    def __init__(self) -> None:
        self._pods: dict[Key, dict[Key, None]] = {}

    def of_pod(self, pod: Manifest) -> list[Key]:
        found = [(key_of(pod)[0], name) for name in _claims_of(pod)]
        for claim in found:
            self._pods.setdefault(claim, {})[key_of(pod)] = None
        return found

    def using(self, context: Context, claim: Key) -> list[Manifest]:
        """The pods that hold the claim: those on a node, ended or not."""
        return [pod for pod in self._known(context, claim) if mapping(pod, "spec").get("nodeName")]

    def unplaced(self, context: Context, claim: Key) -> list[str]:
        """The names of the pods that want the claim and have no node yet."""
        return [
            key_of(pod)[1]
            for pod in self._known(context, claim)
            if not mapping(pod, "spec").get("nodeName") and not terminal(pod)
        ]

    async def make(self, context: Context, claim: Key) -> None:
        """A pod's own claim, after the template in the pod, if one of the pods asks for it."""
        for pod in self._known(context, claim):
            template = _own_claims(pod).get(claim[1])
            if template is None or terminal(pod) or deleting(pod):
                continue
            metadata = {
                name: deepcopy(value)
                for name, value in mapping(template, "metadata").items()
                if name in ("labels", "annotations")
            }
            made = {
                "metadata": {
                    **metadata,
                    "name": claim[1],
                    "namespace": claim[0],
                    "ownerReferences": [owner_reference(POD, pod)],
                },
                "spec": deepcopy(mapping(template, "spec")),
            }
            try:
                await context.connection.create(PERSISTENT_VOLUME_CLAIM, made, claim[0])
            except AlreadyExists:  # the cache is behind; its next event brings us back
                return
            return

    def _known(self, context: Context, claim: Key) -> list[Manifest]:
        found = {at: context.get(POD, at) for at in sorted(self._pods.get(claim, {}))}
        pods = {at: pod for at, pod in found.items() if pod and claim[1] in _claims_of(pod)}
        if pods:
            self._pods[claim] = dict.fromkeys(pods)
        else:
            self._pods.pop(claim, None)
        return list(pods.values())


def _claims_of(pod: Manifest) -> list[str]:
    named = [
        text(mapping(volume, "persistentVolumeClaim"), "claimName")
        for volume in mappings(pod, "spec", "volumes")
    ]
    return [name for name in (*named, *_own_claims(pod)) if name]


def _own_claims(pod: Manifest) -> dict[str, Manifest]:
    """The templates of the claims that belong to the pod alone, by the claims' names."""
    name = metadata_of(pod)["name"]
    return {
        f"{name}-{text(volume, 'name')}": mapping(volume, "ephemeral", "volumeClaimTemplate")
        for volume in mappings(pod, "spec", "volumes")
        if mapping(volume, "ephemeral")
    }
