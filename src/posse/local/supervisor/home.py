"""The directory of one embedded cluster: everything it keeps, readable by its user alone.

Whether a cluster runs is told by a lock that the kernel releases with its holder, never by a pid
that may have become somebody else's.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from posse.kube.config import user_home
from posse.local.supervisor.errors import ClusterError
from posse.local.supervisor.states import Address
from posse.world import World

T = TypeVar("T")

log = logging.getLogger(__name__)

POLL = 0.02
TOKENS = ("admin", "scheduler", "controllers", "core", "node", "kubelet")


@dataclass(frozen=True, slots=True)
class Home:
    path: Path

    @staticmethod
    def find(environment: Mapping[str, str] | None = None) -> Home:
        """$POSSE_HOME, else ~/.posse."""
        environment = os.environ if environment is None else environment
        named = environment.get("POSSE_HOME")
        return Home(Path(named) if named else user_home(environment) / ".posse").absolute()

    def absolute(self) -> Home:
        return Home(self.path.absolute())

    @property
    def options(self) -> Path:
        return self.path / "options.json"

    @property
    def state(self) -> Path:
        return self.path / "state.json"

    @property
    def address(self) -> Path:
        """Where the API server listens, written by itself as soon as it does."""
        return self.path / "address.json"

    @property
    def contexts(self) -> Path:
        """Which kubeconfig files name this cluster, and what was selected there before."""
        return self.path / "contexts.json"

    @property
    def identity(self) -> Path:
        return self.path / "identity"

    @property
    def policy(self) -> Path:
        """The scheduler's policy, where its user wants another than the default."""
        return self.path / "policy.yaml"

    @property
    def captures(self) -> Path:
        """Where the scheduler records what it decides, if its user made the directory."""
        return self.path / "captures"

    @property
    def store(self) -> Path:
        return self.path / "store.db"

    @property
    def pki(self) -> Path:
        return self.path / "pki"

    @property
    def authority(self) -> Path:
        return self.pki / "ca.crt"

    def certificate(self, service: str) -> Path:
        return self.pki / f"{service}.crt"

    def key(self, service: str) -> Path:
        return self.pki / f"{service}.key"

    def token(self, user: str) -> Path:
        return self.path / "tokens" / user

    def log(self, service: str) -> Path:
        return self.path / "logs" / f"{service}.log"

    def lock(self, name: str) -> Path:
        return self.path / "locks" / name

    @property
    def pods(self) -> Path:
        """What the pods of this machine have, each in a directory of its own."""
        return self.path / "pods"

    @property
    def watch(self) -> Path:
        """A pipe that is held open by whoever watches over the pods."""
        return self.path / "locks" / "watch"

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Pods go on as long as somebody watches over them, and a little longer."""
        with suppress(FileExistsError):
            os.mkfifo(self.watch, 0o600)
        descriptor = os.open(self.watch, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            yield
        finally:
            os.close(descriptor)

    @property
    def partial(self) -> Path:
        """Where files lie until they are whole; a kill may leave some."""
        return self.path / "partial"

    def prepare(self) -> None:
        """Make the directories; nobody else may look into them."""
        try:
            for directory in (
                self.path,
                self.pki,
                self.partial,
                *(self.path / d for d in ("tokens", "logs", "locks")),
            ):
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                directory.chmod(0o700)
        except OSError as error:
            raise ClusterError(f"cannot use {self.path}: {error.strerror or error}") from error

    def write(self, path: Path, content: bytes) -> None:
        """Replace a file in one step, mode 0600: a reader sees the old one or the new one."""
        handle, name = tempfile.mkstemp(dir=self.partial, prefix=f"{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def save(self, path: Path, value: object) -> None:
        self.write(path, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

    def load(self, path: Path, model: type[T]) -> T | None:
        """What a file says, or None where there is none that can be read."""
        try:
            return msgspec.json.decode(path.read_bytes(), type=model)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    async def listening(self) -> Address:
        """Where the API server listens, once it does."""
        found: list[Address] = []

        def known() -> bool:
            address = self.load(self.address, Address)
            if address is not None:
                found.append(address)
            return address is not None

        await until(known)
        return found[0]

    def secret(self, user: str, world: World) -> str:
        """The user's token, made when it is first asked for."""
        return self._kept(self.token(user), lambda: world.entropy(32).hex())

    def name(self, world: World) -> str:
        """Who this cluster's services are in their leases: the same after every restart."""
        return self._kept(self.identity, lambda: f"posse-{world.suffix(8)}")

    def _kept(self, path: Path, make: Callable[[], str]) -> str:
        """The text of a file; where there is none to read, it is made."""
        try:
            text = path.read_bytes().decode("ascii").strip()
        except (FileNotFoundError, UnicodeDecodeError):
            text = ""
        if not (text and text.isprintable()):
            text = make()
            self.write(path, text.encode())
        return text

    def held(self, name: str) -> bool:
        """Somebody holds that lock now."""
        try:
            descriptor = os.open(self.lock(name), os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return False
        try:
            return not _try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)

    def holder(self, name: str) -> int | None:
        """The process that holds the lock now, as it has signed it."""
        if not self.held(name):
            return None
        try:
            return int(self.lock(name).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    @contextmanager
    def holding(self, name: str) -> Iterator[bool]:
        """Take the lock if it is free; says whether it is ours."""
        descriptor = os.open(self.lock(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            ours = _try_lock(descriptor, fcntl.LOCK_EX)
            if ours:
                _sign(descriptor)
            yield ours
        finally:
            os.close(descriptor)

    @asynccontextmanager
    async def waiting_for(self, name: str, ceiling: float, otherwise: str) -> AsyncIterator[None]:
        """Hold the lock, waiting for it up to `ceiling` seconds; `otherwise` is the complaint."""
        try:
            async with asyncio.timeout(ceiling):
                while (descriptor := self._try(name)) is None:  # noqa: ASYNC110
                    await asyncio.sleep(POLL)
        except TimeoutError:
            raise ClusterError(otherwise) from None
        try:
            yield
        finally:
            os.close(descriptor)

    def _try(self, name: str) -> int | None:
        """The lock's descriptor if it is ours now, of the file that bears its name now.

        A purge deletes the file under whoever waits for it; a lock on the old one is no lock.
        """
        path = self.lock(name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _try_lock(descriptor, fcntl.LOCK_EX) and path.exists() and _same(descriptor, path):
            _sign(descriptor)
            return descriptor
        os.close(descriptor)
        return None


def _same(descriptor: int, path: Path) -> bool:
    return os.path.samestat(os.fstat(descriptor), path.stat())


def _sign(descriptor: int) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    except OSError as error:  # a full disk: the lock is ours all the same
        log.warning("a lock could not be signed: %s", error)


async def until(holds: Callable[[], bool]) -> None:
    """Files and locks of other processes wake nobody: look again and again."""
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(POLL)


def _try_lock(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True
