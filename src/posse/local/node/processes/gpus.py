"""The machine's NVIDIA GPUs: how many there are, and which container has which."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable
from typing import Protocol

import pynvml  # type: ignore[import-untyped]

log = logging.getLogger(__name__)

RESOURCE = "nvidia.com/gpu"


class Inventory(Protocol):
    def indices(self) -> list[int]:
        """The numbers by which CUDA will know the GPUs, in the order of their PCI addresses."""
        ...


class Nvml:
    """What the driver says. Without a driver there are none."""

    def indices(self) -> list[int]:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            log.info("no GPUs: %s", error)
            return []
        try:
            return list(range(pynvml.nvmlDeviceGetCount()))
        except pynvml.NVMLError as error:
            log.warning("the GPUs cannot be counted: %s", error)
            return []
        finally:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()


class Allotment:
    """Each GPU belongs to one container at most, from its start until its pod is over."""

    def __init__(self, indices: Iterable[int]) -> None:
        self._all = sorted(indices)
        self._held: dict[tuple[str, str], tuple[int, ...]] = {}

    @property
    def any(self) -> bool:
        return bool(self._all)

    def take(self, uid: str, container: str, count: int) -> tuple[int, ...] | None:
        """The lowest free ones; what the container has is kept. None where too few are free."""
        held = self._held.get((uid, container))
        if held is not None and len(held) == count:
            return held
        used = {index for indices in self._held.values() for index in indices}
        free = [index for index in self._all if index not in used]
        if len(free) < count:
            return None
        self._held[uid, container] = tuple(free[:count])
        return self._held[uid, container]

    def keep(self, uid: str, container: str, indices: Iterable[int]) -> None:
        """What an earlier agent gave."""
        self._held[uid, container] = tuple(indices)

    def release(self, uid: str) -> None:
        for key in [key for key in self._held if key[0] == uid]:
            del self._held[key]

    def variables(self, indices: Iterable[int]) -> dict[str, str]:
        """How CUDA is told; where there are GPUs, a container without one sees none."""
        if not self._all:
            return {}
        visible = ",".join(str(index) for index in indices)
        return {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": visible,
            "NVIDIA_VISIBLE_DEVICES": visible or "void",
        }
