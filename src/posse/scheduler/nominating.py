"""`status.nominatedNodeName`: where a pod is to sit once those that were ended for it are gone.

People see it in `kubectl get pods -o wide`, and autoscalers add no node for a pod that has one. It
is read from what the engine keeps at that moment, and taken back where that is over; a nomination
that somebody else made is left alone.
"""

from __future__ import annotations

from posse.scheduler.reading.claims import role_of
from posse.scheduler.reading.muster import Muster
from posse.scheduler.reading.pods import Place
from posse.scheduler.reading.reader import Reader


class Nominations:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        # The pods of each gang that were given a node, by uid.
        self._said: dict[str, dict[str, str]] = {}

    def of(self, muster: Muster) -> dict[str, str]:
        """The node of each waiting member, by uid; "" where what was said of it is over."""
        kept = self._reader.room_made_for(muster.key)
        said = self._said.get(muster.key, {})
        if not kept and not said:
            return {}
        now: dict[str, str] = {}
        pods = [m.pod for m in muster.members.values() if m.place is Place.WAITING]
        for pod in sorted(pods, key=lambda pod: (len(pod.metadata.name), pod.metadata.name)):
            nodes = kept.get(role_of(pod))
            if nodes:
                now[pod.metadata.uid] = nodes.pop(0)
        self._said[muster.key] = {**said, **now}
        return dict.fromkeys(said, "") | now

    def forget(self, gang: str) -> None:
        """Its pods are bound, or gone."""
        self._said.pop(gang, None)
