"""Gang scheduling, seen: clusters of its own, four jobs, and what became of them."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from posse.cli.demonstration import parameter_server
from posse.cli.layout import columns
from posse.cli.options import App, verb
from posse.client.errors import PosseError, TimedOut
from posse.client.jobs import TrainingJob
from posse.client.posse_client import PosseClient
from posse.client.submitting.mpi import MPIJob
from posse.client.submitting.tf import TFJob
from posse.local.node.naming import node_name
from posse.local.supervisor.home import Home
from posse.local.supervisor.options import Options
from posse.local.supervisor.starting import up
from posse.local.supervisor.stopping import down
from posse.world import World

NODES, GPUS = 4, 2
# How long nothing may happen before we believe that nothing will.
QUIET = 3.0
CEILING = 60.0


@verb("demo")
def demo(app: App) -> None:
    """See gang scheduling happen on a cluster of its own.

    Takes less than a minute, uses a temporary directory, does not open your kubeconfig, and
    leaves nothing behind. Exits 0 only if everything it tells was seen to happen.
    """
    app.show(
        f"A cluster of {NODES} simulated nodes with {GPUS} GPUs each: {NODES * GPUS} GPUs."
        " Simulated nodes run nothing;\nthe API server, scheduler and controllers are real."
        " Your own kubeconfig is not touched.\n"
    )
    with _cluster(Options(simulate=NODES, gpus=GPUS)) as client:
        _too_large(app, client)
        _without_gang(app, client)
        _fits(app, client)
    isolation = os.environ.get("POSSE_ISOLATION", "")
    with _cluster(Options(machine=node_name(), isolation=isolation)) as client:
        _trains(app, client)
    app.show("Every member of a job started together, or none did.")


def _too_large(app: App, client: PosseClient) -> None:
    app.show(_title("1. A gang of 5 workers with 2 GPUs each asks for 10 GPUs; there are 8"))
    _submit(app, client, "five", workers=5)
    _observe(client, "five", "all five workers exist", lambda job: len(job.instances) == 5)
    _quiet(client, "five", "none of them may have a node", lambda job: _seated(job) == 0)
    verdict = client.why("five")
    if "10 GPUs" not in verdict:
        raise PosseError(f"the demo did not see why the job waits: {verdict}")
    _show(app, client.get("five"))
    app.show(f"$ posse why five\n{verdict}\n")
    app.show("No worker has a node: the 8 GPUs stay free for a job that can use them.\n")
    _delete(app, client, "five")


def _without_gang(app: App, client: PosseClient) -> None:
    app.show(_title("2. The same job without a gang: what gang scheduling prevents"))
    _submit(app, client, "loose", workers=5, gang=False)
    _observe(
        client, "loose", "four of five workers run", lambda j: _phases(j) == ["Pending", *_RUN4]
    )
    _show(app, client.get("loose"))
    app.show("Four workers hold all 8 GPUs and wait for a fifth that can never come.\n")
    _delete(app, client, "loose")


def _fits(app: App, client: PosseClient) -> None:
    app.show(_title("3. A gang of 4 workers with 2 GPUs each fits"))
    _submit(app, client, "four", workers=4)
    _observe(
        client,
        "four",
        "the launcher and four workers run",
        lambda job: job.status == "RUNNING" and len(job.instances) == 5,
    )
    _show(app, client.get("four"))
    app.show("All of them started together, and the launcher's seat was kept from the start.\n")


_RUN4 = ["Running"] * 4


def _trains(app: App, client: PosseClient) -> None:
    app.show(_title("4. Real training on this machine: one parameter server, two workers"))
    program = Path(parameter_server.__file__)
    app.show(
        f'$ posse submit tf --name=train --ps=1 --workers=2 --image=any "python {program.name}"\n'
    )
    client.submit(
        TFJob(
            name="train",
            image="any",
            ps=1,
            workers=2,
            command=shlex.join([sys.executable, str(program)]),
            working_dir="/tmp",
            clean_task_policy="Running",
        )
    )
    ended = client.wait("train", "SUCCEEDED", timeout=CEILING)
    log = b"".join(client.logs("train", instance="train-worker-0")).decode(errors="replace")
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", log)]
    app.show("$ posse logs train\n" + "\n".join(f"  {line}" for line in log.splitlines()) + "\n")
    if ended.status != "SUCCEEDED" or len(losses) < 2 or losses[-1] > losses[0] / 10:
        raise PosseError(f"the demo did not see the training succeed: {client.why('train')}")
    app.show(
        f"Three processes found each other through TF_CONFIG; the loss fell from {losses[0]:.2f}"
        f" to {losses[-1]:.2f}.\n"
    )


@contextmanager
def _cluster(options: Options) -> Iterator[PosseClient]:
    """A cluster and a kubeconfig in a temporary directory, gone afterwards whatever happens."""
    with tempfile.TemporaryDirectory(prefix="posse-demo-") as directory:
        home, kubeconfig = Home(Path(directory, "home")), Path(directory, "kubeconfig")
        click.echo("Starting ...", err=True)
        try:
            asyncio.run(up(home, options, World.real(), kubeconfig=kubeconfig))
            with PosseClient(kubeconfig=kubeconfig, context="posse") as client:
                yield client
        finally:
            click.echo("Cleaning up ...", err=True)
            asyncio.run(down(home, purge=True))


def _submit(
    app: App, client: PosseClient, name: str, *, workers: int, gang: bool | None = None
) -> None:
    loose = " --gang=false" if gang is False else ""
    app.show(
        f"$ posse submit mpi --name={name} --workers={workers} --gpus={GPUS}{loose}"
        ' --image=horovod "mpirun python train.py"'
    )
    client.submit(
        MPIJob(
            name=name,
            image="horovod",
            workers=workers,
            gpus=GPUS,
            gang=gang,
            command="mpirun python train.py",
        )
    )


def _delete(app: App, client: PosseClient, name: str) -> None:
    app.show(f"$ posse delete {name}\n")
    client.delete(name)
    _until(lambda: not any(n.allocated for n in client.nodes()), f"{name} gave its GPUs back")


def _observe(
    client: PosseClient, name: str, what: str, holds: Callable[[TrainingJob], bool]
) -> None:
    _until(lambda: holds(client.get(name)), what)


def _quiet(client: PosseClient, name: str, what: str, holds: Callable[[TrainingJob], bool]) -> None:
    """It holds, and goes on holding for as long as we are willing to watch."""
    clock = World.real()
    until = clock.monotonic() + QUIET
    while clock.monotonic() < until:
        if not holds(client.get(name)):
            raise PosseError(f"the demo did not see what it should: {what}")
        _pause()


def _until(holds: Callable[[], bool], what: str) -> None:
    clock = World.real()
    deadline = clock.monotonic() + CEILING
    while not holds():
        if clock.monotonic() > deadline:
            raise TimedOut(f"the demo waited {CEILING:g}s and did not see this: {what}")
        _pause()


def _pause() -> None:
    asyncio.run(asyncio.sleep(0.1))


def _seated(job: TrainingJob) -> int:
    return sum(instance.node != "N/A" for instance in job.instances)


def _phases(job: TrainingJob) -> list[str]:
    return sorted(instance.status for instance in job.instances)


def _show(app: App, job: TrainingJob) -> None:
    rows: list[tuple[object, ...]] = [("NAME", "STATUS", "GPU(Requested)", "NODE")]
    rows += [(i.name, i.status, i.gpus, i.node) for i in job.instances]
    app.show(f"\n$ posse get {job.name}\n{columns(rows, '  ')}\n")


def _title(words: str) -> str:
    bold = sys.stdout.isatty()
    return click.style(words, bold=True) if bold else f"{words}\n{'=' * len(words)}"
