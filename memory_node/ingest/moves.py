"""A thing gone from its place and a thing of its class that appeared elsewhere since are one thing that moved."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from memory_node.graph import PositionSource
from memory_node.ingest.entity_table import EntityTable
from memory_node.storage import entities

if TYPE_CHECKING:
    from memory_node.config import Settings
    from memory_node.storage.database import Transaction
    from memory_node.storage.entities import EntityState

MOVED = 1.0
"""m: nearer than this the place was only off by drift."""
NEIGHBOURHOOD = 3.0
"""m around a thing in which others tell whether that ground was known before."""
SECOND = 1_000_000_000


def follow(tx: Transaction, table: EntityTable, labels: Iterable[str], settings: Settings) -> None:
    """Join, among the things of some labels that may be one class, those that are missing with those that turned up."""
    rows = [row for label in labels for row in table.rows_of(label) if table.measured[row]]
    known = [state for state in (table.at(row) for row in rows) if not state.tentative]
    if not any(state.missing for state in known):
        return
    for newcomer in sorted((s for s in known if not (s.moved or s.missing)), key=lambda s: s.first_seen):
        earlier = [s for s in known if s.id in table and s.last_seen < newcomer.first_seen]
        if not any(s.missing for s in earlier):
            continue
        likeliest = min(earlier, key=lambda s: _cost(s, newcomer))
        # One that was not looked for since may be the one: wait until it is seen again or missed.
        if likeliest.missing and _ground_known(table, newcomer, likeliest):
            move(tx, table, likeliest, newcomer)
            known.remove(newcomer)


def move(tx: Transaction, table: EntityTable, old: EntityState, new: EntityState) -> None:
    """Make new the present place of old, whose place so far becomes history when it is another one."""
    assert old.position is not None and new.position is not None
    if math.dist(old.position, new.position) > MOVED:
        entities.leave_place(tx, old, entities.place_since(tx.conn, old))
        old.moved = True
    old.position, old.source, old.weight, old.stddev = new.position, PositionSource.MEASURED, new.weight, new.stddev
    old.last_seen, old.confidence = new.last_seen, new.confidence
    old.sightings += new.sightings
    old.missing, old.missed = False, 0
    old.track_id, old.track_stamp = new.track_id, new.track_stamp
    entities.absorb(tx, old.id, new.id)
    entities.save(tx, [old])
    table.remove(new.id)
    table.changed(table.row(old.id))


def _cost(old: EntityState, new: EntityState) -> float:
    """How unlikely it is that old turned up as new: a long time unseen, a long way."""
    assert old.position is not None and new.position is not None
    return math.log1p((new.first_seen - old.last_seen) / SECOND) + math.dist(old.position, new.position) / 5.0


def _ground_known(table: EntityTable, new: EntityState, old: EntityState) -> bool:
    """Tell whether new can have come to its place since old was last seen.

    Where the things around it too were first seen after that, the robot had not been there, and it may have stood there
    all along. With nothing around there is nothing to tell.
    """
    size = table.size
    apart = np.linalg.norm(table.places[:size, :2] - np.asarray(new.position)[:2], axis=1)
    around = [table.at(int(row)) for row in np.flatnonzero(table.measured[:size] & (apart <= NEIGHBOURHOOD))]
    around = [state for state in around if state.id not in (new.id, old.id)]
    return not around or any(state.first_seen <= old.last_seen for state in around)
