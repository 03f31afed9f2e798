"""The service programs: the same ones in the embedded cluster and beside a real one."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from posse.cli.options import App, verb
from posse.cli.several import Values, several, several_kinds
from posse.kube import Connection, connect
from posse.kube.config import Settings, in_cluster, load_kubeconfig
from posse.local.supervisor import lifeline
from posse.local.supervisor.services import run as run_in_home
from posse.world import World

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from posse.kube.metering import ServiceMetrics

F = TypeVar("F", bound=Callable[..., Any])
M = TypeVar("M", bound="ServiceMetrics")


def _home(function: F) -> F:
    return click.option(
        "--home",
        required=True,
        type=click.Path(path_type=Path),
        help="The directory of the embedded cluster.",
    )(function)


@verb("apiserver")
@_home
def apiserver(app: App, home: Path) -> int:
    """Run the API server of an embedded cluster."""
    return run_in_home("apiserver", home)


@verb("core")
@_home
def core(app: App, home: Path) -> int:
    """Run what kube-controller-manager does, for an embedded cluster."""
    return run_in_home("core", home)


@verb("node")
@_home
def node(app: App, home: Path) -> int:
    """Run the node agent of an embedded cluster."""
    return run_in_home("node", home)


@verb("supervise")
@_home
def supervise(app: App, home: Path) -> int:
    """Run and watch the services of an embedded cluster."""
    return run_in_home("supervise", home)


def _observed(function: F) -> F:
    for decorate in (
        click.option(
            "--metrics-address",
            default=None,
            metavar="HOST",
            help="Where to listen for --metrics-port: every address in a pod, else 127.0.0.1.",
        ),
        click.option(
            "--metrics-port",
            type=click.IntRange(0, 65535),
            default=0,
            metavar="PORT",
            help="Serve /healthz, /readyz and /metrics on this port; 0 serves none.",
        ),
    ):
        function = decorate(function)
    return function


def _beside_a_cluster(function: F) -> F:
    for decorate in (
        click.option(
            "--home",
            type=click.Path(path_type=Path),
            default=None,
            help="Serve the embedded cluster of this directory; without it, the kubeconfig's.",
        ),
        click.option(
            "--lease-namespace", default="kube-system", help="Where the leader's lease lies."
        ),
        click.option(
            "--identity",
            default="",
            help="Who holds the lease; drawn at random if not given.",
        ),
        _observed,
    ):
        function = decorate(function)
    return function


_OF_A_HOME = {
    "policy": "there it is policy.yaml in that directory",
    "capture": "there it is captures in that directory, where it exists",
    "metrics_port": "there it is that of `posse up --metrics-port`",
}


def _only_beside(**flags: object) -> None:
    """A service of a home reads what it needs from there: no flag is silently forgotten."""
    for name, value in flags.items():
        if value:
            flag = name.replace("_", "-")
            raise click.UsageError(f"--{flag} goes without --home; {_OF_A_HOME[name]}")


@verb("scheduler")
@_beside_a_cluster
@several("--claim", "claims", metavar="NAME,...", help="The schedulerNames whose pods are ours.")
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="The policy, in YAML; followed while it runs.",
)
@click.option(
    "--capture",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="Record there what is decided and on what, for `posse replay`.",
)
def scheduler(
    app: App,
    home: Path | None,
    lease_namespace: str,
    identity: str,
    metrics_address: str | None,
    metrics_port: int,
    claims: Values,
    policy: Path | None,
    capture: Path | None,
) -> int:
    """Run the scheduler."""
    if home is not None:
        _only_beside(policy=policy, capture=capture, metrics_port=metrics_port)
        return run_in_home("scheduler", home)
    from posse.scheduler.choices import PolicyError
    from posse.scheduler.config import SchedulerConfig
    from posse.scheduler.metrics import SchedulerMetrics
    from posse.scheduler.policies import load_policy
    from posse.scheduler.program import run

    if policy is not None:
        try:
            load_policy(policy)
        except PolicyError as error:
            raise click.ClickException(f"--policy: {error}") from error
    config = SchedulerConfig(
        namespace=lease_namespace,
        identity=identity,
        claims=claims or SchedulerConfig().claims,
        policy_file=policy,
        capture=capture,
    )
    return _run(
        app,
        (metrics_address, metrics_port),
        SchedulerMetrics,
        lambda connection, world, metrics: run(config, connection, world, observer=metrics),
    )


@verb("controllers")
@_beside_a_cluster
@click.option("--gang-scheduler-name", default="posse", help="The scheduler of the jobs' pods.")
@several_kinds("--kinds", help="The job kinds to reconcile; all of them if not given.")
def controllers(
    app: App,
    home: Path | None,
    lease_namespace: str,
    identity: str,
    metrics_address: str | None,
    metrics_port: int,
    gang_scheduler_name: str,
    kinds: Values,
) -> int:
    """Run the job controllers."""
    if home is not None:
        _only_beside(metrics_port=metrics_port)
        return run_in_home("controllers", home)
    from posse.controllers.metrics import ControllersMetrics
    from posse.controllers.program import ControllersConfig, run

    config = ControllersConfig(
        namespace=lease_namespace,
        identity=identity,
        gang_scheduler_name=gang_scheduler_name,
        kinds=kinds or ControllersConfig().kinds,
    )
    return _run(
        app,
        (metrics_address, metrics_port),
        ControllersMetrics,
        lambda connection, world, metrics: run(config, connection, world, observer=metrics),
    )


@verb("admission")
@_observed
@click.option(
    "--system-namespace",
    default="posse-system",
    help="Where the webhook's Service and the Secret with its certificate are.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=9443,
    metavar="PORT",
    help="Where the API server asks.",
)
def admission(
    app: App,
    system_namespace: str,
    port: int,
    metrics_address: str | None,
    metrics_port: int,
) -> int:
    """Run the admission webhook beside a cluster."""
    from posse.admission.metrics import AdmissionMetrics
    from posse.admission.program import AdmissionConfig, run
    from posse.kube.serving import EVERYWHERE, LOOPBACK, Address

    address = Address(EVERYWHERE if _in_a_pod(app) else LOOPBACK, port)
    config = AdmissionConfig(namespace=system_namespace, address=address)
    return _run(
        app,
        (metrics_address, metrics_port),
        AdmissionMetrics,
        lambda connection, world, metrics: run(config, connection, world, observer=metrics),
    )


def _in_a_pod(app: App) -> bool:
    return app.options.kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ


def _settings(app: App) -> Settings:
    if _in_a_pod(app):
        return in_cluster()
    named = app.options.kubeconfig
    return load_kubeconfig([Path(named)] if named else None, app.options.context)


def _collect_rarely() -> None:
    """Objects of the API are trees that end with their last reader; only cycles need collecting.

    To look for those after every few hundred new objects, among a hundred thousand pods, would
    cost more than all decisions.
    """
    gc.set_threshold(50_000, 20, 20)


def _run(
    app: App,
    listening: tuple[str | None, int],
    measure: Callable[[CollectorRegistry, World], M],
    service: Callable[[Connection, World, M | None], Coroutine[Any, Any, None]],
) -> int:
    import uvloop
    from prometheus_client import CollectorRegistry

    from posse.kube.expiry import CertificateDays, sources_of
    from posse.kube.serving import EVERYWHERE, LOOPBACK, Address, Diagnostics, serving

    level = (app.options.loglevel or "info").upper().replace("WARN", "WARNING")
    logging.basicConfig(
        stream=sys.stderr,
        level=level,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        force=True,
    )
    settings, world = _settings(app), World.real()
    _collect_rarely()

    async def main() -> None:
        async with AsyncExitStack() as stack:
            connection = connect(settings, world)
            stack.push_async_callback(connection.close)
            metrics = None
            host, port = listening
            if port:
                registry = CollectorRegistry()
                metrics = measure(registry, world)
                CertificateDays(registry, world, {**sources_of(settings), **metrics.certificates()})
                address = Address(host or (EVERYWHERE if _in_a_pod(app) else LOOPBACK), port)
                told = Diagnostics(registry, metrics.unready)
                await stack.enter_async_context(serving(told, address))
            await lifeline.hold(service(connection, world, metrics))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    return 0
