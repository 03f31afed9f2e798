from __future__ import annotations

import asyncio

from posse.cli.formats import output_option
from posse.cli.layout import columns, document, short_age
from posse.cli.options import App, verb
from posse.local.supervisor.home import Home
from posse.local.supervisor.reporting import Report
from posse.local.supervisor.reporting import status as report_on
from posse.local.supervisor.states import ServiceState
from posse.world import World

MODES = {
    "namespaces": "namespaces (pods have their own files, names and processes)",
    "none": "none (pods are not kept apart from each other, nor from you)",
}


@verb("status")
@output_option
def status(app: App, output: str) -> int:
    """Show the cluster on this machine and its services.

    Exits 1 when there is none, or when it is not ready.
    """
    world = World.real()
    report = asyncio.run(report_on(Home.find(), world))
    if output in ("json", "yaml"):
        app.show(document(report, output))
    elif not report.running:
        app.show(f"No cluster is running in {report.home}; `posse up` starts one")
    else:
        app.show(_page(report, world.now()))
    return 0 if report.ready else 1


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
