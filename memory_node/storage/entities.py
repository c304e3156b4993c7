"""Tables `entity` and `entity_place`, joined with their node rows into graph.Entity. Times are ns, positions m."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_node.graph import NO_ID, EdgeType, Entity, Kind, Node, Place, Position, PositionSource
from memory_node.storage import edges, identity, meta, nodes
from memory_node.storage.ids import id_table

if TYPE_CHECKING:
    from memory_node.storage.database import Transaction

_SELECT = """
SELECT e.id, t.body, e.entity_type, n.x, n.y, n.z, n.position_source, e.stddev, n.frame, n.stamp, n.last_stamp,
       n.repeats, n.confidence, e.tentative, e.moved, e.missing, m.name,
       (SELECT count(*) FROM entity_place WHERE entity_id = e.id),
       (SELECT ifnull(sum(sightings), 0) FROM entity_place WHERE entity_id = e.id)
FROM json_each(?) AS given CROSS JOIN entity AS e ON e.id = given.value AND e.merged_into = 0
CROSS JOIN node AS n ON n.id = e.id LEFT JOIN text AS t ON t.id = n.text_id LEFT JOIN map AS m ON m.id = n.map_id
"""
_STATES = """
SELECT e.id, e.label, n.x, n.y, n.z, n.position_source, e.weight, e.stddev, n.stamp, n.last_stamp, n.repeats,
       n.confidence, e.tentative, e.moved, e.missing, e.missed_looks, e.track_id, e.track_stamp, e.entity_type,
       n.session_id
