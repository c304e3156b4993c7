"""Archived rows are in no index, so SQLite answers for them: in the order of time, and whether one passes."""

from __future__ import annotations

import sqlite3

from memory_node.graph import Tier
from memory_node.retrieval.filters import Resolved
from memory_node.storage.ids import id_table


def in_time(conn: sqlite3.Connection, resolved: Resolved, newest_first: bool, k: int) -> list[tuple[int, int]]:
    """Return (stamp, id) of the first k archived rows by stamp: last_stamp when newest_first, else stamp (ns)."""
    where, values = _conditions(resolved)
    where += f" AND tier = {Tier.ARCHIVED:d}"
    column, way = ("last_stamp", "DESC") if newest_first else ("stamp", "ASC")
    sql = f"SELECT {column}, id FROM node WHERE {where} ORDER BY stamp {way}, id {way} LIMIT ?"
    return conn.execute(sql, (*values, k)).fetchall()


def passes(conn: sqlite3.Connection, id_: int, resolved: Resolved) -> bool:
    """Whether a row is there and passes, archived or not."""
    where, values = _conditions(resolved)
    return conn.execute(f"SELECT 1 FROM node WHERE id = ? AND {where}", (id_, *values)).fetchone() is not None


def _conditions(resolved: Resolved) -> tuple[str, list[object]]:
    among = "IN (SELECT value FROM json_each(?))"
    terms: list[tuple[str, list[object]]] = [("1", [])]
    if not resolved.internal:
        terms.append(("layer_id NOT IN (SELECT id FROM layer WHERE internal = 1)", []))
    if resolved.kinds:
        terms.append((f"kind {among}", [id_table(resolved.kinds)]))
    if resolved.layers is not None:
        terms.append((f"layer_id {among}", [id_table(resolved.layers)]))
    if resolved.after is not None:
        terms.append(("last_stamp >= ?", [resolved.after]))
    if resolved.before is not None:
        terms.append(("stamp <= ?", [resolved.before]))
    if resolved.episodes is not None:
        terms.append((f"episode_id {among}", [id_table(resolved.episodes)]))
    if resolved.min_confidence > 0.0:
        terms.append(("confidence >= ?", [resolved.min_confidence]))
    if resolved.map_id is not None:
        terms.append(("map_id = ?", [resolved.map_id]))
    if resolved.center is not None and resolved.radius is not None:
        squares = " + ".join(f"({axis} - ?) * ({axis} - ?)" for axis in "xyz"[: len(resolved.center)])
        both: list[object] = [value for value in resolved.center for _ in range(2)]
        terms.append((f"{squares} <= ?", [*both, resolved.radius * resolved.radius]))
    return " AND ".join(term for term, _ in terms), [value for _, values in terms for value in values]
