"""Table `usage`: how often nodes were recalled, in blocks of time that count once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

_COUNT = """
INSERT INTO usage (node_id, blocks, last_recalled) SELECT ?1, 1, ?2 WHERE EXISTS (SELECT 1 FROM node WHERE id = ?1)
ON CONFLICT (node_id) DO UPDATE SET blocks = blocks + 1, last_recalled = excluded.last_recalled
    WHERE abs(excluded.last_recalled - last_recalled) >= ?3
"""


def record(tx: Transaction, recalls: Mapping[int, int], block_ns: int) -> int:
    """Note recalls, node id to stamp (ns); return how many began a block.

    A block begins with a recall and takes in those within block_ns after it. Before it is one only where the clock
    went back.
    """
    return tx.conn.executemany(_COUNT, [(id_, stamp, block_ns) for id_, stamp in recalls.items()]).rowcount


def of(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Return blocks of recalls, and when the last one began (ns), of those of the nodes that were ever recalled."""
    rows = conn.execute(
        "SELECT node_id, blocks, last_recalled FROM usage WHERE node_id IN (SELECT value FROM json_each(?))",
        (id_table(ids),),
    )
    return {id_: (blocks, last) for id_, blocks, last in rows}
