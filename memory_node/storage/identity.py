"""Which entity an id means: those that were merged go by another's, those that were split stay apart."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from memory_node.graph import NO_ID
from memory_node.storage.ids import id_table

SPLIT_FROM = "split_from"
"""Key of an entity's metadata: ids of those that it, or one merged into it, was split from."""


def resolve(conn: sqlite3.Connection, id_: int) -> int:
    """Return the id an entity goes by now: its own, or that of the one it was merged into; 0 when there is none."""
    row = conn.execute("SELECT merged_into FROM entity WHERE id = ?", (id_,)).fetchone()
    if row is None:
        return NO_ID
    return int(row[0]) or id_


def resolve_many(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, int]:
    """Return the id that each goes by now, as `resolve` does; those that are no entity are left out."""
    sql = "SELECT id, iif(merged_into, merged_into, id) FROM entity WHERE id IN (SELECT value FROM json_each(?))"
    return dict(conn.execute(sql, (id_table(ids),)).fetchall())


def split_from(conn: sqlite3.Connection, id_: int) -> set[int]:
    """Return the ids of the entities that one was split from, by which these went then."""
    row = conn.execute("SELECT metadata FROM node WHERE id = ? AND metadata IS NOT NULL", (id_,)).fetchone()
    return set(json.loads(row[0]).get(SPLIT_FROM, ())) if row else set()


def origins(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, set[int]]:
    """Return, by id, the entities that somebody split it from, by which they go now, and itself.

    Two that have one in common were split from each other, or from a third, and are kept apart.
    """
    found = {id_: {id_} for id_ in ids}
    sql = "SELECT id, metadata FROM node WHERE id IN (SELECT value FROM json_each(?)) AND metadata IS NOT NULL"
    for id_, metadata in conn.execute(sql, (id_table(found),)).fetchall():
        found[id_].update(resolve(conn, origin) for origin in json.loads(metadata).get(SPLIT_FROM, ()))
    return found


def were_split(conn: sqlite3.Connection, a: int, b: int) -> bool:
    """Tell whether somebody split one of two entities from the other, or both from a third."""
    found = origins(conn, (a, b))
    return not found[a].isdisjoint(found[b])
