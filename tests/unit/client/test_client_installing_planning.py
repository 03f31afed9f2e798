"""Who gets what: each kind one controller, each scheduler name one scheduler."""

from __future__ import annotations

import msgspec
import pytest

from posse.client.installing.doors import Door
from posse.client.installing.options import Options, default_image
from posse.client.installing.owners import Owner
from posse.client.installing.planning import Plan, Wishes, plan
from posse.client.installing.surveying import Definition, Installation, Survey
from posse.version import __version__

RUNS = "its lease kubeflow/1 is being renewed"
TRAINING = Owner(
    "training-operator", "kubeflow", "training-operator", kinds=("TFJob", "MPIJob"), alive=RUNS
)
STOPPED = Owner("training-operator", "kubeflow", "training-operator", kinds=("TFJob",))
VOLCANO = Owner("volcano", "volcano-system", "volcano-scheduler", names=("volcano",), alive=RUNS)
INSTALLED = Installation(
    version=__version__,
    image="mirror/posse:1",
    replicas=3,
    kinds=("MPIJob", "TFJob"),
    claims=("posse", "volcano"),
    by_helm=False,
)


def planned(survey: Survey, **wishes: object) -> Plan:
    return plan(survey, Wishes(namespace="posse-system", **wishes))  # type: ignore[arg-type]


def says(made: Plan) -> dict[str, tuple[str, str]]:
    return {row.kind: (row.owner, row.action) for row in made.rows}


def test_on_an_empty_cluster_posse_takes_every_kind_and_its_own_name() -> None:
    made = planned(Survey())
    assert made.refusals == ()
    assert made.options.kinds == ("MPIJob", "TFJob")
    assert made.options.claims == ("posse",)
    assert says(made)["TFJob"] == ("nobody", "takes it")
    assert says(made)["schedulerName volcano"][1] == "leaves it; --claim volcano takes it"


def test_what_somebody_owns_is_left_to_them() -> None:
    made = planned(Survey(owners=(TRAINING,)))
    assert made.refusals == ()
    assert made.options.kinds == ()
    owner, action = says(made)["TFJob"]
    assert owner == "training-operator (kubeflow/training-operator)"
    assert action == "leaves it; --take TFJob hands it over"


def test_a_kind_is_not_taken_from_one_that_runs() -> None:
    made = planned(Survey(owners=(TRAINING,)), take=("TFJob",))
    (refusal,) = made.refusals
    assert "TFJob belongs to training-operator" in refusal
    assert RUNS in refusal
    assert "kubectl -n kubeflow scale deployment training-operator --replicas=0" in refusal


def test_a_kind_is_taken_over_from_one_that_has_stopped() -> None:
    made = planned(Survey(owners=(STOPPED,)), take=("TFJob",))
    assert made.refusals == ()
    assert made.options.kinds == ("MPIJob", "TFJob")
    assert says(made)["TFJob"][1] == "takes it over"
    assert "does not come back" in made.warnings[0]


def test_one_that_has_stopped_still_owns_what_nobody_asks_for() -> None:
    made = planned(Survey(owners=(STOPPED,)))
    assert made.options.kinds == ("MPIJob",)
    assert says(made)["TFJob"][0].endswith(", stopped")


def test_naming_a_kind_is_not_taking_it() -> None:
    made = planned(Survey(owners=(STOPPED,)), kinds=("TFJob",))
    (refusal,) = made.refusals
    assert refusal.startswith("TFJob belongs to training-operator (kubeflow/training-operator)")
    assert refusal.endswith("--take TFJob hands it over")


@pytest.mark.parametrize(("alive", "refused"), [(RUNS, True), ("", False)])
def test_a_scheduler_name_is_claimed_once_its_scheduler_has_stopped(
    alive: str, refused: bool
) -> None:
    owner = Owner("volcano", "volcano-system", "volcano-scheduler", names=("volcano",), alive=alive)
    made = planned(Survey(owners=(owner,)), claim=("volcano",))
    assert bool(made.refusals) is refused
    assert made.options.claims == (("posse",) if refused else ("posse", "volcano"))


def test_an_upgrade_keeps_what_posse_has() -> None:
    made = planned(Survey(installed=INSTALLED))
    assert made.options == Options(
        image="mirror/posse:1", replicas=3, claims=("posse", "volcano"), monitored=True
    )
    assert says(made)["schedulerName volcano"] == ("posse", "keeps it")


def test_kinds_and_names_are_given_back_by_naming_the_others() -> None:
    made = planned(Survey(installed=INSTALLED), kinds=("MPIJob",), claim=("posse",))
    assert made.options.kinds == ("MPIJob",)
    assert made.options.claims == ("posse",)
    assert says(made)["TFJob"] == ("posse", "gives it back")
    assert says(made)["schedulerName volcano"] == ("posse", "gives it back")


def test_two_owners_of_one_kind_are_pointed_out() -> None:
    made = planned(Survey(installed=INSTALLED, owners=(TRAINING,)))
    assert made.refusals == ()
    assert any("TFJob is Posse's, but training-operator" in words for words in made.warnings)


