"""Posse on a cluster that somebody else runs: what is installed there, and how it comes and goes.

`objects` says what there is to be, as data; the Helm chart and `deploy/install.yaml` are written
from the same. `surveying` finds out who owns which kind and which scheduler name today, `planning`
decides what Posse takes, `rehearsing` tries it, `applying` and `removing` do it.
"""

from __future__ import annotations

from posse.client.installing.objects import objects
from posse.client.installing.options import NAMESPACE, Options, default_image

__all__ = ["NAMESPACE", "Options", "default_image", "objects"]