FROM entity AS e JOIN node AS n ON n.id = e.id
"""
HISTORY = 10
"""Earlier places that an entity is told with."""
_EDITS = "entity_edits"
_SHOWN_BY = "layers_of_label:"
"""Begin of the key under which the layers of a label are kept."""


@dataclass(slots=True)
class EntityState:
    """What association keeps of one entity, in the shape it is stored; the tracker changes it in place.

    Attributes:
        source: whose place the position is.
        weight: sum of 1/variance (1/m²) of the sightings at the present place.
        stddev: of the position, m.
        missed: looks since the last sighting that should have shown it.
        session_id: of the last sighting, whose clock last_seen and track_stamp are of.
    """

    id: int
    label: str
    position: Position | None
    source: PositionSource
    weight: float
    stddev: float
    first_seen: int
    last_seen: int
    sightings: int
    confidence: float
    tentative: bool = True
    moved: bool = False
    missing: bool = False
    missed: int = 0
    track_id: str = ""
    track_stamp: int = 0
    entity_type: str = ""
    session_id: int = NO_ID

    @property
    def newest(self) -> tuple[int, int]:
        """Session and stamp of the last sighting: stamps alone are ordered while no clock jumps."""
        return self.session_id, self.last_seen


def states(conn: sqlite3.Connection, map_id: str, limit: int) -> list[EntityState]:
    """Return the entities of a map that stand for themselves, the latest seen first, at most limit."""
    sql = f"""{_STATES} WHERE e.merged_into = 0 AND n.map_id = coalesce((SELECT id FROM map WHERE name = ?), 0)
              ORDER BY n.session_id DESC, n.last_stamp DESC, e.id DESC LIMIT ?"""
    return [_state(row) for row in conn.execute(sql, (map_id, limit))]


def states_of(conn: sqlite3.Connection, ids: Iterable[int]) -> list[EntityState]:
    """Return the entities of those ids that stand for themselves, the smallest id first."""
    sql = f"{_STATES} WHERE e.merged_into = 0 AND e.id IN (SELECT value FROM json_each(?)) ORDER BY e.id"
    return [_state(row) for row in conn.execute(sql, (id_table(ids),))]


def label_layers(conn: sqlite3.Connection) -> dict[str, set[str]]:
    """Return, by label, the layers that showed things of that label."""
    # Kept beside the edges that tell it: to read them all takes seconds when the tracker starts.
    rows = conn.execute("SELECT key, value FROM meta WHERE key >= ? AND key < ?", (_SHOWN_BY, _SHOWN_BY[:-1] + ";"))
    return {key.removeprefix(_SHOWN_BY): set(json.loads(layers)) for key, layers in rows}


def add_layers(tx: Transaction, label: str, layers: Iterable[str]) -> None:
    """Note that layers showed things of a label, beside those that did before."""
    known = set(json.loads(meta.get(tx.conn, _SHOWN_BY + label, "[]")))
    meta.put(tx.conn, _SHOWN_BY + label, json.dumps(sorted(known.union(layers))))


def insert(
    tx: Transaction,
    state: EntityState,
    *,
    frame: str,
    map_id: str,
    split_from: Iterable[int] = (),
) -> None:
    """Store a new entity under state.id, which the caller took from tx.new_id().

    Args:
        split_from: ids of entities that it is to be kept apart from.
    """
    origins = sorted(set(split_from))
    nodes.insert(
        tx,
        Node(
            id=state.id, kind=Kind.ENTITY, layer="", text=state.label, text_id=None, stamp=state.first_seen,
            last_stamp=state.last_seen, repeats=state.sightings, position=state.position,
            position_source=state.source, frame=frame, map_id=map_id, confidence=state.confidence,
            session_id=state.session_id, metadata={identity.SPLIT_FROM: origins} if origins else {},
        ),
    )
    tx.conn.execute(
        "INSERT INTO entity (id, entity_type, label, weight, stddev, tentative, track_id, track_stamp)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (state.id, state.entity_type, state.label, state.weight, state.stddev, int(state.tentative), state.track_id,
         state.track_stamp),
    )


def save(tx: Transaction, changed: Sequence[EntityState]) -> None:
    """Write entities whose state changed."""
    tx.conn.executemany(
        "UPDATE node SET x = ?, y = ?, z = ?, position_source = ?, stamp = ?, last_stamp = ?, repeats = ?,"
        " confidence = ?, session_id = ?, revision = ? WHERE id = ?",
        [
            (*(s.position or (None, None, None)), int(s.source), s.first_seen, s.last_seen, s.sightings, s.confidence,
             s.session_id, tx.revision, s.id)
            for s in changed
        ],
    )
    tx.conn.executemany(
        "UPDATE entity SET weight = ?, stddev = ?, tentative = ?, moved = ?, missing = ?, missed_looks = ?,"
        " track_id = ?, track_stamp = ? WHERE id = ?",
        [
            (s.weight, s.stddev, int(s.tentative), int(s.moved), int(s.missing), s.missed, s.track_id, s.track_stamp,
             s.id)
            for s in changed
        ],
    )


def changed_since(conn: sqlite3.Connection, revision: int, id_: int, limit: int) -> list[tuple[int, int, str | None]]:
    """Return (revision, id, label) of the next rows written after (revision, id), in that order, at most limit.

    The label is None of a row that is no entity, or one that was merged into another.
    """
    sql = """SELECT n.revision, n.id, e.label FROM node AS n INDEXED BY node_revision
             LEFT JOIN entity AS e ON e.id = n.id AND e.merged_into = 0
             WHERE (n.revision, n.id) > (?, ?) ORDER BY n.revision, n.id LIMIT ?"""
    return conn.execute(sql, (revision, id_, limit)).fetchall()


def near(conn: sqlite3.Connection, id_: int, among: Sequence[str], reach: float) -> list[int]:
    """Return the ids of the other entities of those labels on the same map within a box of reach (m) around one."""
    sql = """SELECT e.id FROM node AS here JOIN json_each(?1) AS w JOIN entity AS e ON e.label = w.value
             JOIN node AS n ON n.id = e.id AND n.map_id = here.map_id
             WHERE here.id = ?2 AND e.id <> here.id AND e.merged_into = 0
             AND n.x BETWEEN here.x - ?3 AND here.x + ?3 AND n.y BETWEEN here.y - ?3 AND here.y + ?3 ORDER BY e.id"""
    return [row[0] for row in conn.execute(sql, (json.dumps(list(among)), id_, reach))]


def unlink(tx: Transaction, id_: int, observation_ids: Iterable[int]) -> None:
    """Take sightings from an entity."""
    tx.conn.execute(
        "DELETE FROM edge WHERE source = ? AND type = ? AND target IN (SELECT value FROM json_each(?))",
        (id_, int(EdgeType.OBSERVED_IN), id_table(observation_ids)),
    )


def leave_place(tx: Transaction, state: EntityState, since: int) -> None:
    """Put the present place of an entity, which it had since a stamp, into its history."""
    if state.position is None:
        return
    count = tx.conn.execute("SELECT coalesce(sum(sightings), 0) FROM entity_place WHERE entity_id = ?", (state.id,))
    here = max(1, state.sightings - count.fetchone()[0])
    tx.conn.execute(
        "INSERT INTO entity_place (entity_id, x, y, z, position_source, stddev, sightings, first_seen, last_seen)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (state.id, *state.position, int(state.source), state.stddev, here, since, state.last_seen),
    )


def place_since(conn: sqlite3.Connection, state: EntityState) -> int:
    """Return the stamp since which the entity is where it is: after the last of its earlier places.

    Where the clock went back since, it is that of the last sighting.
    """
    sql = "SELECT last_seen FROM entity_place WHERE entity_id = ? ORDER BY id DESC LIMIT 1"
    last = conn.execute(sql, (state.id,)).fetchone()
    return state.first_seen if last is None else min(int(last[0]), state.last_seen)


def forget_places(tx: Transaction, id_: int) -> None:
    """Remove the history of an entity."""
    tx.conn.execute("DELETE FROM entity_place WHERE entity_id = ?", (id_,))


def absorb(tx: Transaction, keep: int, gone: int) -> None:
    """Give keep the edges and the history of gone, whose id from then on resolves to keep; gone leaves the search.

    From what gone is kept apart, keep is from then on; what showed gone shows keep.
    """
    labels = dict(tx.conn.execute("SELECT id, label FROM entity WHERE id IN (?, ?)", (keep, gone)).fetchall())
    if labels[keep] != labels[gone]:
        add_layers(tx, labels[keep], label_layers(tx.conn).get(labels[gone], ()))
    if origins := identity.split_from(tx.conn, gone):
        nodes.update(tx, keep, metadata={identity.SPLIT_FROM: sorted(origins | identity.split_from(tx.conn, keep))})
    edges.move(tx, gone, keep)
    tx.conn.execute("UPDATE entity_place SET entity_id = ? WHERE entity_id = ?", (keep, gone))
    tx.conn.execute("UPDATE entity SET merged_into = ? WHERE id = ? OR merged_into = ?", (keep, gone, gone))
    nodes.archive(tx, [gone])


def get(conn: sqlite3.Connection, id_: int) -> Entity | None:
    """Return an entity with its history, also by the id of one that was merged into it; None when there is none."""
    found = get_many(conn, [identity.resolve(conn, id_)])
    return found[0] if found else None


def get_many(
    conn: sqlite3.Connection, ids: Iterable[int], scores: Mapping[int, float] | None = None, history: int = HISTORY
) -> list[Entity]:
    """Return entities in the order of ids; ids that are no entity, or merged, are left out.

    Args:
        scores: what to give each as its score, by id; 0 where left out.
        history: earlier places that each comes with, the newest.
    """
    wanted, scores = list(ids), scores or {}
    if not wanted:
        return []
    rows = conn.execute(_SELECT, (id_table(wanted),)).fetchall()
    elsewhere = [row[0] for row in rows if row[17]]
    places = _places(conn, id_table(elsewhere), history) if elsewhere else {}
    return [_entity(row, places.get(row[0], ()), scores.get(row[0], 0.0)) for row in rows]


def labels(conn: sqlite3.Connection, most: int = -1) -> list[str]:
    """Return the distinct labels of all entities in alphabetical order, at most so many; -1: all."""
    # From label to label along the index: the work is that of the labels, not of the entities.
    sql = """WITH RECURSIVE known (label) AS (
                 SELECT min(label) FROM entity WHERE merged_into = 0
                 UNION ALL
                 SELECT (SELECT min(label) FROM entity WHERE merged_into = 0 AND label > known.label)
                 FROM known WHERE known.label IS NOT NULL LIMIT ?)
             SELECT label FROM known WHERE label IS NOT NULL"""
    return [row[0] for row in conn.execute(sql, (most,))]


def of_type(conn: sqlite3.Connection, names: Sequence[str]) -> list[int]:
    """Return the ids of the entities whose type or label is one of the names."""
    sql = """WITH wanted AS (SELECT value FROM json_each(?)) SELECT id FROM entity
             WHERE merged_into = 0 AND (entity_type IN wanted OR label IN wanted)"""
    return [row[0] for row in conn.execute(sql, (json.dumps(names),))]


def count_tentative(conn: sqlite3.Connection, ids: Iterable[int]) -> int:
    """Return how many of the entities, none given twice, were never confirmed."""
    sql = "SELECT count(*) FROM json_each(?) AS given CROSS JOIN entity ON entity.id = given.value WHERE tentative"
    return int(conn.execute(sql, (id_table(ids),)).fetchone()[0])


class Tally(NamedTuple):
    """How many entities of a label are confirmed and there, tentative, and missing."""

    there: int
    tentative: int
    missing: int


def tally(conn: sqlite3.Connection, ids: Iterable[int]) -> dict[str, Tally]:
    """Count entities by label and state, the label with the most that are there first."""
    sql = """SELECT label, total(NOT tentative AND NOT missing) AS there, total(tentative), total(missing)
             FROM json_each(?) AS given CROSS JOIN entity ON entity.id = given.value
             GROUP BY label ORDER BY there DESC, label"""
    return {label: Tally(*map(int, counts)) for label, *counts in conn.execute(sql, (id_table(ids),))}


def observations(conn: sqlite3.Connection, entity_id: int) -> list[int]:
    """Return the ids of the observations that saw an entity, the smallest first."""
    return edges.targets(conn, identity.resolve(conn, entity_id), EdgeType.OBSERVED_IN)


def sightings_since(conn: sqlite3.Connection, id_: int, stamp: int, shifts: Mapping[int, int]) -> int:
    """Return how many observations saw an entity at or after a stamp.

    Args:
        shifts: what to add (ns) to stamps of a session to have them on the clock of that stamp; 0 where left out.
    """
    sql = """SELECT count(*) FROM edge JOIN node ON node.id = target WHERE source = ?1 AND type = ?2
             AND stamp + coalesce((SELECT value FROM json_each(?3) WHERE key = session_id), 0) >= ?4"""
    told = json.dumps({str(session): shift for session, shift in shifts.items()})
    return int(conn.execute(sql, (id_, int(EdgeType.OBSERVED_IN), told, stamp)).fetchone()[0])


def seen_together(conn: sqlite3.Connection, pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Return those of the pairs of entities, the smaller id first, that one message ever showed both of."""
    given = json.dumps([(min(pair), max(pair)) for pair in pairs])
    sql = """SELECT source, target FROM json_each(?) AS pair CROSS JOIN edge
             ON source = json_extract(pair.value, '$[0]') AND target = json_extract(pair.value, '$[1]')
             WHERE edge.type = ?"""
    return set(conn.execute(sql, (given, int(EdgeType.COOCCURS_WITH))).fetchall())


