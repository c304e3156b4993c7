"""Small facts about the database itself: its uuid, the last revision, how far removals are still known."""

from __future__ import annotations

import sqlite3
from typing import Any


def get(conn: sqlite3.Connection, key: str, default: Any = None) -> Any:
    """Return the value of key, or default when it was never set."""
    row = conn.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return default if row is None else row[0]


def put(conn: sqlite3.Connection, key: str, value: Any) -> None:
    """Set key to a number, a string or bytes, inside the caller's transaction."""
    conn.execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value))


def revision(conn: sqlite3.Connection) -> int:
    """Return the number of the last committed transaction that this snapshot sees."""
    return int(get(conn, "revision", 0))


def removed_since(conn: sqlite3.Connection, what: str, revision: int) -> list[int] | None:
    """Return the ids of nodes or vectors removed after revision, or None when that is no longer known.

    Args:
        what: "node" or "vector".
        revision: watermark of the projection that asks.
    """
    if revision < get(conn, "pruned_revision", 0):
        return None
    rows = conn.execute("SELECT id FROM removed WHERE revision > ? AND what = ?", (revision, what))
    return [row[0] for row in rows]


def prune_removed(conn: sqlite3.Connection, keep: int) -> int:
    """Forget the oldest removals beyond keep rows; return how many. Projections older than that are built anew."""
    row = conn.execute("SELECT revision FROM removed ORDER BY revision DESC LIMIT 1 OFFSET ?", (keep,)).fetchone()
    if row is None:
        return 0
    put(conn, "pruned_revision", row[0])
    return conn.execute("DELETE FROM removed WHERE revision <= ?", (row[0],)).rowcount
