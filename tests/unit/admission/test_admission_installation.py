"""The objects that put the webhook at the door."""

from __future__ import annotations

from typing import Any

import pytest

from posse.admission.installation import WebhookOptions, webhook_objects
from posse.admission.program import AdmissionConfig
from posse.admission.review import DOORS

OPTIONS = WebhookOptions(image="posse:test", labels={"posse.dev/installed": "true"})


def _kind(name: str, options: WebhookOptions = OPTIONS) -> list[dict[str, Any]]:
    return [obj for obj in webhook_objects(options) if obj["kind"] == name]


def webhooks(options: WebhookOptions = OPTIONS) -> list[dict[str, Any]]:
    return [
        webhook
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        for configuration in _kind(kind, options)
        for webhook in configuration["webhooks"]
    ]


EVERY = webhooks()
NAMES = [webhook["name"] for webhook in EVERY]


def test_equal_options_give_equal_objects() -> None:
    assert webhook_objects(OPTIONS) == webhook_objects(OPTIONS)


@pytest.mark.parametrize("webhook", EVERY, ids=NAMES)
def test_every_webhook_is_quick_harmless_and_away_from_the_system(webhook: dict[str, Any]) -> None:
    assert webhook["sideEffects"] == "None"
    assert webhook["matchPolicy"] == "Equivalent"
    assert webhook["timeoutSeconds"] <= 5
    assert webhook["admissionReviewVersions"] == ["v1"]
    (expression,) = webhook["namespaceSelector"]["matchExpressions"]
    assert expression["operator"] == "NotIn"
    assert expression["values"] == ["kube-system", "posse-system"]
    assert "system:serviceaccounts:posse-system" in webhook["matchConditions"][0]["expression"]


def test_only_deleting_a_queue_needs_the_webhook() -> None:
    needed = [webhook for webhook in EVERY if webhook["failurePolicy"] != "Ignore"]
    (rule,) = [rule for webhook in needed for rule in webhook["rules"]]
    assert rule["resources"] == ["queues"]
    assert rule["operations"] == ["DELETE"]


def test_pods_are_asked_about_only_where_they_are_ours() -> None:
    (pods,) = [w for w in EVERY if any("pods" in rule["resources"] for rule in w["rules"])]
    assert pods["failurePolicy"] == "Ignore"
    assert pods["objectSelector"]["matchExpressions"][0]["operator"] == "DoesNotExist"
    conditions = [one["expression"] for one in pods["matchConditions"]]
    assert any('object.spec.schedulerName in ["posse"]' in one for one in conditions)


def test_there_is_nobody_asked_about_whom_nobody_answers() -> None:
    asked = {
        (group, resource, version)
        for webhook in EVERY
        for rule in webhook["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for version in rule["apiVersions"]
    }
    answered = {
        (group, f"{kind.lower()}s", version)
        for (group, kind), door in DOORS.items()
        for version in door.versions
    }
    assert asked <= answered
    assert {resource for _, resource, _ in asked} == {resource for _, resource, _ in answered}


def test_a_kind_of_another_controller_is_not_asked_about() -> None:
    options = WebhookOptions(image="posse:test", kinds=("TFJob",))
    asked = [
        name for webhook in webhooks(options) for r in webhook["rules"] for name in r["resources"]
    ]
    assert "tfjobs" in asked
    assert "mpijobs" not in asked


def test_names_agree_with_the_program() -> None:
    config = AdmissionConfig()
    service = EVERY[0]["clientConfig"]["service"]
    assert config.names[0] == f"{service['name']}.{service['namespace']}.svc"
    (secret,) = _kind("Secret")
    assert (secret["metadata"]["name"], secret["metadata"]["namespace"]) == (
        config.secret,
        config.namespace,
    )
    assert {
        configuration["metadata"]["name"]
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        for configuration in _kind(kind)
    } == {config.configuration}


def test_a_webhook_may_be_elsewhere() -> None:
    options = WebhookOptions(image="posse:test", url="https://127.0.0.1:9443")
    urls = {webhook["clientConfig"]["url"] for webhook in webhooks(options)}
    assert urls == {"https://127.0.0.1:9443/mutate", "https://127.0.0.1:9443/validate"}


def test_its_rights_are_few_and_named() -> None:
    rules = [
        rule for kind in ("ClusterRole", "Role") for obj in _kind(kind) for rule in obj["rules"]
    ]
    assert "*" not in str(rules)
    for rule in rules:
        writes = set(rule["verbs"]) & {"update", "patch", "delete"}
        assert not writes or rule.get("resourceNames")
        if "secrets" in rule["resources"]:
            assert rule["verbs"] == ["get", "update"]
    assert not any("secrets" in rule["resources"] for rule in _kind("ClusterRole")[0]["rules"])


def test_its_pods_are_restricted() -> None:
    (deployment,) = _kind("Deployment")
    spec = deployment["spec"]["template"]["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (service,) = _kind("Service")
    assert service["spec"]["selector"].items() <= labels.items()


def test_everything_is_marked() -> None:
    for obj in webhook_objects(OPTIONS):
        assert obj["metadata"]["labels"]["posse.dev/installed"] == "true"
