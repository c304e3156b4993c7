"""Vectors of texts and of nodes, and the models they come from. Stored as float16, of unit length."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory_node.errors import InvalidArgument, StorageError
from memory_node.storage import meta, texts
from memory_node.storage.ids import id_table, next_rowid
from memory_node.storage.writer import Transaction

FILLING, ACTIVE, STALE = 0, 1, 2

PARTS = 256
"""Parts of a text among which the best is looked for."""


@dataclass(frozen=True)
class Model:
    """An embedder as the database knows it; active: its vectors are the ones that rank."""

    id: int
    name: str
    dim: int
    active: bool


class VectorColumns(NamedTuple):
    """Vectors newer than a revision, ordered by id.

    Attributes:
        ids: int64 (N,).
        text_ids, node_ids: int64 (N,); 0 where the vector belongs to the other.
        vectors: float32 (N, D) of unit length.
        revision: of the snapshot; the watermark to ask with next time.
        removed: int64 (R,) ids of vectors that are gone since.
        complete: these are all vectors there are, so whatever else a projection holds must go; removed is empty.
    """

    ids: NDArray[np.int64]
    text_ids: NDArray[np.int64]
    node_ids: NDArray[np.int64]
    vectors: NDArray[np.float32]
    revision: int
    removed: NDArray[np.int64]
    complete: bool


def encode(vectors: ArrayLike) -> list[bytes]:
    """Return vectors (N, D) as float16 little-endian of unit length, one a row; a zero vector stays zero.

    Raises:
        InvalidArgument: a component is not finite.
    """
    rows: NDArray[np.float32] = np.atleast_2d(np.asarray(vectors, np.float32))
    if not np.isfinite(rows).all():
        raise InvalidArgument("vector", "has components that are not finite")
    scale = np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    scaled = rows / np.where(scale > 0, scale, np.float32(1))
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    halves = (scaled / np.where(length > 0, length, np.float32(1))).astype("<f2")
    return [row.tobytes() for row in halves]


def decode(blobs: Sequence[bytes], dim: int) -> NDArray[np.float32]:
    """Return what `encode` made of vectors as float32 (N, dim)."""
    return np.frombuffer(b"".join(blobs), "<f2").reshape(len(blobs), dim).astype(np.float32)


def open_model(tx: Transaction, name: str, dim: int) -> Model:
    """Return the model of that name and dimension, storing it when it is new.

    The first one is active at once. Another is filled in the background while the active one ranks, until `activate`;
    a third that was being filled is given up.
    """
    tx.conn.execute("INSERT OR IGNORE INTO model (name, dim) VALUES (?, ?)", (name, dim))
    model_id, state = tx.conn.execute("SELECT id, state FROM model WHERE name = ? AND dim = ?", (name, dim)).fetchone()
    if state != ACTIVE and active_model(tx.conn) is None:
        state = ACTIVE
    elif state == STALE:
        state = FILLING
    tx.conn.execute("UPDATE model SET state = ? WHERE id = ?", (state, model_id))
    _retire(tx, "state = 0 AND id <> ?", model_id)
    tx.conn.execute(
        """INSERT OR IGNORE INTO unembedded SELECT ?1, id FROM text WHERE wanted = 1 AND NOT EXISTS
           (SELECT 1 FROM vector WHERE text_id = text.id AND model_id = ?1 AND part = 0)""",
        (model_id,),
    )
    return Model(model_id, name, dim, state == ACTIVE)


def active_model(conn: sqlite3.Connection) -> Model | None:
    """Return the model whose vectors rank, or None before any model was opened."""
    row = conn.execute("SELECT id, name, dim FROM model WHERE state = ?", (ACTIVE,)).fetchone()
    return None if row is None else Model(row[0], row[1], row[2], active=True)


def model_named(conn: sqlite3.Connection, name: str) -> Model | None:
    """Return the model of that name that is active, or else being filled; None when there is none."""
    sql = "SELECT id, name, dim, state FROM model WHERE name = ? AND state <> ? ORDER BY state DESC LIMIT 1"
    row = conn.execute(sql, (name, STALE)).fetchone()
    return None if row is None else Model(row[0], row[1], row[2], active=row[3] == ACTIVE)


def activate(tx: Transaction, model_id: int) -> None:
    """Let this model's vectors rank from now on; those of the others may go, see `drop_stale`."""
    tx.conn.execute("UPDATE model SET state = ? WHERE id = ?", (ACTIVE, model_id))
    _retire(tx, "id <> ?", model_id)


def any_stale(conn: sqlite3.Connection) -> bool:
    """Whether there is a model that no longer ranks."""
    return conn.execute("SELECT 1 FROM model WHERE state = ? LIMIT 1", (STALE,)).fetchone() is not None


