"""Pods: what they ask for, and how far they have come."""

from __future__ import annotations

from enum import Enum

import msgspec

from posse.engine.facts import Constraints, PodFacts, Requests, Shape, Toleration, requests_of
from posse.engine.fit.terms import HostPort
from posse.objects import keys
from posse.objects import pods as objects
from posse.objects.affinities import NodeAffinity
from posse.objects.meta import ObjectMeta
from posse.objects.pods import Pod, PodSpec
from posse.objects.quantity import QuantityError
from posse.objects.rejections import is_rejection
from posse.objects.requests import pod_requests
from posse.objects.times import parse_time
from posse.scheduler.reading.affinities import (
    choices,
    host_ports,
    preferences,
    read_affinity,
    relations,
)
from posse.scheduler.reading.claims import role_of
from posse.scheduler.reading.quarantine import Unreadable
from posse.scheduler.reading.volumes import Volumes

# What a container waits for that is only beginning.
_BEGINNING = ("", "ContainerCreating", "PodInitializing")
_LONGEST_MESSAGE = 200
# As Go reads a yes and a no.
YES = ("1", "t", "T", "true", "True", "TRUE")
NO = ("0", "f", "F", "false", "False", "FALSE")
_SYSTEM = "kube-system"
_CRITICAL = ("system-cluster-critical", "system-node-critical")
# The condition by which Kubernetes says so.
DISRUPTED = "DisruptionTarget"
CLAIMS_ARE_NOT_ALLOCATED = "has resourceClaims, which Posse does not allocate"


class Place(Enum):
    """How far a member has come. The order is that of a pod's life."""

    GATED = "gated"  # somebody holds it back: it is no member yet
    BARRED = "barred"  # it can never be placed as it is, and says why
    WAITING = "waiting"
    BOUND = "bound"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"

    # Its own would be that of its name, worked out every time; places are counted all the time.
    __hash__ = object.__hash__

    @property
    def seated(self) -> bool:
        return self in (Place.BOUND, Place.RUNNING)

    @property
    def finished(self) -> bool:
        return self in (Place.SUCCEEDED, Place.FAILED)


def place_of(pod: Pod) -> Place:
    phase = pod.status.phase
    if phase == "Succeeded":
        return Place.SUCCEEDED
    if phase == "Failed":
        return Place.FAILED
    if pod.spec.node_name:
        return Place.RUNNING if phase == "Running" else Place.BOUND
    if pod.spec.scheduling_gates:
        return Place.GATED
    if pod.spec.resource_claims:
        return Place.BARRED
    return Place.WAITING


def nominated(pod: Pod) -> str:
    """The node on which another scheduler makes room for the pod; "" where none does.

    Whoever took that room would be ended for the pod, or keep it waiting for ever.
    """
    if place_of(pod) is not Place.WAITING or pod.metadata.deleting:
        return ""
    return pod.status.nominated_node_name


def read_pod(
    pod: Pod, gang: str | None, shape: Shape, promised: str = "", part: str = ""
) -> PodFacts:
    """`promised`: the node that it takes room on though it does not have it yet."""
    meta = pod.metadata
    return PodFacts(
        uid=meta.uid,
        name=f"{meta.namespace}/{meta.name}",
        gang=gang,
        role=role_of(pod),
        shape=shape,
        node=pod.spec.node_name or promised or None,
        nominated=bool(promised),
        created=created_at(meta),
        deleting=meta.deletion_timestamp is not None,
        grace=meta.deletion_grace_period_seconds or 0.0,
        running=pod.status.phase == "Running",
        trouble=trouble_of(pod),
        labels=meta.labels,
        priority=pod.spec.priority or 0,
        preemptable=is_preemptable(pod),
        part=part,
    )


def trouble_of(pod: Pod) -> str:
    """Why it does not run though it has a node, in its node's words; "" where that says nothing."""
    status = pod.status
    if status.phase == "Running" or not pod.spec.node_name:
        return ""
    for container in (*status.init_container_statuses, *status.container_statuses):
        waiting = container.state.waiting
        if waiting is not None and waiting.reason not in _BEGINNING:
            return _explained(waiting.reason, waiting.message)
    return _explained(status.reason, status.message)


def _explained(reason: str, message: str) -> str:
    """The message says which image or secret it is; of a long one its beginning is enough."""
    said = " ".join(message.split())
    if len(said) > _LONGEST_MESSAGE:
        said = f"{said[:_LONGEST_MESSAGE]}..."
    return f"{reason} ({said})" if reason and said else reason


def turned_away(pod: Pod) -> bool:
    """Whether its node would not have it: it ended there without having begun."""
    status = pod.status
    return status.phase == "Failed" and is_rejection(status.reason, status.message)


