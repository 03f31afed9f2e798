"""Whole gangs or none: minimums, members beyond them, announced members, half-bound gangs."""

from __future__ import annotations

import pytest

from posse.engine.decisions import Reason
from posse.engine.facts import QueueFacts
from posse.engine.policy import Policy
from tests.scenarios.language import (
    Scenario,
    Turn,
    arrives,
    asks_only,
    ends,
    gang,
    leaves,
    node,
    nodes,
    pod,
    refused,
    releases,
    shape,
    starts,
    vanishes,
    waits,
)

CPU_ONLY = shape(cores=1)
SCENARIOS = [
    Scenario(
        "a gang that fits starts whole",
        nodes=nodes(4, gpus=2),
        gangs=[gang("mpi", workers=4, gpus=2)],
        expect=[starts("mpi", 4, on={f"node-{at}": 1 for at in range(4)})],
    ),
    Scenario(
        "one seat short: the whole gang waits",
        nodes=nodes(4, gpus=2),
        gangs=[gang("mpi", workers=5, gpus=2)],
        expect=[waits("mpi", because="asks for 10 GPUs (5 pods x 2 each), but the cluster has 8")],
    ),
    Scenario(
        "a gang that failed starts when a node is added",
        nodes=nodes(4, gpus=2),
        gangs=[gang("mpi", workers=5, gpus=2)],
        expect=[waits("mpi")],
        then=[Turn([arrives(node("node-4", gpus=2))], [starts("mpi", 5)])],
    ),
    Scenario(
        "pods still missing: nothing starts, whatever the room",
        nodes=nodes(4, gpus=2),
        gangs=[gang("mpi", workers=4, gpus=2, exist=3)],
        expect=[waits("mpi", because="3 of 4 pods exist", reason=Reason.INCOMPLETE)],
        then=[Turn([arrives(gang("mpi", workers=4, gpus=2))], [starts("mpi", 4)])],
    ),
    Scenario(
        "a group without any pod says so",
        nodes=nodes(1, gpus=2),
        gangs=[gang("mpi", workers=2, gpus=1, exist=0)],
        expect=[waits("mpi", because="0 of 2 pods exist", reason=Reason.INCOMPLETE)],
    ),
    Scenario(
        "a minimum that its pods can never reach waits and harms nobody",
        nodes=nodes(1, gpus=2),
        gangs=[gang("odd", workers=2, gpus=1, least=5), gang("fine", workers=2, gpus=1)],
        expect=[
            starts("fine", 2),
            waits("odd", because="2 of 5 pods exist", reason=Reason.INCOMPLETE),
        ],
    ),
    Scenario(
        "members beyond the minimum are seated as room comes",
        nodes=nodes(3, gpus=1),
        gangs=[gang("elastic", workers=4, gpus=1, least=2)],
        expect=[
            starts("elastic", 2, who=["elastic-worker-0", "elastic-worker-1"]),
            starts("elastic", 1, who=["elastic-worker-2"]),
            waits("elastic", because="1 pod beyond its minimum: "),
        ],
        then=[
            Turn([arrives(node("node-3", gpus=1))], [starts("elastic", 1)]),
        ],
    ),
    Scenario(
        "every minimum comes before any member beyond one",
        nodes=nodes(4, gpus=1),
        gangs=[
            gang("elastic", workers=4, gpus=1, least=2, age=10),
            gang("rigid", workers=2, gpus=1),
        ],
        expect=[starts("elastic", 2), starts("rigid", 2), waits("elastic", because="beyond")],
    ),
    Scenario(
        "members of higher priority beyond their minimum come after a lower minimum",
        nodes=nodes(4, gpus=1),
        gangs=[
            gang("elastic", workers=4, gpus=1, least=2, priority=9),
            gang("rigid", workers=2, gpus=1),
        ],
        expect=[starts("elastic", 2), starts("rigid", 2), waits("elastic")],
    ),
    Scenario(
        "priority, then age, then name",
        nodes=nodes(1, gpus=1),
        gangs=[
            gang("young", workers=1, gpus=1, age=1),
            gang("old", workers=1, gpus=1, age=2),
            gang("high", workers=1, gpus=1, priority=1),
            gang("aged", workers=1, gpus=1, age=2),
        ],
        expect=[starts("high", 1), waits("aged"), waits("old"), waits("young")],
        then=[
            Turn([vanishes("high")], [starts("aged", 1), waits("old", because="1 job states no")]),
            Turn([vanishes("aged")], [starts("old", 1), waits("young", because="1 job states no")]),
        ],
    ),
    Scenario(
        "of the same second in the order of their names, and numbers in them count as such",
        nodes=nodes(1, gpus=1),
        gangs=[
            gang("job-10", workers=1, gpus=1, facts={"uid": "a"}),
            gang("job-2", workers=1, gpus=1, facts={"uid": "b"}),
            gang("eval", workers=1, gpus=1, facts={"uid": "c"}),
        ],
        expect=[starts("eval", 1), waits("job-2", place=1), waits("job-10", place=2)],
    ),
    Scenario(
        "a smaller gang passes one that does not fit",
        nodes=nodes(2, gpus=2),
        others=[pod("busy", on="node-0", gpus=2)],
        gangs=[gang("big", workers=2, gpus=2, age=5), gang("small", workers=1, gpus=2)],
        expect=[starts("small", 1), waits("big", because="needs 4 GPUs (2 pods x 2 each)")],
    ),
    Scenario(
        "several roles are seated together",
        nodes=[node("gpu-0", gpus=4, cores=8), node("cpu-0", cores=8)],
        gangs=[gang("tf", roles={"ps": (1, shape(cores=6)), "worker": (4, shape(gpus=1))})],
        expect=[starts("tf", 5, on={"cpu-0": 1, "gpu-0": 4})],
    ),
    Scenario(
        "a closed queue starts nothing new and stops nothing that runs",
        nodes=nodes(4, gpus=1),
        queues=[QueueFacts("vision", open=False)],
        gangs=[
            gang("new", workers=1, gpus=1, queue="vision"),
            gang("runs", workers=2, gpus=1, queue="vision", on=["node-0"], started=True),
        ],
        expect=[
            starts("runs", 1),
            waits("new", because="queue vision is closed", reason=Reason.QUEUE_CLOSED),
        ],
        then=[Turn([arrives(QueueFacts("vision"))], [starts("new", 1)])],
    ),
    Scenario(
        "a queue that does not exist",
        nodes=nodes(1, gpus=1),
        gangs=[gang("lost", workers=1, gpus=1, queue="visoin")],
        expect=[waits("lost", because="queue visoin does not exist", reason=Reason.QUEUE_MISSING)],
        then=[Turn([arrives(QueueFacts("visoin"))], [starts("lost", 1)])],
    ),
]
ANNOUNCED = [
    Scenario(
        "the launcher's seat is held when the workers start",
        nodes=[*nodes(4, gpus=2), node("plain")],
        gangs=[gang("mpi", workers=4, gpus=2, launcher=CPU_ONLY)],
        expect=[starts("mpi", 4, holding=[("launcher", "plain")])],
        then=[
            Turn(
                [arrives(gang("mpi", workers=4, gpus=2, launcher=CPU_ONLY, launcher_exists=True))],
                [starts("mpi", who=["mpi-launcher"], on={"plain": 1}, holding=[])],
            )
        ],
    ),
    Scenario(
        "workers never start without room for their launcher",
        nodes=nodes(2, gpus=2, cores=2),
        gangs=[gang("mpi", workers=2, gpus=2, cores=2, launcher=CPU_ONLY)],
        expect=[
            waits(
                "mpi",
                because="asks for 5 cores (2 pods x 2 each and a seat for 1 launcher),"
                " but the cluster has 4",
            )
        ],
    ),
    Scenario(
        "a launcher that is there from the start is seated with the minimum",
        nodes=nodes(1, gpus=8, cores=5),
        gangs=[gang("mpi", workers=6, least=4, gpus=1, launcher=CPU_ONLY, launcher_exists=True)],
        expect=[
            starts("mpi", who=["mpi-launcher", *(f"mpi-worker-{at}" for at in range(4))]),
            waits("mpi", because="2 pods beyond its minimum"),
        ],
    ),
    Scenario(
        "nobody else gets a held seat",
        nodes=nodes(1, gpus=2, cores=3),
        gangs=[
            gang("mpi", workers=2, gpus=1, launcher=CPU_ONLY, age=1),
            gang("thief", workers=1, cores=1),
        ],
        expect=[
            starts("mpi", 2, holding=[("launcher", "node-0")]),
            waits("thief", because="0 of 3 are free, 1 held for team/mpi"),
        ],
        then=[
            Turn(
                [arrives(gang("mpi", workers=2, gpus=1, launcher=CPU_ONLY, launcher_exists=True))],
                [starts("mpi", 1, holding=[])],
            )
        ],
    ),
    Scenario(
        "a launcher that asks more than was announced is placed where there is room",
        nodes=[*nodes(1, gpus=2, cores=3), node("wide", cores=8)],
        others=[pod("squeeze", on="wide", cores=7.5)],
        gangs=[gang("mpi", workers=2, gpus=1, launcher=CPU_ONLY)],
        expect=[starts("mpi", 2, holding=[("launcher", "node-0")])],
        then=[
            Turn(
                [
                    ends("squeeze"),
                    arrives(
                        gang(
                            "mpi", workers=2, gpus=1, launcher=shape(cores=4), launcher_exists=True
                        )
                    ),
                ],
                [starts("mpi", on={"wide": 1}, holding=[])],
            )
        ],
    ),
    Scenario(
        "a hold ends when the member is no longer announced",
        nodes=nodes(1, gpus=2, cores=3),
        gangs=[
            gang("mpi", workers=2, gpus=1, launcher=CPU_ONLY, age=1),
            gang("next", workers=1, cores=1),
        ],
        expect=[starts("mpi", 2, holding=[("launcher", "node-0")]), waits("next")],
        then=[
            Turn(
                [arrives(gang("mpi", workers=2, gpus=1, age=1))],
                [starts("mpi", 0, holding=[]), starts("next", 1)],
            )
        ],
    ),
    Scenario(
        "a hold ends with its gang",
        nodes=nodes(1, gpus=2, cores=3),
        gangs=[
            gang("mpi", workers=2, gpus=1, launcher=CPU_ONLY, age=1),
            gang("next", workers=3, cores=1),
        ],
        expect=[starts("mpi", 2), waits("next")],
        then=[Turn([vanishes("mpi")], [starts("next", 3)])],
    ),
    Scenario(
        "after a restart the written hold stands again",
        nodes=nodes(2, gpus=1, cores=2),
        gangs=[
            gang(
                "mpi",
                workers=2,
                gpus=1,
                on=["node-0", "node-1"],
                launcher=CPU_ONLY,
                holds=[("launcher", "node-1")],
            ),
            gang("thief", workers=2, cores=1),
        ],
        expect=[waits("thief", because="1 held for team/mpi")],
    ),
    Scenario(
        "after a restart a launcher that came meanwhile takes its held seat",
        nodes=nodes(2, gpus=1, cores=2),
        gangs=[
            gang("thief", workers=1, cores=1, priority=100),
            gang(
                "mpi",
                workers=2,
                gpus=1,
                on=["node-0", "node-1"],
                launcher=CPU_ONLY,
                launcher_exists=True,
                holds=[("launcher", "node-1")],
            ),
        ],
        expect=[starts("mpi", on={"node-1": 1}, holding=[]), starts("thief", on={"node-0": 1})],
    ),
    Scenario(
        "after a restart a written hold whose node is gone is placed anew",
        nodes=nodes(2, gpus=1, cores=2),
        gangs=[
            gang(
                "mpi",
                workers=2,
                gpus=1,
                on=["node-0", "node-1"],
                launcher=CPU_ONLY,
                holds=[("launcher", "node-9")],
            )
        ],
        expect=[starts("mpi", 0, holding=[("launcher", "node-0")])],
    ),
    Scenario(
        "after a restart a written hold that no longer fits is placed anew",
        nodes=nodes(2, gpus=1, cores=2),
        others=[pod("rival", on="node-0", cores=1)],
        gangs=[
            gang(
                "mpi",
                workers=2,
                gpus=1,
                on=["node-0", "node-1"],
                launcher=CPU_ONLY,
                holds=[("launcher", "node-0")],
            )
        ],
        expect=[starts("mpi", 0, holding=[("launcher", "node-1")])],
    ),
    Scenario(
        "a hold without any seat beside it is not taken up",
        nodes=nodes(1, gpus=1, cores=1),
        gangs=[
            gang("mpi", workers=2, gpus=1, launcher=CPU_ONLY, holds=[("launcher", "node-0")]),
            gang("other", workers=1, cores=1),
        ],
        expect=[starts("other", 1), waits("mpi")],
    ),
    Scenario(
        "a held seat moves when its node is cordoned",
        nodes=nodes(2, gpus=2, cores=4),
        gangs=[gang("mpi", workers=2, gpus=1, launcher=CPU_ONLY)],
        expect=[starts("mpi", 2, holding=[("launcher", "node-0")])],
        then=[
            Turn(
                [arrives(node("node-0", gpus=2, cores=4, cordoned=True))],
                [starts("mpi", 0, holding=[("launcher", "node-1")])],
            )
        ],
    ),
    Scenario(
        "a held seat that was lost for good makes its gang wait for another",
        nodes=[node("node-0", gpus=2, cores=2), node("plain", cores=1)],
        gangs=[gang("mpi", workers=2, gpus=1, launcher=CPU_ONLY)],
        expect=[starts("mpi", 2, holding=[("launcher", "plain")])],
        then=[
            Turn([leaves("plain")], [waits("mpi", because="a seat for 1 launcher")]),
            Turn([arrives(node("other", cores=1))], [starts("mpi", 0)]),
        ],
    ),
]
BEGUN = [
    Scenario(
        "a running gang gets its replacement seated before a newcomer of any priority",
        nodes=nodes(4, gpus=1),
        gangs=[
            gang("train", workers=4, gpus=1, on=["node-0", "node-1", "node-2"], started=True),
            gang("thief", workers=1, gpus=1, priority=1000),
        ],
        expect=[starts("train", 1, on={"node-3": 1}), waits("thief")],
    ),
    Scenario(
        "a gang left half-bound is completed first",
        nodes=nodes(4, gpus=1),
        gangs=[
            gang("half", workers=4, gpus=1, on=["node-0", "node-1"]),
            gang("thief", workers=2, gpus=1, priority=1000),
        ],
        expect=[starts("half", 2), waits("thief")],
    ),
    Scenario(
        "what fits of a half-bound gang's missing seats is kept from newcomers",
        nodes=nodes(4, gpus=1),
        others=[pod("busy", on="node-3", gpus=1)],
        gangs=[
            gang("half", workers=4, gpus=1, on=["node-0", "node-1"]),
            gang("thief", workers=1, gpus=1),
        ],
        expect=[
            waits("half", because="they need 2 GPUs (2 pods x 1 each), 1 of 4 is free"),
            waits("thief", because="0 of 4 are free, 1 held for team/half"),
        ],
        then=[Turn([ends("busy")], [starts("half", 2), waits("thief", because="0 of 4 are free")])],
    ),
    Scenario(
        "of two half-bound gangs the first in order gets what the other kept",
        nodes=nodes(6, gpus=1),
        others=[pod("busy", on="node-5", gpus=1)],
        gangs=[gang("low", workers=4, gpus=1, on=["node-0"])],
        expect=[starts("low", 3)],
        then=[
            Turn(
                [
                    leaves("node-1"),
                    refused("low-worker-1", "low-worker-2", "low-worker-3"),
                    arrives(pod("more", on="node-2", gpus=1)),
                ],
                [waits("low", because="they need 3 GPUs (3 pods x 1 each), 2 of 5 are free")],
            ),
            Turn(
                [
                    arrives(node("far", gpus=1)),
                    arrives(gang("high", workers=4, gpus=1, on=["far"], priority=1)),
                    ends("busy"),
                ],
                [starts("high", 3), waits("low")],
            ),
        ],
    ),
    Scenario(
        "a gang already running when first seen is owed all its members",
        nodes=nodes(2, gpus=1),
        gangs=[
            gang("elastic", workers=2, gpus=1, least=1, on=["node-0"], started=True),
            gang("thief", workers=1, gpus=1, priority=9),
        ],
        expect=[starts("elastic", 1), waits("thief")],
    ),
    Scenario(
        "a half-bound gang that cannot be completed is let go, and others start",
        nodes=nodes(3, gpus=1),
        others=[pod("busy", on="node-2", gpus=1)],
        policy=Policy(release_after=30),
        gangs=[
            gang("half", workers=3, gpus=1, on=["node-0", "node-1"]),
            gang("small", workers=1, gpus=1),
        ],
        expect=[waits("half"), waits("small")],
        then=[
            Turn(after=29.0),
            Turn(
                after=1.0,
                expect=[
                    releases("half", "half-worker-0", "half-worker-1"),
                    waits("half", because="1 of 3 pods exist", reason=Reason.INCOMPLETE),
                ],
            ),
            Turn([ends("half-worker-0", "half-worker-1")], [starts("small", 1)]),
        ],
    ),
    Scenario(
        "a half-bound gang whose pods nobody recreates keeps its seats and waits",
        nodes=nodes(2, gpus=1),
        others=[pod("busy", on="node-1", gpus=1)],
        gangs=[gang("half", workers=2, gpus=1, on=["node-0"], recreated=False)],
        expect=[waits("half")],
        then=[Turn(after=3600.0), Turn([ends("busy")], [starts("half", 1)])],
    ),
    Scenario(
        "a gang that has run and that nobody would recreate is never let go",
        nodes=nodes(2, gpus=1),
        others=[pod("busy", on="node-1", gpus=1)],
        gangs=[gang("train", workers=2, gpus=1, on=["node-0"], started=True, recreated=False)],
        expect=[waits("train")],
        then=[Turn(after=3600.0), Turn([ends("busy")], [starts("train", 1)])],
    ),
    Scenario(
        "a bind that failed is placed again before others",
        nodes=nodes(2, gpus=1),
        gangs=[gang("mpi", workers=2, gpus=1, age=1), gang("next", workers=1, gpus=1, priority=9)],
        expect=[starts("next", 1), waits("mpi")],
        then=[
            Turn([arrives(node("node-2", gpus=1))], [starts("mpi", 2)]),
            Turn(
                [arrives(gang("third", workers=1, gpus=1, priority=99)), refused("mpi-worker-1")],
                [starts("mpi", 1), waits("third")],
            ),
        ],
    ),
    Scenario(
        "a pod being deleted keeps its room and is no member",
        nodes=nodes(2, gpus=1),
        gangs=[
            gang("mpi", workers=2, gpus=1, on=["node-0"], deleting=1),
            gang("next", workers=1, gpus=1),
        ],
        expect=[
            starts("next", 1, on={"node-1": 1}),
            waits("mpi", because="1 of 2 pods exist", reason=Reason.INCOMPLETE),
        ],
    ),
    Scenario(
        "members that ended well leave a running gang nothing to wait for",
        nodes=nodes(2, gpus=1),
        gangs=[gang("train", workers=2, gpus=1, on=["node-0", "node-1"])],
        then=[
            Turn([ends("train-worker-0"), asks_only("train", 1)]),
            Turn([ends("train-worker-1"), asks_only("train", 0)]),
        ],
    ),
    Scenario(
        "a surplus member never seated does not come before newcomers once its gang runs",
        nodes=nodes(2, gpus=1),
        gangs=[gang("elastic", workers=3, gpus=1, least=1)],
        expect=[starts("elastic", 1), starts("elastic", 1), waits("elastic")],
        then=[
            Turn(
                [
                    arrives(gang("elastic", workers=3, gpus=1, least=1, started=True)),
                    arrives(gang("new", workers=1, gpus=1)),
                    arrives(node("node-2", gpus=1)),
                ],
                [starts("new", 1), waits("elastic")],
            )
        ],
    ),
    Scenario(
        "a surplus member that was seated and lost comes before newcomers",
        nodes=nodes(2, gpus=1),
        gangs=[gang("elastic", workers=2, gpus=1, least=1)],
        expect=[starts("elastic", 1), starts("elastic", 1)],
        then=[
            Turn(
                [
                    arrives(gang("new", workers=1, gpus=1, priority=9)),
                    ends("elastic-worker-1"),
                    arrives(gang("elastic", workers=2, gpus=1, least=1, started=True)),
                ],
                [starts("elastic", 1), waits("new")],
            )
        ],
    ),
]


@pytest.mark.parametrize("scenario", SCENARIOS + ANNOUNCED + BEGUN, ids=lambda each: each.name)
def test_gangs(scenario: Scenario) -> None:
    scenario.play()
