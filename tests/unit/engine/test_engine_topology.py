"""Domains and their seats, counted again only where nodes have changed."""

from __future__ import annotations

from posse.engine.facts import PodFacts, Shape, requests_of
from posse.engine.policy import Policy
from posse.engine.view import View
from tests.scenarios.language import node

POLICY = Policy(tiers=("rack", "block"))


def test_seats_are_counted_where_they_are_though_racks_and_names_are_in_another_order() -> None:
    view = View()
    for at in range(8):
        labels = {"rack": "adcb"[at % 4], "block": "xy"[at % 2]}
        view.set_node(node(f"n{at}", cores=8, labels=labels))
    seating = view.seating(Shape(requests_of({"cpu": 1000})))
    racks, blocks = view.tiers.levels(POLICY.tiers)
    assert blocks.seats(seating).tolist() == [32, 32]
    for name, cores, on in (("one", 5, "n1"), ("two", 3, "n4")):
        view.set_pod(PodFacts(name, name, Shape(requests_of({"cpu": cores * 1000})), node=on))
    assert dict(zip(racks.names, racks.seats(seating).tolist(), strict=True)) == {
        "x/a": 13, "x/c": 16, "y/b": 16, "y/d": 11
    }  # fmt: skip
    assert dict(zip(blocks.names, blocks.seats(seating).tolist(), strict=True)) == {
        "x": 29, "y": 27
    }  # fmt: skip
    view.validate()
