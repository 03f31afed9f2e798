"""Questions about who asks and what they may do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.asking import TOKEN, Server

AUTHORIZATION = "/apis/authorization.k8s.io/v1"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
PODS: dict[str, Any] = {"verb": "create", "resource": "pods", "namespace": "default"}


async def test_whoever_asks_may(server: Server) -> None:
    spec = {"spec": {"resourceAttributes": PODS}}
    said = await server.post(f"{AUTHORIZATION}/selfsubjectaccessreviews", spec)
    assert (said.status, said.body["kind"]) == (201, "SelfSubjectAccessReview")
    assert said.body["status"]["allowed"] is True


async def test_the_rules_are_everything(server: Server) -> None:
    said = await server.post(
        f"{AUTHORIZATION}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}
    )
    assert said.body["status"]["resourceRules"] == [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    ]
    assert said.body["status"]["incomplete"] is False


async def test_a_user_learns_its_own_name(server: Server) -> None:
    said = await server.post(f"{AUTHENTICATION}/selfsubjectreviews", {})
    assert said.status == 201
    assert said.body["status"]["userInfo"]["username"] == "tester"
    assert "system:masters" in said.body["status"]["userInfo"]["groups"]


@pytest.mark.parametrize(
    ("subject", "allowed"),
    [
        ({"user": "tester"}, True),
        ({"user": "system:serviceaccount:default:default"}, False),
        ({"groups": ["system:masters"]}, True),
    ],
)
async def test_only_holders_of_tokens_may(
    server: Server, subject: dict[str, Any], allowed: bool
) -> None:
    spec = {"spec": {"resourceAttributes": PODS, **subject}}
    said = await server.post(f"{AUTHORIZATION}/subjectaccessreviews", spec)
    assert said.body["status"]["allowed"] is allowed
    path = f"{AUTHORIZATION}/namespaces/default/localsubjectaccessreviews"
    assert (await server.post(path, spec)).body["status"]["allowed"] is allowed


@pytest.mark.parametrize(("token", "known"), [(TOKEN, True), (TOKEN[:-1], False)])
async def test_a_token_is_known_or_not(server: Server, token: str, known: bool) -> None:
    said = await server.post(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token}})
    assert said.body["status"].get("authenticated", False) is known


@pytest.mark.parametrize(
    ("what", "body", "code", "words"),
    [
        ("selfsubjectaccessreviews", {"spec": {}}, 422, "exactly one of"),
        (
            "selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": PODS, "nonResourceAttributes": {"path": "/"}}},
            422,
            "cannot be specified in combination",
        ),
        (
            "selfsubjectaccessreviews",
            {"metadata": {"name": "x"}, "spec": {"resourceAttributes": PODS}},
            422,
            "must be empty",
        ),
        ("subjectaccessreviews", {"spec": {"resourceAttributes": PODS}}, 422, "at least one of"),
        ("selfsubjectaccessreviews", {"spec": []}, 400, "cannot be handled"),
        ("selfsubjectaccessreviews", {"kind": "Pod"}, 400, "must be of type"),
        ("selfsubjectrulesreviews", {"spec": {}}, 400, "no namespace"),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(
    server: Server, what: str, body: Any, code: int, words: str
) -> None:
    said = await server.post(f"{AUTHORIZATION}/{what}", body)
    assert said.status == code
    assert words in said.message


async def test_reviews_are_not_kept(server: Server) -> None:
    path = f"{AUTHORIZATION}/selfsubjectaccessreviews"
    assert (await server.get(path)).status == 405
    assert (await server.get(f"{path}/x")).status == 404
    assert (await server.post(f"{AUTHORIZATION}/localsubjectaccessreviews", {})).status == 404
    groups = [group["name"] for group in (await server.get("/apis")).body["groups"]]
    assert {"authorization.k8s.io", "authentication.k8s.io"} <= set(groups)
