from __future__ import annotations

import asyncio
from typing import Any

import click

from posse.cli.grammar import switch
from posse.cli.layout import columns, document
from posse.cli.options import App, verb
from posse.cli.several import Values, several, several_kinds
from posse.client.errors import PosseError
from posse.client.installing import NAMESPACE, default_image, objects
from posse.client.installing.applying import apply
from posse.client.installing.documents import documents
from posse.client.installing.inventory import served
from posse.client.installing.planning import Plan, Wishes, plan
from posse.client.installing.rehearsing import rehearse
from posse.client.installing.surveying import look
from posse.kube import connect
from posse.kube.config import Settings, selected
from posse.kube.errors import KubeError
from posse.world import World


@verb("install")
@click.option("--image", default=None, metavar="REF", help="The image of Posse's programs.")
@click.option(
    "--replicas",
    type=click.IntRange(min=1),
    default=None,
    help="How many of each program; one leads, the others stand by. 2 if not given.",
)
@several_kinds(
    "--kinds", help="Have exactly these job kinds; otherwise those that nobody else owns."
)
@several_kinds(
    "--take", help="Take these job kinds over from who owns them, once that has stopped."
)
@several(
    "--claim",
    metavar="NAME,...",
    help="Schedule the pods of these schedulerNames too, once their scheduler has stopped.",
)
@switch("--dry-run", help="Print what would be applied, and change nothing.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(("yaml", "json")),
    default="yaml",
    help="How --dry-run prints it: as yaml (the default) or json.",
)
@switch("--print-images", help="Print the images that an installation runs, and do nothing else.")
def install(
    app: App,
    image: str | None,
    replicas: int | None,
    kinds: Values,
    take: Values,
    claim: Values,
    dry_run: bool,
    output: str,
    print_images: bool,
) -> None:
    """Install Posse on the cluster of the kubeconfig, or upgrade it in place.

    Each job kind has one controller in a cluster, and each schedulerName one scheduler. So this
    looks first who is there, says what Posse will do, and takes only what nobody owns, unless
    --take and --claim say otherwise. Definitions (CRDs) that are not Posse's are never changed.
    """
    if print_images:
        app.show(image or default_image())
        return
    wishes = Wishes(
        namespace=app.options.namespace or NAMESPACE,
        image=image,
        replicas=replicas,
        kinds=None if kinds is None else tuple(dict.fromkeys((*kinds, *(take or ())))),
        take=take or (),
        claim=claim,
    )
    asyncio.run(_install(app, wishes, shown=output if dry_run else ""))


async def _install(app: App, wishes: Wishes, *, shown: str) -> None:
    """`shown`: how the objects are printed instead of being applied; "" for not at all."""
    connection = connect(cluster(app), World.real())
    try:
        survey = await look(connection, wishes.namespace)
        decided = plan(survey, wishes)
        app.say(table(decided))
        for words in decided.warnings:
            app.say(f"note: {words}")
        if decided.refusals:
            raise PosseError("nothing was changed: " + "; ".join(decided.refusals))
        wanted = served(objects(decided.options), survey.unserved)
        obstacle = await rehearse(connection, wanted)
        if shown:
            if obstacle is not None:
                app.say(f"note: it would not be applied: {obstacle}")
            app.show(_printed(wanted, shown))
            return
        if obstacle is not None:
            raise type(obstacle)(f"nothing was changed: {obstacle}")
        try:
            await apply(connection, wanted, survey.unserved, app.show)
        except (KubeError, PosseError):
            app.say("note: not everything was applied; the same command again does the rest")
            raise
        app.say(
            f"Posse is installed in {wishes.namespace}: {decided.options.image};"
            " `posse status` tells when it is ready"
        )
    finally:
        await connection.close()


def _printed(objects: list[dict[str, Any]], how: str) -> str:
    if how == "json":
        return document({"apiVersion": "v1", "kind": "List", "items": objects}, how)
    return documents(objects).rstrip("\n")


def cluster(app: App) -> Settings:
    return selected(app.options.kubeconfig, app.options.context)


def table(decided: Plan) -> str:
    rows = [("kind", "owner today", "what Posse will do")]
    rows += [(row.kind, row.owner, row.action) for row in decided.rows]
    return columns([(kind, f"| {owner}", f"| {action}") for kind, owner, action in rows])
