"""Edges of the graph: directed, typed, unique in (source, target, type)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from memory_node.graph import Edge, EdgeType
from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

_SET = """INSERT INTO edge (source, target, type, count) VALUES (?, ?, ?, ?)
          ON CONFLICT (source, type, target) DO UPDATE SET count = excluded.count WHERE count <> excluded.count"""
_ACCUMULATE = """INSERT INTO edge (source, target, type, count) VALUES (?, ?, ?, ?)
                 ON CONFLICT (source, type, target) DO UPDATE SET count = count + excluded.count"""


def add(
    tx: Transaction, source: int, target: int, type: EdgeType, count: int = 1, accumulate: bool = False
) -> None:
    """Join two nodes; an edge that is there gets the count, or has it added when accumulate.

    COOCCURS_WITH has no direction: its smaller id is stored as the source.
    """
    add_many(tx, [(source, target, type, count)], accumulate)


def add_many(
    tx: Transaction,
    rows: Iterable[tuple[int, int, EdgeType] | tuple[int, int, EdgeType, int]],
    accumulate: bool = False,
) -> None:
    """Add edges given as (source, target, type) or (source, target, type, count); see `add`."""
    tx.conn.executemany(_ACCUMULATE if accumulate else _SET, (_row(*row) for row in rows))


def targets(conn: sqlite3.Connection, source: int, type: EdgeType) -> list[int]:
    """Return the ids that source points at, the smallest first."""
    sql = "SELECT target FROM edge WHERE source = ? AND type = ? ORDER BY target"
    return [row[0] for row in conn.execute(sql, (source, int(type)))]


def last_targets(
    conn: sqlite3.Connection, sources: Iterable[int], type: EdgeType, most: int
) -> dict[int, list[int]]:
    """Return of each source the largest ids that it points at, the largest first, at most `most`."""
    found: dict[int, list[int]] = {source: [] for source in sources}
    sql = """SELECT given.value, target FROM json_each(?1) AS given CROSS JOIN edge ON source = given.value
             WHERE edge.type = ?2 AND target >= ifnull((
                 SELECT target FROM edge AS one WHERE one.source = given.value AND one.type = ?2
                 ORDER BY target DESC LIMIT 1 OFFSET ?3
             ), 0) ORDER BY given.key, target DESC"""
    for source, target in conn.execute(sql, (id_table(found), int(type), most - 1)):
        found[source].append(target)
    return found


def sources(conn: sqlite3.Connection, target: int, type: EdgeType) -> list[int]:
    """Return the ids that point at target, the smallest first."""
    sql = "SELECT source FROM edge WHERE target = ? AND type = ? ORDER BY source"
    return [row[0] for row in conn.execute(sql, (target, int(type)))]


def pairs(conn: sqlite3.Connection, targets: Iterable[int], type: EdgeType) -> list[tuple[int, int]]:
    """Return (source, target) of every edge to one of the targets."""
    sql = "SELECT source, target FROM json_each(?) AS given CROSS JOIN edge ON target = given.value WHERE edge.type = ?"
    return conn.execute(sql, (id_table(targets), int(type))).fetchall()


def of(conn: sqlite3.Connection, id: int) -> list[Edge]:
    """Return every edge that begins or ends at a node, ordered by (type, source, target)."""
    sql = """SELECT source, target, type, count FROM edge WHERE source = ?1
             UNION SELECT source, target, type, count FROM edge WHERE target = ?1 ORDER BY type, source, target"""
    return [Edge(source, target, EdgeType(type), count) for source, target, type, count in conn.execute(sql, (id,))]


def move(tx: Transaction, from_id: int, to_id: int) -> None:
    """Give to_id the edges of from_id: counts of COOCCURS_WITH add up, edges between the two vanish."""
    edges = of(tx.conn, from_id)
    tx.conn.execute("DELETE FROM edge WHERE source = ?", (from_id,))
    tx.conn.execute("DELETE FROM edge WHERE target = ?", (from_id,))
    for together in (False, True):
        moved = [
            (to_id if edge.source == from_id else edge.source, to_id if edge.target == from_id else edge.target, edge)
            for edge in edges
            if (edge.type is EdgeType.COOCCURS_WITH) is together
        ]
        rows = [(source, target, edge.type, edge.count) for source, target, edge in moved if source != target]
        add_many(tx, rows, accumulate=together)


def _row(source: int, target: int, type: EdgeType, count: int = 1) -> tuple[int, int, int, int]:
    if type is EdgeType.COOCCURS_WITH and source > target:
        source, target = target, source
    return source, target, int(type), count