def count(conn: sqlite3.Connection, tentative: bool | None = None) -> int:
    """Return how many entities there are; tentative: only those that are, or are not."""
    sql = "SELECT count(*) FROM entity WHERE merged_into = 0"
    if tentative is not None:
        sql += f" AND tentative = {int(tentative)}"
    return int(conn.execute(sql).fetchone()[0])


def edited(tx: Transaction) -> None:
    """Tell that entities changed behind the tracker's back, so that it reads them anew."""
    meta.put(tx.conn, _EDITS, edits(tx.conn) + 1)


def edits(conn: sqlite3.Connection) -> int:
    """Return how often entities were changed by anyone but the tracker."""
    return int(meta.get(conn, _EDITS, 0))


def _places(conn: sqlite3.Connection, table: str, most: int) -> dict[int, tuple[Place, ...]]:
    sql = """SELECT p.entity_id, p.x, p.y, p.z, p.position_source, p.stddev, p.sightings, p.first_seen, p.last_seen,
                    n.frame, n.confidence, e.label, m.name
             FROM json_each(?) AS w JOIN entity_place AS p ON p.id IN
                 (SELECT id FROM entity_place WHERE entity_id = w.value ORDER BY id DESC LIMIT ?)
             JOIN node AS n ON n.id = p.entity_id JOIN entity AS e ON e.id = p.entity_id
             LEFT JOIN map AS m ON m.id = n.map_id ORDER BY p.id DESC"""
    found: dict[int, list[Place]] = {}
    for row in conn.execute(sql, (table, most)):
        found.setdefault(row[0], []).append(
            Place(
                position=row[1:4], position_source=PositionSource(row[4]), radius=row[5], support=row[6],
                first_seen=row[7], last_seen=row[8], frame=row[9], confidence=row[10], entity_id=row[0],
                label=row[11], map_id=row[12] or "",
            )
        )
    return {id_: tuple(places) for id_, places in found.items()}


def _entity(row: tuple[Any, ...], history: tuple[Place, ...], score: float) -> Entity:
    return Entity(
        id=row[0], name=row[1] or "", entity_type=row[2], position=_position(row[3:6]),
        position_source=PositionSource(row[6]), position_stddev=row[7], frame=row[8], first_seen=row[9],
        last_seen=row[10], sightings=row[11], confidence=row[12], tentative=bool(row[13]), moved=bool(row[14]),
        missing=bool(row[15]), history=history, map_id=row[16] or "", places_left=row[17],
        sightings_here=max(1, row[11] - row[18]), score=score,
    )


def _state(row: tuple[Any, ...]) -> EntityState:
    return EntityState(
        row[0], row[1], _position(row[2:5]), PositionSource(row[5]), *row[6:12], *map(bool, row[12:15]), *row[15:]
    )


def _position(xyz: tuple[float | None, ...]) -> Position | None:
    return None if xyz[0] is None else (xyz[0], xyz[1], xyz[2])  # type: ignore[return-value]
