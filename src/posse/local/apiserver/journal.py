"""The durable log under the store.

A record is durable when its awaitable resolves, and records become durable in the order in which
they were appended. If one cannot be written, it and every record appended after it, up to the
moment the failure is known, fails: a later record may rest on an earlier one, so none of them may
outlive it. What is appended after that is tried afresh; a full disk that is emptied heals.

Durable means: it survives the death of the process (kill -9). With `power_safe` it survives the
death of the machine too, at the price of one fsync a batch.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

import msgspec

log = logging.getLogger(__name__)

_APPLICATION = 0x506F7373  # "Poss"
_FORMAT = 1
_BATCH = 512
_REMEDY = "it was left as it is: put a copy in its place, or `posse down --purge` to start anew"


class Record(msgspec.Struct, frozen=True, gc=False):
    """One object as of one revision; no value means that it was removed."""

    revision: int
    resource: str
    namespace: str
    name: str
    value: bytes | None


class JournalError(Exception):
    """The journal cannot be read or written; the message is for the person who runs the server."""


class Journal(Protocol):
    revision: int
    """The last durable revision; known once `load` has been read to its end."""

    def load(self) -> Iterable[Record]:
        """Everything that was durable, oldest first where an object appears twice."""
        ...

    def append(self, record: Record) -> asyncio.Future[None]:
        """Resolves when the record is durable; fails with JournalError when it is not."""
        ...

    def close(self) -> None:
        """Writes what was appended and lets go of the file."""
        ...


class MemoryJournal:
    """Durable as long as the process: for virtual time, where a write must take no time at all.

    `records` is every write in order, so that two runs can be compared byte by byte.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: list[Record] = list(records)
        self.revision = max((record.revision for record in self.records), default=0)

    def load(self) -> Iterator[Record]:
        return iter(list(self.records))

    def append(self, record: Record) -> asyncio.Future[None]:
        self.records.append(record)
        self.revision = record.revision
        durable = asyncio.get_running_loop().create_future()
        durable.set_result(None)
        return durable

    def close(self) -> None:
        return None


class SqliteJournal:
    """SQLite in WAL mode with one writer thread.

    Whatever was appended while the last transaction was being committed goes into the next one, so
    that many writers share one commit. The file is locked for as long as it is open: two servers
    can never serve one store.
    """

    def __init__(self, path: Path, *, power_safe: bool = False) -> None:
        self.path = path
        self.revision = 0
        self._database = _open(path, power_safe)
        self._queue: queue.SimpleQueue[tuple[int, Record] | None] = queue.SimpleQueue()
        # Both belong to the event loop. A failure ends an era: what the writer still finds of it
        # in the queue is dropped, since the loop has already been told that it failed.
        self._outstanding: deque[asyncio.Future[None]] = deque()
        self._era = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writer: threading.Thread | None = None

    def load(self) -> Iterator[Record]:
        try:
            rows = self._database.execute(
                "SELECT revision, resource, namespace, name, value FROM objects ORDER BY revision"
            )
            for row in rows:
                yield Record(*row)
            self.revision = self._database.execute("SELECT revision FROM store").fetchone()[0]
        except sqlite3.DatabaseError as error:
            raise _unreadable(self.path, error) from error

    def append(self, record: Record) -> asyncio.Future[None]:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._writer = threading.Thread(target=self._write, name="journal", daemon=True)
            self._writer.start()
        durable: asyncio.Future[None] = self._loop.create_future()
        self._outstanding.append(durable)
        self._queue.put((self._era, record))
        return durable

    def close(self) -> None:
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
            self._writer = None
        self._database.close()

    def _write(self) -> None:
        """The writer thread: takes what has gathered, commits it, tells the loop."""
        failed = -1
        last = False
        while not last:
            batch, last = self._gather()
            records = [record for era, record in batch if era > failed]
            if not records:
                continue
            try:
                self._commit(records)
            except Exception as error:  # whatever it is, nobody may wait for it forever
                log.exception("the store in %s cannot be written", self.path)
                failed = max(era for era, _ in batch)
                reason = JournalError(f"the store in {self.path} cannot be written: {error}")
                self._tell(self._fail, reason)
            else:
                self._tell(self._resolve, records[-1].revision, len(records))

    def _gather(self) -> tuple[list[tuple[int, Record]], bool]:
        batch: list[tuple[int, Record]] = []
        entry = self._queue.get()
        while entry is not None:
            batch.append(entry)
            if len(batch) == _BATCH:
                return batch, False
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                return batch, False
        return batch, True

    def _commit(self, records: list[Record]) -> None:
        database = self._database
        try:
            database.execute("BEGIN IMMEDIATE")
            for record in records:
                key = (record.resource, record.namespace, record.name)
                if record.value is None:
                    database.execute(
                        "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?", key
                    )
                else:
                    database.execute(
                        "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?)",
                        (*key, record.revision, record.value),
                    )
            database.execute("UPDATE store SET revision = ?", (records[-1].revision,))
            database.execute("COMMIT")
        except sqlite3.Error:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise

    def _tell(self, callback: object, *arguments: object) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)  # type: ignore[arg-type]
        except RuntimeError:
            # The loop was closed before the journal: nobody waits for the answer any more.
            return

    def _resolve(self, revision: int, count: int) -> None:
        self.revision = revision
        for _ in range(count):
            durable = self._outstanding.popleft()
            if not durable.done():
                durable.set_result(None)

    def _fail(self, reason: JournalError) -> None:
        self._era += 1
        while self._outstanding:
            durable = self._outstanding.popleft()
            if not durable.done():
                durable.set_exception(reason)
                durable.exception()  # seen: a writer that went away must not raise a warning


