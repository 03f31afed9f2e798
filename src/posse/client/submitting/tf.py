"""TFJob as Arena's users ask for it: workers, parameter servers, chief, evaluator; one gang."""

from __future__ import annotations

from typing import Any

import msgspec

from posse.client.errors import PosseError
from posse.client.submitting.placing import affinity
from posse.client.submitting.template import (
    JobRequest,
    check,
    check_amounts,
    job_metadata,
    pod_template,
    scheduling,
)
from posse.client.submitting.tensorboard import companions
from posse.objects import keys
from posse.objects.kinds import TF_JOB
from posse.objects.times import parse_duration

CONTAINER = "tensorflow"
PORT_NAME = "tfjob-port"
ROLES = ("Worker", "PS", "Chief", "Evaluator")

_CLEAN_POLICIES = ("Running", "None", "All")
_SUCCESS_POLICIES = {"ChiefWorker": "", "AllWorkers": "AllWorkers"}


class TFRole(msgspec.Struct, kw_only=True):
    """What one role asks for where it differs from the job; "" leaves it to the job."""

    image: str = ""
    port: int = 0
    cpu: str = ""
    cpu_limit: str = ""
    memory: str = ""
    memory_limit: str = ""
    selectors: dict[str, str] = {}
    affinity_policy: str = "none"
    affinity_constraint: str = "preferred"


