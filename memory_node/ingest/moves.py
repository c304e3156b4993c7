"""A thing gone from its place and a thing of its class that appeared elsewhere since are one thing that moved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memory_node.ingest import association
from memory_node.ingest.entity_table import NEVER, EntityTable
from memory_node.ingest.presence import GONE
from memory_node.storage import entities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from memory_node.storage.database import Transaction
    from memory_node.storage.entities import EntityState

MOVED = 0.6
"""m: nearer than this the place was only off by drift."""
BESIDE = 1.0
"""m: this near to a thing another of its class may be a duplicate of it, made by sightings that were off."""
NEIGHBOURHOOD = 3.0
"""m around a thing in which others tell whether that ground was known before."""
AWAY_COST, MOST_AWAY = 4.0, 3.0
"""What each stretch of being away costs, and from how many on it makes no difference."""
STRAY_COST, STRAYS = 2.0, 2
"""What sightings at the old place after the first at the new one cost, and how many may be of something beside it."""
LEAST = 1e-3
METRES = 5.0
"""m of way that make it e times less likely."""
PATIENCE = 1.5
"""How long others of a class that were not looked at since are waited for, in times that a miss of one took."""
NOT_MOVED = 1e5
"""Cost of not having moved: whenever something of the class is missing, what turned up is rather that than new."""


def follow(tx: Transaction, table: EntityTable, labels: Iterable[str], now: int) -> None:
    """Join, among the things of labels that may name one class, those that are missing with those that turned up."""
    rows = table.rows_of(labels)
    there, missing = rows[table.there[rows]], rows[table.missing[rows]]
    missing = np.array([row for row in missing.tolist() if not _is_shadow(tx, table, row, there)], dtype=np.intp)
    if not len(missing):
        return
    later = there[table.here_since[there] > table.here_since[missing].min()].tolist()
    newcomers = [table.at(row) for row in later if not table.at(row).moved and not _is_shadow(tx, table, row, there)]
    if not newcomers:
        return
    unseen = there[table.last_seen[there] < max(table.here_since[table.row(state.id)] for state in newcomers)]
    known = [table.at(row) for row in sorted([*missing.tolist(), *unseen.tolist()])]
    # A robot that knows one cup, finds one where it never was, and then misses the first, takes them for one.
    only = len(rows) == len(newcomers) + len(missing) == 2
    costs = np.array([[_cost(tx, table, old, new, now, only) for old in known] for new in newcomers])
    costs = costs.reshape(-1, len(known))
    for new, column in zip(newcomers, association.assign(costs, alone=NOT_MOVED), strict=True):
        if column >= 0 and known[column].missing and _settled(table, known, known[column], new, now):
            move(tx, table, known[column], new)


def _is_shadow(tx: Transaction, table: EntityTable, row: int, there: NDArray[np.intp]) -> bool:
    """Tell whether a thing is only stray sightings of one beside it that is there, and so neither came nor went.

    Two that were there at one time, so near to each other, and yet were never seen together, are one.
    """
    state, since = table.at(row), table.here_since[row]
    apart = np.linalg.norm(table.places[there] - table.places[row], axis=1)
    for near in there[apart <= BESIDE].tolist():
        other = table.at(near)
        if other is state or other.sightings < state.sightings:
            continue
        at_once = table.here_since[near] < state.last_seen and since < other.last_seen
        if at_once and not entities.seen_together(tx.conn, state.id, other.id):
            return True
    return False


def _settled(
    table: EntityTable, known: Sequence[EntityState], old: EntityState, new: EntityState, now: int
) -> bool:
    """Tell whether old is what turned up as new, as far as can be known by now.

    With several of the class old must be gone beyond doubt, and the others seen since new turned up, or missing as
    well: one that was not looked for since may be it, and is waited for, but not much longer than it took to look for
    old.
    """
    others = [state for state in known if state is not old and state is not new]
    if not others:
        return True
    if old.confidence > GONE:
        return False
    gone, came = int(table.missing_since[table.row(old.id)]), table.here_since[table.row(new.id)]
    if gone != NEVER and now - gone < PATIENCE * (gone - old.last_seen):
        return not any(state.last_seen < came and not state.missing for state in others)
    return True


def move(tx: Transaction, table: EntityTable, old: EntityState, new: EntityState) -> None:
    """Make new the present place of old, whose place so far becomes history when it is another one."""
    assert old.position is not None and new.position is not None
    if math.dist(old.position, new.position) > MOVED:
        entities.leave_place(tx, old, entities.place_since(tx.conn, old))
        old.moved = True
    old.position, old.source, old.weight, old.stddev = new.position, new.source, new.weight, new.stddev
    old.last_seen, old.confidence = new.last_seen, new.confidence
    old.sightings += new.sightings
    old.missing, old.missed = False, 0
    old.track_id, old.track_stamp = new.track_id, new.track_stamp
    entities.absorb(tx, old.id, new.id)
    entities.save(tx, [old])
    row, gone = table.row(old.id), table.row(new.id)
    for known in (table.here_since, table.seen_from, table.seen_at):
        known[row] = known[gone]
    table.remove(new.id)
    table.changed(row)


def _cost(
    tx: Transaction, table: EntityTable, old: EntityState, new: EntityState, now: int, only: bool
) -> float:
    """How unlikely it is that old turned up as new, as the negative log of a likelihood; only: no others are known.

    Old left between its last sighting and the look that missed it, at any time alike, and must have left before new was
    seen. While it was missing the world was looked at again and again without it, in stretches of that same length.
    """
    gone, came = int(table.missing_since[table.row(old.id)]), int(table.here_since[table.row(new.id)])
    stretch = max(1, (now if gone == NEVER else gone) - old.last_seen)
    overlap = old.last_seen >= came
    if (overlap and not _strayed(tx, old, came, stretch)) or not (only or _ground_known(table, new, old)):
        return association.IMPOSSIBLE
    if entities.were_split(tx.conn, old.id, new.id):
        return association.IMPOSSIBLE
    assert old.position is not None and new.position is not None
    left = min(1.0, max(LEAST, (came - old.last_seen) / stretch))
    away = 0.0 if gone == NEVER else max(0, came - gone) / stretch
    cost = STRAY_COST * overlap + AWAY_COST * min(away, MOST_AWAY) - math.log(left)
    return cost + math.dist(old.position, new.position) / METRES


def _strayed(tx: Transaction, old: EntityState, came: int, stretch: int) -> bool:
    """Tell whether old, known for long when another came, is gone, and was seen since by stray sightings at most."""
    if old.confidence > GONE or came - old.first_seen <= stretch or old.last_seen - came > stretch:
        return False
    return entities.sightings_since(tx.conn, old.id, came) <= STRAYS


def _ground_known(table: EntityTable, new: EntityState, old: EntityState) -> bool:
    """Tell whether new can have come to its place since old was last seen.

    Where the things around it too were first seen after that, the robot had not been there, and it may have stood there
    all along. With nothing around there is nothing to tell.
    """
    apart = np.linalg.norm(table.places[:, :2] - np.asarray(new.position)[:2], axis=1)
    around = [table.at(int(row)) for row in np.flatnonzero(table.measured & (apart <= NEIGHBOURHOOD))]
    around = [state for state in around if state.id not in (new.id, old.id)]
    return not around or any(state.first_seen <= old.last_seen for state in around)
