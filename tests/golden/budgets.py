"""Disruption budgets and the evictions that they refuse.

A real cluster's disruption controller writes the budgets' status at the same time. Whatever is
asked here is the same before and after it: statuses are set to what it will find them to be.
"""

from __future__ import annotations

from typing import Any

from tests.golden.phrases import PODS, TABLE, delete, get, patch, pod, post, put
from tests.golden.talking import Conversation, Request

PDBS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
APP = {"matchLabels": {"app": "a"}}


def budget(name: str = "b", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def running(name: str, ready: str = "True") -> tuple[Request, Request]:
    made = pod(name)
    made["metadata"]["labels"] = {"app": "a"}
    return post(name, PODS, made), healthy(f"{name} runs", name, ready)


def healthy(label: str, name: str, ready: str) -> Request:
    condition = {"type": "Ready", "status": ready}
    status = {"phase": "Running", "conditions": [condition]}
    return patch(label, f"{PODS}/{name}/status", {"status": status}, "strategic")


def reckoned(label: str, name: str, allowed: int, current: int, desired: int, pods: int) -> Request:
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": current,
        "desiredHealthy": desired,
        "expectedPods": pods,
        "observedGeneration": 1,
        "disruptedPods": None,
        "conditions": [condition],
    }
    return patch(label, f"{PDBS}/{name}/status", {"status": status})


def evict(label: str, name: str, options: Any = None, **query: str) -> Request:
    body = {"metadata": {"name": name}} | ({"deleteOptions": options} if options else {})
    return post(label, f"{PODS}/{name}/eviction", body, **query)


def tried(label: str, name: str = "b", **spec: Any) -> Request:
    return post(label, PDBS, budget(name, **spec), dryRun="All")


def condition(**fields: Any) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": "A", "status": "True", "reason": "R"} | fields]}}


BUDGETS = (
    Conversation(
        "golden-budgets",
        (
            tried("a number", minAvailable=1, selector=APP),
            tried("a part", maxUnavailable="25%", selector={}),
            tried("of nobody"),
            tried("by its policy", unhealthyPodEvictionPolicy="AlwaysAllow", selector=APP),
            tried("named freely", "Bad_Name"),
            tried("both", minAvailable=1, maxUnavailable="1%", selector=APP),
            tried("less than none", minAvailable=-1),
            tried("more than all", maxUnavailable="101%"),
            tried("no part", minAvailable="half"),
            tried("no policy", unhealthyPodEvictionPolicy="Never"),
            tried(
                "no selector",
                selector={"matchExpressions": [{"key": "a", "operator": "In"}]},
                minAvailable="1",
            ),
            tried("a truth", minAvailable=True),
            post(
                "its status is not the user's",
                PDBS,
                budget() | {"status": {"disruptionsAllowed": 3}},
                dryRun="All",
            ),
            post("kept", PDBS, budget()),
            post("again", PDBS, budget()),
            put("unseen", f"{PDBS}/b", budget(minAvailable=1)),
            put(
                "stale",
                f"{PDBS}/b",
                {"metadata": {"name": "b", "resourceVersion": "1"}, "spec": {}},
            ),
            put("missing", f"{PDBS}/none", budget("none")),
            patch("wrong", f"{PDBS}/b", {"spec": {"minAvailable": "x"}}),
            patch("negative", f"{PDBS}/b/status", {"status": {"disruptionsAllowed": -1}}),
            patch("since never", f"{PDBS}/b/status", condition()),
            patch(
                "no reason",
                f"{PDBS}/b/status",
                condition(reason="a b", status="Maybe", lastTransitionTime="2026-01-01T00:00:00Z"),
            ),
            get("in a table", PDBS, TABLE, includeObject="None"),
            delete("gone", f"{PDBS}/b"),
        ),
    ),
    Conversation(
        "golden-evictions",
        (
            *running("a"),
            *running("b"),
            post("all", PDBS, budget("all", minAvailable=2, selector=APP)),
            reckoned("all are there", "all", 0, 2, 2, 2),
            evict("refused", "a"),
            evict("refused as if", "a", dryRun="All"),
            evict("refused whichever", "a", {"preconditions": {"uid": "other"}}),
            delete("without it", f"{PDBS}/all"),
            post("most", PDBS, budget("most", minAvailable=1, selector=APP)),
            reckoned("one to spare", "most", 1, 2, 1, 2),
            evict("as if", "a", dryRun="All"),
            evict("spared", "a"),
            get("ended", f"{PODS}/a"),
            reckoned("none to spare", "most", 0, 1, 1, 1),
            evict("the last", "b"),
            post("other", PDBS, budget("other", maxUnavailable=1, selector={})),
            evict("between two", "b"),
            delete("without the other", f"{PDBS}/other"),
            healthy("b is ill", "b", "False"),
            reckoned("none is healthy", "most", 0, 0, 1, 1),
            evict("ill", "b"),
            delete("without most", f"{PDBS}/most"),
            post(
                "lenient",
                PDBS,
                budget(
                    "lenient",
                    minAvailable=1,
                    selector=APP,
                    unhealthyPodEvictionPolicy="AlwaysAllow",
                ),
            ),
            reckoned("none is healthy still", "lenient", 0, 0, 1, 1),
            evict("ill and let go", "b"),
            post("waiting", PODS, pod("w")),
            evict("waiting and let go", "w"),
            evict("nobody", "none"),
            post("another", f"{PODS}/w/eviction", {"metadata": {"name": "v"}}),
            evict(
                "against all odds",
                "w",
                {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
            ),
        ),
    ),
)
