"""Table `episode`, joined with its node row into graph.Episode. Times are ns, positions m in the node's frame."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from memory_node.graph import NO_ID, EdgeType, Episode, Kind, Node, PositionSource
from memory_node.storage import edges, nodes
from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

_SELECT = """
SELECT e.id, t.body, e.status, n.stamp, e.ended, e.parent_id, e.observation_count, e.summary, n.x, n.y, n.z, n.frame,
       e.radius, e.explicit, n.metadata
FROM episode AS e JOIN node AS n ON n.id = e.id LEFT JOIN text AS t ON t.id = n.text_id
"""
_BESIDE = f"""
SELECT id FROM node INDEXED BY node_kind_stamp
WHERE kind = {int(Kind.EPISODE)} AND (stamp, id) {{side}} (?, ?) AND session_id = ?
AND (SELECT parent_id FROM episode WHERE episode.id = node.id) = ? ORDER BY stamp {{way}}, id {{way}} LIMIT 1
"""
LAST = 2**63 - 1
"""The last time there is, ns."""
_OWN_COLUMNS = ("status", "ended", "observation_count", "summary", "radius")


def insert(
    tx: Transaction, episode: Episode, session_id: int, map_id: str = "", *, last_stamp: int | None = None
) -> int:
    """Store an episode as a new node and return its id; episode.id and depth are not read.

    Args:
        map_id: name of the map.
        last_stamp: stamp of its newest row; None: its end, or its start while it runs.
    """
    if last_stamp is None:
        last_stamp = episode.start if episode.end is None else episode.end
    node = Node(
        id=NO_ID, kind=Kind.EPISODE, layer="", text=episode.name, text_id=None, stamp=episode.start,
        last_stamp=last_stamp, position=episode.position,
        position_source=PositionSource.NONE if episode.position is None else PositionSource.OBSERVER,
        frame=episode.frame, map_id=map_id, session_id=session_id, episode_id=episode.parent_id,
        metadata=episode.metadata,
    )
    id_ = nodes.insert(tx, node)
    tx.conn.execute(
        "INSERT INTO episode (id, status, explicit, parent_id, ended, observation_count, summary, radius)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (id_, episode.status, int(episode.explicit), episode.parent_id, episode.end, episode.observation_count,
         episode.summary, episode.radius),
    )
    return id_


def get(conn: sqlite3.Connection, id_: int) -> Episode | None:
    """Return an episode, None when there is none of that id."""
    found = _records(conn, _SELECT + " WHERE e.id = ?", (id_,))
    return found[0] if found else None


def get_many(conn: sqlite3.Connection, ids: Iterable[int]) -> list[Episode]:
    """Return episodes in the order of ids, missing ones left out."""
    wanted = list(ids)
    sql = _SELECT + " WHERE e.id IN (SELECT value FROM json_each(?))"
    found = {episode.id: episode for episode in _records(conn, sql, (id_table(wanted),))}
    return [found[id_] for id_ in wanted if id_ in found]


def active(conn: sqlite3.Connection) -> list[Episode]:
    """Return the explicit episodes that run now, the innermost last."""
    return _records(conn, _SELECT + " WHERE e.status = 'active' AND e.explicit = 1 ORDER BY e.id", ())


def find(conn: sqlite3.Connection, name: str, until: int = LAST) -> list[int]:
    """Return ids of the episodes whose name has `name` in it, whatever the case, the newest first.

    Args:
        until: ns; episodes that began later are left out.
    """
    rows = conn.execute(
        "SELECT node.id, body FROM node JOIN text ON text.id = text_id"
        f" WHERE kind = {int(Kind.EPISODE)} AND stamp <= ? ORDER BY stamp DESC, node.id DESC",
        (until,),
    )
    # LIKE ignores the case of ASCII only.
    wanted = name.casefold()
    return [id_ for id_, body in rows if wanted in body.casefold()]


def last(conn: sqlite3.Connection, n: int = 1, until: int = LAST) -> list[Episode]:
    """Return the n outermost episodes that somebody started last, the newest first; where fewer, linked ones too.

    Args:
        until: ns; episodes that began later are left out.
    """
    newest = (
        f"{_SELECT} WHERE n.kind = {int(Kind.EPISODE)} AND n.stamp <= ? AND e.explicit = ? AND e.parent_id = 0"
        " ORDER BY n.stamp DESC, n.id DESC LIMIT ?"
    )
    started = _records(conn, newest, (until, 1, n))
    linked = _records(conn, newest, (until, 0, n - len(started))) if len(started) < n else []
    return sorted(started + linked, key=lambda episode: (episode.start, episode.id), reverse=True)


def count(conn: sqlite3.Connection, until: int = LAST) -> int:
    """Return how many episodes began until then (ns)."""
    sql = f"SELECT count(*) FROM node WHERE kind = {int(Kind.EPISODE)} AND stamp <= ?"
    return int(conn.execute(sql, (until,)).fetchone()[0])


def children(conn: sqlite3.Connection, id_: int) -> list[Episode]:
    """Return the episodes directly inside one, the earliest first."""
    return _records(conn, _SELECT + " WHERE e.parent_id = ? ORDER BY n.stamp, n.id", (id_,))


def descendants(conn: sqlite3.Connection, id_: int) -> list[int]:
    """Return ids of an episode and of every episode inside it, at any depth; the episode itself is the first."""
    rows = conn.execute(
        "WITH RECURSIVE inside (id) AS (SELECT ? UNION SELECT e.id FROM episode AS e JOIN inside ON"
        " e.parent_id = inside.id) SELECT id FROM inside ORDER BY id",
        (id_,),
    )
    return [row[0] for row in rows]


def chain(tx: Transaction, id_: int) -> None:
    """Let an episode follow the one before it at its level, and the one after it in its session follow it.

    Before it is what began last before it in its session, else the last of an earlier session.
    """
    start, session_id, parent_id = tx.conn.execute(
        "SELECT stamp, session_id, parent_id FROM node JOIN episode USING (id) WHERE id = ?", (id_,)
    ).fetchone()
    level = (start, id_, session_id, parent_id)
    before = tx.conn.execute(_BESIDE.format(side="<", way="DESC"), level).fetchone() or tx.conn.execute(
        "SELECT id FROM episode INDEXED BY episode_parent WHERE parent_id = ?"
        " AND (SELECT session_id FROM node WHERE node.id = episode.id) < ? ORDER BY id DESC LIMIT 1",
        (parent_id, session_id),
    ).fetchone()
    after = tx.conn.execute(_BESIDE.format(side=">", way="ASC"), level).fetchone()
    if before is not None:
        edges.add(tx, id_, before[0], EdgeType.FOLLOWS)
    if after is not None:
        tx.conn.execute("DELETE FROM edge WHERE source = ? AND type = ?", (after[0], int(EdgeType.FOLLOWS)))
        edges.add(tx, after[0], id_, EdgeType.FOLLOWS)


def add_members(tx: Transaction, id_: int, node_ids: Sequence[int]) -> None:
    """Put observations into an episode: their column and their BELONGS_TO edge."""
    ids = id_table(node_ids)
    tx.conn.execute(
        "UPDATE node SET episode_id = ?, revision = ? WHERE id IN (SELECT value FROM json_each(?))",
        (id_, tx.revision, ids),
    )
    tx.conn.execute(
        f"INSERT OR IGNORE INTO edge (source, target, type) SELECT value, ?, {int(EdgeType.BELONGS_TO)}"
        " FROM json_each(?)",
        (id_, ids),
    )


def reach(tx: Transaction, node_ids: Iterable[int], longest: int) -> None:
    """Let the episodes that silence linked last as long as their rows among node_ids, at most `longest` ns."""
    rows = tx.conn.execute(
        "SELECT e.id, e.ended, n.stamp, n.last_stamp, max(row.last_stamp) FROM json_each(?) AS given"
        " CROSS JOIN node AS row ON row.id = given.value"
        " CROSS JOIN episode AS e ON e.id = row.episode_id AND e.explicit = 0 CROSS JOIN node AS n ON n.id = e.id"
        " GROUP BY e.id HAVING max(row.last_stamp) > n.last_stamp",
        (id_table(node_ids),),
    )
    for id_, ended, start, known, newest in rows.fetchall():
        last = min(newest, start + longest)
        if last > known:
            update(tx, id_, last_stamp=last, **({} if ended is None else {"ended": last}))


def update(tx: Transaction, id_: int, **columns: Any) -> None:
    """Change an episode: status, ended, observation_count, summary, radius, and the fields of its node (graph.Node)."""
    own = {name: columns.pop(name) for name in _OWN_COLUMNS if name in columns}
    if own:
        assignments = ", ".join(f"{name} = ?" for name in own)
        tx.conn.execute(f"UPDATE episode SET {assignments} WHERE id = ?", (*own.values(), id_))
    nodes.update(tx, id_, **columns)


def _records(conn: sqlite3.Connection, sql: str, parameters: tuple[Any, ...]) -> list[Episode]:
    return [_record(conn, row) for row in conn.execute(sql, parameters).fetchall()]


def _record(conn: sqlite3.Connection, row: tuple[Any, ...]) -> Episode:
    id_, name, status, start, end, parent, count, summary, x, y, z, frame, radius, explicit, metadata = row
    return Episode(
        id=id_, name=name or "", status=status, start=start, end=end, parent_id=parent, depth=_depth(conn, parent),
        observation_count=count, summary=summary, position=None if x is None else (x, y, z), frame=frame,
        radius=radius, explicit=bool(explicit), metadata=json.loads(metadata) if metadata else {},
    )


def _depth(conn: sqlite3.Connection, parent: int) -> int:
    depth = 0
    while parent != NO_ID:
        depth += 1
        row = conn.execute("SELECT parent_id FROM episode WHERE id = ?", (parent,)).fetchone()
        parent = row[0] if row else NO_ID
    return depth
