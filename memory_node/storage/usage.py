"""Table `usage`: how often nodes were recalled, in blocks of time that count once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

_COUNT = """
INSERT INTO usage (node_id, blocks, last_recalled) SELECT ?1, 1, ?2 WHERE EXISTS (SELECT 1 FROM node WHERE id = ?1)
ON CONFLICT (node_id) DO UPDATE SET
    blocks = blocks + (abs(excluded.last_recalled - last_recalled) >= ?3),
    last_recalled = excluded.last_recalled
"""


def record(tx: Transaction, recalls: Mapping[int, int], block_ns: int) -> None:
    """Note recalls, node id to stamp (ns). One within block_ns of the node's last goes on with its block."""
    tx.conn.executemany(_COUNT, [(id_, stamp, block_ns) for id_, stamp in recalls.items()])


def of(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return blocks of recalls and the last recall (ns) of those of the nodes that were ever recalled."""
    rows = conn.execute(
        "SELECT node_id, blocks, last_recalled FROM usage WHERE node_id IN (SELECT value FROM json_each(?))",
        (id_table(ids),),
    )
    return {id_: (blocks, last) for id_, blocks, last in rows}
