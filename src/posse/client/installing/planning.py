"""What Posse will take: each kind has one controller, and each scheduler name one scheduler.

Left to itself, Posse takes what nobody owns and keeps what it has. What somebody else owns is
handed over when that is asked for by name, and only once the other has stopped.
"""

from __future__ import annotations

import msgspec

from posse.client.installing.options import KINDS, REPLICAS, SCHEDULER_NAME, Options, default_image
from posse.client.installing.owners import DEFAULT_SCHEDULER, Owner
from posse.client.installing.roles import kind_named
from posse.client.installing.surveying import Survey
from posse.objects.kinds import POD_GROUP, QUEUE, Kind
from posse.version import __version__

NOBODY = "nobody"


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What the person who installs has asked for; None where nothing was said."""

    namespace: str
    image: str | None = None
    replicas: int | None = None
    kinds: tuple[str, ...] | None = None
    take: tuple[str, ...] = ()
    claim: tuple[str, ...] | None = None


class Row(msgspec.Struct, frozen=True):
    kind: str
    owner: str
    action: str


class Plan(msgspec.Struct, frozen=True):
    """`refusals` are reasons to change nothing at all."""

    options: Options
    rows: tuple[Row, ...]
    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class _Verdict(msgspec.Struct, frozen=True):
    row: Row
    taken: bool
    refusal: str = ""
    warning: str = ""


def plan(survey: Survey, wishes: Wishes) -> Plan:
    kinds = [_kind(survey, wishes, kind) for kind in KINDS]
    names = [_name(survey, wishes, name) for name in _names(survey, wishes)]
    verdicts = [*kinds, *names]
    refusals = [verdict.refusal for verdict in verdicts if verdict.refusal]
    warnings = [verdict.warning for verdict in verdicts if verdict.warning]
    installed = survey.installed
    warnings += _left_behind(survey, [v.row.kind for v in kinds if v.taken])
    if installed is not None and installed.by_helm:
        refusals.insert(0, "Posse was installed here with Helm; let Helm upgrade it")
    refusals += [
        f"Posse cannot do without {kind.qualified}: {unserved}"
        for kind in (POD_GROUP, QUEUE)
        if (unserved := _unserved(survey, kind))
    ]
    image, refused = _image(survey, wishes)
    if refused:
        refusals.append(refused)
    elif image == default_image():
        warnings.append(f"nodes must have the image {image}; --image names one of a registry")
    if not any(verdict.taken for verdict in kinds):
        warnings.append("no kind is Posse's, so no controllers are installed")
    options = Options(
        image=image,
        replicas=wishes.replicas or (installed.replicas if installed else 0) or REPLICAS,
        namespace=wishes.namespace,
        kinds=tuple(k for k, verdict in zip(KINDS, kinds, strict=True) if verdict.taken),
        claims=tuple(v.row.kind.rpartition(" ")[2] for v in names if v.taken),
        monitored="servicemonitors.monitoring.coreos.com" not in survey.unserved,
    )
    return Plan(options, tuple(v.row for v in verdicts), tuple(refusals), tuple(warnings))


def _kind(survey: Survey, wishes: Wishes, kind: str) -> _Verdict:
    owner = _owner(survey, kind=kind)
    ours = survey.installed is not None and kind in survey.installed.kinds
    asked = kind in wishes.take or kind in (wishes.kinds or ())
    unserved = _unserved(survey, kind_named(kind))
    if wishes.kinds is not None and not asked:
        action = "gives it back" if ours else "leaves it"
        return _Verdict(Row(kind, _today(owner, ours), action), False)
    if unserved:
        row = Row(kind, _today(owner, ours), f"leaves it: {unserved}")
        return _Verdict(row, False, refusal=f"{kind} cannot be taken: {unserved}" if asked else "")
    return _decided(kind, owner, ours=ours, asked=asked, handed=kind in wishes.take, by="--take")


def _name(survey: Survey, wishes: Wishes, name: str) -> _Verdict:
    owner = _owner(survey, name=name)
    ours = survey.installed is not None and name in survey.installed.claims
    subject = f"schedulerName {name}"
    asked = name == SCHEDULER_NAME or name in (wishes.claim or ())
    if not asked and (wishes.claim is not None or not ours):
        action = "gives it back" if ours else f"leaves it; --claim {name} takes it"
        return _Verdict(Row(subject, _today(owner, ours), action), False)
    handed = name in (wishes.claim or ())
    return _decided(subject, owner, ours=ours, asked=asked, handed=handed, by="--claim")


def _decided(
    subject: str, owner: Owner | None, *, ours: bool, asked: bool, handed: bool, by: str
) -> _Verdict:
    """What to do about something that Posse may have; `handed`: it was asked for by name."""
    today, name = _today(owner, ours), subject.rpartition(" ")[2]
    if owner is None:
        return _Verdict(Row(subject, today, "keeps it" if ours else "takes it"), True)
    if ours:
        warning = ""
        if owner.alive:
            warning = f"{subject} is Posse's, but {owner} is there, too: {owner.how_to_stop}"
        return _Verdict(Row(subject, today, "keeps it"), True, warning=warning)
    if not handed:
        refusal = ""
        if asked:
            refusal = f"{subject} belongs to {owner}; {_upgrade(owner)}{by} {name} hands it over"
        action = f"leaves it; {by} {name} hands it over"
        return _Verdict(Row(subject, today, action), False, refusal=refusal)
    if owner.alive:
        refusal = f"{subject} belongs to {owner} and {owner.alive}; {owner.how_to_stop}"
        row = Row(subject, today, f"nothing while {owner.program} runs")
        return _Verdict(row, False, refusal=refusal)
    warning = ""
    if owner.deployment:
        warning = f"{subject} is Posse's from now on: see that {owner} does not come back"
    return _Verdict(Row(subject, today, "takes it over"), True, warning=warning)


def _upgrade(owner: Owner) -> str:
    """What was meant, most likely, where Posse is installed in another namespace."""
    ours = owner.deployment and SCHEDULER_NAME in owner.names
    return f"-n {owner.namespace} upgrades it there, " if ours else ""


def _names(survey: Survey, wishes: Wishes) -> list[str]:
    """Every scheduler name that anybody has, claims or might claim; Posse's own first.

    That of all other pods is the cluster's own: nobody is told that it could be had.
    """
    installed = survey.installed.claims if survey.installed else ()
    owned = (n for owner in survey.owners for n in owner.names if n != DEFAULT_SCHEDULER)
    known = (SCHEDULER_NAME, *(wishes.claim or ()), *installed, *owned, "volcano", "kube-batch")
    return list(dict.fromkeys(known))


def _owner(survey: Survey, *, kind: str = "", name: str = "") -> Owner | None:
    """Who has it; of several, one that is alive."""
    having = [o for o in survey.owners if kind in o.kinds or name in o.names]
    return next((o for o in having if o.alive), having[0] if having else None)


def _today(owner: Owner | None, ours: bool) -> str:
    if owner is None:
        return "posse" if ours else NOBODY
    stands = "" if owner.alive else ", stopped"
    return f"posse and {owner}{stands}" if ours else f"{owner}{stands}"


def _unserved(survey: Survey, kind: Kind) -> str:
    """Why the definition that is there does not do; it is not Posse's to change."""
    found = survey.definitions.get(kind.qualified)
    if found is None or found.ours or kind.version in found.served:
        return ""
    served = ", ".join(found.served) or "no version"
    return f"the {kind.qualified} that are defined here serve {served}, not {kind.version}"


def _left_behind(survey: Survey, taken: list[str]) -> list[str]:
    """Webhooks that a stopped owner may no longer answer."""
    return [
        f"{' and '.join(kinds)} cannot be created while nobody answers webhook {door}: "
        "see that somebody does, or delete it"
        for door in survey.doors
        if (kinds := [kind for kind in door.kinds if kind in taken])
    ]


def _image(survey: Survey, wishes: Wishes) -> tuple[str, str]:
    """The image, and why it cannot be known.

    Without a word about it the installed one stays, as long as it is of this version.
    """
    installed = survey.installed
    if wishes.image:
        return wishes.image, ""
    if installed is None or installed.image == default_image(installed.version):
        return default_image(), ""
    if installed.version == __version__:
        return installed.image, ""
    return installed.image, (
        f"{installed.image} is of version {installed.version}; "
        f"name the image of version {__version__} with --image"
    )
