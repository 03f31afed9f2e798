"""String formats a schema may ask for; those not listed here hold for every string."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any
from urllib.parse import urlsplit

from posse.objects.times import parse_duration

_HEX = "[0-9a-fA-F]"
_MAC = re.compile(
    rf"{_HEX}{{2}}(?:([:-]){_HEX}{{2}})(?:\1{_HEX}{{2}}){{4}}(?:(?:\1{_HEX}{{2}}){{2}})?"
)
_EMAIL = re.compile(r"(?:[^@<>]*<)?[^@\s<>]+@[^@\s<>]+>?")
_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOSTNAME = re.compile(rf"{_LABEL}|(?:{_LABEL}\.)+[A-Za-z]{{2,63}}", re.ASCII)
_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:[Zz]|[+-]\d\d:?\d\d)", re.ASCII
)
_SCALA_DURATION = re.compile(
    r"\d+ ?(?:ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|"
    r"seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)",
    re.ASCII,
)


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def holds(text: str) -> bool:
        try:
            parse(text)
        except (ValueError, binascii.Error):
            return False
        return True

    return holds


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    return _matches(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def _duration(text: str) -> bool:
    return _SCALA_DURATION.fullmatch(text) is not None or _parses(parse_duration)(text)


def _date_time(text: str) -> bool:
    return _DATE_TIME.fullmatch(text) is not None and _parses(datetime.fromisoformat)(text)


def _date(text: str) -> bool:
    return len(text) == 10 and _parses(date.fromisoformat)(text)


def _uri(text: str) -> bool:
    if any(char <= " " or char == "\x7f" for char in text):
        return False
    try:
        return text.startswith("/") or urlsplit(text).scheme != ""
    except ValueError:
        return False


_ANY_FOUR = f"{_HEX}{{4}}"
_SHORT_NAME = _matches(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_LONG_NAME = _matches(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
FORMATS: dict[str, Callable[[str], bool]] = {
    "byte": lambda text: text != "" and _parses(_bytes)(text),
    "cidr": lambda text: "/" in text and _parses(ipaddress.ip_interface)(text),
    "date": _date,
    "date-time": _date_time,
    "datetime": _date_time,
    "duration": _duration,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "hexcolor": _matches(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": lambda text: _HOSTNAME.fullmatch(text) is not None,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "k8s-long-name": lambda text: len(text) <= 253 and _LONG_NAME(text),
    "k8s-short-name": lambda text: len(text) <= 63 and _SHORT_NAME(text),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uri": _uri,
    "uuid": _uuid(_ANY_FOUR, _ANY_FOUR),
    "uuid3": _uuid(f"3{_HEX}{{3}}", _ANY_FOUR),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
}
# Known to Kubernetes; any string is taken for one.
_UNCHECKED = (
    "bsonobjectid",
    "creditcard",
    "isbn",
    "isbn10",
    "isbn13",
    "password",
    "rgbcolor",
    "ssn",
)
_NUMERIC = {"integer": ("int32", "int64"), "number": ("float", "double")}


def effective_format(schema: dict[str, Any], types: tuple[str, ...]) -> str:
    """The schema's format, or nothing where Kubernetes does not know it for that type."""
    name = schema.get("format", "")
    if types in ((), ("string",)):
        return name if name in FORMATS or name in _UNCHECKED else ""
    return name if len(types) == 1 and name in _NUMERIC.get(types[0], ()) else ""
