"""What nodes have done to pods: where one was turned away, the next may fare no better.

A gang bears that in mind for itself. A pod that is a gang of one does not come back: whom its
controller makes in its place has another name and knows of nothing. So what nodes did to such pods
is their controller's, and it is forgotten when nothing of the kind has happened for a while.
"""

from __future__ import annotations

from posse.objects.pods import Pod

# So many nodes are borne in mind, and so many controllers.
_MOST_NODES = 16
_MOST_CONTROLLERS = 256
# Its pods have one node each, and no other is to be tried; it stands back by itself.
_ONE_NODE_EACH = "DaemonSet"


class Rebuffs:
    def __init__(self, controller: str = "") -> None:
        self.controller = controller  # its uid, where they are those of its pods that are alone
        self.count = 0  # how often pods were turned away, of a gang: since it last ran
        self.pause = ""  # why none of the controller's pods is to be tried for now
        self.gangs: dict[str, None] = {}  # those pods, if they wait
        self._nodes: dict[str, None] = {}  # the last ones

    def add(self, node: str) -> None:
        """It has turned a pod away."""
        self.count += 1
        self.shun(node)

    def shun(self, node: str) -> None:
        """It is the last choice, whatever the reason."""
        self._nodes.pop(node, None)
        self._nodes[node] = None
        if len(self._nodes) > _MOST_NODES:
            del self._nodes[next(iter(self._nodes))]

    def forget(self) -> None:
        self.count, self.pause = 0, ""
        self._nodes.clear()

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(sorted(self._nodes))


class Controllers:
    """Those of pods without a gang that nodes have turned away, the last ones."""

    def __init__(self) -> None:
        self._known: dict[str, Rebuffs] = {}

    def of(self, pod: Pod) -> Rebuffs | None:
        """What has been done to others of its controller; None where that is nothing."""
        return self._known.get(controller_of(pod)) if self._known else None

    def begin(self, controller: str) -> Rebuffs:
        if len(self._known) >= _MOST_CONTROLLERS:
            del self._known[next(iter(self._known))]
        known = self._known[controller] = Rebuffs(controller)
        return known

    def forget(self, rebuffs: Rebuffs) -> None:
        if self._known.get(rebuffs.controller) is rebuffs:
            del self._known[rebuffs.controller]


def controller_of(pod: Pod) -> str:
    """Whoever makes another pod for another node in the place of this one; "": nobody."""
    owner = pod.metadata.controller
    return "" if owner is None or owner.kind == _ONE_NODE_EACH else owner.uid
