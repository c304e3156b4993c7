"""Table `gist`, joined with its node row into graph.Gist. Times are ns, positions m in the node's frame."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from memory_node.graph import NO_ID, EdgeType, Gist, Kind, Node, Position, PositionSource, Tier
from memory_node.storage import nodes
from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

_OWN = "g.id, g.layers, g.observation_count, g.radius, g.episode_id, g.level, g.author"
_SELECT = f"""
SELECT {_OWN}, t.body, n.stamp, n.last_stamp, n.x, n.y, n.z, n.frame, m.name
FROM json_each(?) AS given CROSS JOIN gist AS g ON g.id = given.value CROSS JOIN node AS n ON n.id = g.id
LEFT JOIN text AS t ON t.id = n.text_id LEFT JOIN map AS m ON m.id = n.map_id
"""

# Of a gist none of whose rows is archived every row would be asked about, but rows newer than any archived one are not.
# The index of those is looked into instead of the table, one kind at a time for its end.
_ARCHIVED = f"node INDEXED BY node_archived WHERE tier = {int(Tier.ARCHIVED)} AND kind"
_NEWEST = f"""max(
    ifnull((SELECT max(id) FROM {_ARCHIVED} = {int(Kind.OBSERVATION)}), 0),
    ifnull((SELECT max(id) FROM {_ARCHIVED} = {int(Kind.GIST)}), 0)
)"""
_MEMBERS = f"edge WHERE source = given.value AND type = {int(EdgeType.SUMMARIZES)}"
_STANDING_IN = f"""
SELECT value FROM json_each(?) AS given
WHERE EXISTS (SELECT 1 FROM {_MEMBERS} AND target <= (SELECT {_NEWEST}) AND EXISTS (
    SELECT 1 FROM {_ARCHIVED} IN ({int(Kind.OBSERVATION)}, {int(Kind.GIST)}) AND node.id = target
)) OR NOT EXISTS (SELECT 1 FROM {_MEMBERS}) ORDER BY given.key
"""


def insert(
    tx: Transaction,
    gist: Gist,
    member_ids: Sequence[int],
    *,
    session_id: int = 0,
    rewrite: bool = False,
) -> int:
    """Store a gist as a new node with its SUMMARIZES edges and return its id; gist.id and score are not read.

    Args:
        session_id: session of its members.
        rewrite: a language model's text is still wanted.
    """
    node = Node(
        id=NO_ID, kind=Kind.GIST, layer="", text=gist.text, text_id=None, stamp=gist.start, last_stamp=gist.end,
        position=gist.position,
        position_source=PositionSource.NONE if gist.position is None else PositionSource.OBSERVER,
        frame=gist.frame, map_id=gist.map_id, tier=Tier.LONG_TERM, session_id=session_id, episode_id=gist.episode_id,
    )
    id_ = nodes.insert(tx, node)
    tx.conn.execute(
        "INSERT INTO gist (id, level, layers, observation_count, radius, episode_id, author, rewrite)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (id_, gist.level, json.dumps(gist.layers), gist.observation_count, gist.radius, gist.episode_id, gist.author,
         int(rewrite)),
    )
    add_members(tx, id_, member_ids)
    return id_


def add_members(tx: Transaction, id_: int, member_ids: Sequence[int]) -> None:
    """Join members to their gist and make them long-term; the gist is as sure as the surest of its members."""
    ids = id_table(member_ids)
    begun = f"EXISTS (SELECT 1 FROM edge WHERE source = ?1 AND type = {int(EdgeType.SUMMARIZES)})"
    tx.conn.execute(
        f"""UPDATE node SET revision = ?3, confidence = max(CASE WHEN {begun} THEN confidence ELSE 0.0 END, surest)
            FROM (SELECT max(confidence) AS surest FROM node WHERE id IN (SELECT value FROM json_each(?2)))
            WHERE id = ?1 AND surest IS NOT NULL""",
        (id_, ids, tx.revision),
    )
    tx.conn.execute(
        f"INSERT OR IGNORE INTO edge (source, target, type) SELECT ?, value, {int(EdgeType.SUMMARIZES)}"
        " FROM json_each(?)",
        (id_, ids),
    )
    tx.conn.execute(
        f"UPDATE node SET tier = {int(Tier.LONG_TERM)}, revision = ?"
        f" WHERE id IN (SELECT value FROM json_each(?)) AND tier < {int(Tier.LONG_TERM)}",
        (tx.revision, ids),
    )


def get_many(
    conn: sqlite3.Connection, ids: Iterable[int], scores: Mapping[int, float] | None = None
) -> list[Gist]:
    """Return gists in the order of ids, missing ones left out.

    Args:
        scores: what to give each as its score, by id; 0 where left out.
    """
    wanted, scores = list(ids), scores or {}
    if not wanted:
        return []
    rows = conn.execute(_SELECT, (id_table(wanted),))
    return [_record(row, scores.get(row[0], 0.0)) for row in rows]


def of_nodes(conn: sqlite3.Connection, given: Iterable[Node], scores: Mapping[int, float]) -> list[Gist]:
    """Return the gists whose nodes were read already, in that order, missing ones left out; scores: by id."""
    by_id = {node.id: node for node in given}
    sql = f"SELECT {_OWN} FROM gist AS g WHERE g.id IN (SELECT value FROM json_each(?))"
    own = {row[0]: row for row in conn.execute(sql, (id_table(by_id),))}
    return [
        _gist(own[id_], n.text, n.stamp, n.last_stamp, n.position, n.frame, n.map_id, scores[id_])
        for id_, n in by_id.items()
        if id_ in own
    ]


def on_map(conn: sqlite3.Connection, ids: Iterable[int], map_name: str, most: int) -> list[int]:
    """Return the first of the gists, at most `most`, that are of a map; they are read only as far."""
    sql = """SELECT node.id FROM json_each(?) AS given CROSS JOIN node ON node.id = given.value
             LEFT JOIN map ON map.id = map_id WHERE ifnull(map.name, '') = ? LIMIT ?"""
    return [row[0] for row in conn.execute(sql, (id_table(ids), map_name, most))]


def radii_after(conn: sqlite3.Connection, id_: int) -> list[tuple[int, float]]:
    """Return id and radius (m) of the gists with ids above one, ascending."""
    return conn.execute("SELECT id, radius FROM gist WHERE id > ? ORDER BY id", (id_,)).fetchall()


def of_episodes(conn: sqlite3.Connection, episode_ids: Iterable[int], after: int, before: int) -> list[Gist]:
    """Return the gists of episodes that begin in [after, before] (ns) and no gist of gists replaced, earliest first."""
    # By time, because an episode's rows are many more than the gists of its day.
    rows = conn.execute(
        f"SELECT id FROM node INDEXED BY node_kind_stamp WHERE kind = {int(Kind.GIST)} AND stamp BETWEEN ? AND ?"
        f" AND tier < {int(Tier.ARCHIVED)} AND episode_id IN (SELECT value FROM json_each(?)) ORDER BY stamp, id",
        (after, before, id_table(episode_ids)),
    )
    return get_many(conn, [row[0] for row in rows])


def exist(conn: sqlite3.Connection) -> bool:
    """Whether there is any gist."""
    return conn.execute("SELECT 1 FROM gist LIMIT 1").fetchone() is not None


def standing_in(conn: sqlite3.Connection, ids: Iterable[int]) -> list[int]:
    """Return those of the gists, in their order, that tell of rows that are archived or gone."""
    ids = list(ids)
    if not ids:
        return []
    return [row[0] for row in conn.execute(_STANDING_IN, (id_table(ids),))]


def set_text(tx: Transaction, id_: int, text: str, author: str) -> None:
    """Replace the text of a gist with a language model's."""
    nodes.update(tx, id_, text=text)
    tx.conn.execute("UPDATE gist SET author = ?, rewrite = 0 WHERE id = ?", (author, id_))


def keep_text(tx: Transaction, id_: int) -> None:
    """Want no language model's text for a gist any more."""
    tx.conn.execute("UPDATE gist SET rewrite = 0 WHERE id = ?", (id_,))


def _record(row: tuple[Any, ...], score: float) -> Gist:
    text, start, end, x, y, z, frame, map_name = row[7:]
    return _gist(row[:7], text, start, end, None if x is None else (x, y, z), frame, map_name, score)


def _gist(
    own: tuple[Any, ...], text: str | None, start: int, end: int, position: Position | None, frame: str,
    map_id: str | None, score: float,
) -> Gist:  # fmt: skip
    """The columns of table `gist` with those of the node."""
    id_, layers, count, radius, episode_id, level, author = own
    # In the order of its fields: by their names it takes twice as long.
    return Gist(
        id_, text or "", _names(layers), start, end, count, position, frame, radius, episode_id, level, author,
        map_id or "", score,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _names(layers: str) -> tuple[str, ...]:
    """Layers as they are stored; most gists have the same few."""
    return tuple(json.loads(layers))
