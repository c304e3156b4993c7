"""Distinct texts: content-addressed, with their entry in the word index and their place in the embedding queue."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence

from memory_node.errors import InvalidArgument
from memory_node.storage import meta
from memory_node.storage.ids import id_table, next_rowid
from memory_node.storage.writer import Transaction

_EPOCH = "words_epoch"
_AT_ONCE = 500  # texts a statement asks for; SQLite may be built to take no more than 999 variables


def intern(tx: Transaction, body: str, wanted: bool = True) -> int:
    """Return the id of body, storing it when it is new.

    Args:
        wanted: a perception or derived node uses it, so it is put into the word index and queued for embedding;
            a text once wanted stays so.
    """
    return intern_many(tx, [body], wanted)[0]


def intern_many(tx: Transaction, bodies: Sequence[str], wanted: bool = True) -> list[int]:
    """Return the id of each body in order, storing those that are new; see `intern`.

    Raises:
        InvalidArgument: a body holds half a surrogate pair, which no UTF-8 can.
    """
    known: dict[str, int] = {}
    new: list[tuple[int, bytes, str, bool]] = []
    entries: list[tuple[int, str]] = []
    fresh = next_rowid(tx.conn, "text")
    for body in dict.fromkeys(bodies):
        digest = _digest(body)
        row = tx.conn.execute("SELECT id, wanted FROM text WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            row = (fresh + len(new), wanted)
            new.append((row[0], digest, body, wanted))
            if wanted:
                entries.append((row[0], body))
        elif wanted and not row[1]:
            tx.conn.execute("UPDATE text SET wanted = 1 WHERE id = ?", (row[0],))
            meta.put(tx.conn, _EPOCH, state(tx.conn)[1] + 1)
            entries.append((row[0], body))
        known[body] = row[0]
    if new:
        tx.conn.executemany("INSERT INTO text (id, digest, body, wanted) VALUES (?, ?, ?, ?)", new)
    if entries:
        _want(tx, entries)
    return [known[body] for body in bodies]


def id_of(conn: sqlite3.Connection, body: str) -> int | None:
    """Return the id of a text that is stored, given as it reads, else None."""
    row = conn.execute("SELECT id FROM text WHERE digest = ?", (_digest(body),)).fetchone()
    return None if row is None else int(row[0])


def ids_of(conn: sqlite3.Connection, bodies: Iterable[str]) -> dict[str, int]:
    """Return the ids of texts, given as they read; those that are not stored are left out."""
    digests = {_digest(body): body for body in bodies}
    wanted = list(digests)
    found: dict[str, int] = {}
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        marks = ",".join("?" * len(some))
        rows = conn.execute(f"SELECT digest, id FROM text WHERE digest IN ({marks})", some)
        found.update((digests[digest], id_) for digest, id_ in rows)
    return found


def bodies(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, str]:
    """Return the texts by id; ids that are no text are left out."""
    sql = "SELECT id, body FROM text WHERE id IN (SELECT value FROM json_each(?))"
    return dict(conn.execute(sql, (id_table(ids),)).fetchall())


def lengths(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, int]:
    """Return the number of characters of texts by id; ids that are no text are left out."""
    sql = "SELECT text.id, length(body) FROM json_each(?) AS given CROSS JOIN text ON text.id = given.value"
    return dict(conn.execute(sql, (id_table(ids),)).fetchall())


def state(conn: sqlite3.Connection) -> tuple[int, int]:
    """Return how far the word index is, total and epoch.

    The first is how many ids of texts were given so far: the largest there ever was. The second is a number that
    changes when texts that had an id already come into the index.
    """
    # One statement: every question asks this several times.
    sql = """SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'text'), 0),
             ifnull((SELECT value FROM meta WHERE key = ?), 0)"""
    total, epoch = conn.execute(sql, (_EPOCH,)).fetchone()
    return int(total), int(epoch)


def exists(conn: sqlite3.Connection, text_id: int) -> bool:
    """Whether a text is (still) there."""
    return conn.execute("SELECT 1 FROM text WHERE id = ?", (text_id,)).fetchone() is not None


def unembedded(conn: sqlite3.Connection, model_id: int, limit: int, after: int = 0) -> list[tuple[int, str]]:
    """Return up to limit wanted texts (id, body) after an id that have no vector of the model yet, the oldest first."""
    sql = """SELECT text.id, body FROM unembedded CROSS JOIN text ON text.id = text_id
             WHERE model_id = ? AND text_id > ? ORDER BY text_id LIMIT ?"""
    return conn.execute(sql, (model_id, after, limit)).fetchall()


def backlog(conn: sqlite3.Connection, model_id: int) -> int:
    """Return how many wanted texts have no vector of the model yet."""
    count: int = conn.execute("SELECT count(*) FROM unembedded WHERE model_id = ?", (model_id,)).fetchone()[0]
    return count


def are_waiting(conn: sqlite3.Connection, model_id: int) -> bool:
    """Return whether any wanted text has no vector of the model yet."""
    return conn.execute("SELECT 1 FROM unembedded WHERE model_id = ? LIMIT 1", (model_id,)).fetchone() is not None


def drop_unused(tx: Transaction, text_ids: Iterable[int]) -> list[int]:
    """Remove those of the texts that no node uses, with their words and vectors; return their ids."""
    sql = """SELECT text.id, body, wanted FROM json_each(?) AS given CROSS JOIN text ON text.id = given.value
             WHERE NOT EXISTS (SELECT 1 FROM node WHERE node.text_id = text.id)"""
    unused = tx.conn.execute(sql, (id_table(set(text_ids)),)).fetchall()
    if not unused:
        return []
    tx.conn.executemany(
        "INSERT INTO text_fts (text_fts, rowid, body) VALUES ('delete', ?, ?)",
        [(id_, body) for id_, body, wanted in unused if wanted],
    )
    gone = [row[0] for row in unused]
    ids = (id_table(gone),)
    tx.conn.execute(
        """INSERT INTO removed SELECT ?, 'vector', id FROM vector
           WHERE text_id IN (SELECT value FROM json_each(?))""",
        (tx.revision, *ids),
    )
    tx.conn.execute("DELETE FROM vector WHERE text_id IN (SELECT value FROM json_each(?))", ids)
    tx.conn.executemany(
        "DELETE FROM unembedded WHERE model_id = ? AND text_id = ?",
        [(model, text) for (model,) in tx.conn.execute("SELECT id FROM model").fetchall() for text in gone],
    )
    tx.conn.execute("DELETE FROM text WHERE id IN (SELECT value FROM json_each(?))", ids)
    return gone


def want_layer(tx: Transaction, layer_id: int) -> None:
    """Want every text of a layer that from now on is perception."""
    sql = """SELECT id, body FROM text WHERE wanted = 0 AND id IN (SELECT text_id FROM node WHERE layer_id = ?)"""
    entries = tx.conn.execute(sql, (layer_id,)).fetchall()
    tx.conn.executemany("UPDATE text SET wanted = 1 WHERE id = ?", [(row[0],) for row in entries])
    meta.put(tx.conn, _EPOCH, state(tx.conn)[1] + 1)
    _want(tx, entries)


def _utf8(body: str) -> bytes:
    try:
        return body.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidArgument("text", f"is not valid Unicode: {error.reason} at character {error.start}") from error


def _digest(body: str) -> bytes:
    return hashlib.blake2b(_utf8(body), digest_size=16).digest()


def _want(tx: Transaction, entries: list[tuple[int, str]]) -> None:
    """Put texts that are wanted from now on into the word index and into the queue of each model in use."""
    tx.conn.executemany("INSERT INTO text_fts (rowid, body) VALUES (?, ?)", entries)
    models = [row[0] for row in tx.conn.execute("SELECT id FROM model WHERE state < 2")]
    tx.conn.executemany(
        "INSERT OR IGNORE INTO unembedded VALUES (?, ?)", [(model, entry[0]) for model in models for entry in entries]
    )
