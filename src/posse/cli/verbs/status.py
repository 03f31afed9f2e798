from __future__ import annotations

import asyncio
from pathlib import Path

import click
import msgspec

from posse.cli.formats import output_option
from posse.cli.layout import columns, document, short_age
from posse.cli.options import App, verb
from posse.cli.overviews import page as overview_page
from posse.cli.overviews import who_waits
from posse.cli.packing import fill, secrets_of
from posse.cli.targeting import elsewhere
from posse.client.bundling import Bundle
from posse.client.overview import Overview, look
from posse.kube import connect
from posse.kube.config import Settings
from posse.local.supervisor.connecting import settings_for
from posse.local.supervisor.home import Home
from posse.local.supervisor.reporting import Report
from posse.local.supervisor.reporting import status as report_on
from posse.local.supervisor.states import Address, ServiceState
from posse.world import World

MODES = {
    "namespaces": "namespaces (pods have their own files, names and processes)",
    "none": "none (pods are not kept apart from each other, nor from you)",
}


@verb("status")
@output_option
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="Write what somebody who helps needs to see, without secrets, as a .tar.gz.",
)
def status(app: App, output: str, bundle: Path | None) -> int:
    """Show the cluster and what Posse does in it.

    It is the cluster of the selected context, or of --context; without one, that of this machine.
    Posse is found in whatever namespace it is installed; that of --namespace comes first.
    Exits 1 when there is none, or when it is not ready.
    """
    world, home = World.real(), Home.find()
    there = elsewhere(app, home)
    if bundle is not None:
        return _bundle(app, home, there, bundle, world)
    if there is not None:
        return _show_elsewhere(app, there, output, world)
    report = asyncio.run(report_on(home, world))
    if output in ("json", "yaml"):
        app.show(document(report, output))
    elif not report.running:
        app.show(f"No cluster is running in {report.home}; `posse up` starts one")
    else:
        app.show(_page(report, world.now()))
        address = home.load(home.address, Address)
        if report.ready and address is not None:
            seen = asyncio.run(_look(app, settings_for(home, address, "admin"), world))
            if seen.waiting:
                app.show(f"\n{who_waits(seen, world.now(), hint='')}")
    return 0 if report.ready else 1


def _show_elsewhere(app: App, settings: Settings, output: str, world: World) -> int:
    overview = asyncio.run(_look(app, settings, world))
    if output in ("json", "yaml"):
        app.show(document(overview, output))
    else:
        app.show(overview_page(overview, world.now()))
    return 0 if overview.ready else 1


async def _look(app: App, settings: Settings, world: World) -> Overview:
    connection = connect(settings, world)
    try:
        given = app.options.namespace or ""
        seen = await look(connection, given or settings.namespace, given)
    finally:
        await connection.close()
    return msgspec.structs.replace(seen, context=settings.context, server=settings.server)


def _bundle(app: App, home: Home, there: Settings | None, path: Path, world: World) -> int:
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise click.UsageError(f"--bundle: {path} is not the name of a file in a directory")
    bundle = Bundle(secrets_of(home, there))
    asyncio.run(fill(bundle, home, there, app.options.namespace, world))
    bundle.write(path, world.now())
    app.say(f"wrote {path}: {len(bundle.files)} files, no secrets; look before you send it")
    for what, why in bundle.missing.items():
        app.say(f"without {what}: {why}")
    return 0


def _page(report: Report, now: float) -> str:
    modes = [("Isolation:", MODES.get(report.isolation, report.isolation))]
    head = columns(
        [
            ("Cluster:", "ready" if report.ready else f"not ready: {report.problem}"),
            ("API server:", report.server or "not listening yet"),
            ("Nodes:", f"{report.nodes_ready} of {report.nodes} ready"),
            ("Version:", f"{report.version} (Kubernetes {report.kubernetes or 'unknown'})"),
            ("Home:", report.home),
            *(modes if report.isolation else []),
        ]
    )
    if report.lacks:
        head += "\n" + "\n".join(["Does not work here:", *(f"  - {it}" for it in report.lacks)])
    rows: list[tuple[object, ...]] = [("SERVICE", "STATUS", "PID", "RESTARTS", "AGE")]
    rows += [
        (s.name, _state(s), s.pid or "-", s.restarts, short_age(now - s.since) if s.since else "-")
        for s in report.services
    ]
    return f"{head}\n\n{columns(rows)}"


def _state(service: ServiceState) -> str:
    if service.pid:
        return "Running"
    return "Stopped" if service.exit_code is None else f"Ended with {service.exit_code}"
