"""Gangs whose pods ask something of the company they keep: ports, affinity, spread, claims."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from posse.engine.facts import NodeFacts, PodFacts
from posse.engine.fit.terms import (
    Attraction,
    Choice,
    HostPort,
    NodeTerm,
    PodTerm,
    Relations,
    Requirement,
    Selector,
    Spread,
)
from posse.engine.view import View
from tests.scenarios.language import (
    Scenario,
    Team,
    Turn,
    arrives,
    ends,
    gang,
    member,
    node,
    pod,
    shape,
    starts,
    waits,
)

HOST = "kubernetes.io/hostname"


def has(key: str, *values: str) -> Selector:
    return Selector((Requirement(key, "In", values),))


def near(selector: Selector | None, key: str = HOST, *namespaces: str) -> PodTerm:
    return PodTerm(key, selector, namespaces or ("team",))


def labelled(team: Team, **labels: str) -> Team:
    """Each pod of the gang says whose it is, and what it does."""
    pods = [
        replace(each, labels={"job": team.group.uid, "role": each.role, **labels})
        for each in team.pods
    ]
    return Team(team.group, pods)


def job(name: str, *, relations: Relations | None = None, **like: Any) -> Team:
    like = like if "roles" in like else {"relations": relations} | like
    return labelled(gang(name, **like))


def called(job: str, team: Team) -> Team:
    """The same pods, labelled as another job's."""
    return labelled(team, job=job)


def other(name: str, on: str, *, namespace: str = "team", **like: Any) -> PodFacts:
    labels = like.pop("labels", {})
    return replace(pod(name, on=on, **like), name=f"{namespace}/{name}", labels=labels)


def grid(**zones: int) -> list[NodeFacts]:
    return [
        node(f"{zone}{at}", gpus=4, labels={HOST: f"{zone}{at}", "zone": zone})
        for zone, number in zones.items()
        for at in range(number)
    ]


ONE_EACH = Relations(avoids=(near(has("job", "j")),))
PORT = Relations(ports=(HostPort(2222),))
SEEKING = Relations(joins=(near(has("job", "data")),))
TOGETHER = Relations(joins=(near(has("job", "j"), "zone"),))
ROLES = {
    "ps": (1, shape(gpus=1)),
    "worker": (3, shape(gpus=1, relations=Relations(joins=(near(has("role", "ps"), "zone"),)))),
}


def even(skew: int = 1, **like: Any) -> Relations:
    return Relations(spreads=(Spread("zone", skew, has("job", "j"), **like),))


def rather(weight: int, term: PodTerm) -> Relations:
    return Relations(prefers=(Attraction(weight, term),))


