"""Amounts as people say them."""

from __future__ import annotations

import pytest

from posse.engine.resources import words

GI = 1 << 30


@pytest.mark.parametrize(
    ("resource", "amount", "said"),
    [
        ("nvidia.com/gpu", 1, "1 GPU"),
        ("nvidia.com/gpu", 8, "8 GPUs"),
        ("nvidia.com/gpu", 0, "0 GPUs"),
        ("cpu", 1000, "1 core"),
        ("cpu", 1500, "1.5 cores"),
        ("cpu", 250, "0.25 cores"),
        ("cpu", 100_000, "100 cores"),
        ("memory", 16 * GI, "16Gi memory"),
        ("memory", GI + GI // 2, "1.5Gi memory"),
        ("memory", 128 << 20, "128Mi memory"),
        ("memory", 1000, "1000 memory"),
        ("ephemeral-storage", 2048 * GI, "2Ti ephemeral-storage"),
        ("memory", 1 << 62, "4Ei memory"),
        ("hugepages-2Mi", 4 << 20, "4Mi hugepages-2Mi"),
        ("rdma/hca", 2, "2 rdma/hca"),
        ("pods", 1, "1 pod slot"),
        ("pods", 3, "3 pod slots"),
    ],
)
def test_words(resource: str, amount: int, said: str) -> None:
    assert words(resource, amount) == said
