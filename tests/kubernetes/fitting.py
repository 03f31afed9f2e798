"""Random pods and clusters, and which nodes each side says the pod may use.

One side is kube-scheduler's own filters (controlplane/fit, built on demand like the control plane),
the other is Posse: the same manifests, read and asked as the scheduler reads and asks them.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from posse.engine.fit.company import Company
from posse.engine.view import View
from posse.objects.nodes import Node
from posse.objects.pods import Pod
from posse.scheduler.reading.nodes import read_node
from posse.scheduler.reading.pods import Shapes, read_pod
from tests.kubernetes.building import KUBERNETES, MODULE, cache, compiled, pinned

Object = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


# -- kube-scheduler ----------------------------------------------------------------------------


def program() -> Path:
    """Named after its source as well: another source means another build."""
    source = (MODULE / "fit" / "main.go").read_bytes()
    version = pinned(KUBERNETES)
    return compiled(
        cache(os.environ) / f"fit-{hashlib.sha256(source).hexdigest()[:12]}",
        "./fit",
        MODULE,
        version,
        os.environ,
        stamp=f"k8s.io/component-base/version.gitVersion={version}",
    )


def theirs(questions: list[Object]) -> list[Object]:
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run(
        [str(program())], input=lines, capture_output=True, text=True, check=True, timeout=300
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


# -- Posse -------------------------------------------------------------------------------------


def ours(question: Object) -> list[str]:
    view, shapes = View(), Shapes()
    for namespace in question["namespaces"]:
        meta = namespace["metadata"]
        view.neighbours.set_namespace(meta["name"], meta.get("labels", {}))
    for document in question["nodes"]:
        facts, why = read_node(msgspec.convert(document, Node))
        assert not why, why
        view.set_node(facts)
    for document in (*question["pods"], question["pod"]):
        pod = msgspec.convert(document, Pod)
        view.set_pod(read_pod(pod, None, shapes.of(pod)))
    member = view.members[question["pod"]["metadata"]["uid"]]
    left = Company(view).left(member) & (member.seating.seats()[: len(view.columns.names)] > 0)
    return sorted(name for name, may in zip(view.columns.names, left.tolist(), strict=True) if may)


# -- questions ---------------------------------------------------------------------------------


class Maker:
    """Small worlds with few names, so that pods have something to say about one another."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)

    def question(self) -> Object:
        nodes = [self.node(f"n{at}") for at in range(self.chance.randint(1, 5))]
        names = [node["metadata"]["name"] for node in nodes]
        pods = [
            self.pod(f"p{at}", on=self.chance.choice(names))
            for at in range(self.chance.randint(0, 6))
        ]
        namespaces = [
            {"metadata": {"name": "one", "labels": {"kind": "a"}}},
            {"metadata": {"name": "two", "labels": {"kind": "b"}}},
            {"metadata": {"name": "three"}},
        ]
        asked = self.pod("asked", on=None)
        return {"namespaces": namespaces, "nodes": nodes, "pods": pods, "pod": asked}

    def odds(self, chance: float) -> bool:
        return self.chance.random() < chance

    def node(self, name: str) -> Object:
        labels: Object = {}
        if self.odds(0.9):
            labels[HOST] = name if self.odds(0.9) else "n0"
        if self.odds(0.8):
            labels[ZONE] = self.chance.choice("ab")
        if self.odds(0.5):
            labels["gpus"] = self.chance.choice(["2", "8", "many", ""])
        taints = [
            {
                "key": self.chance.choice(["team", "gpu"]),
                "value": self.chance.choice(["", "a"]),
                "effect": self.chance.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"]),
            }
            for _ in range(self.chance.choice([0, 0, 0, 1, 2]))
        ]
        room = {
            "cpu": self.chance.choice(["2", "4", "1500m"]),
            "memory": "4Gi",
            "pods": self.chance.choice(["2", "10"]),
        }
        if self.odds(0.5):
            room["nvidia.com/gpu"] = self.chance.choice(["0", "1", "4"])
        return {
            "metadata": {"name": name, "uid": name, "labels": labels},
            "spec": {"taints": taints, "unschedulable": self.odds(0.1)},
            "status": {
                "allocatable": room,
                "capacity": room,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }

    def pod(self, name: str, *, on: str | None) -> Object:
        meta: Object = {
            "name": name,
            "uid": name,
            "namespace": self.chance.choice(["one", "one", "two", "three"]),
            "labels": self.labels(),
        }
        if on is not None and self.odds(0.1):
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        spec: Object = {
            "containers": [{"name": "main", "resources": self.resources(), "ports": self.ports()}]
        }
        if on is not None:
            spec["nodeName"] = on
        if self.odds(0.15):
            spec["initContainers"] = [self.init()]
        if self.odds(0.3):
            spec["nodeSelector"] = self.chance.choice(
                [{ZONE: "a"}, {HOST: "n1"}, {"gpus": "8"}, {"gpus": ""}]
            )
        if self.odds(0.4):
            spec["tolerations"] = [self.toleration() for _ in range(self.chance.randint(1, 2))]
        affinity = {
            "nodeAffinity": self.odds(0.35) and self.node_affinity(),
            "podAffinity": self.odds(0.25) and self.company(),
            "podAntiAffinity": self.odds(0.3) and self.company(),
        }
        spec["affinity"] = {key: value for key, value in affinity.items() if value}
        if self.odds(0.35):
            spec["topologySpreadConstraints"] = [
                self.spread() for _ in range(self.chance.randint(1, 2))
            ]
        return {"metadata": meta, "spec": spec, "status": {}}

    def labels(self) -> dict[str, str]:
        found = {"app": self.chance.choice("xy")} if self.odds(0.8) else {}
        return found | ({"tier": self.chance.choice("12")} if self.odds(0.5) else {})

    def resources(self) -> Object:
        asked = {"cpu": self.chance.choice(["0", "100m", "1", "1500m"])}
        if self.odds(0.2):
            asked["nvidia.com/gpu"] = self.chance.choice(["0", "1", "2"])
        if self.odds(0.2):
            asked["memory"] = self.chance.choice(["1Gi", "3Gi"])
        return {"requests": asked}

    def init(self) -> Object:
        init: Object = {"name": "i", "resources": self.resources(), "ports": self.ports()}
        return init | ({"restartPolicy": "Always"} if self.odds(0.5) else {})

    def ports(self) -> list[Object]:
        if self.odds(0.7):
            return [{"containerPort": 80}]
        port: Object = {"containerPort": 80, "hostPort": self.chance.choice([8080, 8081])}
        if self.odds(0.4):
            port["protocol"] = self.chance.choice(["TCP", "UDP"])
        if self.odds(0.4):
            port["hostIP"] = self.chance.choice(["10.0.0.1", "10.0.0.2", "0.0.0.0"])
        return [port]

    def toleration(self) -> Object:
        if self.odds(0.3):
            return {"operator": "Exists"} | (
                {"effect": "NoSchedule"} if self.odds(0.5) else {"key": "team"}
            )
        found: Object = {"key": self.chance.choice(["team", "gpu"])}
        if self.odds(0.5):
            found["operator"] = "Equal"
        if self.odds(0.5):
            found["value"] = "a"
        if self.odds(0.4):
            found["effect"] = self.chance.choice(["NoSchedule", "NoExecute"])
        return found

    def node_affinity(self) -> Object:
        terms: list[Object] = []
        for _ in range(self.chance.randint(1, 2)):
            term: Object = {}
            if self.odds(0.8):
                term["matchExpressions"] = [
                    self.expression([ZONE, "gpus"], numbers=True)
                    for _ in range(self.chance.randint(1, 2))
                ]
            if self.odds(0.3):
                operator = self.chance.choice(["In", "NotIn"])
                term["matchFields"] = [
                    {"key": "metadata.name", "operator": operator, "values": ["n0"]}
                ]
            terms.append(term)
        return {REQUIRED: {"nodeSelectorTerms": terms}}

    def expression(self, keys: list[str], *, numbers: bool = False) -> Object:
        operators = ["In", "NotIn", "Exists", "DoesNotExist"] + (["Gt", "Lt"] * numbers)
        operator = self.chance.choice(operators)
        found: Object = {"key": self.chance.choice(keys), "operator": operator}
        if operator in ("Gt", "Lt"):
            found["values"] = [self.chance.choice(["1", "2", "5", "-3"])]
        elif operator in ("In", "NotIn"):
            values = ["a", "b", "8", "2"] if numbers else ["x", "y", "1"]
            found["values"] = self.chance.sample(values, self.chance.randint(1, 2))
        return found

    def selector(self) -> Object | None:
        if self.odds(0.08):
            return None
        if self.odds(0.1):
            return {}
        if self.odds(0.5):
            return {"matchLabels": {"app": self.chance.choice("xy")}}
        return {"matchExpressions": [self.expression(["app", "tier"])]}

    def company(self) -> Object:
        return {REQUIRED: [self.term() for _ in range(self.chance.choice([1, 1, 2]))]}

    def term(self) -> Object:
        found: Object = {"topologyKey": self.chance.choice([HOST, ZONE])}
        if (selector := self.selector()) is not None:
            found["labelSelector"] = selector
        if self.odds(0.3):
            found["namespaces"] = self.chance.sample(["one", "two", "three"], 1)
        if self.odds(0.3):
            # None that also matches a namespace without labels: kube-scheduler 1.36 takes such a
            # selector of the pod in question for one that matches every namespace, whatever the
            # labels, because it narrows a copy of the term. Posse goes by the labels.
            found["namespaceSelector"] = self.chance.choice(
                [
                    {},
                    {"matchLabels": {"kind": "a"}},
                    {"matchExpressions": [{"key": "kind", "operator": "Exists"}]},
                ]
            )
        return found

    def spread(self) -> Object:
        found: Object = {
            "maxSkew": self.chance.choice([1, 1, 2]),
            "topologyKey": self.chance.choice([HOST, ZONE]),
            "whenUnsatisfiable": self.chance.choice(["DoNotSchedule"] * 4 + ["ScheduleAnyway"]),
        }
        if (selector := self.selector()) is not None:
            found["labelSelector"] = selector
            if self.odds(0.2):
                found["matchLabelKeys"] = ["tier"]
        if self.odds(0.25):
            found["minDomains"] = self.chance.randint(1, 3)
        if self.odds(0.3):
            found["nodeAffinityPolicy"] = self.chance.choice(["Honor", "Ignore"])
        if self.odds(0.3):
            found["nodeTaintsPolicy"] = self.chance.choice(["Honor", "Ignore"])
        return found
