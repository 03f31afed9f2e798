"""How ReplicaSets change places."""

from __future__ import annotations

import pytest

from posse.local.core.deployments import template_hash
from posse.local.core.rollouts import Replicas, Size, bounds, recreating, rolling


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (4, "25%", "25%", (1, 1)),
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (3, 0, 0, (0, 1)),
        (2, 0, 5, (0, 2)),
        (4, "nonsense", 1, (0, 1)),
    ],
)
def test_percentages_round_up_for_surge_and_down_for_unavailability(
    replicas: int, surge: Size, unavailable: Size, expected: tuple[int, int]
) -> None:
    assert bounds(replicas, surge, unavailable) == expected


def settle(
    replicas: int, old_available: int, surge: int, unavailable: int
) -> list[tuple[int, int]]:
    """Roll until nothing changes, every pod becoming available between two looks."""
    new, old = Replicas("new", 0, 0, 0), Replicas("old", replicas, old_available, replicas)
    seen: list[tuple[int, int]] = []
    for _ in range(50):
        sizes = rolling(replicas, new, [old], surge, unavailable)
        if not sizes:
            return seen
        total = sizes.get("new", new.asked) + sizes.get("old", old.asked)
        assert total <= replicas + surge
        old_left = sizes.get("old", old.asked)
        available = new.available + min(old.available, old_left)
        if old_available == replicas:
            assert available >= replicas - unavailable
        grown = sizes.get("new", new.asked)
        new = Replicas("new", grown, grown, grown)
        old = Replicas("old", old_left, min(old.available, old_left), old_left)
        seen.append((new.asked, old.asked))
    raise AssertionError("the rollout never ends")


@pytest.mark.parametrize("replicas", [1, 2, 3, 10])
@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), (1, 1), (3, 2)])
def test_a_rollout_ends_and_keeps_its_bounds(replicas: int, surge: int, unavailable: int) -> None:
    assert settle(replicas, replicas, surge, unavailable)[-1] == (replicas, 0)


def test_a_rollout_passes_over_old_pods_that_never_worked() -> None:
    assert settle(3, 0, 0, 1)[-1] == (3, 0)


def test_new_pods_that_do_not_work_yet_keep_old_ones_in_place() -> None:
    new, old = Replicas("new", 1, 0, 1), Replicas("old", 4, 2, 4)
    assert rolling(4, new, [old], 1, 1) == {"old": 3}


def test_a_smaller_deployment_shrinks_its_replica_set() -> None:
    assert rolling(2, Replicas("new", 5, 5, 5), [], 1, 1) == {"new": 2}


def test_recreate_waits_until_the_last_old_pod_is_gone() -> None:
    new = Replicas("new", 0, 0, 0)
    assert recreating(2, new, [Replicas("old", 2, 2, 2)]) == {"old": 0}
    assert recreating(2, new, [Replicas("old", 0, 0, 1)]) == {}
    assert recreating(2, new, [Replicas("old", 0, 0, 0)]) == {"new": 2}


def test_equal_templates_have_equal_names_whatever_the_order_of_their_fields() -> None:
    assert template_hash({"a": 1, "b": [2]}) == template_hash({"b": [2], "a": 1})
    assert template_hash({"a": 1}) != template_hash({"a": 2})