def _open(path: Path, power_safe: bool) -> sqlite3.Connection:
    """The database, made if it is not there, refused if it is not ours or not whole."""
    try:
        database = sqlite3.connect(
            path, timeout=2.0, isolation_level=None, check_same_thread=False, cached_statements=16
        )
        try:
            _prepare(database, path, power_safe)
        except BaseException:
            database.close()
            raise
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise JournalError(f"the store in {path} is in use by another process") from error
        raise _unreadable(path, error) from error
    path.chmod(0o600)
    return database


def _prepare(database: sqlite3.Connection, path: Path, power_safe: bool) -> None:
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    application = database.execute("PRAGMA application_id").fetchone()[0]
    version = database.execute("PRAGMA user_version").fetchone()[0]
    tables = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables and application != _APPLICATION:
        raise JournalError(f"{path} is not a store of Posse; it was left as it is")
    if tables and version != _FORMAT:
        raise JournalError(
            f"the store in {path} has format {version}, and this version of Posse reads"
            f" format {_FORMAT}; use the version that wrote it, or `posse down --purge`"
        )
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA synchronous = {'FULL' if power_safe else 'NORMAL'}")
    if not tables:
        _create(database)
        return
    fault = database.execute("PRAGMA quick_check(1)").fetchone()[0]
    if fault != "ok":
        raise JournalError(f"the store in {path} is damaged: {fault}; {_REMEDY}")


def _create(database: sqlite3.Connection) -> None:
    database.execute("BEGIN IMMEDIATE")
    database.execute(f"PRAGMA application_id = {_APPLICATION}")
    database.execute(f"PRAGMA user_version = {_FORMAT}")
    database.execute(
        "CREATE TABLE objects (resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,"
        " revision INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (resource, namespace, name))"
    )
    database.execute("CREATE TABLE store (revision INTEGER NOT NULL)")
    database.execute("INSERT INTO store VALUES (0)")
    database.execute("COMMIT")


def _unreadable(path: Path, error: sqlite3.Error) -> JournalError:
    return JournalError(f"the store in {path} cannot be read: {error}; {_REMEDY}")
