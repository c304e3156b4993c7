"""What the rows of episodes and gists have in common, told by SQL so that a day's rows never come into Python.

Rows of interoception are left out everywhere.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from memory_node.graph import EdgeType, Kind, Position, Tier
from memory_node.housekeeping.extractive import items_of, opposed
from memory_node.protocols import SummaryRow
from memory_node.storage.ids import id_table

MAX_TEXTS = 1000
"""Distinct texts a summary is made of; the most frequent go first."""

MAX_CHANGES = 1000
"""Changes of state that are read, such as of a door between open and closed; the first go first."""

MAX_ROWS = 2000
"""Rows of an episode that are looked at when it ends."""
AT_A_MOMENT = 10
"""Rows that are looked at together when they are not all."""
MAX_GISTS = 100
"""Gists of an episode that its summary is made of."""

GIST_ROW = """n.id, t.body, g.author, g.layers, n.stamp, n.last_stamp, n.x, n.y, n.z
FROM node AS n JOIN gist AS g ON g.id = n.id JOIN text AS t ON t.id = n.text_id"""
"""Columns and tables of a query whose rows `gist_items` takes."""

_PERCEIVED = "n.kind = 1 AND n.layer_id NOT IN (SELECT id FROM layer WHERE internal = 1)"
_OF_EPISODES = "json_each(?) AS given CROSS JOIN node AS n INDEXED BY node_episode"
_EPISODE = "n.episode_id = given.value"
_INSIDE = f"FROM {_OF_EPISODES} WHERE {_EPISODE} AND {_PERCEIVED}"
_FOLDED = f"""
SELECT f.least, t.body, l.name, f.first, f.last, f.x, f.y, f.z, f.repeats, f.text_id
FROM (SELECT n.layer_id, n.text_id, min(n.id) AS least, count(*) AS number, min(n.stamp) AS first,
    max(n.last_stamp) AS last, avg(n.x) AS x, avg(n.y) AS y, avg(n.z) AS z, sum(n.repeats) AS repeats
    FROM {{rows}} WHERE {{which}} AND {_PERCEIVED} AND n.text_id IS NOT NULL
    GROUP BY n.layer_id, n.text_id ORDER BY number DESC, first, least LIMIT {MAX_TEXTS}) AS f
