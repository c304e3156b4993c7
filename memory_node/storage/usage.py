"""Table `usage`: how often nodes were recalled, in blocks of time that count once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

_COUNT = """
INSERT INTO usage (node_id, blocks, block_began, last_recalled)
    SELECT ?1, 1, ?2, ?2 WHERE EXISTS (SELECT 1 FROM node WHERE id = ?1)
ON CONFLICT (node_id) DO UPDATE SET
    blocks = blocks + (abs(?2 - block_began) >= ?3),
    block_began = iif(abs(?2 - block_began) >= ?3, ?2, block_began),
    last_recalled = ?2
"""


def record(tx: Transaction, recalls: Mapping[int, int], block_ns: int) -> int:
    """Note recalls, node id to stamp (ns); return how many nodes there are of them.

    A block begins with a recall and takes in those within block_ns after it. Before it is one only where the clock
    went back.
    """
    return tx.conn.executemany(_COUNT, [(id_, stamp, block_ns) for id_, stamp in recalls.items()]).rowcount


def of(conn: sqlite3.Connection, ids: Iterable[int]) -> list[tuple[int, float, int, int, int]]:
    """Return (id, importance, last stamp, blocks of recalls, last recall) of nodes; stamps are ns.

    A node that was never recalled has 0 blocks, and 0 for the last recall.
    """
    sql = """SELECT node.id, importance, last_stamp, ifnull(blocks, 0), ifnull(last_recalled, 0)
             FROM json_each(?) AS given CROSS JOIN node ON node.id = given.value
             LEFT JOIN usage ON usage.node_id = node.id"""
    return conn.execute(sql, (id_table(ids),)).fetchall()
