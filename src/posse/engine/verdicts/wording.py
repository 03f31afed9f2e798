"""The phrases verdicts are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from posse.engine.decisions import Cause, Shortage
from posse.engine.facts import PODS, NodeFacts, Taint
from posse.engine.fit.eligibility import Bar, untolerated
from posse.engine.fit.seating import Seating
from posse.engine.fit.terms import Choice, Requirement
from posse.engine.placement.demands import Demand
from posse.engine.resources import amount, count, gravity, words

# Taints that a node's state puts on it: nobody should tolerate them to get a seat.
_OF_NODES = "node.kubernetes.io/"

# How a sentence begins whose subject is whoever waits.
ITS = ("needs ", "asks for ", "finds ")

Told = tuple[Cause, str, tuple[Shortage, ...]]


@dataclass(frozen=True, slots=True)
class Ask:
    """So many pods of one demand."""

    demand: Demand
    number: int

    @property
    def seating(self) -> Seating:
        return self.demand.seating

    @property
    def role(self) -> str:
        return self.demand.role or "pod"

    def one(self, resource: str) -> str:
        return amount(resource, self.seating.asked[resource])


def whole(asks: Sequence[Ask]) -> list[Ask]:
    """The same, of all parts of a gang together."""
    alike: dict[tuple[str, int, bool], list[Ask]] = {}
    for ask in asks:
        alike.setdefault((ask.role, id(ask.seating), ask.demand.announced), []).append(ask)
    return [
        some[0] if len(some) == 1 else Ask(some[0].demand, sum(ask.number for ask in some))
        for some in alike.values()
    ]


def by_gravity(seating: Seating) -> list[tuple[str, int]]:
    return sorted(seating.asked.items(), key=lambda item: gravity(item[0]))


def all_of(seating: Seating) -> str:
    """`2 GPUs, 8 cores and 16Gi memory`; nobody needs to be told of pod slots."""
    asked = [words(r, one) for r, one in by_gravity(seating) if r != PODS]
    if len(asked) < 2:
        return "".join(asked) or "a pod slot"
    return f"{', '.join(asked[:-1])} and {asked[-1]}"


def each(asks: list[Ask], ask: Ask) -> str:
    """`each pod`; where there are several roles, `each worker`; of one alone, `the launcher`."""
    noun = ask.role if len(asks) > 1 else "pod"
    return f"each {noun}" if ask.number > 1 else f"the {noun}"


def sum_of(asking: list[Ask], resource: str, several: bool = False) -> str:
    """` (5 pods x 2 each and a seat for 1 launcher)`: how the number comes about.

    `several`: there are other roles, too, which do not ask for it.
    """
    waiting = [ask for ask in asking if not ask.demand.announced]
    announced = [ask for ask in asking if ask.demand.announced]
    if len(asking) == 1 and asking == waiting and asking[0].number == 1:
        return ""
    if resource == PODS and not announced:
        return ""
    if len(waiting) == 1:
        only = waiting[0]
        tail = " each" if only.number > 1 else ""
        who = f"{only.number} {only.role}" if several and not announced else ""
        parts = [f"{who or count(only.number, 'pod')} x {only.one(resource)}{tail}"]
    else:
        parts = [f"{ask.number} {ask.role} x {ask.one(resource)}" for ask in waiting]
    parts += [f"a seat for {ask.number} {ask.role}" for ask in announced]
    return f" ({' and '.join(parts)})"


def are(resource: str, base_units: int) -> str:
    return "is" if amount(resource, base_units) == "1" else "are"


def selector(seating: Seating) -> str:
    pairs = seating.shape.constraints.node_selector
    return f"selector {','.join(f'{key}={value}' for key, value in pairs)}"


def without_a_node(missing: int, needed: int, pods: int, sentence: str) -> str:
    """`2 of its 4 pods have no node: they need ...`, of a gang that has begun.

    `needed`: so many of those who miss a node the sentence is about.
    """
    if sentence.startswith(ITS):
        if needed < missing:
            who = "the next" if needed == 1 else f"{needed} of them"
        else:
            who = "it" if needed == 1 else "they"
        verb, _, rest = sentence.partition(" ")
        sentence = f"{who} {verb if needed == 1 else verb.removesuffix('s')} {rest}"
    return f"{missing} of its {pods} pods {'has' if missing == 1 else 'have'} no node: {sentence}"


def with_number(phrase: str, number: int) -> str:
    """`are near ...`, `have ...` as said of so many."""
    verb, _, rest = phrase.partition(" ")
    return phrase if number != 1 else f"{ {'are': 'is', 'have': 'has'}.get(verb, verb) } {rest}"


def out(seating: Seating, bars: dict[Bar, list[NodeFacts]]) -> str:
    """`2 nodes are cordoned, 1 node is not ready`: which nodes are out, and why."""
    return ", ".join(
        f"{count(len(nodes), 'node')} {_why_out(seating, bar, nodes)}"
        for bar, nodes in bars.items()
    )


def _why_out(seating: Seating, bar: Bar, nodes: Sequence[NodeFacts]) -> str:
    one = len(nodes) == 1
    match bar:
        case Bar.SELECTOR:
            return f"{'does' if one else 'do'} not match {selector(seating)}"
        case Bar.AFFINITY:
            return f"{'does' if one else 'do'} not match its node affinity{_asked(seating, nodes)}"
        case Bar.QUEUE:
            named = [unmet.queue for node in nodes[:1] for unmet in _unmet(seating, node)]
            return f"{'is' if one else 'are'} not of the node groups of queue {named[0]}"
        case Bar.VOLUME:
            claims = sorted({unmet.volume for node in nodes for unmet in _unmet(seating, node)})
            which = ", ".join(claims[:3]) + (", ..." if len(claims) > 3 else "")
            return f"cannot reach the volume of {which}"
        case Bar.NOT_READY:
            return f"{'is' if one else 'are'} not ready"
        case Bar.CLOSED:
            return f"{'is' if one else 'are'} {' or '.join(sorted({n.closed for n in nodes}))}"
        case Bar.CORDON:
            return f"{'is' if one else 'are'} cordoned"
        case _:
            refused = (untolerated(node, seating.shape.constraints) for node in nodes)
            taints = sorted({_taint(taint) for taint in refused if taint is not None})
            which = ", ".join(taints[:3]) + (", ..." if len(taints) > 3 else "")
            return f"{'has' if one else 'have'} a taint it does not tolerate: {which}"


def offered_instead(seating: Seating, nodes: Sequence[NodeFacts]) -> str:
    """`: today's nodes have gpu=a100, gpu=v100`, of the first label that no node has as asked."""
    for key, value in seating.shape.constraints.node_selector:
        there = sorted({node.labels[key] for node in nodes if key in node.labels})
        if value in there:
            continue
        if not there:
            return f": none of today's nodes has the label {key}"
        some = ", ".join(f"{key}={each}" for each in there[:3])
        return f": today's nodes have {some}{', ...' if len(there) > 3 else ''}"
    return ""


def remedy(seating: Seating, bars: dict[Bar, list[NodeFacts]]) -> str:
    """What whoever wrote the pods, or runs the nodes, can do where no node may take them."""
    ways = []
    if Bar.SELECTOR in bars:
        ways.append("change the selector or label a node")
    if Bar.AFFINITY in bars:
        ways.append("change the affinity or label a node")
    if Bar.QUEUE in bars:
        ways.append("name another queue")
    if Bar.TAINT in bars:
        refused = [untolerated(node, seating.shape.constraints) for node in bars[Bar.TAINT]]
        if not all(taint is None or taint.key.startswith(_OF_NODES) for taint in refused):
            ways.append("add a toleration")
    if Bar.CORDON in bars:
        ways.append("uncordon a node")
    return f"; {', or '.join(ways)}" if ways else ""


def _asked(seating: Seating, nodes: Sequence[NodeFacts]) -> str:
    """` (gpu-model in h100, h200)`, where that is soon said."""
    choices = [unmet for node in nodes[:1] for unmet in _unmet(seating, node)]
    if not choices or len(choices[0].terms) != 1:
        return ""
    (term,) = choices[0].terms
    asked = [_requirement(each) for each in (*term.labels, *term.fields)]
    return f" ({', '.join(asked)})" if 0 < len(asked) <= 2 else ""


def _requirement(asked: Requirement) -> str:
    values = ", ".join(asked.values[:3]) + (", ..." if len(asked.values) > 3 else "")
    match asked.operator:
        case "Exists":
            return asked.key
        case "DoesNotExist":
            return f"no {asked.key}"
        case "In" | "NotIn" if len(asked.values) == 1:
            return f"{asked.key}{'=' if asked.operator == 'In' else '!='}{values}"
        case "In" | "NotIn":
            return f"{asked.key} {'in' if asked.operator == 'In' else 'not in'} {values}"
        case _:
            return f"{asked.key} {'>' if asked.operator == 'Gt' else '<'} {values}"


def _unmet(seating: Seating, node: NodeFacts) -> list[Choice]:
    """The first choice of the pod that this node does not meet."""
    choices = seating.shape.constraints.choices
    return [each for each in choices if not each.matches(node.name, node.labels)][:1]


def _taint(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"
