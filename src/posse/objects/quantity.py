"""Kubernetes quantities, exactly: integers from the first digit to the last.

What Kubernetes reads as a quantity reads here as the same amount. Three things that it lets pass
by oversight are errors here, since nobody means them: text without a digit (`m`, `.`), an exponent
beyond 99 (`1e999`), and surrounding blanks.

Amounts beyond 2**63 - 1 base units are capped there, as Kubernetes caps binary ones: whoever asks
for that much is told that nothing fits, rather than that the number was odd.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from posse.objects.meta import Amount

MAX_BASE_UNITS = 2**63 - 1

_NANO = 10**9
_MILLI = 10**6
_LONGEST = 100
_LARGEST_EXPONENT = 99

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_NAMES = ("", *_BINARY)

_NUMBER = r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
_SUFFIX = r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<exponent>[+-]?[0-9]+))"
_QUANTITY = re.compile(_NUMBER + _SUFFIX)
_PERMISSIVE = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*")

_FORMAT = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
_NUMERIC = "unable to parse numeric part of quantity"
_SUFFIXES = "unable to parse quantity's suffix"


class QuantityError(ValueError):
    """`field` holds `value`, which is not a quantity; `why` is Kubernetes' sentence."""

    def __init__(self, field: str, value: object, why: str) -> None:
        super().__init__(f"{field}: {_shown(value)}: {why}")
        self.field = field
        self.value = value
        self.why = why


class Quantity(msgspec.Struct, frozen=True, order=True, gc=False):
    """An exact amount in billionths, the finest grain that Kubernetes keeps."""

    nano: int

    @property
    def milli(self) -> int:
        """Thousandths, rounded away from zero."""
        return _divide_up(self.nano, _MILLI)

    @property
    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _divide_up(self.nano, _NANO)


def parse(text: Amount, field: str = "quantity") -> Quantity:
    """The amount that `text` says, finer grains than a billionth rounded up."""
    return Quantity(_read(text, field)[0])


def base_units(resource: str, value: Amount, field: str = "") -> int:
    """cpu in thousandths, everything else in whole units, both rounded up and capped."""
    try:
        return _base_units(resource == "cpu", value)
    except QuantityError as error:
        raise QuantityError(field or resource, value, error.why) from None
    except TypeError:
        raise QuantityError(field or resource, value, _FORMAT) from None


def milli_units(value: Amount, field: str = "quantity") -> int:
    """Thousandths, rounded up, not capped: the grain in which the API stores requests."""
    try:
        return _milli_units(value)
    except QuantityError as error:
        raise QuantityError(field, value, error.why) from None
    except TypeError:
        raise QuantityError(field, value, _FORMAT) from None


def format_base_units(resource: str, amount: int) -> str:
    """Base units for people and for patches: `1500m` cpu, `2Gi` memory, `8` GPUs."""
    if resource == "cpu":
        return _decimal(amount * _MILLI, exponential=False)
    if resource in ("memory", "storage", "ephemeral-storage") or "hugepages-" in resource:
        return _binary(amount)
    return str(amount)


