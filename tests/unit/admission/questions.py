"""Requests to be reviewed, and those who are asked meanwhile."""

from __future__ import annotations

from typing import Any

from posse.admission.lookups import Access
from posse.admission.review import Stage, review
from posse.admission.wire import AdmissionRequest, GroupVersionKind, Review, UserInfo
from posse.kube.errors import KubeError, Unreachable
from posse.objects.keys import QUEUE_NAME
from posse.objects.kinds import MPI_JOB, NAMESPACE, POD_GROUP, QUEUE, TF_JOB, Kind

Object = dict[str, Any]


class Known:
    """A reader of what it was given; `broken`: nobody can say anything about these kinds."""

    def __init__(self, *objects: tuple[Kind, Object], broken: tuple[Kind, ...] = ()) -> None:
        self.objects = {(kind, obj["metadata"]["name"]): obj for kind, obj in objects}
        self.broken = broken
        self.asked: list[tuple[Kind, str]] = []

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        self.asked.append((kind, name))
        if kind in self.broken:
            raise Unreachable("no answer")
        return self.objects.get((kind, name))

    async def list(self, kind: Kind) -> list[Object]:
        if kind in self.broken:
            raise Unreachable("no answer")
        return [obj for (one, _), obj in self.objects.items() if one == kind]


class Rights:
    """Allows who is named here; an error where there is one to give."""

    def __init__(self, *users: str, error: KubeError | None = None) -> None:
        self.users = users
        self.error = error
        self.asked: list[Access] = []

    async def allows(self, user: UserInfo, access: Access) -> bool:
        self.asked.append(access)
        if self.error is not None:
            raise self.error
        return user.username in self.users


def queue(name: str, state: str = "Open", **spec: Any) -> tuple[Kind, Object]:
    return QUEUE, {"metadata": {"name": name}, "spec": spec, "status": {"state": state}}


def namespace(name: str, queue: str) -> tuple[Kind, Object]:
    return NAMESPACE, {"metadata": {"name": name, "annotations": {QUEUE_NAME: queue}}}


def template(container: str = "main", **fields: Any) -> Object:
    return {"spec": {"containers": [{"name": container, "image": "train"} | fields]}}


def mpi_job(
    workers: int | None = 2, name: str = "train", run: Object | None = None, **spec: Any
) -> Object:
    return {
        "apiVersion": MPI_JOB.api_version,
        "kind": MPI_JOB.kind,
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {
            "runPolicy": run or {},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": template()},
                "Worker": {"replicas": workers, "template": template()},
            },
        }
        | spec,
    }


def tf_job(
    workers: int = 2, version: str = "v1", run: Object | None = None, **metadata: Any
) -> Object:
    return {
        "apiVersion": f"{TF_JOB.group}/{version}",
        "kind": TF_JOB.kind,
        "metadata": {"name": "train", "namespace": "ns"} | metadata,
        "spec": {
            "runPolicy": run or {},
            "tfReplicaSpecs": {
                "Worker": {"replicas": workers, "template": template("tensorflow")},
            },
        },
    }


def pod_group(min_member: int = 2, metadata: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": POD_GROUP.api_version,
        "kind": POD_GROUP.kind,
        "metadata": {"name": "train", "namespace": "ns"} | (metadata or {}),
        "spec": {"minMember": min_member} | spec,
    }


def in_queue(name: str) -> Object:
    return {"schedulingPolicy": {"queue": name}}


def asking(
    obj: Object | None,
    *,
    old: Object | None = None,
    operation: str = "",
    user: str = "ann",
    written: str = "",
    sub_resource: str = "",
) -> AdmissionRequest:
    """A creation; an update where there is an old object; a deletion where there is only that."""
    shown = obj if obj is not None else old
    assert shown is not None
    group, _, version = shown["apiVersion"].rpartition("/")
    kind = GroupVersionKind(group, version, shown["kind"])
    was = GroupVersionKind(group, written, shown["kind"]) if written else None
    if not operation:
        operation = "DELETE" if obj is None else "CREATE" if old is None else "UPDATE"
    metadata = shown.get("metadata") or {}
    return AdmissionRequest(
        uid="question-1",
        kind=kind,
        request_kind=was,
        operation=operation,
        sub_resource=sub_resource,
        name=metadata.get("name") or "",
        namespace=metadata.get("namespace") or "",
        user_info=UserInfo(username=user, groups=["system:authenticated"]),
        object=obj,
        old_object=old,
    )


async def answer(
    request: AdmissionRequest,
    reader: Known | None = None,
    rights: Rights | None = None,
    stage: Stage = Stage.WHOLE,
) -> Review:
    return await review(request, reader or Known(), rights or Rights(), stage)


def fields(review: Review) -> list[str]:
    return [cause.field for cause in review.causes]


def patched(review: Review) -> dict[str, Any]:
    return {operation["path"]: operation.get("value") for operation in review.patch}
