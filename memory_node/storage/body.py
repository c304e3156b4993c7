"""Readings of internal layers: the latest one, and the one at a time. They are observations with a value.

A row stands for equal readings from its stamp to its last one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from memory_node.graph import Kind

LONGEST = 3600 * 1_000_000_000
"""ns: the longest time that a row may stand for."""
_LAYERS = """
    SELECT id, name, (SELECT start_stamp FROM session WHERE id = ?) FROM layer
    WHERE internal = 1 AND (? OR name IN (SELECT value FROM json_each(?))) ORDER BY name"""
_WANTED = f"""layer_id = :layer AND kind = {Kind.OBSERVATION:d} AND stamp BETWEEN :oldest AND :at
    AND session_id >= :session AND (value IS NOT NULL OR NOT :numbers)"""
_FIRST = f"SELECT stamp, value FROM node INDEXED BY node_layer_stamp WHERE {_WANTED} ORDER BY stamp LIMIT 1"
# The row that began last may be one of many that came late, in the time of a row that began before and lasted longer.
_LAST = f"""
    WITH begun AS MATERIALIZED (
        SELECT id, text_id, value, unit, stamp, min(last_stamp, :at) AS last
        FROM node INDEXED BY node_layer_stamp WHERE {_WANTED} ORDER BY stamp DESC, id DESC LIMIT 1
    ), lasted AS (
        SELECT id, text_id, value, unit, stamp, min(last_stamp, :at) AS last
        FROM node INDEXED BY node_lasting WHERE {_WANTED} AND last_stamp > stamp
        AND last_stamp > (SELECT last FROM begun WHERE last < :at) AND last_stamp <= :at + {LONGEST}
        ORDER BY last_stamp DESC LIMIT 1
    ), found AS (SELECT * FROM lasted UNION ALL SELECT * FROM begun ORDER BY last DESC LIMIT 1)
    SELECT found.id, ifnull(body, ''), value, ifnull(unit, ''), last FROM found LEFT JOIN text ON text.id = text_id"""
_LEAST, _MOST = -(2**63), 2**63 - 1
_DAY = 86_400_000_000_000


@dataclass(frozen=True)
class BodyLatest:
    """The newest reading of a layer; value in unit, None when it is no number; stamp in ns.

    The stamp is that of the last of the equal readings that the row stands for.
    """

    layer: str
    node_id: int
    text: str
    value: float | None
    unit: str
    stamp: int


def latest(
    conn: sqlite3.Connection, layers: Sequence[str] | None, now: int, first_session: int = 0
) -> list[BodyLatest]:
    """Return the newest reading not after now (ns) of each internal layer, or of those named, whenever it came.

    Args:
        first_session: readings of earlier sessions are left out; their clocks may be others. So are readings stamped
            more than a day before it began, so that years of earlier ones are not looked through.
    """
    names = [] if layers is None else list(layers)
    found = []
    for layer, name, start in conn.execute(_LAYERS, (first_session, layers is None, json.dumps(names))).fetchall():
        oldest = _LEAST if start is None else max(_LEAST, start - _DAY)
        row = conn.execute(_LAST, _bounds(layer, oldest, now, first_session, numbers=False)).fetchone()
        if row is not None:
            found.append(BodyLatest(name, *row))
    return found


def _bounds(layer: int, oldest: int, at: int, session: int, numbers: bool) -> dict[str, int]:
    """Which rows of a layer are looked through: begun from oldest to at (ns)."""
    return {"layer": layer, "oldest": oldest, "at": at, "session": session, "numbers": numbers}


def is_stored(conn: sqlite3.Connection) -> bool:
    """Whether there is a reading of any internal layer, by whatever clock."""
    sql = "SELECT EXISTS (SELECT 1 FROM layer JOIN node ON layer_id = layer.id WHERE internal = 1)"
    return bool(conn.execute(sql).fetchone()[0])


def values_before(
    conn: sqlite3.Connection, layer: str, stamp: int, back: int, most: int, first_session: int
) -> list[tuple[int, float]]:
    """Return (stamp, value) of the last `most` readings with a value in the `back` ns before stamp, oldest first.

    Those that one row stands for are evenly spread over its time. first_session: readings of earlier sessions are left
    out; their clocks may be others.
    """
    sql = """SELECT node.stamp, last_stamp, repeats, value FROM node JOIN layer ON layer.id = layer_id
             WHERE layer.name = ? AND node.stamp BETWEEN ? AND ? AND last_stamp >= ? AND kind = ? AND value IS NOT NULL
             AND session_id >= ? ORDER BY last_stamp DESC LIMIT ?"""
    start = stamp - back
    rows = conn.execute(
        sql, (layer, start - LONGEST, stamp - 1, start, int(Kind.OBSERVATION), first_session, most)
    )
    found = []
    for first, last, count, value in rows:
        step = (last - first) / max(1, count - 1)
        times = (last - round(step * place) for place in range(min(count, most)))
        found += [(time, value) for time in times if start <= time < stamp]
    return sorted(found)[-most:]


def value_at(
    conn: sqlite3.Connection, layer: str, stamp: int, back: int, first_session: int = 0
) -> tuple[int, float] | None:
    """Return (stamp, value) that a layer had at stamp (ns), or None: its last reading with a value at or before.

    Where there is none within `back` (ns) before stamp it is the first one after. first_session: as for `latest`.
    """
    row = conn.execute("SELECT id FROM layer WHERE name = ?", (layer,)).fetchone()
    if row is None:
        return None
    start = stamp - back
    last = conn.execute(_LAST, _bounds(row[0], start - LONGEST, stamp, first_session, numbers=True)).fetchone()
    if last is not None and last[4] >= start:
        return last[4], last[2]
    first = conn.execute(_FIRST, _bounds(row[0], stamp, _MOST, first_session, numbers=True)).fetchone()
    return None if first is None else (first[0], first[1])
