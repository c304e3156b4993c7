"""What the rows of episodes and gists have in common, told by SQL so that a day's rows never come into Python.

Rows of interoception are left out everywhere.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Sequence
from typing import Any

from memory_node.graph import EdgeType, Kind, Position, Tier
from memory_node.housekeeping.extractive import items_of
from memory_node.protocols import SummaryRow
from memory_node.storage.ids import id_table

MAX_TEXTS = 1000
"""Distinct texts a summary is made of; the most frequent go first."""

GIST_ROW = """n.id, t.body, g.layers, n.stamp, n.last_stamp, n.x, n.y, n.z
FROM node AS n JOIN gist AS g ON g.id = n.id JOIN text AS t ON t.id = n.text_id"""
"""Columns and tables of a query whose rows `gist_items` takes."""

_PERCEIVED = "n.kind = 1 AND n.layer_id NOT IN (SELECT id FROM layer WHERE internal = 1)"
_OF_EPISODES = "json_each(?) AS given CROSS JOIN node AS n INDEXED BY node_episode"
_EPISODE = "n.episode_id = given.value"
_INSIDE = f"FROM {_OF_EPISODES} WHERE {_EPISODE} AND {_PERCEIVED}"
_FOLDED = f"""
SELECT f.least, t.body, l.name, f.first, f.last, f.x, f.y, f.z, f.repeats
FROM (SELECT n.layer_id, n.text_id, min(n.id) AS least, count(*) AS number, min(n.stamp) AS first,
    max(n.last_stamp) AS last, avg(n.x) AS x, avg(n.y) AS y, avg(n.z) AS z, sum(n.repeats) AS repeats
    FROM {{rows}} WHERE {{which}} AND {_PERCEIVED} AND n.text_id IS NOT NULL
    GROUP BY n.layer_id, n.text_id ORDER BY number DESC, first, least LIMIT {MAX_TEXTS}) AS f
CROSS JOIN text AS t ON t.id = f.text_id CROSS JOIN layer AS l ON l.id = f.layer_id
ORDER BY f.number DESC, f.first, f.least
"""


def count(conn: sqlite3.Connection, episode_id: int) -> int:
    """Return how many observations an episode has, those of its sub-episodes not counted."""
    total: int = conn.execute(f"SELECT count(*) {_INSIDE}", (id_table([episode_id]),)).fetchone()[0]
    return total


def last_stamp(conn: sqlite3.Connection, episode_ids: Sequence[int]) -> int | None:
    """Return the newest stamp (ns) among the rows of episodes, None when there are none."""
    newest: int | None = conn.execute(f"SELECT max(n.last_stamp) {_INSIDE}", (id_table(episode_ids),)).fetchone()[0]
    return newest


def place(conn: sqlite3.Connection, episode_ids: Sequence[int]) -> tuple[Position | None, float]:
    """Return the centroid (m) of the rows of episodes and the distance (m) to the farthest; without places None, 0."""
    ids = id_table(episode_ids)
    x, y, z = conn.execute(f"SELECT avg(n.x), avg(n.y), avg(n.z) {_INSIDE} AND n.x IS NOT NULL", (ids,)).fetchone()
    if x is None:
        return None, 0.0
    farthest = conn.execute(
        f"SELECT max((n.x - ?2) * (n.x - ?2) + (n.y - ?3) * (n.y - ?3) + (n.z - ?4) * (n.z - ?4))"
        f" {_INSIDE.replace('?', '?1')} AND n.x IS NOT NULL",
        (ids, x, y, z),
    ).fetchone()[0]
    return (x, y, z), math.sqrt(farthest)


def folded(conn: sqlite3.Connection, ids: Sequence[int]) -> list[SummaryRow]:
    """Return observations for a summary: one row a layer and text, at its mean place, with its first and last stamp."""
    sql = _FOLDED.format(rows="json_each(?) AS given CROSS JOIN node AS n", which="n.id = given.value")
    return [_row(row) for row in conn.execute(sql, (id_table(ids),))]


def of_gist(conn: sqlite3.Connection, gist_id: int) -> list[SummaryRow]:
    """The same of what a gist summarises and still has a text."""
    which = f"n.id = edge.target AND edge.source = ? AND edge.type = {int(EdgeType.SUMMARIZES)}"
    sql = _FOLDED.format(rows="edge CROSS JOIN node AS n", which=which)
    return [_row(row) for row in conn.execute(sql, (gist_id,))]


def of_episodes(conn: sqlite3.Connection, episode_ids: Sequence[int]) -> list[SummaryRow]:
    """The same of the rows of episodes; where some were archived, their gists speak for the summarised ones."""
    ids = id_table(episode_ids)
    archived = conn.execute(f"SELECT 1 {_INSIDE} AND n.tier = {int(Tier.ARCHIVED)} LIMIT 1", (ids,)).fetchone()
    if archived is None:
        return [_row(row) for row in conn.execute(_FOLDED.format(rows=_OF_EPISODES, which=_EPISODE), (ids,))]
    raw = _FOLDED.format(rows=_OF_EPISODES, which=f"{_EPISODE} AND n.tier = {int(Tier.SHORT_TERM)}")
    return [*of_gists(conn, episode_ids), *(_row(row) for row in conn.execute(raw, (ids,)))]


def of_gists(conn: sqlite3.Connection, episode_ids: Sequence[int]) -> list[SummaryRow]:
    """Return the items of the gists of episodes, for a summary."""
    rows = conn.execute(
        f"SELECT {GIST_ROW} WHERE n.episode_id IN (SELECT value FROM json_each(?))"
        f" AND n.kind = {int(Kind.GIST)} AND n.text_id IS NOT NULL ORDER BY n.stamp, n.id",
        (id_table(episode_ids),),
    )
    return [item for row in rows for item in gist_items(row)]


def gist_items(row: tuple[Any, ...]) -> list[SummaryRow]:
    """Return the items of a gist, read with GIST_ROW, each as a row of the gist's span and place."""
    id_, text, layers, first, last, x, y, z = row
    position = None if x is None else (x, y, z)
    layer = json.loads(layers)[0]
    return [SummaryRow(id_, item, layer, first, last, position, count) for item, count in items_of(text)]


def weights(conn: sqlite3.Connection, episode_ids: Sequence[int]) -> dict[int, int]:
    """Return the texts that stand for the rows of episodes, with how many rows each stands for; at most MAX_TEXTS.

    A gist's text stands for those of its members that were archived.
    """
    ids = id_table(episode_ids)
    own = f"SELECT n.text_id, count(*) {_INSIDE} AND n.text_id IS NOT NULL GROUP BY n.text_id"
    gone = f"""SELECT g.text_id, count(*) FROM json_each(?) AS given
        CROSS JOIN node AS g INDEXED BY node_episode CROSS JOIN edge AS e ON e.source = g.id AND
        e.type = {int(EdgeType.SUMMARIZES)} CROSS JOIN node AS n ON n.id = e.target
        WHERE g.episode_id = given.value AND g.kind = {int(Kind.GIST)} AND g.text_id IS NOT NULL
        AND n.tier = {int(Tier.ARCHIVED)} GROUP BY g.text_id"""
    rows = conn.execute(f"{own} UNION ALL {gone} ORDER BY 2 DESC, 1 LIMIT {MAX_TEXTS}", (ids, ids))
    return dict(rows.fetchall())


def _row(row: tuple[int, str, str, int, int, float | None, float, float, int]) -> SummaryRow:
    id_, text, layer, first, last, x, y, z, repeats = row
    return SummaryRow(id_, text, layer, first, last, None if x is None else (x, y, z), repeats)
