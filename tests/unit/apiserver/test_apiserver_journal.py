"""What the journal has promised is there after a restart, and what it refused is not."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from posse.local.apiserver.journal import JournalError, Record, SqliteJournal


def record(revision: int, name: str = "a", value: bytes | None = b"{}") -> Record:
    return Record(revision, "pods", "default", name, value)


def reopened(path: Path) -> tuple[list[Record], int]:
    journal = SqliteJournal(path)
    try:
        return list(journal.load()), journal.revision
    finally:
        journal.close()


async def test_a_new_journal_is_empty(tmp_path: Path) -> None:
    assert reopened(tmp_path / "store.db") == ([], 0)


async def test_appended_records_are_there_after_a_restart(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    await asyncio.gather(*(journal.append(record(n, f"p{n}")) for n in range(1, 6)))
    journal.close()
    records, revision = reopened(tmp_path / "store.db")
    assert [(r.revision, r.name) for r in records] == [(n, f"p{n}") for n in range(1, 6)]
    assert revision == 5


async def test_of_one_object_the_last_state_is_kept(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    await journal.append(record(1, value=b"old"))
    await journal.append(record(2, value=b"new"))
    journal.close()
    assert reopened(tmp_path / "store.db") == ([record(2, value=b"new")], 2)


async def test_a_removal_leaves_nothing_but_its_revision(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    await journal.append(record(1))
    await journal.append(record(2, value=None))
    journal.close()
    assert reopened(tmp_path / "store.db") == ([], 2)


async def test_closing_writes_what_nobody_waited_for(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    waiting = [journal.append(record(n, f"p{n}")) for n in range(1, 101)]
    journal.close()
    assert len(reopened(tmp_path / "store.db")[0]) == 100
    await asyncio.gather(*waiting)


async def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    SqliteJournal(tmp_path / "store.db").close()
    assert (tmp_path / "store.db").stat().st_mode & 0o777 == 0o600


async def test_a_second_server_on_the_same_file_is_refused(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    try:
        with pytest.raises(JournalError, match="in use by another process"):
            SqliteJournal(tmp_path / "store.db")
    finally:
        journal.close()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"not a database at all, and long enough" * 100)
    with pytest.raises(JournalError, match="cannot be read"):
        SqliteJournal(tmp_path / "store.db")


async def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    foreign = sqlite3.connect(tmp_path / "store.db")
    foreign.execute("CREATE TABLE theirs (x)")
    foreign.commit()
    foreign.close()
    with pytest.raises(JournalError, match="not a store of Posse"):
        SqliteJournal(tmp_path / "store.db")


async def test_another_format_is_named(tmp_path: Path) -> None:
    SqliteJournal(tmp_path / "store.db").close()
    later = sqlite3.connect(tmp_path / "store.db")
    later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(JournalError, match="format 99"):
        SqliteJournal(tmp_path / "store.db")


async def test_a_damaged_page_is_noticed_at_the_start(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    await asyncio.gather(*(journal.append(record(n, f"p{n}", b"x" * 2000)) for n in range(1, 200)))
    journal.close()
    content = bytearray((tmp_path / "store.db").read_bytes())
    content[8192:16384] = b"\xff" * 8192
    (tmp_path / "store.db").write_bytes(bytes(content))
    with pytest.raises(JournalError, match=r"damaged|cannot be read"):
        SqliteJournal(tmp_path / "store.db")


class Full:
    """A disk that is full until told otherwise."""

    def __init__(self, journal: SqliteJournal) -> None:
        self.journal = journal
        pages = journal._database.execute("PRAGMA page_count").fetchone()[0]
        journal._database.execute(f"PRAGMA max_page_count = {pages}")

    def empty(self) -> None:
        self.journal._database.execute("PRAGMA max_page_count = 1000000")


async def test_a_full_disk_fails_the_write_and_all_that_may_rest_on_it(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    Full(journal)
    big = journal.append(record(1, "big", b"x" * 1_000_000))
    after = journal.append(record(2, "small", b"x"))
    for durable in (big, after):
        with pytest.raises(JournalError, match="full"):
            await durable
    journal.close()
    assert reopened(tmp_path / "store.db") == ([], 0)


async def test_a_disk_with_room_again_is_written_again(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "store.db")
    disk = Full(journal)
    with pytest.raises(JournalError):
        await journal.append(record(1, "big", b"x" * 1_000_000))
    disk.empty()
    await journal.append(record(2, "big", b"x" * 1_000_000))
    journal.close()
    assert [r.revision for r in reopened(tmp_path / "store.db")[0]] == [2]
