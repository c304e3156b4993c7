"""Removing what must not be remembered: a wrong sighting, a thing that never was, a sentence that was private."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memory_node.errors import InvalidArgument
from memory_node.graph import EdgeType, Kind
from memory_node.housekeeping.entities import checked_ids, resee
from memory_node.storage import edges, entities, identity, nodes
from memory_node.storage.ids import id_table

if TYPE_CHECKING:
    from memory_node.storage.database import Transaction


def purge(tx: Transaction, ids: Iterable[int]) -> int:
    """Remove observations and entities with their vectors, words and edges; return how many nodes went.

    An entity that loses sightings is what the others make of it, and goes with its last one. Texts of gists and
    episodes stay as they are. Ids that are not there are passed over.

    Raises:
        InvalidArgument: ids are no ids, or one is of neither an observation nor an entity.
    """
    given = checked_ids("ids", ids)
    kinds = {node.id: node.kind for node in nodes.fetch(tx.conn, given)}
    for id_, kind in kinds.items():
        if kind not in (Kind.OBSERVATION, Kind.ENTITY):
            raise InvalidArgument("ids", f"{id_} is {kind.label}, allowed are observations and entities")
    rows = {id_ for id_, kind in kinds.items() if kind is Kind.OBSERVATION}
    things = {identity.resolve(tx.conn, id_) for id_ in kinds.keys() - rows}
    showed = {source for source, _ in edges.pairs(tx.conn, rows, EdgeType.OBSERVED_IN)}
    for id_ in sorted(showed - things):
        left = set(entities.observations(tx.conn, id_)) - rows
        if left:
            resee(tx, id_, left)
        else:
            things.add(id_)
    merged = "SELECT id FROM entity WHERE merged_into IN (SELECT value FROM json_each(?))"
    parts = {row[0] for row in tx.conn.execute(merged, (id_table(things),))}
    if showed or things:
        entities.edited(tx)
    return nodes.remove(tx, sorted(rows | things | parts))
