"""What is not as desired, in the eyes of a server that leaves out zeros and fills in defaults."""

from __future__ import annotations

from typing import Any

import pytest

from posse.controllers.jobs.performing import differences

HEADLESS = {"clusterIP": "None"}
CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "the same": ({"spec": HEADLESS}, {"spec": HEADLESS}, {}),
    "a default of the server's": (
        {"spec": {**HEADLESS, "type": "ClusterIP"}},
        {"spec": HEADLESS},
        {},
    ),
    "false that is left out": ({"spec": {}}, {"spec": {"publish": False}}, {}),
    "true that is missing": (
        {"spec": {}},
        {"spec": {"publish": True}},
        {"spec": {"publish": True}},
    ),
    "true that should be false": (
        {"spec": {"publish": True}},
        {"spec": {"publish": False}},
        {"spec": {"publish": False}},
    ),
    "ports with defaults": (
        {"ports": [{"name": "a", "port": 1, "protocol": "TCP", "targetPort": 1}]},
        {"ports": [{"name": "a", "port": 1}]},
        {},
    ),
    "another port": (
        {"ports": [{"name": "a", "port": 1, "protocol": "TCP"}]},
        {"ports": [{"name": "a", "port": 2}]},
        {"ports": [{"name": "a", "port": 2}]},
    ),
    "a port too many": (
        {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]},
        {"ports": [{"name": "a", "port": 1}]},
        {"ports": [{"name": "a", "port": 1}]},
    ),
    "data that is no longer wanted": (
        {"data": {"old": "1", "kept": "2"}},
        {"data": {"kept": "2"}},
        {"data": {"old": None, "kept": "2"}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_only_what_is_not_so_is_written(case: str) -> None:
    present, desired, patch = CASES[case]
    assert differences(present, desired) == patch
