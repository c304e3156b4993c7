"""Node rows, whatever their kind, and the names of layers and maps they refer to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memory_node.errors import InvalidArgument
from memory_node.graph import EVENTS_LAYER, NO_ID, EdgeType, Kind, Node, Position, PositionSource, Tier
from memory_node.storage import texts
from memory_node.storage.columns import NodeColumns as NodeColumns
from memory_node.storage.columns import since as since
from memory_node.storage.ids import id_table
from memory_node.storage.writer import Transaction

_INSERT = """INSERT INTO node (id, kind, layer_id, text_id, stamp, last_stamp, repeats, stamp_source, x, y, z,
    position_source, frame, map_id, confidence, importance, tier, session_id, episode_id, value, unit, metadata,
    revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

_FETCH = """
    SELECT node.id, kind, ifnull(layer.name, ''), text.body, text_id, stamp, last_stamp, repeats, stamp_source, x, y, z,
        position_source, frame, ifnull(map.name, ''), confidence, importance, tier, session_id, episode_id, metadata,
        node.value, unit
    FROM json_each(?) AS given CROSS JOIN node ON node.id = given.value
    LEFT JOIN text ON text.id = text_id LEFT JOIN layer ON layer.id = layer_id LEFT JOIN map ON map.id = map_id"""

_PLAIN = frozenset(
    [
        "text_id", "stamp", "last_stamp", "repeats", "stamp_source", "position_source", "frame", "confidence",
        "importance", "tier", "session_id", "episode_id", "value", "unit",
    ]
)  # fmt: skip

# Looked up in a fifth of the time that a call of the class takes.
_KINDS = {int(kind): kind for kind in Kind}
_SOURCES = {int(source): source for source in PositionSource}
_TIERS = {int(tier): tier for tier in Tier}

_AMONG = "IN (SELECT value FROM json_each(?))"


@dataclass(frozen=True)
class Layer:
    """A layer; internal: interoception, whose texts are neither embedded nor in the word index."""

    id: int
    name: str
    internal: bool


def layer_id(tx: Transaction, name: str, internal: bool | None = None) -> int:
    """Return the id of a layer, storing it when it is new; 0 for "".

    Args:
        internal: whether it is interoception; None leaves it as it is, and a new one perception. A layer that changes
            has its rows written anew for the projections, and its texts wanted once it is perception.
    """
    if not name:
        return NO_ID
    row = tx.conn.execute("SELECT id, internal FROM layer WHERE name = ?", (name,)).fetchone()
    if row is None:
        cursor = tx.conn.execute("INSERT INTO layer (name, internal) VALUES (?, ?)", (name, bool(internal)))
        assert cursor.lastrowid is not None
        return cursor.lastrowid
    if internal is not None and bool(row[1]) != internal:
        tx.conn.execute("UPDATE layer SET internal = ? WHERE id = ?", (internal, row[0]))
        tx.conn.execute("UPDATE node SET revision = ? WHERE layer_id = ?", (tx.revision, row[0]))
        if not internal:
            texts.want_layer(tx, row[0])
    return int(row[0])


def layers(conn: sqlite3.Connection) -> dict[str, Layer]:
    """Return all layers by name."""
    rows = conn.execute("SELECT id, name, internal FROM layer ORDER BY id")
    return {name: Layer(id_, name, bool(internal)) for id_, name, internal in rows}


def map_id(tx: Transaction, name: str) -> int:
    """Return the id of a map, storing it when it is new; 0 for ""."""
    if not name:
        return NO_ID
    row = tx.conn.execute("SELECT id FROM map WHERE name = ?", (name,)).fetchone()
    if row is not None:
        return int(row[0])
    cursor = tx.conn.execute("INSERT INTO map (name) VALUES (?)", (name,))
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def maps(conn: sqlite3.Connection) -> dict[str, int]:
    """Return the ids of all maps by name."""
    return dict(conn.execute("SELECT name, id FROM map ORDER BY id").fetchall())


def insert(tx: Transaction, node: Node) -> int:
    """Store a node and return its id; see `insert_many`."""
    return insert_many(tx, [node])[0]


def insert_many(tx: Transaction, nodes: Sequence[Node], internal: bool | None = None) -> list[int]:
    """Store nodes and return their ids in order.

    A node of id 0 gets a new one. Unless it has a text_id its text is interned, wanted unless the layer is internal;
    layers and maps are stored when they are new.

    Args:
        internal: of all the nodes' layers, see `layer_id`.
    """
    names = {node.layer for node in nodes}
    layer_ids = {name: layer_id(tx, name, internal) for name in names}
    map_ids = {name: map_id(tx, name) for name in {node.map_id for node in nodes}}
    text_ids = _text_ids(tx, nodes)
    ids = [node.id or tx.new_id() for node in nodes]
    tx.conn.executemany(
        _INSERT,
        [
            (
                id_, int(node.kind), layer_ids[node.layer], text_id, node.stamp, node.last_stamp, node.repeats,
                node.stamp_source, *(node.position or (None, None, None)), int(node.position_source), node.frame,
                map_ids[node.map_id], node.confidence, node.importance, int(node.tier), node.session_id,
                node.episode_id, node.value, node.unit or None, _json(node.metadata), tx.revision,
            )
            for id_, node, text_id in zip(ids, nodes, text_ids, strict=True)
        ],
    )  # fmt: skip
    return ids


def fetch(conn: sqlite3.Connection, ids: Iterable[int]) -> list[Node]:
    """Return nodes in the order of ids; those that do not exist are left out."""
    return [_node(row) for row in conn.execute(_FETCH, (id_table(ids),))]


def text_ids(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[int, int]:
    """Return the text of each node that has one."""
    sql = "SELECT id, text_id FROM node WHERE id IN (SELECT value FROM json_each(?)) AND text_id IS NOT NULL"
    return dict(conn.execute(sql, (id_table(ids),)).fetchall())


def update(tx: Transaction, id: int, **columns: Any) -> bool:
    """Change fields of a node, named and typed as in `Node`; False when there is no such node.

    Allowed is all but id, kind and layer. A text that no node uses any more is removed.

    Raises:
        InvalidArgument: a field that cannot be changed.
    """
    sql = "SELECT text_id, layer.internal FROM node LEFT JOIN layer ON layer.id = layer_id WHERE node.id = ?"
    old = tx.conn.execute(sql, (id,)).fetchone()
    if old is None:
        return False
    values: dict[str, Any] = {"revision": tx.revision}
    for name, value in columns.items():
        if name in _PLAIN:
            values[name] = value
        elif name == "text":
            values["text_id"] = None if value is None else texts.intern(tx, value, wanted=not old[1])
        elif name == "position":
            values.update(zip("xyz", value or (None, None, None), strict=True))
        elif name == "map_id":
            values["map_id"] = map_id(tx, value)
        elif name == "metadata":
            values["metadata"] = _json(value)
        else:
            raise InvalidArgument(name, "is no field of a node that can be changed")
    assignments = ", ".join(f"{column} = ?" for column in values)
    tx.conn.execute(f"UPDATE node SET {assignments} WHERE id = ?", (*values.values(), id))
    if old[0] is not None and values.get("text_id", old[0]) != old[0]:
        texts.drop_unused(tx, [old[0]])
    return True


def archive(tx: Transaction, ids: Iterable[int]) -> int:
    """Take text and vectors from nodes, which keep id, time, place, layer and edges; return how many had not been."""
    given = id_table(ids)
    where = f"id {_AMONG} AND tier <> {Tier.ARCHIVED:d}"
    used = tx.conn.execute(
        "SELECT DISTINCT text_id FROM json_each(?) AS given CROSS JOIN node ON node.id = given.value"
        f" WHERE tier <> {Tier.ARCHIVED:d} AND +text_id IS NOT NULL",
        (given,),
    ).fetchall()
    _forget_vectors(tx, given)
    count = tx.conn.execute(
        f"UPDATE node SET tier = {Tier.ARCHIVED:d}, text_id = NULL, revision = ? WHERE {where}", (tx.revision, given)
    ).rowcount
    texts.drop_unused(tx, [row[0] for row in used])
    return count


def remove(tx: Transaction, ids: Iterable[int]) -> int:
    """Remove nodes with all that hangs on them (edges, the kind's own row, use, vectors, texts); return how many.

    Members of a removed episode stay, outside any episode.
    """
    given = id_table(ids)
    used = tx.conn.execute(
        f"SELECT DISTINCT text_id FROM node WHERE id {_AMONG} AND text_id IS NOT NULL", (given,)
    ).fetchall()
    _forget_vectors(tx, given)
    _leave_episodes(tx, given)
    for table, column in (
        ("edge", "source"), ("edge", "target"), ("usage", "node_id"), ("episode", "id"), ("gist", "id"),
        ("entity_place", "entity_id"), ("entity", "id"),
    ):  # fmt: skip
        tx.conn.execute(f"DELETE FROM {table} WHERE {column} {_AMONG}", (given,))
    tx.conn.execute(f"INSERT INTO removed SELECT ?, 'node', id FROM node WHERE id {_AMONG}", (tx.revision, given))
    count = tx.conn.execute(f"DELETE FROM node WHERE id {_AMONG}", (given,)).rowcount
    texts.drop_unused(tx, [row[0] for row in used])
    return count


def count_repeats(tx: Transaction, repeats: Iterable[tuple[int, int, int]]) -> None:
    """Count further readings on rows that hold them: (id, how many, stamp of the newest)."""
    tx.conn.executemany(
        "UPDATE node SET repeats = repeats + ?, last_stamp = max(last_stamp, ?), revision = ? WHERE id = ?",
        [(number, stamp, tx.revision, id_) for id_, number, stamp in repeats],
    )


def existing(conn: sqlite3.Connection, ids: Iterable[int]) -> set[int]:
    """Return those of the ids that are stored."""
    sql = "SELECT id FROM node WHERE id IN (SELECT value FROM json_each(?))"
    return {row[0] for row in conn.execute(sql, (id_table(ids),))}


def summarised(conn: sqlite3.Connection, ids: Iterable[int]) -> set[int]:
    """Return those of the ids that a gist holds."""
    sql = f"""SELECT target FROM json_each(?) AS given CROSS JOIN edge INDEXED BY edge_target
              ON target = given.value AND edge.type = {EdgeType.SUMMARIZES:d}"""
    return {row[0] for row in conn.execute(sql, (id_table(ids),))}


def repeatable(
    conn: sqlite3.Connection, layer: str, text: str, first: int, after: int, before: int
) -> list[tuple[int, Position | None, int]]:
    """Return (id, position in m, last stamp) of observations that a reading of this layer and text may be counted on.

    Args:
        first: least id. after, before: ns, both included, of the last stamp. What a gist summarises is left out.
    """
    sql = f"""SELECT node.id, x, y, z, last_stamp FROM node JOIN layer ON layer.id = layer_id
              WHERE text_id = ? AND layer.name = ? AND node.id >= ? AND stamp <= ? AND last_stamp BETWEEN ? AND ?
              AND kind = {Kind.OBSERVATION:d} AND NOT EXISTS
              (SELECT 1 FROM edge WHERE target = node.id AND type = {EdgeType.SUMMARIZES:d})"""
    rows = conn.execute(sql, (texts.id_of(conn, text), layer, first, before, after, before))
    return [(id_, None if x is None else (x, y, z), last) for id_, x, y, z, last in rows]


def archived(conn: sqlite3.Connection) -> dict[Kind, int]:
    """Return how many nodes of each kind are archived."""
    rows = conn.execute(f"SELECT kind, count(*) FROM node WHERE tier = {Tier.ARCHIVED:d} GROUP BY kind")
    return {Kind(kind): number for kind, number in rows}


def ids_after(conn: sqlite3.Connection, id: int, limit: int) -> list[int]:
    """Return up to limit ids above id, ascending: a page of everything there is."""
    return [row[0] for row in conn.execute("SELECT id FROM node WHERE id > ? ORDER BY id LIMIT ?", (id, limit))]


def perceived_between(conn: sqlite3.Connection, session_id: int, start: int, end: int) -> list[int]:
    """Return the ids of a session's perceptions stamped in [start, end] ns, events left out, in the order of time."""
    sql = """SELECT node.id FROM node JOIN layer ON layer.id = layer_id
             WHERE kind = ? AND stamp BETWEEN ? AND ? AND session_id = ? AND internal = 0 AND layer.name <> ?
             ORDER BY stamp, node.id"""
    return [row[0] for row in conn.execute(sql, (int(Kind.OBSERVATION), start, end, session_id, EVENTS_LAYER))]


def _forget_vectors(tx: Transaction, given: str) -> None:
    among = f"node_id {_AMONG}"
    tx.conn.execute(f"INSERT INTO removed SELECT ?, 'vector', id FROM vector WHERE {among}", (tx.revision, given))
    tx.conn.execute(f"DELETE FROM vector WHERE {among}", (given,))


def _leave_episodes(tx: Transaction, given: str) -> None:
    sql = f"SELECT id FROM episode WHERE id {_AMONG}"
    episodes = id_table(row[0] for row in tx.conn.execute(sql, (given,)))
    if episodes == "[]":
        return
    tx.conn.execute(
        f"UPDATE node SET episode_id = 0, revision = ? WHERE episode_id > 0 AND episode_id {_AMONG}",
        (tx.revision, episodes),
    )
    tx.conn.execute(f"UPDATE gist SET episode_id = 0 WHERE episode_id {_AMONG}", (episodes,))
    tx.conn.execute(f"UPDATE episode SET parent_id = 0 WHERE parent_id {_AMONG}", (episodes,))


def _text_ids(tx: Transaction, nodes: Sequence[Node]) -> list[int | None]:
    text_ids = [node.text_id for node in nodes]
    internal = {layer.name for layer in layers(tx.conn).values() if layer.internal}
    for wanted in (True, False):
        which = [
            i
            for i, node in enumerate(nodes)
            if node.text_id is None and node.text is not None and (node.layer not in internal) is wanted
        ]
        interned = texts.intern_many(tx, [nodes[i].text or "" for i in which], wanted)
        for i, text_id in zip(which, interned, strict=True):
            text_ids[i] = text_id
    return text_ids


def _json(metadata: Any) -> str | None:
    return json.dumps(dict(metadata), ensure_ascii=False) if metadata else None


def _node(row: tuple[Any, ...]) -> Node:
    (
        id_, kind, layer, text, text_id, stamp, last_stamp, repeats, stamp_source, x, y, z, position_source, frame,
        map_name, confidence, importance, tier, session_id, episode_id, metadata, value, unit,
    ) = row  # fmt: skip
    # In the order of its fields: by their names it takes twice as long.
    return Node(
        id_, _KINDS[kind], layer, text, text_id, stamp, last_stamp, repeats, stamp_source,
        None if x is None else (x, y, z), _SOURCES[position_source], frame, map_name, confidence, importance,
        _TIERS[tier], session_id, episode_id, json.loads(metadata) if metadata else {}, value, unit or "",
    )  # fmt: skip
