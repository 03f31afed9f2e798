"""What an installation consists of."""

from __future__ import annotations

import itertools
from typing import Any

import click
import pytest

from posse.cli.grammar import Verb
from posse.cli.main import program
from posse.client.installing import Options, objects
from posse.client.installing.inventory import INVENTORY, kind_of
from posse.client.installing.marking import is_marked
from posse.client.installing.options import KINDS

DEFAULT = objects(Options())


def of_kind(kind: str, made: list[dict[str, Any]] | None = None) -> dict[str, dict[str, Any]]:
    found = made if made is not None else DEFAULT
    return {obj["metadata"]["name"]: obj for obj in found if obj["kind"] == kind}


def pod_of(deployment: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return found


def test_everything_is_marked_and_there_once() -> None:
    names = [
        (kind_of(obj), obj["metadata"].get("namespace"), obj["metadata"]["name"]) for obj in DEFAULT
    ]
    assert len(set(names)) == len(names)
    assert [obj["metadata"]["name"] for obj in DEFAULT if not is_marked(obj)] == []


def test_what_others_need_comes_before_them() -> None:
    places = [INVENTORY.index(kind_of(obj)) for obj in DEFAULT]
    assert places == sorted(places)


def test_equal_options_give_equal_objects_and_nobody_shares_them() -> None:
    first, second = objects(Options()), objects(Options())
    assert first == second
    first[0]["metadata"]["labels"]["changed"] = "yes"
    assert objects(Options()) == second


def test_everything_that_has_a_namespace_is_in_the_one_that_was_asked_for() -> None:
    made = objects(Options(namespace="gangs"))
    assert {obj["metadata"].get("namespace", "gangs") for obj in made} == {"gangs"}
    assert list(of_kind("Namespace", made)) == ["gangs"]
    subjects = [
        subject["namespace"]
        for binding in (*of_kind("ClusterRoleBinding", made).values(),)
        for subject in binding["subjects"]
    ]
    assert set(subjects) == {"gangs"}
    assert "posse-system" not in str(made)


@pytest.mark.parametrize("deployment", of_kind("Deployment").values(), ids=str)
def test_pods_are_restricted(deployment: dict[str, Any]) -> None:
    pod = pod_of(deployment)
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert container["resources"]["requests"]
    assert container["resources"]["limits"]["memory"]
    assert {"livenessProbe", "readinessProbe"} <= container.keys()


@pytest.mark.parametrize("deployment", of_kind("Deployment").values(), ids=str)
def test_each_program_has_two_replicas_a_budget_a_service_and_an_account(
    deployment: dict[str, Any],
) -> None:
    name = deployment["metadata"]["name"]
    assert deployment["spec"]["replicas"] == 2
    pods = deployment["spec"]["template"]["metadata"]["labels"]
    budget = of_kind("PodDisruptionBudget")[name]["spec"]["selector"]["matchLabels"]
    service = of_kind("Service")[name]["spec"]["selector"]
    assert budget.items() <= pods.items()
    assert service.items() <= pods.items()
    assert pod_of(deployment)["serviceAccountName"] in of_kind("ServiceAccount")
    others = [d for d in of_kind("Deployment").values() if d is not deployment]
    assert all(not budget.items() <= _labels(other).items() for other in others)


def _labels(deployment: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = deployment["spec"]["template"]["metadata"]["labels"]
    return found


@pytest.mark.parametrize("deployment", of_kind("Deployment").values(), ids=str)
def test_the_program_takes_the_words_that_its_deployment_says(deployment: dict[str, Any]) -> None:
    (container,) = pod_of(deployment)["containers"]
    verb, *words = container["args"]
    with click.Context(program) as context:
        command = program.get_command(context, verb)
        assert isinstance(command, Verb)
        command.make_context(verb, list(words), parent=context)


@pytest.mark.parametrize(
    "kinds",
    [kinds for size in range(len(KINDS) + 1) for kinds in itertools.combinations(KINDS, size)],
    ids=",".join,
)
def test_kinds_that_posse_does_not_have_are_in_no_role_and_are_not_defined(
    kinds: tuple[str, ...],
) -> None:
    made = objects(Options(kinds=kinds))
    plurals = {f"{kind.lower()}s" for kind in kinds}
    left_out = {f"{kind.lower()}s" for kind in KINDS} - plurals
    granted = {
        resource.partition("/")[0]
        for name, role in of_kind("ClusterRole", made).items()
        if name.startswith("posse-controllers")
        for rule in role["rules"]
        for resource in rule["resources"]
    }
    assert plurals <= granted
    assert not left_out & granted
    assert ("secrets" in granted) is ("MPIJob" in kinds)
    defined = {name.partition(".")[0] for name in of_kind("CustomResourceDefinition", made)}
    assert not left_out & defined
    assert ("posse-controllers" in of_kind("Deployment", made)) is bool(kinds)


def test_no_role_has_a_wildcard() -> None:
    for role in (*of_kind("Role").values(), *of_kind("ClusterRole").values()):
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_secrets_are_never_listed() -> None:
    verbs = [
        verb
        for role in (*of_kind("Role").values(), *of_kind("ClusterRole").values())
        for rule in role["rules"]
        if "secrets" in rule["resources"]
        for verb in rule["verbs"]
    ]
    assert sorted(verbs) == ["create", "get", "get", "update"]


@pytest.mark.parametrize("name", ["posse-scheduler", "posse-controllers"])
def test_a_lease_is_renewed_by_name_alone(name: str) -> None:
    role = of_kind("Role")[name]
    by_name = {verb for rule in role["rules"] if "resourceNames" in rule for verb in rule["verbs"]}
    at_large = [rule["verbs"] for rule in role["rules"] if "resourceNames" not in rule]
    assert by_name == {"get", "update"}
    assert at_large == [["create"]]
    assert {n for rule in role["rules"] for n in rule.get("resourceNames", [])} == {name}


@pytest.mark.parametrize(
    ("role", "into"), [("posse-view", ["admin", "edit", "view"]), ("posse-edit", ["admin", "edit"])]
)
def test_user_roles_are_part_of_the_built_in_ones(role: str, into: list[str]) -> None:
    labels = of_kind("ClusterRole")[role]["metadata"]["labels"]
    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    assert sorted(k.removeprefix(prefix) for k in labels if k.startswith(prefix)) == into


def test_monitors_only_where_asked_for() -> None:
    assert of_kind("ServiceMonitor") == {}
    assert list(of_kind("ServiceMonitor", objects(Options(monitored=True)))) == [
        "posse-scheduler",
        "posse-controllers",
        "posse-admission",
    ]


def test_the_webhook_asks_about_our_kinds_and_our_pods_alone() -> None:
    made = objects(Options(kinds=("TFJob",), claims=("posse", "volcano")))
    hooks = [
        webhook
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        for webhook in of_kind(kind, made)["posse-admission"]["webhooks"]
    ]
    asked = {resource for hook in hooks for rule in hook["rules"] for resource in rule["resources"]}
    assert asked == {"tfjobs", "podgroups", "queues", "pods"}
    (pods,) = [hook for hook in hooks if hook["name"].startswith("pods.")]
    assert pods["failurePolicy"] == "Ignore"
    assert '["posse","volcano"]' in str(pods["matchConditions"])


def test_whoever_answers_or_leads_comes_before_others_at_the_api_server() -> None:
    accounts = set(of_kind("ServiceAccount"))
    for flow in of_kind("FlowSchema").values():
        (rule,) = flow["spec"]["rules"]
        assert {subject["serviceAccount"]["name"] for subject in rule["subjects"]} == accounts


def test_the_webhooks_secret_comes_empty_and_is_its_own_by_name() -> None:
    (secret,) = of_kind("Secret").values()
    assert not {"data", "stringData"} & secret.keys()
    granted = [
        (name, rule)
        for kind in ("Role", "ClusterRole")
        for name, role in of_kind(kind).items()
        for rule in role["rules"]
        if "secrets" in rule["resources"] and not name.endswith("-ssh")
    ]
    assert granted == [
        (
            "posse-admission",
            {
                "apiGroups": [""],
                "resources": ["secrets"],
                "resourceNames": [secret["metadata"]["name"]],
                "verbs": ["get", "update"],
            },
        )
    ]
