"""Numbered SQL files that bring a database from any earlier schema to the present one."""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from memory_node.errors import StorageError

APPLICATION_ID = 0x524D454D
"""Marks a file as ours (`PRAGMA application_id`), "RMEM" in ASCII."""


@dataclass(frozen=True)
class Migration:
    """One numbered file: what it is called and the SQL that it runs."""

    version: int
    name: str
    sql: str


@cache
def migrations() -> tuple[Migration, ...]:
    """Return all migrations of this package, the oldest first."""
    found = []
    for file in resources.files(__package__).iterdir():
        match = re.fullmatch(r"(\d{4})_(\w+)\.sql", file.name)
        if match:
            found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda migration: migration.version))


def version_of(conn: sqlite3.Connection, known: Sequence[Migration]) -> int:
    """Return the schema version of a database; 0 is an empty one.

    Args:
        known: the migrations there are, the oldest first.

    Raises:
        StorageError: the file is a database of something else, or of a newer version of this package.
    """
    version: int = conn.execute("PRAGMA user_version").fetchone()[0]
    application: int = conn.execute("PRAGMA application_id").fetchone()[0]
    empty = conn.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    if application != APPLICATION_ID and not (empty and version == 0):
        raise StorageError("this is a database of another program, not a memory")
    newest = known[-1].version
    if version > newest:
        raise StorageError(f"made by a newer version: its schema is {version}, this one knows up to {newest}")
    return version


def migrate(conn: sqlite3.Connection, known: Sequence[Migration]) -> list[str]:
    """Apply those of the known migrations that are missing, each in its own transaction, and return their names.

    Raises:
        StorageError: see `version_of`.
        sqlite3.Error: a migration failed; it left no trace, the ones before it stay.
    """
    version = version_of(conn, known)
    applied = []
    for migration in known:
        if migration.version > version:
            _apply(conn, migration)
            applied.append(migration.name)
    return applied


def _apply(conn: sqlite3.Connection, migration: Migration) -> None:
    conn.execute("BEGIN IMMEDIATE")
    try:
        conn.execute(
            "CREATE TABLE IF NOT EXISTS migration "
            "(version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied INTEGER NOT NULL)"
        )
        for statement in _statements(migration.sql):
            conn.execute(statement)
        conn.execute("INSERT INTO migration VALUES (?, ?, ?)", (migration.version, migration.name, time.time_ns()))
        conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        conn.execute(f"PRAGMA user_version = {migration.version}")
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:
            conn.execute("ROLLBACK")
        raise


def _statements(sql: str) -> Iterator[str]:
    # Connection.executescript would commit first; statements one by one stay inside the migration's transaction.
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
