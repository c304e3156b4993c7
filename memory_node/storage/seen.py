"""Things as they were last seen by a time: where the clock went back, sightings are stamped later than now."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from memory_node.graph import EdgeType, Entity
from memory_node.storage.ids import id_table

_SEEN = """
    SELECT entity.id, max(entity.stamp, ifnull(max(min(seen.last_stamp, ?1)), entity.stamp))
    FROM json_each(?2) AS given CROSS JOIN node AS entity ON entity.id = given.value
    LEFT JOIN edge ON source = entity.id AND edge.type = ?3
    LEFT JOIN node AS seen ON seen.id = target AND seen.stamp <= ?1
    WHERE entity.stamp <= ?1 GROUP BY entity.id"""


def last_seen(conn: sqlite3.Connection, ids: Iterable[int], by: int) -> dict[int, int]:
    """Return when each of the entities was last seen no later than a time (ns); those never seen by then left out."""
    return dict(conn.execute(_SEEN, (by, id_table(ids), int(EdgeType.OBSERVED_IN))).fetchall())


def as_of(conn: sqlite3.Connection, found: Sequence[Entity], by: int | None) -> list[Entity]:
    """Return entities with the place and time of their last sighting no later than `by` (ns); None: as they are.

    Those never seen by then are left out, and so are earlier places that they left later.
    """
    if by is None:
        return list(found)
    late = [one.id for one in found if one.last_seen > by]
    times = last_seen(conn, late, by) if late else {}
    return [_as_of(one, times.get(one.id), by) for one in found if one.last_seen <= by or one.id in times]


def _as_of(entity: Entity, seen: int | None, by: int) -> Entity:
    """An entity by a time; seen: when it was last seen by then, where that is not its last sighting."""
    history = entity.history
    if seen is not None:
        entity = entity._replace(last_seen=seen)
        if history and history[0].last_seen >= seen:  # it came to its present place later
            # A place is told from when the one before was left, which is before its first sighting.
            were = [one for one in history if one.last_seen <= seen or one.first_seen < seen]
            here, *rest = were or history[-1:]
            history = tuple(rest)
            entity = entity._replace(
                position=here.position, position_source=here.position_source, position_stddev=here.radius,
                sightings_here=here.support, moved=bool(rest), missing=False,
            )  # fmt: skip
    history = tuple(one for one in history if one.last_seen <= by)
    hidden = len(entity.history) - len(history)
    return entity._replace(history=history, places_left=entity.places_left - hidden) if hidden else entity
