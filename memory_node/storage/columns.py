"""Node rows as NumPy columns: what the projections are built from and kept up with."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import Tier
from memory_node.storage import meta

_DTYPE = np.dtype(
    [
        ("id", "i8"), ("text_id", "i8"), ("stamp", "i8"), ("last_stamp", "i8"), ("x", "f8"), ("y", "f8"), ("z", "f8"),
        ("confidence", "f8"), ("episode_id", "i8"), ("layer_id", "i8"), ("map_id", "i8"), ("kind", "i8"),
        ("tier", "i8"), ("repeats", "i8"),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class NodeColumns:
    """Nodes newer than a revision and not archived, one array a column, ordered by id.

    Attributes:
        id, text_id, stamp, last_stamp, episode_id, layer_id, map_id, kind, tier: int64 (N,); 0 means none, stamps ns.
        x, y, z: float64 (N,) m; NaN where the position is unknown.
        confidence: float64 (N,).
        repeats: int64 (N,) readings that the row stands for, at least 1.
        internal: bool (N,): of a layer of interoception.
        removed: int64 (R,) ids of nodes removed or archived since.
        complete: these are all nodes there are, so whatever else a projection holds must go; removed is empty.
        revision: of the snapshot; the watermark to ask with next time.
    """

    id: NDArray[np.int64]
    text_id: NDArray[np.int64]
    stamp: NDArray[np.int64]
    last_stamp: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    z: NDArray[np.float64]
    confidence: NDArray[np.float64]
    episode_id: NDArray[np.int64]
    layer_id: NDArray[np.int64]
    map_id: NDArray[np.int64]
    kind: NDArray[np.int64]
    tier: NDArray[np.int64]
    repeats: NDArray[np.int64]
    internal: NDArray[np.bool_]
    removed: NDArray[np.int64]
    complete: bool
    revision: int


_SELECT = """SELECT id, ifnull(text_id, 0), stamp, last_stamp, x, y, z, confidence, episode_id, layer_id, map_id,
    kind, tier, repeats FROM node"""
_ALL = f"{_SELECT} WHERE tier <> {Tier.ARCHIVED:d} ORDER BY id"
# Without the hint the planner prefers to read the whole table, because that comes in the order asked.
_NEWER = f"{_SELECT} INDEXED BY node_revision WHERE revision > ? AND tier <> {Tier.ARCHIVED:d} ORDER BY id"
_ARCHIVED = f"SELECT id FROM node INDEXED BY node_revision WHERE revision > ? AND tier = {Tier.ARCHIVED:d}"


def since(conn: sqlite3.Connection, revision: int) -> NodeColumns:
    """Return nodes written after revision and the ids of those removed or archived since; 0 asks for all.

    Call it inside one `db.read()` block, so that rows and revision are of one snapshot.
    """
    removed = meta.removed_since(conn, "node", revision) if revision > 0 else None
    if removed is None:
        rows = np.fromiter(conn.execute(_ALL), _DTYPE)
    else:
        rows = np.fromiter(conn.execute(_NEWER, (revision,)), _DTYPE)
        removed += [row[0] for row in conn.execute(_ARCHIVED, (revision,))]
    internal = [row[0] for row in conn.execute("SELECT id FROM layer WHERE internal = 1")]
    return NodeColumns(
        **{name: np.ascontiguousarray(rows[name]) for name in _DTYPE.names or ()},
        internal=np.isin(rows["layer_id"], internal),
        removed=np.array(removed or [], np.int64),
        complete=removed is None,
        revision=meta.revision(conn),
    )
