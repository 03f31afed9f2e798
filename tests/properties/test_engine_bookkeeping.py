"""Bookkeeping: after any events in any order the columns equal a recount, and so do the plans."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from posse.engine.cycle import cycle
from posse.engine.facts import PodFacts
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.properties.engine_worlds import Cluster, clusters, node_facts, shapes
from tests.properties.trying import examples

ROOT = Path(__file__).parents[2]


@st.composite
def events(draw: st.DrawFn) -> tuple[str, object]:
    node = f"node-{draw(st.integers(0, 3))}"
    uid = f"pod-{draw(st.integers(0, 5))}"
    match draw(st.integers(0, 4)):
        case 0:
            return "set_node", draw(node_facts(node))
        case 1:
            return "remove_node", node
        case 2:
            return "remove_pod", uid
        case _:
            where = draw(st.sampled_from([None, "node-0", "node-1", "node-2", "node-3"]))
            gang = draw(st.sampled_from([None, "team/a", "team/b"]))
            deleting = draw(st.booleans())
            facts = PodFacts(uid, f"x/{uid}", draw(shapes()), gang, node=where, deleting=deleting)
            return "set_pod", facts


@examples(150)
@given(st.lists(events(), max_size=25))
def test_a_recount_equals_the_columns(happened: list[tuple[str, object]]) -> None:
    view = View()
    nodes: dict[str, object] = {}
    pods: dict[str, PodFacts] = {}
    for what, value in happened:
        getattr(view, what)(value)
        match what, value:
            case "set_node", _:
                nodes[value.name] = value  # type: ignore[attr-defined]
            case "remove_node", str():
                nodes.pop(value, None)
            case "remove_pod", str():
                pods.pop(value, None)
            case "set_pod", PodFacts():
                pods[value.uid] = value
        view.validate()
    assert sorted(view.members) == sorted(pods)
    fresh = View()
    for facts in nodes.values():
        fresh.set_node(facts)  # type: ignore[arg-type]
    for pod in pods.values():
        fresh.set_pod(pod)
    assert room(view) == room(fresh)


def room(view: View) -> dict[str, dict[str, tuple[int, int]]]:
    columns = view.columns
    return {
        name: {
            resource: (int(columns.allocatable[row, at]), int(columns.used[row, at]))
            for resource, at in sorted(columns.column.items())
            if columns.allocatable[row, at] or columns.used[row, at]
        }
        for name, row in sorted(columns.row.items())
    }


def plan(cluster: Cluster, order: list[int]) -> list[str]:
    view = View()
    for at in order:
        cluster.events[at](view)
    policy = Policy(search_steps=200)
    return [repr(each) for now in (0.0, 100.0) for each in cycle(view, policy, now)]


@examples(100)
@given(clusters(), st.randoms(use_true_random=False))
def test_equal_facts_in_any_order_give_an_equal_plan(cluster: Cluster, chance: object) -> None:
    order = list(range(len(cluster.events)))
    first = plan(cluster, order)
    chance.shuffle(order)  # type: ignore[attr-defined]
    assert plan(cluster, order) == first


PROGRAM = """
from tests.scenarios.language import *
view = View()
happen = arrives(
    *nodes(7, gpus=4, cores=9), *nodes(3, prefix="cpu", cores=20),
    *[gang(f"g{i}", roles={r: (n, shape(gpus=i % 3, cores=n)) for n, r in enumerate("abc", 1)},
           launcher=shape(cores=1), age=i % 4) for i in range(9)],
    *[gang(f"h{i}", workers=5 + i, gpus=1, selector={"x": "y"} if i % 5 == 4 else {})
      for i in range(9)],
)
happen(view)
for decision in cycle(view, Policy(), 0.0):
    print(decision)
"""


def test_the_plan_does_not_depend_on_the_hash_seed() -> None:
    def run(seed: str) -> bytes:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True
        )
        return done.stdout

    first = run("1")
    assert first.count(b"Start(") > 3 and first.count(b"Wait(") > 3
    assert run("2") == first
    assert run("12345") == first
