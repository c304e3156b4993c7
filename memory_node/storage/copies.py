"""A copy of what is not summarised yet, for a rehearsal of the jobs that would summarise it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from memory_node.errors import StorageError
from memory_node.graph import Kind, Tier
from memory_node.storage.database import Database

_RAW = f"kind = {Kind.OBSERVATION:d} AND tier = {Tier.SHORT_TERM:d}"
_TABLES = {
    "session": "SELECT * FROM origin.session",
    "layer": "SELECT * FROM origin.layer",
    "map": "SELECT * FROM origin.map",
    "text": f"""SELECT * FROM origin.text WHERE id IN
        (SELECT text_id FROM origin.node INDEXED BY node_raw WHERE {_RAW}
        UNION SELECT text_id FROM origin.node INDEXED BY node_kind_stamp WHERE kind = {Kind.EPISODE:d})""",
    "node": f"""SELECT * FROM origin.node INDEXED BY node_raw WHERE {_RAW}
        UNION ALL SELECT * FROM origin.node INDEXED BY node_kind_stamp WHERE kind = {Kind.EPISODE:d}""",
    "episode": "SELECT * FROM origin.episode",
    "job": "SELECT * FROM origin.job",
}
"""What is copied: raw rows and episodes, and what they refer to. Edges, vectors and words are not."""


def copy_raw(db: Database, to: Path) -> None:
    """Make a database at a new path of the raw rows of one, as they are now; it may be written meanwhile.

    Raises:
        StorageError: it could not be read or written.
    """
    Database.open(to).close()
    try:
        with closing(sqlite3.connect(to.absolute().as_uri(), uri=True, isolation_level=None)) as conn:
            conn.execute("PRAGMA synchronous = OFF")
            conn.execute("ATTACH ? AS origin", (db.path.as_uri() + "?mode=ro",))
            conn.execute("BEGIN")
            for table, rows in _TABLES.items():
                conn.execute(f"INSERT INTO main.{table} {rows}")
            conn.execute("COMMIT")
    except sqlite3.Error as error:
        raise StorageError(f"the rows could not be copied to {to}: {error}") from error