def canonical(text: Amount, field: str = "quantity") -> str:
    """`text` as an API server gives it back.

    The family of the suffix is kept: `1024Mi` is `1Gi`, `1000m` is `1` and `100e1` is `1e3`.
    Text that the server takes for canonical comes back as it is, down to a leading `+`.
    """
    nano, match = _read(text, field)
    suffix, exponent = match["suffix"], match["exponent"]
    if _kept_verbatim(match):
        return str(text)
    if nano == 0:
        return "0"
    if suffix in _BINARY:
        nano = max(-MAX_BASE_UNITS * _NANO, min(MAX_BASE_UNITS * _NANO, nano))
        if nano % _NANO == 0 and abs(nano) >= 1024 * _NANO:
            return _binary(nano // _NANO)
    return _decimal(nano, exponential=exponent is not None)


def canonical_milli(text: Amount, field: str = "quantity") -> str:
    """`canonical`, of an amount that the server first rounds up to thousandths."""
    nano, match = _read(text, field)
    if nano % _MILLI == 0:
        return canonical(text, field)
    return _decimal(_divide_up(nano, _MILLI) * _MILLI, exponential=match["exponent"] is not None)


@lru_cache(maxsize=4096, typed=True)
def _base_units(is_cpu: bool, value: Amount) -> int:
    amount = _divide_up(_read(value, "")[0], _MILLI if is_cpu else _NANO)
    return max(-MAX_BASE_UNITS, min(MAX_BASE_UNITS, amount))


@lru_cache(maxsize=4096, typed=True)
def _milli_units(value: Amount) -> int:
    return _divide_up(_read(value, "")[0], _MILLI)


def _read(value: object, field: str) -> tuple[int, re.Match[str]]:
    """Billionths, rounded away from zero, and the parts of the text they were read from."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(field, value, _FORMAT)
    text = value if isinstance(value, str) else repr(value)
    match = _QUANTITY.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        raise QuantityError(field, value, _complaint(text))
    whole, part = match["whole"], match["part"] or ""
    if not whole and not part:
        raise QuantityError(field, value, _FORMAT)
    number = int(whole + part)
    exponent = _DECIMAL.get(match["suffix"] or "", 0)
    if match["exponent"] is not None:
        exponent = int(match["exponent"])
        if abs(exponent) > _LARGEST_EXPONENT:
            raise QuantityError(field, value, _SUFFIXES)
    number <<= _BINARY.get(match["suffix"] or "", 0)
    power = 9 + exponent - len(part)
    nano = number * 10**power if power >= 0 else _divide_up(number, 10**-power)
    return (-nano if match["sign"] == "-" else nano), match


def _complaint(text: str) -> str:
    if len(text) > _LONGEST or not _PERMISSIVE.fullmatch(text):
        return _FORMAT
    return _NUMERIC if text.count(".") > 1 else _SUFFIXES


def _kept_verbatim(match: re.Match[str]) -> bool:
    """Whether Kubernetes takes the text for canonical and returns it untouched.

    Its test is quick rather than exact: `1.500` and `+1` pass.
    """
    digits = match["whole"].lstrip("0")
    part = match["part"] or ""
    suffix = match["suffix"]
    if suffix in _BINARY:
        room = 15 - len(digits) - _BINARY[suffix] * 3 // 10 - 1
        return not match["part"] and room >= 0 and int(digits or "0") & 7 != 0
    if match["exponent"] is not None:
        exponent = int(match["exponent"])
    else:
        exponent = _DECIMAL[suffix or ""]
    shifted = (digits or "0") + part
    scale = exponent - len(part)
    return (
        len(shifted) <= 18
        and scale >= -9
        and scale % 3 == 0
        and not shifted.endswith("000")
        and not shifted.startswith("0")
    )


def _decimal(nano: int, *, exponential: bool) -> str:
    """The largest power of a thousand that leaves no fraction."""
    exponent = -9
    while nano and nano % 1000 == 0 and (exponential or exponent < 18):
        nano //= 1000
        exponent += 3
    if nano == 0:
        return "0"
    if exponential:
        return f"{nano}e{exponent}" if exponent else str(nano)
    return f"{nano}{_DECIMAL_NAMES[exponent]}"


def _binary(amount: int) -> str:
    power = 0
    while amount and amount % 1024 == 0 and power < len(_BINARY_NAMES) - 1:
        amount //= 1024
        power += 1
    return f"{amount}{_BINARY_NAMES[power]}"


def _divide_up(number: int, divisor: int) -> int:
    """The quotient rounded away from zero."""
    return -(-number // divisor) if number >= 0 else number // divisor


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return f'"{text[:60]}..."' if len(text) > 64 else f'"{text}"'
