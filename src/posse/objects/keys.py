"""Every annotation and label that Posse declares or honours, each written down once.

`docs/annotations.md` is made from this module: `python -m posse.objects.keys` writes it, and
`python -m posse.objects.keys --check` fails where the two differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

EXPECTS = "posse.dev/expects"
LEADS = "posse.dev/leads"
HELD = "posse.dev/held"
GANG = "posse.dev/gang"
KEEPS = "posse.dev/keeps"
EVICTIONS = "posse.dev/evictions"
OVERTAKEN = "posse.dev/overtaken"
MAX_RUNTIME = "posse.dev/max-runtime"
MIN_RUNTIME = "posse.dev/min-runtime"
CHECKPOINT_INTERVAL = "posse.dev/checkpoint-interval"
START_TIMEOUT = "posse.dev/start-timeout"
NAMESPACES = "posse.dev/namespaces"
RESTARTS = "posse.dev/restarts"
SIMULATED_DURATION = "posse.dev/simulated-duration"
SIMULATED_EXIT_CODE = "posse.dev/simulated-exit-code"
WRITTEN_AS = "posse.dev/written-as"
SIMULATED_LABEL = "posse.dev/simulated"
ISOLATION_LABEL = "posse.dev/isolation"
SHARED_DIRECTORY = "posse.dev/shared-directory"
INSTALLED_LABEL = "posse.dev/installed"

GROUP_NAME = "scheduling.k8s.io/group-name"
VOLCANO_GROUP_NAME = "scheduling.volcano.sh/group-name"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
COSCHEDULING_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
GROUP_MIN_MEMBER = "scheduling.k8s.io/group-min-member"
VOLCANO_GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
NETWORK_TOPOLOGY_MODE = "volcano.sh/network-topology-mode"
NETWORK_TOPOLOGY_TIER = "volcano.sh/network-topology-highest-tier"
BARE_GROUP_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
BARE_MINIMUM_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
TASK_SPEC = "volcano.sh/task-spec"
NODE_GROUP_LABEL = "volcano.sh/nodegroup-name"
PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN_TIME = "volcano.sh/cooldown-time"
OPERATOR_NAME_LABEL = "training.kubeflow.org/operator-name"
JOB_NAME_LABEL = "training.kubeflow.org/job-name"
REPLICA_TYPE_LABEL = "training.kubeflow.org/replica-type"
REPLICA_INDEX_LABEL = "training.kubeflow.org/replica-index"
JOB_ROLE_LABEL = "training.kubeflow.org/job-role"
ROLE_SEQUENCE = "job-role-sequence"
NO_TF_CONFIG = "arena.kubeflow.org/disable-tf-config"


class Annotation(msgspec.Struct, frozen=True):
    """One key: which objects carry it, what its value looks like, and what it means there."""

    key: str
    on: str
    value: str
    meaning: str


OURS: tuple[Annotation, ...] = (
    Annotation(
        EXPECTS,
        "PodGroup",
        'JSON list: `[{"role": "launcher", "count": 1, "requests": {"cpu": "1"}}]`, each entry '
        "with `nodeSelector`, `nodeAffinity` and `tolerations` where the pods will have them",
        "Members that have no pod yet. Written by the controller that will create them; the "
        "scheduler gives them seats together with the members that are there.",
    ),
    Annotation(
        LEADS,
        "PodGroup",
        "a role, such as `launcher`",
        "Where fewer than all members may start, one of this role is among them. Written by the "
        "controller of the job: without the pod that leads, the others would wait for nothing.",
    ),
    Annotation(
        HELD,
        "PodGroup",
        'JSON object, nodes by role: `{"launcher": ["node-3"]}`',
        "Seats that are held for announced members. Written by the scheduler before the gang's "
        "first bind, so that a restart finds them again.",
    ),
    Annotation(
        KEEPS,
        "PodGroup",
        'JSON object: `{"purpose": "repair", "until": "2026-01-02T03:04:05Z", '
        '"seats": {"worker": ["node-3"]}}`; purpose `repair`, `preemption` or `reservation`; '
        '`asks`, of roles that nobody is left of: `{"worker": {"requests": {"nvidia.com/gpu": '
        '"2"}}}`, with `nodeSelector` and `tolerations` where they have them',
        "Seats that nobody else is given: of a member that died, of victims that were ended for "
        "the gang, or gathered for one that waited too long. Written by the scheduler.",
    ),
    Annotation(
        EVICTIONS,
        "PodGroup",
        "a whole number",
        "How often the gang was ended to make room for others. Written by the scheduler; a gang "
        "that was a victim too often is spared.",
    ),
    Annotation(
        OVERTAKEN,
        "PodGroup",
        "a whole number",
        "How many gangs behind it in order started before it. Written by the scheduler; after "
        "too many, room is gathered for it.",
    ),
    Annotation(
        MAX_RUNTIME,
        "a job, a PodGroup, a pod",
        "a Go duration: `90m`, `12h`",
        "How long the job runs at most once it has started: an estimate that lets others start "
        "around it, not a limit. Without it `activeDeadlineSeconds` or `runningEstimate` is used.",
    ),
    Annotation(
        MIN_RUNTIME,
        "a job, a PodGroup, a pod",
        "a Go duration",
        "The gang is not ended for others before it has run this long.",
    ),
    Annotation(
        CHECKPOINT_INTERVAL,
        "a job, a PodGroup, a pod",
        "a Go duration",
        "The job saves its work this often: no more than that is lost when it ends early, so it "
        "costs less than others as a victim.",
    ),
    Annotation(
        START_TIMEOUT,
        "a job, a PodGroup, a pod",
        "a Go duration",
        "How long the gang may take from having its nodes to running whole before it is let go.",
    ),
    Annotation(
        NAMESPACES,
        "Queue",
        "names, `team-a,team-b`, or a label selector, `team=vision`",
        "The namespaces whose jobs may use the queue, and those below it that do not say; all of "
        "them where nobody says. A text that is neither shuts the queue to all new work.",
    ),
    Annotation(
        GANG,
        "a job, a pod",
        '`"false"`',
        "Turns gang scheduling off: every pod is a group of its own.",
    ),
    Annotation(
        RESTARTS,
        "a job",
        'JSON object: `{"train-worker-0": [2, "<uid>"]}`',
        "How often each replica had to come back, and the pod that was counted last. Written by "
        "the controller before it replaces a pod, so that `backoffLimit` counts all of them.",
    ),
    Annotation(
        SIMULATED_DURATION,
        "a pod on a simulated node",
        "a Go duration: `90s`, `1h30m`",
        "How long the pod runs before it ends. Without it the pod runs until it is deleted.",
    ),
    Annotation(
        SIMULATED_EXIT_CODE,
        "a pod on a simulated node",
        "a number from 0 to 255",
        "The exit code with which the pod's containers end; 0 where it is absent.",
    ),
    Annotation(
        WRITTEN_AS,
        "a job",
        "an API version: `kubeflow.org/v1`",
        "The version in which the user wrote the job. Versions of one kind are stored alike, and "
        "their defaults differ.",
    ),
    Annotation(
        SIMULATED_LABEL,
        "a node (label)",
        '`"true"`',
        "The node runs nothing: its pods only reach the states that they would reach.",
    ),
    Annotation(
        ISOLATION_LABEL,
        "a node (label)",
        "`namespaces` or `none`",
        "The node's pods are processes of a machine, kept apart by Linux namespaces or not at all.",
    ),
    Annotation(
        SHARED_DIRECTORY,
        "a node that is this machine",
        "an absolute path",
        "A directory that every pod of the node may mount by hostPath: what the pods of a job "
        "share, such as the logs that its TensorBoard reads.",
    ),
    Annotation(
        INSTALLED_LABEL,
        "what an installation consists of (label)",
        '`"true"`',
        "Made by an installation of Posse: an upgrade may change it, and `posse uninstall` may "
        "remove it. Objects of the same names without it are somebody else's and are left alone.",
    ),
)

HONOURED: tuple[Annotation, ...] = (
    Annotation(
        GROUP_NAME,
        "a pod (annotation)",
        "the name of a PodGroup in the pod's namespace",
        "The gang to which the pod belongs.",
    ),
    Annotation(
        VOLCANO_GROUP_NAME,
        "a pod (annotation)",
        "the name of a PodGroup in the pod's namespace",
        f"The same; `{GROUP_NAME}` is asked first.",
    ),
    Annotation(
        COSCHEDULING_GROUP_LABEL,
        "a pod (label)",
        "the name of a PodGroup in the pod's namespace",
        "The same, as the scheduler-plugins link a pod to its group.",
    ),
    Annotation(
        BARE_GROUP_LABEL,
        "a pod (label)",
        "a name",
        "The gang to which the pod belongs, which has no object of its own.",
    ),
    Annotation(
        BARE_MINIMUM_LABEL,
        "a pod (label)",
        "a whole number",
        f"How many pods of the gang named by `{BARE_GROUP_LABEL}` start together.",
    ),
    Annotation(
        GROUP_MIN_MEMBER,
        "a pod that has a controller and names no group (annotation)",
        "a whole number",
        "How many pods of that controller start together, as kube-batch reads it.",
    ),
    Annotation(
        VOLCANO_GROUP_MIN_MEMBER,
        "a pod that has a controller and names no group (annotation)",
        "a whole number",
        "The same. Volcano reads it from the controller; here it belongs into the pod template.",
    ),
    Annotation(
        NETWORK_TOPOLOGY_TIER,
        "a pod of such a gang without an object (annotation)",
        "a tier: `1`",
        "The gang sits in one domain of this tier, as with `highestTierAllowed` of a PodGroup.",
    ),
    Annotation(
        NETWORK_TOPOLOGY_MODE,
        "a pod of such a gang without an object (annotation)",
        "`hard` (where nothing else is said) or `soft`",
        "Whether it must, or only should; without a tier it sits as near as there is room.",
    ),
    Annotation(
        QUEUE_NAME,
        "a pod, a namespace, a PodGroup of an API without queues (annotation)",
        "the name of a Queue",
        "The queue of a pod without a group, or of a namespace's jobs that name none.",
    ),
    Annotation(
        NODE_GROUP_LABEL,
        "a node (label)",
        "a name",
        "The group of nodes it is of, which queues may keep to or keep off (`spec.affinity`).",
    ),
    Annotation(
        TASK_SPEC,
        "a pod (annotation or label)",
        "a role: `worker`",
        f"The pod's role in its gang; the label `{REPLICA_TYPE_LABEL}` is asked next.",
    ),
    Annotation(
        COOLDOWN_TIME,
        "a pod (annotation or label)",
        "a duration: `10m`",
        f"Without `{MIN_RUNTIME}`: its gang is not ended for others before it ran for so long.",
    ),
    Annotation(
        PREEMPTABLE,
        "a job, a PodGroup, a pod",
        "`true` or `false`",
        "`false`: the gang, or the pod, is not ended for others, neither by preemption nor by"
        " reclaim; a gang with such a pod is not ended as a whole.",
    ),
    Annotation(
        OPERATOR_NAME_LABEL,
        "a pod, a service (label)",
        "`mpi-operator`, `tfjob-controller`",
        "The controller that made the object.",
    ),
    Annotation(
        JOB_NAME_LABEL,
        "a pod, a service (label)",
        "the job's name",
        "The job to which the object belongs.",
    ),
    Annotation(
        REPLICA_TYPE_LABEL,
        "a pod, a service (label)",
        "a role in lower case: `worker`",
        "The role of the pod in its job.",
    ),
    Annotation(
        REPLICA_INDEX_LABEL,
        "a pod, a service (label)",
        "a number from 0",
        "The place of the pod in its role.",
    ),
    Annotation(
        JOB_ROLE_LABEL,
        "a pod (label)",
        "`launcher`, `worker`, `master`",
        "The part that the pod plays in its job, where that differs from its type.",
    ),
    Annotation(
        ROLE_SEQUENCE,
        "a TFJob (annotation)",
        "roles: `Worker,PS,Chief,Evaluator`",
        "The order in which the pods are created.",
    ),
    Annotation(
        NO_TF_CONFIG,
        "a TFJob (annotation)",
        '`"true"`',
        "The pods get no TF_CONFIG.",
    ),
)


def rendered() -> str:
    """The text of `docs/annotations.md`."""
    return "\n".join(
        (
            "# Annotations and labels",
            "",
            "<!-- Made by `python -m posse.objects.keys`; edit that module instead. -->",
            "",
            "## Posse's own",
            "",
            *_table(OURS),
            "",
            "## Those of others that Posse reads or writes",
            "",
            *_table(HONOURED),
            "",
        )
    )


def _table(keys: tuple[Annotation, ...]) -> list[str]:
    rows = [f"| `{key.key}` | {key.on} | {key.value} | {key.meaning} |" for key in keys]
    return ["| key | on | value | meaning |", "|---|---|---|---|", *rows]


def main(arguments: list[str]) -> int:
    path = Path("docs/annotations.md")
    if "--check" not in arguments:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(), encoding="utf-8")
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == rendered():
        return 0
    print(f"{path} is not what posse.objects.keys says; run python -m posse.objects.keys")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