TABLE = [
    # -- anti-affinity
    Scenario(
        "pods that avoid one another sit one to a node",
        grid(a=3),
        gangs=[job("j", workers=3, gpus=1, relations=ONE_EACH)],
        expect=[starts("j", on={"a0": 1, "a1": 1, "a2": 1})],
    ),
    Scenario(
        "and wait whole where there are too few nodes",
        grid(a=2),
        gangs=[job("j", workers=3, gpus=1, relations=ONE_EACH)],
        expect=[
            waits(
                "j",
                because="on today's nodes only 2 of its 3 pods find a node: 2 nodes have a pod in"
                " the same kubernetes.io/hostname that its anti-affinity avoids",
            )
        ],
        then=[Turn([arrives(*grid(b=1))], [starts("j", on={"a0": 1, "a1": 1, "b0": 1})])],
    ),
    Scenario(
        "one to a zone",
        grid(a=2, b=2),
        gangs=[
            job(
                "j", workers=2, gpus=1, relations=Relations(avoids=(near(has("job", "j"), "zone"),))
            )
        ],
        expect=[starts("j", on={"a0": 1, "b0": 1})],
    ),
    Scenario(
        "pods of others count, whoever bound them",
        grid(a=2),
        others=[other("x", "a0", labels={"job": "j"})],
        gangs=[job("j", workers=1, gpus=1, relations=ONE_EACH)],
        expect=[starts("j", on={"a1": 1})],
    ),
    Scenario(
        "but not those of another namespace",
        grid(a=1),
        others=[other("x", "a0", namespace="elsewhere", labels={"job": "j"})],
        gangs=[job("j", workers=1, gpus=1, relations=ONE_EACH)],
        expect=[starts("j", on={"a0": 1})],
    ),
    Scenario(
        "what sits there keeps off those that it avoids, who say nothing themselves",
        grid(a=2),
        others=[other("x", "a0", relations=Relations(avoids=(near(has("job", "j")),)))],
        gangs=[job("j", workers=1, gpus=4)],
        expect=[starts("j", on={"a1": 1})],
    ),
    Scenario(
        "and lets them in when it goes, though its own node has no room",
        grid(a=2),
        others=[
            other("x", "a0", gpus=4, relations=Relations(avoids=(near(has("job", "j"), "zone"),))),
        ],
        gangs=[job("j", workers=1, gpus=4)],
        expect=[waits("j", because="its pod finds no node: 1 node has a pod in the same")],
        then=[Turn([ends("x")], [starts("j", on={"a0": 1})])],
    ),
    Scenario(
        "and lets in who is not what it avoids any more",
        grid(a=1),
        others=[other("x", "a0", relations=Relations(avoids=(near(has("job", "j")),)))],
        gangs=[job("j", workers=1, gpus=4)],
        expect=[waits("j", because="whose anti-affinity avoids it")],
        then=[Turn([arrives(called("k", job("j", workers=1, gpus=4)))], [starts("j")])],
    ),
    Scenario(
        "a node without the label is in no domain",
        [*grid(a=1), node("bare", gpus=4)],
        others=[other("x", "a0", labels={"job": "j"}), other("y", "bare", labels={"job": "j"})],
        gangs=[job("j", workers=1, gpus=1, relations=ONE_EACH)],
        expect=[starts("j", on={"bare": 1})],
    ),
    Scenario(
        "a role that avoids the other role of its gang",
        grid(a=1, b=1),
        gangs=[
            job(
                "j",
                roles={
                    "ps": (1, shape(gpus=1, relations=Relations(avoids=(near(has("role", "w")),)))),
                    "w": (2, shape(gpus=1)),
                },
            )
        ],
        expect=[starts("j", 3, on={"a0": 2, "b0": 1})],
    ),
    # -- ports
    Scenario(
        "a host port is used once on a node",
        grid(a=3),
        gangs=[job("j", workers=3, cores=1, relations=PORT)],
        expect=[starts("j", on={"a0": 1, "a1": 1, "a2": 1})],
    ),
    Scenario(
        "a port that somebody has is told",
        grid(a=1),
        others=[other("x", "a0", relations=PORT, namespace="elsewhere")],
        gangs=[job("j", workers=1, cores=1, relations=PORT)],
        expect=[waits("j", because="1 node has host port TCP 2222 in use")],
        then=[Turn([ends("x")], [starts("j")])],
    ),
    Scenario(
        "the same port on another address is another port",
        grid(a=1),
        others=[other("x", "a0", relations=Relations(ports=(HostPort(1, address="10.0.0.1"),)))],
        gangs=[
            job("j", workers=1, relations=Relations(ports=(HostPort(1, address="10.0.0.2"),))),
        ],
        expect=[starts("j")],
    ),
    # -- affinity
    Scenario(
        "pods that seek one another open the smallest zone that seats them all",
        grid(a=3, b=2, c=1),
        gangs=[job("j", workers=2, gpus=4, relations=TOGETHER)],
        expect=[starts("j", on={"b0": 1, "b1": 1})],
    ),
    Scenario(
        "and follow those that are there already",
        grid(a=3, b=2),
        others=[other("x", "a0", labels={"job": "j"})],
        gangs=[job("j", workers=2, gpus=4, relations=TOGETHER)],
        expect=[starts("j", on={"a0": 1, "a1": 1})],
    ),
    Scenario(
        "no zone seats them all",
        grid(a=1, b=1),
        gangs=[job("j", workers=2, gpus=4, relations=TOGETHER)],
        expect=[waits("j", because="only 1 of its 2 pods finds a node")],
    ),
    Scenario(
        "nobody is there whom it seeks",
        grid(a=1),
        gangs=[job("j", workers=1, gpus=1, relations=SEEKING)],
        expect=[waits("j", because="1 node has no pod in the same kubernetes.io")],
        then=[Turn([arrives(other("x", "a0", labels={"job": "data"}))], [starts("j")])],
    ),
    Scenario(
        "until it is one of those itself",
        grid(a=1),
        gangs=[job("j", workers=1, gpus=1, relations=SEEKING)],
        expect=[waits("j", because="1 node has no pod in the same kubernetes.io")],
        then=[
            Turn(
                [arrives(called("data", job("j", workers=1, gpus=1, relations=SEEKING)))],
                [starts("j")],
            )
        ],
    ),
    Scenario(
        "or one of those is there in its stead",
        grid(a=1),
        gangs=[job("j", workers=1, gpus=1, relations=SEEKING)],
        expect=[waits("j", because="1 node has no pod in the same kubernetes.io")],
        then=[
            Turn(
                [
                    ends("j-worker-0"),
                    arrives(
                        replace(
                            member("j", "worker-0", gpus=1, relations=SEEKING),
                            labels={"job": "data"},
                        )
                    ),
                ],
                [starts("j")],
            )
        ],
    ),
    Scenario(
        "workers near their parameter server, where there is room for both",
        grid(a=1, b=1),
        others=[other("x", "a0", gpus=2)],
        gangs=[job("j", roles=ROLES)],
        expect=[starts("j", 4, on={"b0": 4})],
    ),
    # -- spread
    Scenario(
        "zones fill evenly",
        grid(a=1, b=1),
        gangs=[job("j", workers=4, gpus=1, relations=even())],
        expect=[starts("j", on={"a0": 2, "b0": 2})],
    ),
    Scenario(
        "a full zone holds up the others",
        grid(a=1, b=1),
        others=[other("x", "a0", gpus=4)],
        gangs=[job("j", workers=2, gpus=1, relations=even())],
        expect=[
            waits("j", because="1 node has too many such pods for its spread over zone"),
        ],
        then=[Turn([ends("x")], [starts("j", on={"a0": 1, "b0": 1})])],
    ),
    Scenario(
        "a zone that its affinity rules out does not count",
        grid(a=1, b=1),
        gangs=[
            job(
                "j",
                workers=2,
                gpus=1,
                relations=even(),
                choices=[Choice((NodeTerm((Requirement("zone", "In", ("a",)),)),))],
            )
        ],
        expect=[starts("j", on={"a0": 2})],
    ),
    Scenario(
        "unless it asks that all zones count",
        grid(a=1, b=1),
        gangs=[
            job(
                "j",
                workers=2,
                gpus=1,
                relations=even(by_affinity=False),
                choices=[Choice((NodeTerm((Requirement("zone", "In", ("a",)),)),))],
            )
        ],
        expect=[waits("j", because="too many such pods")],
    ),
    Scenario(
        "fewer zones than it wants",
        grid(a=2),
        gangs=[job("j", workers=2, gpus=1, relations=even(min_domains=2))],
        expect=[waits("j", because="only 1 of its 2 pods")],
        then=[Turn([arrives(*grid(b=1))], [starts("j", on={"a0": 1, "b0": 1})])],
    ),
    Scenario(
        "a wider skew",
        grid(a=1, b=1),
        others=[other("x", "b0", gpus=3)],
        gangs=[job("j", workers=4, gpus=1, relations=even(skew=3))],
        expect=[starts("j", 4, on={"a0": 3, "b0": 1})],
    ),
    # -- claims
    Scenario(
        "a claim for one pod alone",
        grid(a=2),
        others=[other("x", "a0", relations=Relations(claims=("team/data",)))],
        gangs=[job("j", workers=1, gpus=1, relations=Relations(claims=("team/data",)))],
        expect=[waits("j", because="2 nodes are out because another pod uses team/data")],
        then=[Turn([ends("x")], [starts("j")])],
    ),
    Scenario(
        "two members cannot share it",
        grid(a=2),
        gangs=[job("j", workers=2, gpus=1, relations=Relations(claims=("team/data",)))],
        expect=[waits("j", because="another pod uses team/data; ask for 1 pod")],
    ),
    # -- preferences
    Scenario(
        "pods that would rather not share a node do not where there is choice",
        grid(a=3),
        gangs=[job("j", workers=2, gpus=1, relations=rather(-100, near(has("job", "j"))))],
        expect=[starts("j", on={"a0": 1, "a1": 1})],
    ),
    Scenario(
        "and do where there is none",
        grid(a=1),
        gangs=[job("j", workers=3, gpus=1, relations=rather(-100, near(has("job", "j"))))],
        expect=[starts("j", on={"a0": 3})],
    ),
    Scenario(
        "pods that would rather be near another are, while there is room",
        grid(a=1, b=1),
        others=[other("x", "b0", gpus=1, labels={"job": "data"})],
        gangs=[job("j", workers=4, gpus=1, relations=rather(1, near(has("job", "data"))))],
        expect=[starts("j", on={"b0": 3, "a0": 1})],
    ),
    Scenario(
        "who merely prefers is kept off by those that must not have it near",
        grid(a=2),
        others=[other("x", "a0", relations=Relations(avoids=(near(has("job", "j")),)))],
        gangs=[job("j", workers=2, gpus=1, relations=rather(-1, near(has("job", "j"))))],
        expect=[starts("j", on={"a1": 2})],
    ),
    Scenario(
        "what must be comes before what would be better",
        grid(a=2, b=1),
        others=[other("x", "a0", labels={"job": "data"})],
        gangs=[
            job(
                "j",
                workers=2,
                gpus=1,
                relations=Relations(
                    avoids=(near(has("job", "j")),),
                    prefers=(Attraction(5, near(has("job", "data"), "zone")),),
                ),
            )
        ],
        expect=[starts("j", on={"a0": 1, "a1": 1})],
    ),
    # -- beyond the minimum
    Scenario(
        "members beyond the minimum heed their company too",
        grid(a=2),
        gangs=[job("j", workers=4, least=1, gpus=1, relations=ONE_EACH)],
        expect=[
            starts("j", on={"a0": 1}),
            starts("j", on={"a1": 1}),
            waits("j", because="2 pods beyond its minimum: the next finds no node: 2"),
        ],
    ),
    Scenario(
        "a gang of many finds its places in one pass",
        [node(f"n{at:03}", gpus=4, labels={HOST: f"n{at:03}"}) for at in range(300)],
        gangs=[job("j", workers=300, gpus=1, relations=ONE_EACH)],
        expect=[starts("j", 300)],
    ),
]


