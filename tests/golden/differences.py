"""Answers in which the embedded server is known to differ, and why. One that is mended goes."""

from __future__ import annotations

_APPLY = "server-side apply is not served"
_PAGE = "a path that no API has is answered with a Status, not with plain text"
_DETAILS = "a refusal for its format has no details"
_SAYS_MORE = "says what was wrong with the patch"

DIFFERENCES: dict[tuple[str, str], str] = {
    ("golden-updates", "another uid"): "says once, not twice, that a uid is immutable",
    ("golden-updates", "json test"): _SAYS_MORE,
    ("golden-updates", "json nowhere"): _SAYS_MORE,
    ("golden-updates", "in no format"): _DETAILS,
    ("golden-updates", "applied"): _APPLY,
    ("golden-updates", "in conflict"): _APPLY,
    ("golden-updates", "forced"): _APPLY,
    ("golden-updates", "by nobody"): _APPLY,
    ("golden-lists", "let go"): "the last answer of an object bears the version of its end",
    ("golden-custom", "no such version"): _PAGE,
    ("golden-custom", "no such kind"): _PAGE,
    ("golden-requests", "in no format"): _DETAILS,
    ("golden-requests", "nowhere"): _PAGE,
}
