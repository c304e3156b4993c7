"""Readings of internal layers: the latest one, and the one at a time. They are observations with a value.

A row stands for equal readings from its stamp to its last one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from memory_node.graph import Kind

_LATEST = """
    SELECT layer.name, node.id, ifnull(text.body, ''), node.value, ifnull(node.unit, ''), min(node.last_stamp, ?1)
    FROM layer JOIN node ON node.id = (
        SELECT id FROM node AS newest
        WHERE newest.layer_id = layer.id AND newest.session_id >= ?2 AND newest.stamp <= ?1
        AND newest.stamp >= ifnull((SELECT start_stamp FROM session WHERE id = ?2) - ?3, -9223372036854775808)
        ORDER BY newest.stamp DESC, newest.id DESC LIMIT 1
    ) LEFT JOIN text ON text.id = node.text_id
    WHERE layer.internal = 1 AND (?4 OR layer.name IN (SELECT value FROM json_each(?5)))
    ORDER BY layer.name"""
_DAY = 86_400_000_000_000
LONGEST = 3600 * 1_000_000_000
"""ns: the longest time that a row may stand for."""


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
    """Return the newest reading not after now (ns) of each internal layer, or of those named.

    Args:
        first_session: readings of earlier sessions are left out; their clocks may be others. So are readings stamped
            more than a day before it began, so that years of earlier ones are not looked through.
    """
    names = [] if layers is None else list(layers)
    rows = conn.execute(_LATEST, (now, first_session, _DAY, layers is None, json.dumps(names)))
    return [BodyLatest(*row) for row in rows]


def values_before(
    conn: sqlite3.Connection, layer: str, stamp: int, back: int, most: int, first_session: int
) -> list[tuple[int, float]]:
    """Return (stamp, value) of the last `most` readings with a value in the `back` ns before stamp, oldest first.

    Those that one row stands for are evenly spread over its time. first_session: readings of earlier sessions are left
    out; their clocks may be others.
    """
    sql = """SELECT node.stamp, last_stamp, repeats, value FROM node JOIN layer ON layer.id = layer_id
             WHERE layer.name = ? AND node.stamp BETWEEN ? AND ? AND last_stamp >= ? AND kind = ? AND value IS NOT NULL
             AND session_id >= ? ORDER BY node.stamp DESC LIMIT ?"""
    start = stamp - back
    rows = conn.execute(
        sql, (layer, start - LONGEST, stamp - 1, start, int(Kind.OBSERVATION), first_session, most)
    )
    found = []
    for first, last, count, value in rows:
        step = (last - first) / max(1, count - 1)
        times = (last - round(step * place) for place in range(min(count, most)))
        found += [(time, value) for time in times if start <= time < stamp]
    return found[:most][::-1]


def value_at(
    conn: sqlite3.Connection, layer: str, stamp: int, back: int, first_session: int = 0
) -> tuple[int, float] | None:
    """Return (stamp, value) that a layer had at stamp (ns), or None: its last reading with a value at or before.

    Where there is none within `back` (ns) before stamp it is the first one after. first_session: as for `latest`.
    """
    sql = """SELECT {time}, value FROM node JOIN layer ON layer.id = layer_id
             WHERE layer.name = ? AND node.stamp BETWEEN ? AND ? AND last_stamp >= ? AND kind = ?
             AND value IS NOT NULL AND session_id >= ? ORDER BY node.stamp {way} LIMIT 1"""
    start = stamp - back
    for time, way, first, last in (
        (f"min(last_stamp, {stamp})", "DESC", start - LONGEST, stamp), ("node.stamp", "ASC", stamp, 2**63 - 1)
    ):  # fmt: skip
        row = conn.execute(
            sql.format(time=time, way=way), (layer, first, last, start, int(Kind.OBSERVATION), first_session)
        ).fetchone()
        if row is not None:
            return row[0], row[1]
    return None
