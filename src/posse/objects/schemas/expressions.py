"""Go's regular expressions, as schemas carry them, for Python's engine."""

from __future__ import annotations

import re
from functools import lru_cache

_POSIX_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_POSIX = re.compile(r"\[:(\^?)(\w+):\]")


@lru_cache(maxsize=1024)
def go_pattern(text: str) -> re.Pattern[str]:
    """`text` compiled with Go's meaning; ValueError where Go would refuse it too.

    In Go `$` is the very end of the text, \\d \\w \\s are ASCII, and neither look-around nor
    back-references exist.
    """
    try:
        return re.compile(_translated(text), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _translated(text: str) -> str:
    out: list[str] = []
    in_class = False
    index = 0
    while index < len(text):
        char = text[index]
        step = char
        if char == "\\":
            step = text[index : index + 2]
            if len(step) < 2:
                raise ValueError("trailing backslash at end of expression")
            out.append(_escape(step, in_class))
        elif in_class:
            if posix := _POSIX.match(text, index):
                step = posix[0]
                if posix[1] or posix[2] not in _POSIX_CLASSES:
                    raise ValueError(f"invalid character class range: `{step}`")
                out.append(_POSIX_CLASSES[posix[2]])
            elif char == "[":
                out.append(r"\[")
            else:
                in_class = char != "]"
                out.append(char)
        elif char == "[":
            # A bracket that opens with `]` or `^]` holds it as a plain character.
            opening = re.compile(r"\[\^?\]?").match(text, index)
            step = opening[0] if opening else char
            in_class = True
            out.append(step)
        elif char == "$":
            out.append(r"\Z")
        elif text.startswith(("(?=", "(?!", "(?<=", "(?<!", "(?>", "(?#", "(?(", "(?P="), index):
            raise ValueError(f"invalid or unsupported Perl syntax: `{text[index : index + 3]}`")
        elif text.startswith("(?<", index):
            step = "(?<"
            out.append("(?P<")
        else:
            out.append(char)
        index += len(step)
    return _scoped_flags("".join(out))


def _escape(pair: str, in_class: bool) -> str:
    letter = pair[1]
    if letter == "z" and not in_class:
        return r"\Z"
    if letter in "123456789Z":
        raise ValueError(f"invalid escape sequence: `{pair}`")
    if letter in "pPCQE":
        raise ValueError(f"unsupported escape sequence: `{pair}`")
    if letter == "-" or (not letter.isalnum() and letter.isascii()):
        return re.escape(letter) if not in_class else f"\\{letter}"
    return pair


def _scoped_flags(pattern: str) -> str:
    """Python takes `(?i)` only at the start; elsewhere in Go it holds for the rest of its group."""
    match = re.compile(r"\(\?([ims]+)\)").search(pattern)
    if match is None or match.start() == 0:
        return pattern
    return f"{pattern[: match.start()]}(?{match[1]}:{pattern[match.end() :]})"
