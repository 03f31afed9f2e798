"""Random small clusters for the engine's properties, and a slow placement that is surely right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

from hypothesis import strategies as st

from posse.engine.facts import (
    Constraints,
    Expected,
    GroupFacts,
    NodeFacts,
    PodFacts,
    Shape,
    Taint,
    Toleration,
    Topology,
    requests_of,
)
from posse.engine.view import View

GPU = "nvidia.com/gpu"

small = st.integers(0, 4)
TAINT = Taint("team", "vision")


@st.composite
def node_facts(draw: st.DrawFn, name: str) -> NodeFacts:
    room = {"cpu": draw(small) * 1000, GPU: draw(small), "pods": draw(st.integers(1, 8))}
    return NodeFacts(
        name,
        room,
        {"zone": draw(st.sampled_from("ab"))},
        (TAINT,) if draw(st.integers(0, 3)) == 0 else (),
        ready=draw(st.integers(0, 7)) > 0,
        schedulable=draw(st.integers(0, 7)) > 0,
    )


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    asked = {"cpu": draw(st.integers(0, 2)) * 1000, GPU: draw(st.integers(0, 2))}
    zone = draw(st.sampled_from(["", "", "a", "b"]))
    tolerant = draw(st.booleans())
    return Shape(
        requests_of(asked),
        Constraints(
            (("zone", zone),) if zone else (),
            (Toleration("team", "Exists"),) if tolerant else (),
        ),
    )


# Of the parts of a gang: how many of one start together, how many such are needed, and how near.
squads = st.tuples(st.tuples(st.just("0"), st.integers(1, 3), st.integers(0, 2)))
nearer = st.sampled_from(
    [(), (("0", Topology(key="zone")),), (("0", Topology(key="zone", required=False)),)]
)


@dataclass
class Cluster:
    nodes: list[NodeFacts]
    groups: list[GroupFacts]
    pods: list[PodFacts]
    events: list[Callable[[View], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for node in self.nodes:
            self.events.append(lambda view, node=node: view.set_node(node))  # type: ignore[misc]
        for group in self.groups:
            self.events.append(lambda view, group=group: view.set_group(group))  # type: ignore[misc]
        for pod in self.pods:
            self.events.append(lambda view, pod=pod: view.set_pod(pod))  # type: ignore[misc]

    def view(self) -> View:
        view = View()
        for event in self.events:
            event(view)
        return view


@st.composite
def clusters(
    draw: st.DrawFn,
    *,
    most_nodes: int = 5,
    most_gangs: int = 4,
    most_roles: int = 2,
    seated: bool = True,
    surplus: bool = True,
    announced: bool = True,
    minimums: bool = True,
    parts: bool = False,
) -> Cluster:
    nodes = [draw(node_facts(f"node-{at}")) for at in range(draw(st.integers(0, most_nodes)))]
    names = [node.name for node in nodes] + ["elsewhere"]
    palette = draw(st.lists(shapes(), min_size=1, max_size=3))
    groups: list[GroupFacts] = []
    pods: list[PodFacts] = []
    for at in range(draw(st.integers(0, 3)) if seated else 0):
        shape = draw(st.sampled_from(palette))
        pods.append(PodFacts(f"other-{at}", f"o/{at}", shape, node=draw(st.sampled_from(names))))
    for number in range(draw(st.integers(1, most_gangs))):
        key = f"team/{number}"
        members: list[PodFacts] = []
        of_roles: list[tuple[str, int]] = []
        parted = parts and draw(st.booleans())
        for role in range(draw(st.integers(1, most_roles))):
            shape = draw(st.sampled_from(palette))
            size = draw(st.integers(1, 4))
            if minimums and draw(st.integers(0, 2)) == 0:
                of_roles.append((f"role-{role}", draw(st.integers(1, size))))
            for at in range(size):
                seat = draw(st.sampled_from([None] * 6 + names)) if seated else None
                name = f"{number}-{role}-{at}"
                members.append(
                    PodFacts(
                        name,
                        f"team/{name}",
                        shape,
                        key,
                        f"role-{role}",
                        seat,
                        created=float(draw(st.integers(0, 2))),
                        deleting=seated and draw(st.integers(0, 9)) == 0,
                        part=draw(st.sampled_from(["", "0/a", "0/b"])) if parted else "",
                    )
                )
        least = draw(st.integers(1, len(members))) if surplus else len(members)
        expects: tuple[Expected, ...] = ()
        if announced and draw(st.integers(0, 2)) == 0:
            expects = (Expected("launcher", 1, draw(st.sampled_from(palette))),)
        groups.append(
            GroupFacts(
                key,
                f"uid-{number}",
                priority=draw(st.integers(0, 1)),
                created=float(draw(st.integers(0, 2))),
                min_member=least,
                started=seated and draw(st.integers(0, 4)) == 0,
                expects=expects,
                recreated=draw(st.booleans()),
                role_minimums=tuple(of_roles),
                squads=draw(squads) if parted else (),
                nearer=draw(nearer) if parted else (),
            )
        )
        pods += members
    return Cluster(nodes, groups, pods)


def admits(node: NodeFacts, shape: Shape) -> bool:
    """Written anew, on purpose: what the engine's bars must say."""
    where = shape.constraints
    return (
        node.ready
        and node.schedulable
        and all(node.labels.get(key) == value for key, value in where.node_selector)
        and all(any(t.tolerates(taint) for t in where.tolerations) for taint in node.taints)
    )


def can_place(nodes: list[NodeFacts], used: dict[str, dict[str, int]], pods: list[Shape]) -> bool:
    """Try everything."""
    if not pods:
        return True
    first, rest = pods[0], pods[1:]
    for node in nodes:
        taken = used.setdefault(node.name, {})
        if not admits(node, first):
            continue
        if any(
            node.allocatable.get(resource, 0) - taken.get(resource, 0) < amount
            for resource, amount in first.requests
        ):
            continue
        for resource, amount in first.requests:
            taken[resource] = taken.get(resource, 0) + amount
        fits = can_place(nodes, used, rest)
        for resource, amount in first.requests:
            taken[resource] -= amount
        if fits:
            return True
    return False


def can_start(cluster: Cluster) -> bool:
    """Whether the only gang of a cluster can start: some `min_member` of its pods, among them so
    many of each role as it must have, and its announced members, fit together."""
    (group,) = cluster.groups
    members = [(pod.role, pod.shape) for pod in cluster.pods if pod.gang == group.key]
    announced = [each.shape for each in group.expects for _ in range(each.count)]
    least = max(group.min_member, sum(number for _, number in group.role_minimums))
    if len(members) < least:
        return False
    used: dict[str, dict[str, int]] = {}
    for pod in cluster.pods:
        if pod.node is not None:
            taken = used.setdefault(pod.node, {})
            for resource, amount in pod.shape.requests:
                taken[resource] = taken.get(resource, 0) + amount
    choices = {
        tuple(sorted(map(repr, chosen))): [shape for _, shape in chosen]
        for chosen in combinations(members, least)
        if all(
            sum(of == role for of, _ in chosen) >= number for role, number in group.role_minimums
        )
    }
    return any(can_place(cluster.nodes, used, [*choice, *announced]) for choice in choices.values())
