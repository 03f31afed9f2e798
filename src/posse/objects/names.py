"""Which names Kubernetes accepts where, and how it words what is wrong with one.

Every function returns messages, none for a name that is right. The words are part of the API:
programs and people compare them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

NameRule = Callable[[str], list[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORED = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"

_IS_LABEL = re.compile(_LABEL)
_IS_SUBDOMAIN = re.compile(_SUBDOMAIN)
_IS_UNDERSCORED = re.compile(rf"{_UNDERSCORED}(\.{_UNDERSCORED})*")
_IS_DNS_1035 = re.compile(_DNS_1035)
_IS_KEY = re.compile(_KEY)
_IS_LABEL_VALUE = re.compile(f"({_KEY})?")
_IS_CONFIG_KEY = re.compile(_CONFIG_KEY)
_IS_PORT_NAME = re.compile("[-a-z0-9]+")
_IS_PRINTABLE = re.compile("[ -<>-~]*")

_ENDS = "and must start and end with an alphanumeric character"


def dns_label_problems(name: str) -> list[str]:
    """RFC 1123 label: a namespace, a container, a volume."""
    wrong = _too_long(name, 63)
    if not _IS_LABEL.fullmatch(name):
        if _IS_SUBDOMAIN.fullmatch(name):
            wrong.append("must not contain dots")
        else:
            words = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
                f"or '-', {_ENDS}"
            )
            wrong.append(by_regex(words, _LABEL, "my-name", "123-abc"))
    return wrong


def dns_subdomain_problems(name: str) -> list[str]:
    """RFC 1123 subdomain: most objects."""
    wrong = _too_long(name, 253)
    if not _IS_SUBDOMAIN.fullmatch(name):
        words = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            f"'-' or '.', {_ENDS}"
        )
        wrong.append(by_regex(words, _SUBDOMAIN, "example.com"))
    return wrong


def underscored_subdomain_problems(name: str) -> list[str]:
    """RFC 1123 subdomain with underscores: search domains of a resolver."""
    wrong = _too_long(name, 253)
    if not _IS_UNDERSCORED.fullmatch(name):
        words = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            f"'_', '-' or '.', {_ENDS}"
        )
        wrong.append(by_regex(words, rf"{_UNDERSCORED}(\.{_UNDERSCORED})*", "example.com"))
    return wrong


def dns_1035_label_problems(name: str) -> list[str]:
    """RFC 1035 label, which starts with a letter: a service, a job whose pods are addressed."""
    wrong = _too_long(name, 63)
    if not _IS_DNS_1035.fullmatch(name):
        words = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
            "with an alphabetic character, and end with an alphanumeric character"
        )
        wrong.append(by_regex(words, _DNS_1035, "my-name", "abc-123"))
    return wrong


def qualified_name_problems(name: str) -> list[str]:
    """A label's key, a finalizer, a resource: a name with an optional domain before a slash."""
    wrong: list[str] = []
    prefix, slash, key = name.rpartition("/")
    if slash:
        if "/" in prefix:
            example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            return [f"a valid label key {_key_words()} {example}"]
        if not prefix:
            wrong.append("prefix part must be non-empty")
        else:
            wrong += [f"prefix part {message}" for message in dns_subdomain_problems(prefix)]
    if not key:
        wrong.append("name part must be non-empty")
    elif _size(key) > 63:
        wrong.append("name part must be no more than 63 bytes")
    if not _IS_KEY.fullmatch(key):
        wrong.append(f"name part {_key_words()}")
    return wrong


def annotation_key_problems(key: str) -> list[str]:
    """As a label's key, in whichever case."""
    return qualified_name_problems(key.lower())


def label_value_problems(value: str) -> list[str]:
    wrong: list[str] = []
    if _size(value) > 63:
        wrong.append("must be no more than 63 bytes")
    if not _IS_LABEL_VALUE.fullmatch(value):
        words = (
            "a valid label must be an empty string or consist of alphanumeric characters, "
            f"'-', '_' or '.', {_ENDS}"
        )
        wrong.append(by_regex(words, f"({_KEY})?", "MyValue", "my_value", "12345"))
    return wrong


def port_name_problems(name: str) -> list[str]:
    """A service name of RFC 6335: a port of a container or of a service."""
    wrong = _too_long(name, 15)
    if not _IS_PORT_NAME.fullmatch(name):
        wrong.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        wrong.append("must contain at least one letter (a-z)")
    if "--" in name:
        wrong.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        wrong.append("must not begin or end with a hyphen")
    return wrong


def config_key_problems(key: str) -> list[str]:
    """A key of a ConfigMap or a Secret, which may become the name of a file."""
    wrong = _too_long(key, 253)
    if not _IS_CONFIG_KEY.fullmatch(key):
        words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        wrong.append(by_regex(words, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if key in (".", ".."):
        wrong.append(f"must not be '{key}'")
    elif key.startswith(".."):
        wrong.append("must not start with '..'")
    return wrong


def environment_name_problems(name: str) -> list[str]:
    if not name:
        return ["environment variable name must be non-empty"]
    if not _IS_PRINTABLE.fullmatch(name):
        return [
            "a valid environment variable name must consist only of printable ASCII characters "
            "other than '='"
        ]
    return []


def generated_name_problems(rule: NameRule, name: str) -> list[str]:
    """`rule` for a generateName: a trailing dash will be followed by more."""
    if len(name) > 1 and name.endswith("-"):
        name = name[:-2] + "a"
    return rule(name)


def range_problems(value: int, low: int, high: int) -> list[str]:
    return [] if low <= value <= high else [f"must be between {low} and {high}, inclusive"]


def port_number_problems(port: int) -> list[str]:
    return range_problems(port, 1, 65535)


def _size(name: str) -> int:
    return len(name.encode("utf-8", "surrogatepass"))


def _too_long(name: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters"] if _size(name) > limit else []


def _key_words() -> str:
    words = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
    return by_regex(words, _KEY, "MyName", "my.name", "123-abc")


def by_regex(words: str, regex: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{regex}')"
