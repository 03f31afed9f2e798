from __future__ import annotations

from posse.cli.formats import output_option, type_option
from posse.cli.grammar import switch
from posse.cli.layout import columns, document, short_age
from posse.cli.options import App, verb
from posse.client.jobs import FINISHED, TrainingJob
from posse.client.training import as_document


@verb("list")
@switch("-A", "--all-namespaces", help="Of every namespace.")
@type_option
@output_option
def list_(app: App, all_namespaces: bool, type_: str | None, output: str) -> None:
    """List training jobs."""
    with app.client() as client:
        jobs = client.jobs(type_, all_namespaces=all_namespaces)
    if output in ("json", "yaml"):
        app.show(document([as_document(job) for job in jobs], output))
    elif output == "name":
        for job in jobs:
            app.show(job.name)
    else:
        app.show(_table(jobs, all_namespaces))


def _table(jobs: list[TrainingJob], with_namespace: bool) -> str:
    head = ("NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE")
    rows: list[tuple[object, ...]] = [(*(("NAMESPACE",) if with_namespace else ()), *head)]
    for job in jobs:
        allocated = "N/A" if job.status in FINISHED else job.allocated_gpus
        rows.append(
            (
                *((job.namespace,) if with_namespace else ()),
                job.name,
                job.status,
                job.trainer.upper(),
                short_age(job.duration),
                job.requested_gpus,
                allocated,
                job.node,
            )
        )
    return columns(rows)
