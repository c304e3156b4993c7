"""What rows tell of where something is, column by column: only what gathering them into places takes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from memory_node.storage.ids import id_table

_SELECT = """
    SELECT node.id, x, y, z, position_source, stamp, min(last_stamp, ?3), repeats, confidence, frame, map_id,
        ifnull(map.name, ''), ifnull(text.body, ''), ifnull(gist.radius, 0.0)
    FROM json_each(?1) AS given CROSS JOIN node ON node.id = given.value LEFT JOIN text ON text.id = text_id
    LEFT JOIN map ON map.id = map_id LEFT JOIN gist ON gist.id = node.id WHERE x IS NOT NULL LIMIT ?2"""
_ALL_TIME = 2**63 - 1


class Told(NamedTuple):
    """Rows whose place is known, one a place of every column.

    Attributes:
        x, y, z: m. sources: values of PositionSource. first_seen, last_seen: ns. repeats: readings of each.
        maps: ids. texts: "" where there is none. radii: m within which what a gist tells of lies, else 0.
    """

    ids: tuple[int, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    z: tuple[float, ...]
    sources: tuple[int, ...]
    first_seen: tuple[int, ...]
    last_seen: tuple[int, ...]
    repeats: tuple[int, ...]
    confidence: tuple[float, ...]
    frames: tuple[str, ...]
    maps: tuple[int, ...]
    map_names: tuple[str, ...]
    texts: tuple[str, ...]
    radii: tuple[float, ...]


def told(conn: sqlite3.Connection, ids: Iterable[int], most: int, until: int | None = None) -> Told:
    """Return the first `most` of the rows whose place is known, in the order of ids.

    Args:
        until: time (ns) that none was seen later than; None: as they were.
    """
    rows = conn.execute(_SELECT, (id_table(ids), most, _ALL_TIME if until is None else until)).fetchall()
    return Told(*zip(*rows, strict=True)) if rows else Told(*[()] * len(Told._fields))
