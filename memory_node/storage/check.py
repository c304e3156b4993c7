"""Consistency of the file and between its tables; what `memory check` prints."""

from __future__ import annotations

import sqlite3

_COUNTS = {
    "edges to nodes that do not exist": """
        SELECT count(*) FROM edge WHERE source NOT IN (SELECT id FROM node) OR target NOT IN (SELECT id FROM node)""",
    "vectors of nodes that do not exist": """
        SELECT count(*) FROM vector WHERE node_id IS NOT NULL AND node_id NOT IN (SELECT id FROM node)""",
    "vectors of neither a text nor a node": """
        SELECT count(*) FROM vector WHERE (text_id IS NULL) = (node_id IS NULL)""",
    "vectors of a wrong length": """
        SELECT count(*) FROM vector JOIN model ON model.id = model_id WHERE length(data) <> 2 * dim""",
    "wanted texts that have neither a vector nor a place in the queue": """
        SELECT count(*) FROM text JOIN model ON model.state < 2 WHERE wanted = 1
        AND NOT EXISTS (SELECT 1 FROM vector WHERE text_id = text.id AND model_id = model.id AND part = 0)
        AND NOT EXISTS (SELECT 1 FROM unembedded WHERE text_id = text.id AND model_id = model.id)""",
    "wanted texts missing from the word index, or others in it": """
        SELECT count(*) FROM (SELECT id FROM wanted_text EXCEPT SELECT id FROM text_fts_docsize
        UNION ALL SELECT * FROM (SELECT id FROM text_fts_docsize EXCEPT SELECT id FROM wanted_text))""",
    "nodes written by a transaction that never was": """
        SELECT count(*) FROM node WHERE revision > (SELECT value FROM meta WHERE key = 'revision')""",
}


def problems(conn: sqlite3.Connection) -> list[str]:
    """Return what is wrong, one sentence each: damaged pages first, and only if there are none, broken references."""
    try:
        damaged = [row[0] for row in conn.execute("PRAGMA quick_check(20)") if row[0] != "ok"]
        return damaged or _broken(conn)
    except sqlite3.DatabaseError as error:
        return [f"the file cannot be read to its end: {error}"]


def _broken(conn: sqlite3.Connection) -> list[str]:
    found = [
        f"{table} row {rowid} refers to a missing row of {parent}"
        for table, rowid, parent, _ in conn.execute("PRAGMA foreign_key_check").fetchmany(20)
    ]
    for what, sql in _COUNTS.items():
        count = conn.execute(sql).fetchone()[0]
        if count:
            found.append(f"{count} {what}")
    return found


def words_problems(conn: sqlite3.Connection) -> list[str]:
    """Return what is wrong with the word index by FTS5's own check, which needs a connection that may write."""
    try:
        conn.execute("INSERT INTO text_fts (text_fts, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as error:
        return [f"the word index does not fit the texts: {error}"]
    return []
