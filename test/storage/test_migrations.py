"""Databases of other versions of the schema: brought up to date, or refused."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from memory_node.errors import StorageError
from memory_node.storage import nodes, usage
from memory_node.storage.database import Database
from memory_node.storage.migrations import APPLICATION_ID, Migration, migrate, migrations, version_of


def at_version(path: Path, version: int) -> None:
    """A database as the package left it when `version` was its newest schema."""
    conn = sqlite3.connect(path, isolation_level=None)
    migrate(conn, [migration for migration in migrations() if migration.version <= version])
    conn.execute("INSERT INTO node (id, kind, stamp, last_stamp, session_id, revision) VALUES (7, 1, 0, 0, 1, 1)")
    conn.execute("INSERT INTO meta VALUES ('revision', 1)")
    conn.close()


@pytest.mark.parametrize("version", [migration.version for migration in migrations()])
def test_a_database_of_every_earlier_version_opens_with_its_rows(tmp_path: Path, version: int) -> None:
    at_version(tmp_path / "old.db", version)
    db = Database.open(tmp_path / "old.db")
    newest = migrations()[-1].version
    with db.read() as conn:
        assert version_of(conn, migrations()) == newest
        assert [node.id for node in nodes.fetch(conn, [7])] == [7]
        assert [row[0] for row in conn.execute("SELECT version FROM migration ORDER BY version")] == [
            migration.version for migration in migrations()
        ]
    assert db.new_id() == 8
    assert db.check() == []
    db.close()


def test_0002_a_block_of_recalls_begins_where_the_last_recall_was(tmp_path: Path) -> None:
    at_version(tmp_path / "old.db", 1)
    conn = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    conn.execute("INSERT INTO usage (node_id, blocks, last_recalled) VALUES (7, 2, 1000)")
    conn.close()
    db = Database.open(tmp_path / "old.db")
    db.write(lambda tx: usage.record(tx, {7: 1400}, block_ns=500))
    with db.read() as conn:
        assert [row[3:] for row in usage.of(conn, [7])] == [(2, 1400)]
    db.write(lambda tx: usage.record(tx, {7: 1500}, block_ns=500))
    with db.read() as conn:
        assert [row[3:] for row in usage.of(conn, [7])] == [(3, 1500)]
    db.close()


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [migration.version for migration in migrations()] == list(range(1, len(migrations()) + 1))


def test_a_migration_applies_once_and_one_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    newest = migrations()[-1].version
    good = Migration(newest + 1, "good", "CREATE TABLE more (x);\n-- two\nINSERT INTO more\nVALUES (1);\n")
    broken = "CREATE TABLE half (x);\nINSERT INTO more VALUES (2);\nINSERT INTO nowhere VALUES (1);\n"
    bad = Migration(newest + 2, "bad", broken)
    conn = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    migrate(conn, migrations())
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(conn, [*migrations(), good, bad])
    assert not conn.in_transaction
    assert conn.execute("SELECT x FROM more").fetchall() == [(1,)]
    assert conn.execute("SELECT name FROM sqlite_master WHERE name = 'half'").fetchall() == []
    assert migrate(conn, [*migrations(), good]) == []
    repaired = replace(bad, sql="CREATE TABLE half (x);")
    assert migrate(conn, [*migrations(), good, repaired]) == ["bad"]
    assert conn.execute("SELECT max(version) FROM migration").fetchone() == (newest + 2,)
    conn.close()


def test_a_newer_schema_is_refused_by_writer_and_reader(db: Database) -> None:
    path = db.path
    db.close()
    conn = sqlite3.connect(path)
    conn.execute("PRAGMA user_version = 4000")
    conn.close()
    for read_only in (False, True):
        with pytest.raises(StorageError, match="newer version: its schema is 4000, this one knows up to"):
            Database.open(path, read_only=read_only)
    assert path.exists()


def test_read_only_says_when_a_database_must_first_be_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    conn = sqlite3.connect(path)
    conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    conn.commit()
    conn.close()
    with pytest.raises(StorageError, match="its schema is 0, needed is .*; open it once for writing"):
        Database.open(path, read_only=True)