@pytest.mark.parametrize("scenario", TABLE, ids=lambda scenario: scenario.name)
def test_company(scenario: Scenario) -> None:
    scenario.play()


def test_namespaces_may_be_chosen_by_label() -> None:
    prod = Relations(avoids=(PodTerm(HOST, has("job", "j"), (), has("tier", "prod")),))

    def labels(view: View) -> None:
        view.neighbours.set_namespace("elsewhere", {"tier": "prod"})

    def unlabelled(view: View) -> None:
        view.neighbours.remove_namespace("elsewhere")

    Scenario(
        "namespaces",
        grid(a=1),
        others=[other("x", "a0", namespace="elsewhere", labels={"job": "j"})],
        expect=[],
        then=[
            Turn(
                [labels, arrives(job("j", workers=1, gpus=1, relations=prod))],
                [waits("j", because="anti-affinity")],
            ),
            Turn([unlabelled], [starts("j", on={"a0": 1})]),
        ],
    ).play()


def test_labels_of_a_seated_pod_may_change() -> None:
    Scenario(
        "labels",
        grid(a=1),
        others=[other("x", "a0", labels={"job": "j"})],
        gangs=[job("j", workers=1, gpus=1, relations=ONE_EACH)],
        expect=[waits("j")],
        then=[Turn([arrives(other("x", "a0", labels={"job": "k"}))], [starts("j")])],
    ).play()
