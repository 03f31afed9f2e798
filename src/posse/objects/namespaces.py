"""Namespaces, as far as their names and labels go."""

from __future__ import annotations

from posse.objects.meta import KubeObject


class Namespace(KubeObject):
    pass