def drop_stale(tx: Transaction, limit: int = 2000) -> int:
    """Remove up to limit vectors of models that no longer rank; return how many, 0 when none is left."""
    stale = tx.conn.execute("SELECT id FROM model WHERE state = ?", (STALE,)).fetchall()
    gone = 0
    for (model_id,) in stale:
        sql = "SELECT id FROM vector WHERE model_id = ? ORDER BY id LIMIT ?"
        ids = id_table(row[0] for row in tx.conn.execute(sql, (model_id, limit - gone)))
        gone += _remove(tx, "id IN (SELECT value FROM json_each(?))", (ids,))
        if gone < limit:
            tx.conn.execute("DELETE FROM model WHERE id = ?", (model_id,))
    return gone


def put_texts(tx: Transaction, model_id: int, parts_of: Mapping[int, ArrayLike]) -> list[int]:
    """Store the vectors of texts, by text id those of its parts, (P, D), and return their ids.

    Earlier ones of the model are replaced.
    """
    if not parts_of:
        return []
    groups = {text_id: np.atleast_2d(np.asarray(parts, np.float32)) for text_id, parts in parts_of.items()}
    owners = [(text_id, part) for text_id, group in groups.items() for part in range(len(group))]
    blobs = _blobs(tx.conn, model_id, np.concatenate(list(groups.values())))
    _remove(tx, "text_id IN (SELECT value FROM json_each(?)) AND model_id = ?", (id_table(groups), model_id))
    tx.conn.executemany(
        "DELETE FROM unembedded WHERE model_id = ? AND text_id = ?", [(model_id, text_id) for text_id in groups]
    )
    return _insert(tx, model_id, [(*owner, None, blob) for owner, blob in zip(owners, blobs, strict=True)])


def add_texts(tx: Transaction, model_id: int, text_ids: Sequence[int], vectors: ArrayLike) -> None:
    """Store the vector of each text, (N, D); a text that has one of the model keeps it, of twins the first counts."""
    first: dict[int, int] = {}
    for place, text_id in enumerate(text_ids):
        first.setdefault(int(text_id), place)
    sql = """SELECT value FROM json_each(?) WHERE NOT EXISTS
             (SELECT 1 FROM vector WHERE text_id = value AND model_id = ? AND part = 0)"""
    new = [row[0] for row in tx.conn.execute(sql, (id_table(first), model_id))]
    if not new:
        return
    blobs = _blobs(tx.conn, model_id, np.asarray(vectors)[[first[text_id] for text_id in new]])
    _insert(tx, model_id, [(text_id, 0, None, blob) for text_id, blob in zip(new, blobs, strict=True)])
    tx.conn.executemany(
        "DELETE FROM unembedded WHERE model_id = ? AND text_id = ?", [(model_id, text_id) for text_id in new]
    )


def add_node(tx: Transaction, model_id: int, node_id: int, vector: ArrayLike) -> int:
    """Store the vector (D,) of a node itself and return its id; an earlier one of the model is replaced."""
    (blob,) = _blobs(tx.conn, model_id, vector)
    _remove(tx, "node_id = ? AND model_id = ?", (node_id, model_id))
    return _insert(tx, model_id, [(None, 0, node_id, blob)])[0]


def drop_nodes(tx: Transaction, node_ids: Iterable[int]) -> int:
    """Remove the vectors that nodes have of their own, of every model; return how many."""
    return _remove(tx, "node_id IN (SELECT value FROM json_each(?))", (id_table(node_ids),))


