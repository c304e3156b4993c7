"""Ids handed to SQL as one variable, however many they are, and the ids of rows about to be inserted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable


def id_table(ids: Iterable[int]) -> str:
    """Return ids as one SQL variable.

    Bind it to `json_each(?)`: `WHERE id IN (SELECT value FROM json_each(?))`, or `FROM json_each(?) AS given CROSS JOIN
    node ON node.id = given.value`, which keeps the order of ids. NumPy integers are welcome.
    """
    return str(list(map(int, ids)))


def next_rowid(conn: sqlite3.Connection, table: str) -> int:
    """Return the first id of an AUTOINCREMENT table that was never used; only the writer may rely on it."""
    row = conn.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()
    return (row[0] if row else 0) + 1
