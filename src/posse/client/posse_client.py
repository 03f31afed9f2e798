"""PosseClient: the Python API, and what the command line sits on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from posse.client.errors import PosseError
from posse.client.happenings import Happening
from posse.client.jobs import TrainingJob
from posse.client.nodes import NodeUse
from posse.client.session import Session
from posse.client.trainers import Trainer, trainer_named
from posse.client.training import Submission, Training
from posse.kube import connect
from posse.kube.config import selected
from posse.world import World


class PosseClient:
    """Plain calls on one cluster; close it, or use it in a `with` block.

    >>> with PosseClient() as client:  # doctest: +SKIP
    ...     client.submit(MPIJob(name="resnet", image="train:1", workers=4, gpus=2, command="..."))
    ...     print(client.why("resnet"))
    """

    def __init__(
        self,
        *,
        kubeconfig: str | Path | None = None,
        context: str | None = None,
        namespace: str | None = None,
        world: World | None = None,
    ) -> None:
        settings = selected(kubeconfig, context)
        self.namespace = namespace or settings.namespace or "default"
        self._world = world or World.real()
        self._session = Session()

        async def begin() -> Training:
            # Made on the session's loop: pooled connections belong to the loop they were made on.
            return Training(connect(settings, self._world), self.namespace)

        self._training = self._session.call(begin())

    def submit(self, job: Submission, *, dry_run: bool = False) -> dict[str, Any]:
        """Create the job; the object as the cluster stored it."""
        _, created = self._session.call(self._training.submit(job, dry_run=dry_run))
        return created

    def get(self, name: str, type: str | None = None) -> TrainingJob:
        return self._session.call(self._training.get(name, _trainer(type)))

    def jobs(self, type: str | None = None, *, all_namespaces: bool = False) -> list[TrainingJob]:
        return self._session.call(
            self._training.jobs(_trainer(type), all_namespaces=all_namespaces)
        )

    def delete(self, name: str, type: str | None = None) -> Trainer:
        return self._session.call(self._training.delete(name, _trainer(type)))

    def why(self, name: str, type: str | None = None) -> str:
        """One sentence: why the job waits and what would help, or that it does not wait."""
        return self._session.call(self._training.why(name, _trainer(type))).sentence

    def wait(
        self,
        name: str,
        status: str = "RUNNING",
        timeout: float | None = None,
        type: str | None = None,
    ) -> TrainingJob:
        """The job once it has the status, or one that it cannot leave any more."""
        return self._session.call(self._training.wait(name, status, timeout, _trainer(type)))

    def logs(self, name: str, type: str | None = None, **options: Any) -> Iterator[bytes]:
        """The logs of the job's chief or of one `instance`, chunk by chunk."""
        logs = self._training.logs(name, trainer=_trainer(type), **options)
        return self._session.iterate(logs)

    def events(self, name: str, type: str | None = None) -> list[Happening]:
        """What happened to the job, its group and its pods, oldest first."""
        return self._session.call(self._training.events(name, _trainer(type)))

    def nodes(self) -> list[NodeUse]:
        return self._session.call(self._training.nodes())

    def close(self) -> None:
        self._session.call(self._training.close())
        self._session.close()

    def __enter__(self) -> PosseClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _trainer(alias: str | None) -> Trainer | None:
    if alias is None:
        return None
    trainer = trainer_named(alias)
    if trainer is None:
        raise PosseError(f"{alias!r} is not a kind of training job")
    return trainer
