"""Names that Kubernetes accepts, and its words for those it does not."""

from __future__ import annotations

import pytest

from posse.objects import names
from posse.objects.names import NameRule

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
DNS_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("rule", "good"),
    [
        (names.dns_label_problems, ["a", "1", "a-b", "x" * 63]),
        (names.dns_subdomain_problems, ["a", "a.b", "1.2.3", "x" * 253]),
        (names.dns_1035_label_problems, ["a", "a1", "a-1", "x" * 63]),
        (names.qualified_name_problems, ["a", "A_b.c-d", "example.com/Name", "x" * 63]),
        (names.annotation_key_problems, ["Example.com/Name"]),
        (names.label_value_problems, ["", "a", "A_b.c-d", "x" * 63]),
        (names.port_name_problems, ["http", "a-1", "x" * 15]),
        (names.config_key_problems, ["a", "A_b.c-d", ".hidden", "x" * 253]),
        (names.environment_name_problems, ["A", "a.b-c", "9 lives"]),
    ],
)
def test_good_names(rule: NameRule, good: list[str]) -> None:
    assert {name: rule(name) for name in good if rule(name)} == {}


@pytest.mark.parametrize(
    ("rule", "name", "problems"),
    [
        (names.dns_label_problems, "A", [LABEL]),
        (names.dns_label_problems, "", [LABEL]),
        (names.dns_label_problems, "a.b", ["must not contain dots"]),
        (names.dns_label_problems, "x" * 64, ["must be no more than 63 characters"]),
        (names.dns_label_problems, "a\n", [LABEL]),
        (names.dns_subdomain_problems, "A", [SUBDOMAIN]),
        (names.dns_subdomain_problems, "a_b", [SUBDOMAIN]),
        (names.dns_subdomain_problems, "x" * 254, ["must be no more than 253 characters"]),
        (names.dns_1035_label_problems, "1a", [DNS_1035]),
        (names.qualified_name_problems, "a b", [f"name part {KEY}"]),
        (names.qualified_name_problems, "/a", ["prefix part must be non-empty"]),
        (names.qualified_name_problems, "A/a", [f"prefix part {SUBDOMAIN}"]),
        (names.qualified_name_problems, "a/", ["name part must be non-empty", f"name part {KEY}"]),
        (names.qualified_name_problems, "x" * 64, ["name part must be no more than 63 bytes"]),
        (
            names.qualified_name_problems,
            "a/b/c",
            [
                f"a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. "
                "'example.com/MyName')"
            ],
        ),
        (names.label_value_problems, "x" * 64, ["must be no more than 63 bytes"]),
        (names.port_name_problems, "1", ["must contain at least one letter (a-z)"]),
        (names.port_name_problems, "a--b", ["must not contain consecutive hyphens"]),
        (names.port_name_problems, "a-", ["must not begin or end with a hyphen"]),
        (names.port_name_problems, "x" * 16, ["must be no more than 15 characters"]),
        (names.config_key_problems, "..", ["must not be '..'"]),
        (names.config_key_problems, "..a", ["must not start with '..'"]),
        (names.environment_name_problems, "", ["environment variable name must be non-empty"]),
    ],
)
def test_bad_names(rule: NameRule, name: str, problems: list[str]) -> None:
    assert rule(name) == problems


@pytest.mark.parametrize(("prefix", "good"), [("job-", True), ("-", False), ("Job-", False)])
def test_a_generated_name_may_end_in_a_dash(prefix: str, good: bool) -> None:
    problems = names.generated_name_problems(names.dns_subdomain_problems, prefix)
    assert (problems == []) is good