def test_another_posse_is_not_doubled() -> None:
    other = Owner(
        "posse scheduler", "kube-system", lease="posse-scheduler", names=("posse",), alive=RUNS
    )
    made = planned(Survey(owners=(other,)))
    assert any("schedulerName posse belongs to posse scheduler" in words for words in made.refusals)


def test_a_definition_that_does_not_serve_what_is_needed_is_left_alone() -> None:
    survey = Survey(definitions={"mpijobs.kubeflow.org": Definition(False, ("v1",))})
    made = planned(survey)
    assert made.options.kinds == ("TFJob",)
    assert "serve v1, not v2beta1" in says(made)["MPIJob"][1]
    assert planned(survey, take=("MPIJob",)).refusals
    ours = Survey(definitions={"mpijobs.kubeflow.org": Definition(True, ("v1",))})
    assert planned(ours).options.kinds == ("MPIJob", "TFJob")


def test_an_image_of_another_version_must_be_named() -> None:
    older = msgspec.structs.replace(INSTALLED, version="0.0.1")
    assert "--image" in planned(Survey(installed=older)).refusals[0]
    assert planned(Survey(installed=older), image="mirror/posse:2").refusals == ()
    stock = msgspec.structs.replace(older, image=default_image("0.0.1"))
    assert planned(Survey(installed=stock)).options.image == default_image()


def test_helms_installation_is_helms() -> None:
    by_helm = msgspec.structs.replace(INSTALLED, by_helm=True)
    assert "Helm" in planned(Survey(installed=by_helm)).refusals[0]


def test_monitors_need_their_definition() -> None:
    absent = Survey(unserved=("servicemonitors.monitoring.coreos.com",))
    assert planned(absent).options.monitored is False
    assert planned(Survey()).options.monitored is True


@pytest.mark.parametrize(
    ("take", "warned"), [((), []), (("TFJob",), ["TFJob cannot be created while nobody answers"])]
)
def test_webhooks_that_the_old_owner_leaves_behind_are_named(
    take: tuple[str, ...], warned: list[str]
) -> None:
    """They answer for their owner's kinds as long as those are its own."""
    door = Door("validatingwebhookconfiguration/v", "v.tfjob", "kubeflow/training", ("TFJob",))
    made = planned(Survey(owners=(STOPPED,), doors=(door,)), take=take)
    told = [warning for warning in made.warnings if "webhook" in warning]
    assert [warning.partition(" webhook ")[0] for warning in told] == warned
    assert all("v.tfjob in validatingwebhookconfiguration/v" in warning for warning in told)


@pytest.mark.parametrize("plural", ["queues", "podgroups"])
def test_what_posse_cannot_do_without_is_missed_before_anything_is_done(plural: str) -> None:
    name = f"{plural}.scheduling.volcano.sh"
    made = planned(Survey(definitions={name: Definition(False, ("v1alpha2",))}))
    assert made.refusals == (
        f"Posse cannot do without {name}: the {name} that are defined here serve v1alpha2, "
        "not v1beta1",
    )
    assert planned(Survey(definitions={name: Definition(True, ("v1alpha2",))})).refusals == ()


CLUSTERS_OWN = Owner(
    "kube-scheduler",
    "kube-system",
    lease="kube-scheduler",
    names=("default-scheduler",),
    alive=RUNS,
)


def test_the_clusters_own_scheduler_is_not_offered_and_not_doubled() -> None:
    survey = Survey(owners=(CLUSTERS_OWN,))
    assert "schedulerName default-scheduler" not in says(planned(survey))
    (refusal,) = planned(survey, claim=("default-scheduler",)).refusals
    assert refusal.startswith("schedulerName default-scheduler belongs to kube-scheduler")


def test_who_forgot_the_namespace_of_an_installation_is_told_of_it() -> None:
    elsewhere = Owner("posse scheduler", "gpus", "posse-scheduler", names=("posse",), alive=RUNS)
    (refusal,) = planned(Survey(owners=(elsewhere,))).refusals
    assert refusal == (
        "schedulerName posse belongs to posse scheduler (gpus/posse-scheduler); "
        "-n gpus upgrades it there, --claim posse hands it over"
    )


def test_an_owner_that_was_stopped_for_posse_is_not_to_be_stopped_again() -> None:
    made = planned(Survey(owners=(STOPPED,), installed=INSTALLED))
    assert made.options.kinds == ("MPIJob", "TFJob")
    assert made.warnings == ()
    back = planned(Survey(owners=(TRAINING,), installed=INSTALLED))
    assert [warning for warning in back.warnings if "is there, too" in warning]


@pytest.mark.parametrize(
    ("survey", "wishes", "told"),
    [
        (Survey(), {}, True),
        (Survey(), {"image": "mirror/posse:1"}, False),
        (Survey(installed=INSTALLED), {}, False),
    ],
    ids=["nothing said", "said", "said before"],
)
def test_an_image_that_no_registry_has_is_mentioned(
    survey: Survey, wishes: dict[str, str], told: bool
) -> None:
    warnings = planned(survey, **wishes).warnings
    assert (f"nodes must have the image {default_image()}" in " ".join(warnings)) is told
