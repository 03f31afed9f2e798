"""Who may do what: least privilege, as data.

No rule has a '*'. What only some job kinds need is a role of its own, which comes and goes with
them; secrets are in the one for ssh keys alone, and cannot be listed. get, list and watch are given
together, since whoever may watch a kind sees all of it; each way of writing is given by itself, and
only where some program writes in that way. The webhook brings its own role, in which one Secret is
named.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from posse.client.installing.marking import metadata
from posse.client.installing.options import Options
from posse.controllers.program import LEASE_NAME as CONTROLLERS
from posse.objects.kinds import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    HYPER_NODE,
    MPI_JOB,
    NATIVE_POD_GROUPS,
    POD_GROUP,
    POD_GROUPS,
    QUEUE,
    STORAGE_CLASS,
    TF_JOB,
    WORKLOAD,
    Kind,
)
from posse.scheduler.config import LEASE_NAME as SCHEDULER

_RBAC = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete", "deletecollection")
JOB_KINDS = (MPI_JOB, TF_JOB)
VIEW, EDIT = "posse-view", "posse-edit"


class Rule(msgspec.Struct, frozen=True):
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {
            "apiGroups": [self.group],
            "resources": list(self.resources),
            **({"resourceNames": list(self.names)} if self.names else {}),
            "verbs": list(self.verbs),
        }


_EVENTS = Rule("", ("events",), ("create", "patch"))
_GROUPS_OF_GANGS = tuple(kind.group for kind in POD_GROUPS)
_NATIVE = NATIVE_POD_GROUPS[0].group

SCHEDULER_RULES: tuple[Rule, ...] = (
    Rule("", ("nodes",), READ),
    # A queue may be for the namespaces that have a label.
    Rule("", ("namespaces",), READ),
    # Where volumes are, and where they can be made; a claim that waits for its pod gets its node.
    Rule("", ("persistentvolumes", "persistentvolumeclaims"), (*READ, "patch")),
    Rule(
        STORAGE_CLASS.group,
        tuple(k.plural for k in (STORAGE_CLASS, CSI_NODE, CSI_DRIVER, CSI_STORAGE_CAPACITY)),
        READ,
    ),
    # Deleting is the fallback of a release, where eviction is not to be had.
    Rule("", ("pods",), (*READ, "delete")),
    Rule("", ("pods/binding", "pods/eviction"), ("create",)),
    Rule("", ("pods/status",), ("patch",)),
    _EVENTS,
    Rule("scheduling.k8s.io", ("priorityclasses",), READ),
    # Whom not to end for others.
    Rule("policy", ("poddisruptionbudgets",), READ),
    Rule(WORKLOAD.group, (WORKLOAD.plural,), READ),
    Rule(QUEUE.group, ("queues",), READ),
    Rule(QUEUE.group, ("queues/status",), ("patch",)),
    # Where it is served: the domains of the network.
    Rule(HYPER_NODE.group, ("hypernodes",), READ),
    *(
        rule
        for group in (*_GROUPS_OF_GANGS, _NATIVE)
        for rule in (
            Rule(group, ("podgroups",), (*READ, "patch")),
            Rule(group, ("podgroups/status",), ("patch",)),
        )
    ),
)

CONTROLLERS_RULES: tuple[Rule, ...] = (
    Rule("", ("pods",), (*READ, "create", "delete")),
    Rule("", ("services",), (*READ, "create", "patch")),
    _EVENTS,
    # Which may name the queue of jobs that name none.
    Rule("", ("namespaces",), ("get",)),
    Rule(POD_GROUP.group, ("podgroups",), (*READ, "create", "patch", "delete")),
    # A group that the user made in an older dialect is looked for, by name, and used.
    *(Rule(group, ("podgroups",), ("get",)) for group in _GROUPS_OF_GANGS[1:]),
)

SSH = "ssh"
FEATURES: dict[str, tuple[Rule, ...]] = {
    MPI_JOB.kind: (
        Rule(MPI_JOB.group, ("mpijobs",), (*READ, "delete")),
        Rule(MPI_JOB.group, ("mpijobs/status", "mpijobs/finalizers"), ("update",)),
        Rule("", ("configmaps",), (*READ, "create", "patch")),
        Rule("batch", ("jobs",), (*READ, "create", "patch", "delete")),
    ),
    TF_JOB.kind: (
        Rule(TF_JOB.group, ("tfjobs",), (*READ, "patch", "delete")),
        Rule(TF_JOB.group, ("tfjobs/status", "tfjobs/finalizers"), ("update",)),
        Rule("", ("services",), ("delete",)),
    ),
    SSH: (Rule("", ("secrets",), ("get", "create")),),
}
"""What a job kind needs beyond what all of them do, and what its options need beyond that."""

_NEEDS = {MPI_JOB.kind: (SSH,)}

USER_RULES: dict[str, tuple[Rule, ...]] = {
    VIEW: (
        *(Rule(kind.group, (kind.plural, f"{kind.plural}/status"), READ) for kind in JOB_KINDS),
        *(Rule(group, ("podgroups", "podgroups/status"), READ) for group in _GROUPS_OF_GANGS),
        Rule(QUEUE.group, ("queues",), READ),
    ),
    EDIT: (
        *(Rule(kind.group, (kind.plural,), WRITE) for kind in JOB_KINDS),
        *(Rule(group, ("podgroups",), WRITE) for group in _GROUPS_OF_GANGS),
    ),
}


def features_of(kinds: Iterable[str]) -> list[str]:
    """The features that these kinds need, each once."""
    wanted: dict[str, None] = {}
    for kind in kinds:
        wanted |= dict.fromkeys((kind, *_NEEDS.get(kind, ())))
    return list(wanted)


def roles(options: Options) -> list[dict[str, Any]]:
    made = [
        *_granted("scheduler", SCHEDULER, SCHEDULER_RULES, options),
        *_leases("scheduler", SCHEDULER, options),
    ]
    if options.kinds:
        made += _granted("controllers", CONTROLLERS, CONTROLLERS_RULES, options)
        for feature in features_of(options.kinds):
            name = f"{CONTROLLERS}-{feature.lower()}"
            made += _granted("controllers", name, FEATURES[feature], options)
        made += _leases("controllers", CONTROLLERS, options)
    return [*made, *user_roles()]


def user_roles() -> list[dict[str, Any]]:
    """What people may do who have `view` or `edit` in a namespace: no binding is needed."""
    made = []
    for name, rules in USER_RULES.items():
        role = cluster_role(name, "users", rules)
        role["metadata"]["labels"] |= {
            f"{_RBAC}/aggregate-to-{to}": "true"
            for to in (("view", "edit", "admin") if name == VIEW else ("edit", "admin"))
        }
        made.append(role)
    return made


def cluster_role(name: str, component: str, rules: Iterable[Rule]) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": metadata(name, component=component),
        "rules": [rule.document() for rule in rules],
    }


def cluster_binding(name: str, component: str, account: str, namespace: str) -> dict[str, Any]:
    """The ClusterRole `name` for the account, in the whole cluster."""
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata(name, component=component),
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [_subject(account, namespace)],
    }


def _granted(
    component: str, name: str, rules: Iterable[Rule], options: Options
) -> list[dict[str, Any]]:
    return [
        cluster_role(name, component, rules),
        cluster_binding(name, component, f"posse-{component}", options.namespace),
    ]


def _leases(component: str, lease: str, options: Options) -> list[dict[str, Any]]:
    """Its own lease, by name; only creating cannot be tied to one."""
    rules = (
        Rule("coordination.k8s.io", ("leases",), ("get", "update"), (lease,)),
        Rule("coordination.k8s.io", ("leases",), ("create",)),
    )
    place = metadata(lease, component=component, namespace=options.namespace)
    return [
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": place,
            "rules": [rule.document() for rule in rules],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": place,
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": lease},
            "subjects": [_subject(f"posse-{component}", options.namespace)],
        },
    ]


def _subject(account: str, namespace: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": account, "namespace": namespace}


def kind_named(name: str) -> Kind:
    return next(kind for kind in JOB_KINDS if kind.kind == name)
