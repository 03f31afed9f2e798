"""What is wrong with a job, in the API's own words."""

from __future__ import annotations

from collections.abc import Iterable

from posse.objects.errors import FORBIDDEN, FieldError
from posse.objects.jobs.policies import run_policy_problems
from posse.objects.jobs.replicas.spec import MOST_REPLICAS, Job, Replicas
from posse.objects.jobs.templates import template_problems
from posse.objects.jobs.wrongs import invalid, one_of, required
from posse.objects.names import dns_1035_label_problems

RESTART_POLICIES = ("Always", "ExitCode", "Never", "OnFailure")


def problems(job: Job) -> list[FieldError]:
    """Every reason why this job can never run; empty for a sound one."""
    specs = f"spec.{job.declared.specs}"
    return [
        *_name_problems(job),
        *_role_problems(job, specs),
        *(
            problem
            for replicas in job.replicas
            for problem in _replica_problems(job, replicas, f"{specs}[{replicas.type}]")
        ),
        *run_policy_problems(job.run, job.clean_pod_policy),
        *job.declared.problems(job),
    ]


def _name_problems(job: Job) -> Iterable[FieldError]:
    """The longest name that the job gives to a pod must do as the name of its Service."""
    if wrong := dns_1035_label_problems(job.name):
        yield invalid("metadata.name", job.name, ", ".join(wrong))
        return
    names = [job.member_name(one, one.count - 1) for one in job.replicas if one.count > 0]
    longest = max(names, key=len, default=job.name)
    if wrong := dns_1035_label_problems(longest):
        yield invalid(
            "metadata.name",
            job.name,
            f"its pods and services cannot be named: {longest!r} is no DNS label: "
            + ", ".join(wrong),
        )


def _role_problems(job: Job, path: str) -> Iterable[FieldError]:
    known = [role.type for role in job.declared.roles]
    if not job.replicas and not job.strays:
        yield required(path, "must be specified")
    for stray in job.strays:
        if job.declared.role(stray) is None:
            yield from one_of(path, stray, known)
        else:
            yield invalid(path, stray, "this role is there already, in other letters")
    leading = [role.type for role in job.declared.roles if role.leads]
    if len([one for one in job.replicas if one.type in leading]) > 1:
        why = f"must not have more than 1 {' or '.join(leading)} role"
        yield FieldError(path, FORBIDDEN, f"Forbidden: {why}")


def _replica_problems(job: Job, replicas: Replicas, path: str) -> Iterable[FieldError]:
    yield from one_of(f"{path}.restartPolicy", replicas.restart_policy, RESTART_POLICIES)
    if replicas.count < 0:
        yield invalid(f"{path}.replicas", replicas.count, "must be greater than or equal to 0")
    elif replicas.count > MOST_REPLICAS:
        why = f"must be less than or equal to {MOST_REPLICAS}"
        yield invalid(f"{path}.replicas", replicas.count, why)
    wrong = list(template_problems(replicas.template, f"{path}.template"))
    yield from wrong
    if wrong:
        return
    containers = replicas.template["spec"]["containers"]
    for index, container in enumerate(containers):
        if not container.get("image"):
            at = f"{path}.template.spec.containers[{index}].image"
            yield required(at, "must be required")
    name = job.declared.container
    if not any(container.get("name") == name for container in containers):
        at = f"{path}.template.spec.containers"
        yield required(at, f"must have at least one container with name {name}")