class TFJob(JobRequest, kw_only=True):
    """`TFJob(name="mnist", image="tf:2", workers=4, ps=1, gpus=1, command="python train.py")`

    Durations are Go's: `90s`, `1h30m`.
    """

    ps: int = 0
    ps_gpus: int = 0
    chief: bool = False
    evaluator: bool = False
    roles: dict[str, TFRole] = msgspec.field(default_factory=dict)
    role_sequence: str = ""
    success_policy: str = "ChiefWorker"
    clean_task_policy: str = "Running"
    running_timeout: str = ""
    starting_timeout: str = ""
    ttl_after_finished: str = ""
    share_memory: str = "2Gi"

    def manifest(self) -> dict[str, Any]:
        self._check()
        metadata = job_metadata(self, "tfjob")
        if self._standalone:
            metadata["annotations"][keys.NO_TF_CONFIG] = "true"
        if sequence := _sequence(self.role_sequence):
            metadata["annotations"][keys.ROLE_SEQUENCE] = sequence
        return {
            "apiVersion": TF_JOB.api_version,
            "kind": TF_JOB.kind,
            "metadata": metadata,
            "spec": {
                "runPolicy": self._run_policy(),
                "successPolicy": _SUCCESS_POLICIES[self.success_policy],
                "tfReplicaSpecs": {
                    type_: {
                        "replicas": count,
                        "restartPolicy": "OnFailure" if self.retry else "Never",
                        "template": self._template(type_),
                    }
                    for type_, count in self._counts().items()
                    if count
                },
            },
        }

    def companions(self) -> list[dict[str, Any]]:
        """What belongs to the job and goes with it."""
        return companions(self)

    @property
    def _standalone(self) -> bool:
        """One process that needs nobody else: it is the chief of itself."""
        return self.ps == 0 and self.workers == 1

    def _counts(self) -> dict[str, int]:
        return {
            "Chief": int(self.chief or self._standalone),
            "PS": self.ps,
            "Worker": 0 if self._standalone else self.workers,
            "Evaluator": int(self.evaluator),
        }

    def _role(self, type_: str) -> TFRole:
        return self.roles.get(type_, TFRole())

    def _image(self, type_: str) -> str:
        worker = self._role("Worker").image or self.image
        own = self._role(type_).image
        return own or (self.image if type_ == "PS" else worker)

    def _template(self, type_: str) -> dict[str, Any]:
        role = self._role(type_)
        serves = type_ == "PS"
        asked = msgspec.structs.replace(
            self,
            image=self._image(type_),
            cpu=role.cpu or self.cpu,
            memory=role.memory or self.memory,
            gpus=self.ps_gpus if serves else self.gpus,
            devices={} if serves else self.devices,
            selectors=role.selectors or self.selectors,
        )
        template = pod_template(asked, CONTAINER, command=True, devices=True)
        spec, main = template["spec"], template["spec"]["containers"][0]
        limits = main["resources"].setdefault("limits", {})
        limits |= {
            resource: amount
            for resource, amount in (("cpu", role.cpu_limit), ("memory", role.memory_limit))
            if amount
        }
        if not limits:
            main["resources"] = {}
        if port := role.port or _PORTS.get(type_, 0):
            main["ports"] = [{"name": PORT_NAME, "containerPort": port}]
        if self.share_memory:
            shared = {"medium": "Memory", "sizeLimit": self.share_memory}
            spec["volumes"] = [*spec["volumes"], {"name": "dshm", "emptyDir": shared}]
            main["volumeMounts"] = [
                *main["volumeMounts"],
                {"name": "dshm", "mountPath": "/dev/shm"},
            ]
        if near := affinity(self.name, type_, role.affinity_policy, role.affinity_constraint):
            spec["affinity"] = near
        return template

    def _run_policy(self) -> dict[str, Any]:
        policy: dict[str, Any] = {
            "cleanPodPolicy": self.clean_task_policy,
            "backoffLimit": self.retry,
        }
        if limit := _seconds("--running-timeout", self.running_timeout):
            policy["activeDeadlineSeconds"] = limit
        if self.ttl_after_finished:
            ttl = _seconds("--ttl-after-finished", self.ttl_after_finished)
            policy["ttlSecondsAfterFinished"] = ttl
        placed = scheduling(self)
        if patience := _seconds("--starting-timeout", self.starting_timeout):
            placed["scheduleTimeoutSeconds"] = patience
        if placed:
            policy["schedulingPolicy"] = placed
        return policy

    def _check(self) -> None:
        check(self, fewest_workers=0 if self.chief else 1)
        for flag, number in (("--ps", self.ps), ("--ps-gpus", self.ps_gpus)):
            if number < 0:
                raise PosseError(f"{flag} must be 0 or more, not {number}")
        if self.clean_task_policy not in _CLEAN_POLICIES:
            raise PosseError(
                f"--clean-task-policy must be Running, None or All, not {self.clean_task_policy!r}"
            )
        if self.success_policy not in _SUCCESS_POLICIES:
            raise PosseError(
                f"--success-policy must be ChiefWorker or AllWorkers, not {self.success_policy!r}"
            )
        for type_, count in self._counts().items():
            if count and not self._image(type_):
                own = "--ps-image" if type_ == "PS" else "--worker-image"
                raise PosseError(f"--image or {own} must be set")
        for type_ in ROLES:
            self._check_role(type_)
        check_amounts([("--share-memory", "memory", self.share_memory)])

    def _check_role(self, type_: str) -> None:
        role, flag = self._role(type_), f"--{type_.lower()}"
        if not 0 <= role.port <= 65535:
            raise PosseError(f"{flag}-port must be from 1 to 65535, not {role.port}")
        check_amounts(
            [
                (f"{flag}-cpu", "cpu", role.cpu),
                (f"{flag}-cpu-limit", "cpu", role.cpu_limit),
                (f"{flag}-memory", "memory", role.memory),
                (f"{flag}-memory-limit", "memory", role.memory_limit),
            ]
        )


# As Arena's documents have them; whoever has none gets the controller's own.
_PORTS = {"Worker": 22222, "PS": 22223, "Chief": 22222}


def _sequence(text: str) -> str:
    """Whole names of the roles; one letter is enough to write one."""
    roles = []
    for word in filter(None, (part.strip().lower() for part in text.split(","))):
        known = [role for role in ROLES if word in (role.lower(), role[0].lower())]
        if not known:
            raise PosseError(
                f"--role-sequence takes Worker, PS, Chief and Evaluator, or w,p,c,e, not {word!r}"
            )
        roles += known
    return ",".join(roles)


def _seconds(flag: str, text: str) -> int:
    if not text:
        return 0
    try:
        seconds = int(parse_duration(text))
    except ValueError as error:
        raise PosseError(f"{flag}: {error}") from error
    if seconds < 0:
        raise PosseError(f"{flag} must not be negative, not {text}")
    return seconds