def disrupted(pod: Pod) -> bool:
    """Whether it did not go by its own doing or its owner's: drained, preempted, lost with its
    node, or turned away by it."""
    marks = (each for each in pod.status.conditions if each.type == DISRUPTED)
    return turned_away(pod) or any(mark.status == "True" for mark in marks)


def bound_at(pod: Pod) -> float | None:
    """When it got its node, as the API server said; None where nobody can tell."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "True":
            try:
                return parse_time(condition.last_transition_time or "")
            except ValueError:
                return None
    return None


def may_be_ended(meta: ObjectMeta) -> bool:
    """What a pod or a group says of being ended for others; a word that is not known is a no."""
    said = meta.annotations.get(keys.PREEMPTABLE, meta.labels.get(keys.PREEMPTABLE))
    return said is None or said in YES


def is_preemptable(pod: Pod) -> bool:
    """Whether it may be ended for others: not what the cluster itself lives on."""
    if pod.metadata.namespace == _SYSTEM or pod.spec.priority_class_name in _CRITICAL:
        return False
    return may_be_ended(pod.metadata)


def created_at(meta: ObjectMeta) -> float:
    if not meta.creation_timestamp:
        return 0.0
    try:
        return parse_time(meta.creation_timestamp)
    except ValueError as error:
        raise Unreadable("metadata.creationTimestamp", str(error)) from error


class Shapes:
    """Shapes by the text they were read from.

    The pods of one template ask for the same in the same words, so their quantities are parsed
    once; equal shapes are one object, which the engine compares by identity first; and the words
    themselves are kept once, not in every pod.
    """

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._known: dict[bytes, tuple[Shape, PodSpec]] = {}
        self._encoder = msgspec.msgpack.Encoder()

    def of(self, pod: Pod, volumes: Volumes | None = None) -> Shape:
        spec = pod.spec
        asked = (
            [container.resources for container in spec.containers],
            [(init.resources, init.restart_policy) for init in spec.init_containers],
            spec.resources,
            spec.overhead,
            spec.node_selector,
            spec.tolerations,
        )
        text = self._encoder.encode(asked)
        ports = host_ports(spec)
        if spec.affinity or spec.topology_spread_constraints or ports or volumes is not None:
            text += self._company(pod, ports, volumes)
        known = self._known.get(text)
        if known is None:
            shape = _read_shape(pod, ports, volumes)
            if len(self._known) >= self._limit:
                self._known.clear()
            self._known[text] = (shape, spec)
            return shape
        shape, like = known
        _share(spec, like)
        return shape

    def _company(self, pod: Pod, ports: tuple[HostPort, ...], volumes: Volumes | None) -> bytes:
        """What else the shape is read from: namespaces are part of a term, labels may be."""
        said = (pod.spec.affinity, pod.spec.topology_spread_constraints)
        text = self._encoder.encode((said, ports, volumes, pod.metadata.namespace))
        if b"atchLabelKeys" in text:
            text += self._encoder.encode(sorted(pod.metadata.labels.items()))
        return text


def _share(spec: PodSpec, like: PodSpec) -> None:
    """Two specs that ask for the same in the same words are to have these words together."""
    for one, other in (
        *zip(spec.containers, like.containers, strict=True),
        *zip(spec.init_containers, like.init_containers, strict=True),
    ):
        one.resources = other.resources
    spec.resources, spec.overhead = like.resources, like.overhead
    spec.node_selector, spec.tolerations = like.node_selector, like.tolerations


def _read_shape(pod: Pod, ports: tuple[HostPort, ...], volumes: Volumes | None) -> Shape:
    spec = pod.spec
    affinity = read_affinity(spec)
    where = constraints(spec.node_selector, spec.tolerations, affinity.node_affinity, volumes)
    asked = read_requests(spec)
    claims: tuple[str, ...] = ()
    if volumes is not None:
        claims = volumes.exclusive
        asked = requests_of({**dict(asked), **dict(volumes.attachments)})
    return Shape(asked, where, relations(pod, affinity, ports, claims))


def read_requests(spec: PodSpec) -> Requests:
    try:
        amounts = pod_requests(spec)
    except QuantityError as error:
        raise Unreadable(error.field, f"{error.value!r} {error.why}") from error
    for resource, amount in amounts.items():
        if amount < 0:
            raise Unreadable(f"requests[{resource}]", f"{amount} is negative")
    return requests_of(amounts)


def constraints(
    node_selector: dict[str, str],
    tolerations: list[objects.Toleration],
    nodes: NodeAffinity | None = None,
    volumes: Volumes | None = None,
) -> Constraints:
    return Constraints(
        tuple(sorted(node_selector.items())),
        tuple(Toleration(t.key, t.operator or "Equal", t.value, t.effect) for t in tolerations),
        choices(nodes) + (() if volumes is None else volumes.choices),
        preferences(nodes),
    )
