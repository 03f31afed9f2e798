"""Which namespaces may use a queue: `posse.dev/namespaces`, names or a label selector."""

from __future__ import annotations

from collections.abc import Mapping

from posse.objects.names import dns_label_problems
from posse.objects.selectors import LabelSelector, SelectorError

_WORDS = ("in", "notin")


class NamespaceRule:
    """Names, or a selector of the namespaces' labels. An empty text names nobody."""

    __slots__ = ("_names", "_selector")

    def __init__(self, text: str) -> None:
        """SelectorError when it is neither."""
        self._names: frozenset[str] = frozenset()
        self._selector: LabelSelector | None = None
        if is_selector(text):
            self._selector = LabelSelector(text)
        else:
            self._names = frozenset(_names(text))

    def admits(self, namespace: str, labels: Mapping[str, str]) -> bool:
        if self._selector is not None:
            return self._selector.matches(labels)
        return namespace in self._names

    def among(self, namespaces: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
        """Those that it admits, sorted. A name counts also before there is such a namespace."""
        if self._selector is None:
            return tuple(sorted(self._names))
        return tuple(
            sorted(name for name, labels in namespaces.items() if self.admits(name, labels))
        )


def is_selector(text: str) -> bool:
    words = text.replace("(", " ").split()
    return "=" in text or "!" in text or any(word in words[1:] for word in _WORDS)


def _names(text: str) -> list[str]:
    names = [name for part in text.split(",") if (name := part.strip())]
    for name in names:
        if dns_label_problems(name):
            raise SelectorError(f"{name!r} is neither the name of a namespace nor a label selector")
    return names