def of_texts(
    conn: sqlite3.Connection, model_id: int, text_ids: Iterable[int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return those of the texts that have a vector, int64 (N,), and the vector of their first part, float32 (N, D)."""
    return _owned(conn, model_id, "text_id", text_ids)


def in_parts(conn: sqlite3.Connection, model_id: int, text_ids: Iterable[int]) -> set[int]:
    """Return those of the texts that were embedded in several parts."""
    sql = """SELECT value FROM json_each(?) WHERE EXISTS
             (SELECT 1 FROM vector WHERE text_id = value AND model_id = ? AND part > 0)"""
    return {row[0] for row in conn.execute(sql, (id_table(text_ids), model_id))}


def best_part(conn: sqlite3.Connection, model_id: int, text_id: int, vector: NDArray[np.float32]) -> int | None:
    """Return which of the first PARTS parts of a text is most like a unit vector (D,), None without several."""
    sql = "SELECT part, data FROM vector WHERE text_id = ? AND model_id = ? ORDER BY part LIMIT ?"
    rows = conn.execute(sql, (text_id, model_id, PARTS)).fetchall()
    if len(rows) < 2:
        return None
    similarities = decode([row[1] for row in rows], len(vector)) @ vector
    return int(rows[int(similarities.argmax())][0])


def of_bodies(conn: sqlite3.Connection, model_id: int, bodies: Iterable[str]) -> dict[str, NDArray[np.float32]]:
    """Return the vector (D,) of each of the texts, given as they read, that has one."""
    known = texts.ids_of(conn, bodies)
    ids, found = of_texts(conn, model_id, known.values())
    by_id = dict(zip(ids.tolist(), found, strict=True))
    return {body: by_id[text_id] for body, text_id in known.items() if text_id in by_id}


def of_nodes(
    conn: sqlite3.Connection, model_id: int, node_ids: Iterable[int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return those of the nodes that have a vector of their own, int64 (N,), and these, float32 (N, D)."""
    return _owned(conn, model_id, "node_id", node_ids)


def newest(conn: sqlite3.Connection) -> int:
    """Return the largest id a vector ever had, 0 before the first."""
    return next_rowid(conn, "vector") - 1


def waited_for(conn: sqlite3.Connection, model_id: int, text_ids: Iterable[int]) -> bool:
    """Whether one of the texts is still to be embedded by a model."""
    sql = """SELECT 1 FROM json_each(?) AS given CROSS JOIN unembedded
             ON model_id = ? AND text_id = given.value LIMIT 1"""
    return conn.execute(sql, (id_table(text_ids), model_id)).fetchone() is not None


def since(conn: sqlite3.Connection, model_id: int, revision: int) -> VectorColumns:
    """Return the model's vectors written after revision and the ids of those removed since; 0 asks for all.

    Call it inside one `db.read()` block, so that rows and revision are of one snapshot.
    """
    removed = meta.removed_since(conn, "vector", revision) if revision > 0 else None
    complete = removed is None
    columns = "id, ifnull(text_id, 0), ifnull(node_id, 0), data"
    if complete:
        cursor = conn.execute(f"SELECT {columns} FROM vector WHERE model_id = ? ORDER BY id", (model_id,))
    else:
        # Without the hint the planner may read the whole table, because that comes in the order asked.
        newer = "vector INDEXED BY vector_revision WHERE revision > ? AND model_id = ? ORDER BY id"
        cursor = conn.execute(f"SELECT {columns} FROM {newer}", (revision, model_id))
    dim = _dim(conn, model_id)
    keys = [np.empty((0, 3), np.int64)]
    vectors = [np.empty((0, dim), np.float32)]
    while rows := cursor.fetchmany(8192):
        keys.append(np.array([row[:3] for row in rows], np.int64))
        vectors.append(decode([row[3] for row in rows], dim))
    ids, text_ids, node_ids = np.concatenate(keys).T.copy()
    gone = np.array(removed or [], np.int64)
    return VectorColumns(ids, text_ids, node_ids, np.concatenate(vectors), meta.revision(conn), gone, complete)


def _owned(
    conn: sqlite3.Connection, model_id: int, owner: str, ids: Iterable[int]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    sql = f"""SELECT {owner}, data FROM json_each(?) AS given CROSS JOIN vector ON {owner} = given.value
              WHERE model_id = ? AND part = 0"""
    rows = conn.execute(sql, (id_table(ids), model_id)).fetchall()
    found = np.array([row[0] for row in rows], np.int64)
    return found, decode([row[1] for row in rows], _dim(conn, model_id))


def _dim(conn: sqlite3.Connection, model_id: int) -> int:
    row = conn.execute("SELECT dim FROM model WHERE id = ?", (model_id,)).fetchone()
    if row is None:
        raise StorageError(f"no model of id {model_id}")
    return int(row[0])


def _blobs(conn: sqlite3.Connection, model_id: int, vectors: ArrayLike) -> list[bytes]:
    blobs = encode(vectors)
    dim = _dim(conn, model_id)
    if any(len(blob) != 2 * dim for blob in blobs):
        raise InvalidArgument("vector", f"has {len(blobs[0]) // 2} dimensions, the model has {dim}")
    return blobs


def _insert(tx: Transaction, model_id: int, rows: list[tuple[int | None, int, int | None, bytes]]) -> list[int]:
    first = next_rowid(tx.conn, "vector")
    tx.conn.executemany(
        "INSERT INTO vector (id, model_id, text_id, part, node_id, revision, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (first + i, model_id, text_id, part, node_id, tx.revision, blob)
            for i, (text_id, part, node_id, blob) in enumerate(rows)
        ],
    )
    return list(range(first, first + len(rows)))


def _remove(tx: Transaction, where: str, values: tuple[object, ...]) -> int:
    tx.conn.execute(f"INSERT INTO removed SELECT {tx.revision}, 'vector', id FROM vector WHERE {where}", values)
    return tx.conn.execute(f"DELETE FROM vector WHERE {where}", values).rowcount


def _retire(tx: Transaction, where: str, model_id: int) -> None:
    tx.conn.execute(f"UPDATE model SET state = {STALE} WHERE {where}", (model_id,))
    tx.conn.execute("DELETE FROM unembedded WHERE model_id IN (SELECT id FROM model WHERE state = ?)", (STALE,))
