from __future__ import annotations

import click

from posse.cli.formats import output_option, type_option
from posse.cli.grammar import switch
from posse.cli.layout import columns, document, local_time, short_age
from posse.cli.options import App, verb
from posse.client.jobs import TrainingJob
from posse.client.training import as_document


@verb("get")
@click.argument("job")
@switch("-e", "--events", help="Also print the events of the job.")
@type_option
@output_option
def get(app: App, job: str, type_: str | None, output: str, events: bool) -> None:
    """Show a training job and its instances."""
    with app.client() as client:
        found = client.get(job, type_)
        happened = client.events(job, type_) if events else []
    if output == "name":
        app.show(found.name)
    elif output in ("json", "yaml"):
        app.show(document(as_document(found), output))
    else:
        app.show(_page(found))
        if events:
            rows = [("SOURCE", "TYPE", "AGE", "MESSAGE"), ("------", "----", "---", "-------")]
            rows += [(e.source, e.type, short_age(e.age), e.message) for e in happened]
            app.show("\nEvents:\n" + columns(rows, "  "))


def _page(job: TrainingJob) -> str:
    head = columns(
        [
            ("Name:", job.name),
            ("Status:", job.status),
            ("Namespace:", job.namespace),
            ("Priority:", job.priority),
            ("Trainer:", job.trainer.upper()),
            ("Duration:", short_age(job.duration)),
            ("CreateTime:", local_time(job.created)),
            ("EndTime:", local_time(job.ended)),
        ]
    )
    rows: list[tuple[object, ...]] = [
        ("NAME", "STATUS", "AGE", "IS_CHIEF", "GPU(Requested)", "NODE"),
        ("----", "------", "---", "--------", "--------------", "----"),
    ]
    rows += [
        (i.name, i.status, short_age(i.age), str(i.chief).lower(), i.gpus, i.node)
        for i in job.instances
    ]
    page = f"{head}\n\nInstances:\n{columns(rows, '  ')}"
    if job.tensorboard:
        page += f"\n\nTensorboard:\n  Your tensorboard will be available on:\n  {job.tensorboard}"
        if job.tensorboard_trouble:
            page += f"\n  It does not run: {job.tensorboard_trouble}"
    return page