CROSS JOIN text AS t ON t.id = f.text_id CROSS JOIN layer AS l ON l.id = f.layer_id
ORDER BY f.number DESC, f.first, f.least
"""
_CHANGES = f"""
WITH family AS MATERIALIZED (
    SELECT json_extract(value, '$[0]') AS text_id, json_extract(value, '$[1]') AS number FROM json_each(?)
)
SELECT text_id, stamp FROM (
    SELECT n.text_id, n.stamp, lag(n.text_id) OVER (PARTITION BY family.number ORDER BY n.stamp, n.id) AS before
    FROM {{rows}} CROSS JOIN family WHERE {{which}} AND {_PERCEIVED} AND family.text_id = n.text_id
) WHERE before IS NOT text_id ORDER BY stamp LIMIT {MAX_CHANGES}
"""


def count(conn: sqlite3.Connection, episode_id: int) -> int:
    """Return how many observations an episode has, those of its sub-episodes not counted; about, above MAX_ROWS."""
    few: int = conn.execute(
        f"SELECT count(*) FROM (SELECT 1 {_INSIDE} LIMIT {MAX_ROWS})", (id_table([episode_id]),)
    ).fetchone()[0]
    if few < MAX_ROWS:
        return few
    sql = "SELECT count(*) FROM node INDEXED BY node_episode WHERE episode_id = ?"
    return int(conn.execute(sql, (episode_id,)).fetchone()[0])


def last_stamp(conn: sqlite3.Connection, episode_ids: Sequence[int]) -> int | None:
    """Return the newest stamp (ns) among the rows of episodes, None when there are none."""
    newest: int | None = conn.execute(f"SELECT max(n.last_stamp) {_INSIDE}", (id_table(episode_ids),)).fetchone()[0]
    return newest


def sample(conn: sqlite3.Connection, episode_ids: Sequence[int]) -> list[int]:
    """Return the rows of episodes; where they are more than MAX_ROWS, about so many, spread over the time."""
    everything = conn.execute(f"SELECT n.id {_INSIDE} LIMIT {MAX_ROWS + 1}", (id_table(episode_ids),)).fetchall()
    if len(everything) <= MAX_ROWS:
        return [row[0] for row in everything]
    moments = max(1, MAX_ROWS // AT_A_MOMENT // len(episode_ids))
    spread = (id_ for episode_id in episode_ids[:MAX_ROWS] for id_ in _spread(conn, episode_id, moments))
    return list(dict.fromkeys(spread))


def _spread(conn: sqlite3.Connection, episode_id: int, moments: int) -> Iterator[int]:
    ends = "SELECT stamp FROM node INDEXED BY node_episode WHERE episode_id = ? ORDER BY stamp {} LIMIT 1"
    first, last = (conn.execute(ends.format(way), (episode_id,)).fetchone() for way in ("ASC", "DESC"))
    for moment in range(moments if first else 0):
        rows = conn.execute(
            f"SELECT n.id FROM node AS n INDEXED BY node_episode WHERE n.episode_id = ? AND n.stamp >= ?"
            f" AND {_PERCEIVED} ORDER BY n.stamp, n.id LIMIT {AT_A_MOMENT}",
            (episode_id, first[0] + (last[0] - first[0]) * moment // moments),
        )
        yield from (row[0] for row in rows)


def place(conn: sqlite3.Connection, episode_id: int, ids: Sequence[int]) -> tuple[Position | None, float]:
    """Return the centroid (m) of observations of an episode and the distance (m) to the farthest; else None and 0.

    Those on the map that the episode began on: numbers of another are no places there.
    """
    inside = (
        "FROM json_each(?1) AS given CROSS JOIN node AS n ON n.id = given.value"
        " WHERE n.map_id = ?2 AND n.x IS NOT NULL"
    )
    (map_id,), given = conn.execute("SELECT map_id FROM node WHERE id = ?", (episode_id,)).fetchone(), id_table(ids)
    x, y, z = conn.execute(f"SELECT avg(n.x), avg(n.y), avg(n.z) {inside}", (given, map_id)).fetchone()
    if x is None:
        return None, 0.0
    farthest = conn.execute(
        f"SELECT max((n.x - ?3) * (n.x - ?3) + (n.y - ?4) * (n.y - ?4) + (n.z - ?5) * (n.z - ?5)) {inside}",
        (given, map_id, x, y, z),
    ).fetchone()[0]
    return (x, y, z), math.sqrt(farthest)


def folded(conn: sqlite3.Connection, ids: Sequence[int]) -> list[SummaryRow]:
    """Return observations for a summary: one row a layer and text, at its mean place, with its first and last stamp.

    Those of what says the opposite of each other have each stamp at which it changed.
    """
    return _folded(conn, "json_each(?) AS given CROSS JOIN node AS n", "n.id = given.value", id_table(ids))


def of_gist(conn: sqlite3.Connection, gist_id: int) -> list[SummaryRow]:
    """The same of what a gist summarises and still has a text."""
    which = f"n.id = edge.target AND edge.source = ? AND edge.type = {int(EdgeType.SUMMARIZES)}"
    return _folded(conn, "edge CROSS JOIN node AS n", which, gist_id)


def _folded(conn: sqlite3.Connection, rows: str, which: str, given: str | int) -> list[SummaryRow]:
    found = conn.execute(_FOLDED.format(rows=rows, which=which), (given,)).fetchall()
    families = opposed((row[1], row[-1]) for row in found)
    changes: dict[int, list[int]] = {}
    if families:
        numbered = json.dumps([(text_id, number) for number, family in enumerate(families) for text_id in family])
        for text_id, stamp in conn.execute(_CHANGES.format(rows=rows, which=which), (numbered, given)):
            changes.setdefault(text_id, []).append(stamp)
    return [_row(row, changes.get(row[-1], ())) for row in found]


def of_episodes(conn: sqlite3.Connection, episode_ids: Sequence[int], ids: Sequence[int]) -> list[SummaryRow]:
    """The same of a sample of the rows of episodes; where some were archived, gists speak for the summarised ones."""
    sql = "SELECT n.id, n.tier, n.stamp FROM json_each(?) AS given CROSS JOIN node AS n ON n.id = given.value"
    rows = conn.execute(sql, (id_table(ids),)).fetchall()
    if all(tier != Tier.ARCHIVED for _, tier, _ in rows):
        return folded(conn, ids)
    stamps = [stamp for _, _, stamp in rows]
    return [
        *_of_gists(conn, episode_ids, min(stamps), max(stamps)),
        *folded(conn, [id_ for id_, tier, _ in rows if tier == Tier.SHORT_TERM]),
    ]


def _of_gists(conn: sqlite3.Connection, episode_ids: Sequence[int], start: int, end: int) -> list[SummaryRow]:
    """Items of the gists of episodes that begin in [start, end] ns; of many those that stand for most."""
    sql = f"""SELECT {GIST_ROW} WHERE n.id IN (SELECT id FROM gist WHERE id IN (
        SELECT id FROM node INDEXED BY node_kind_stamp WHERE kind = {int(Kind.GIST)} AND stamp BETWEEN ? AND ?
        AND text_id IS NOT NULL AND episode_id IN (SELECT value FROM json_each(?)) LIMIT {10 * MAX_GISTS})
        ORDER BY observation_count DESC LIMIT {MAX_GISTS}) ORDER BY n.stamp, n.id"""
    rows = conn.execute(sql, (start, end, id_table(episode_ids)))
    return [item for row in rows for item in gist_items(row)]


def gist_items(row: tuple[Any, ...]) -> list[SummaryRow]:
    """Return the items of a gist, read with GIST_ROW, each as a row of the gist's span and place."""
    id_, text, author, layers, first, last, x, y, z = row
    position = None if x is None else (x, y, z)
    layer = json.loads(layers)[0]
    return [SummaryRow(id_, item, layer, first, last, position, count) for item, count in items_of(text, author)]


def _row(
    row: tuple[int, str, str, int, int, float | None, float, float, int, int], changes: Sequence[int]
) -> SummaryRow:
    id_, text, layer, first, last, x, y, z, repeats, _ = row
    position = None if x is None else (x, y, z)
    return SummaryRow(id_, text, layer, first, last, position, repeats, tuple(changes))
