"""A thing gone from its place and a thing of its class that appeared elsewhere since are one thing that moved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memory_node.ingest import association
from memory_node.ingest.entity_table import NEVER, EntityTable
from memory_node.ingest.presence import GONE
from memory_node.storage import entities, identity

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
    there = rows[table.there[rows]]
    missing = _genuine(tx, table, rows[table.missing[rows]], there)
    if not len(missing):
        return
    later = there[table.here_since[there] > table.here_since[missing].min()].tolist()
    newcomers = _genuine(tx, table, np.array([row for row in later if not table.at(row).moved], dtype=np.intp), there)
    if not len(newcomers):
        return
    unseen = there[table.last_seen[there] < table.here_since[newcomers].max()]
    known = np.sort(np.concatenate([missing, unseen]))
    # A robot that knows one cup, finds one where it never was, and then misses the first, takes them for one.
    only = len(rows) == len(newcomers) + len(missing) == 2
    _match(tx, table, newcomers, known, now, only)


def _match(
    tx: Transaction, table: EntityTable, newcomers: NDArray[np.intp], known: NDArray[np.intp], now: int, only: bool
) -> None:
    """Join what turned up with what it most likely is, where that is missing and settled; only: no others are known."""
    old = [table.at(row) for row in known.tolist()]
    possible = _in_time(table, newcomers, known, now)
    gone = np.array([state.missing and (state.confidence <= GONE or len(old) <= 2) for state in old])
    if not possible[:, gone].any():
        return
    # What can be nothing else, or nothing else can be, has no say in the assignment.
    rows, columns = possible.any(axis=1), possible.any(axis=0)
    newcomers, some = newcomers[rows], known[columns]
    costs = _costs(tx, table, newcomers, some, possible[rows][:, columns], now, only)
    new, likely = [table.at(row) for row in newcomers.tolist()], [table.at(row) for row in some.tolist()]
    for state, column in zip(new, association.assign(costs, alone=NOT_MOVED), strict=True):
        if column >= 0 and likely[column].missing and _settled(table, old, likely[column], state, now):
            move(tx, table, likely[column], state)


def _genuine(
    tx: Transaction, table: EntityTable, rows: NDArray[np.intp], there: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return those rows that are not only stray sightings of one beside it that is there, which neither came nor went.

    Two that were there at one time, so near to each other, and yet were never seen together, are one.
    """
    if not len(rows) or not len(there):
        return rows
    from scipy.spatial import cKDTree

    near = cKDTree(table.places[rows]).sparse_distance_matrix(
        cKDTree(table.places[there]), BESIDE, output_type="ndarray"
    )
    one, other = rows[near["i"]], there[near["j"]]
    at_once = (table.here_since[other] < table.last_seen[one]) & (table.here_since[one] < table.last_seen[other])
    at_once &= one != other
    pairs = [(table.at(a), table.at(b)) for a, b in zip(one[at_once].tolist(), other[at_once].tolist(), strict=True)]
    beside = [(a.id, b.id) for a, b in pairs if b.sightings >= a.sightings]
    together = entities.seen_together(tx.conn, beside)
    strays = {table.row(a) for a, b in beside if (min(a, b), max(a, b)) not in together}
    return rows[[row not in strays for row in rows.tolist()]]


def _settled(
    table: EntityTable, known: Sequence[EntityState], old: EntityState, new: EntityState, now: int
) -> bool:
    """Tell whether old is what turned up as new, as far as can be known by now.

    With several of the class old must be gone beyond doubt, and the others seen since new turned up, or missing as
    well: one that was not looked for since may be it, and is waited for, but not much longer than it took to look for
    old.
    """
    if all(state is old or state is new for state in known):
        return True
    if old.confidence > GONE:
        return False
    gone, came = int(table.missing_since[table.row(old.id)]), table.here_since[table.row(new.id)]
    if gone != NEVER and now - gone < PATIENCE * (gone - table.last_seen[table.row(old.id)]):
        waited = (state for state in known if table.last_seen[table.row(state.id)] < came and not state.missing)
        return all(state is old or state is new for state in waited)
    return True


def move(tx: Transaction, table: EntityTable, old: EntityState, new: EntityState) -> None:
    """Make new the present place of old, whose place so far becomes history when it is another one."""
    assert old.position is not None and new.position is not None
    if math.dist(old.position, new.position) > MOVED:
        entities.leave_place(tx, old, entities.place_since(tx.conn, old))
        old.moved = True
    old.position, old.source, old.weight, old.stddev = new.position, new.source, new.weight, new.stddev
    (old.session_id, old.last_seen), old.confidence = new.newest, new.confidence
    old.first_seen = min(old.first_seen, new.first_seen)  # where the clock went back between
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


def _in_time(
    table: EntityTable, newcomers: NDArray[np.intp], known: NDArray[np.intp], now: int
) -> NDArray[np.bool_]:
    """Tell (newcomers, known) which may have left before the other came, as far as their times tell.

    Or which, known for long when the other came and gone since, may have been seen since by stray sightings only.
    """
    came, last = table.here_since[newcomers][:, None], table.last_seen[known]
    stretch = _stretch(table, known, now)
    first = table.first_seen[known]
    gone = np.array([table.at(row).confidence <= GONE for row in known.tolist()])
    return np.asarray((last < came) | gone & (came - first > stretch) & (last - came <= stretch))


def _stretch(table: EntityTable, known: NDArray[np.intp], now: int) -> NDArray[np.int64]:
    """Return the time (ns) in which each of those known must have left: from its last sighting to the look without."""
    gone = table.missing_since[known]
    return np.asarray(np.maximum(1, np.where(gone == NEVER, now, gone) - table.last_seen[known]))


def _costs(
    tx: Transaction, table: EntityTable, newcomers: NDArray[np.intp], known: NDArray[np.intp],
    possible: NDArray[np.bool_], now: int, only: bool,
) -> NDArray[np.float64]:  # fmt: skip
    """How unlikely it is that one of known turned up as a newcomer (newcomers, known), as negative log likelihoods.

    It left between its last sighting and the look that missed it, at any time alike, and must have left before the
    newcomer was seen. While it was missing the world was looked at again and again without it, in stretches of that
    same length.

    Args:
        possible: (newcomers, known) which pairs may be one at all.
    """
    gone, last, stretch = table.missing_since[known], table.last_seen[known], _stretch(table, known, now)
    came = table.here_since[newcomers][:, None]
    overlap = last >= came
    if not only:
        possible = possible & np.array([_ground_known(table, row, known) for row in newcomers.tolist()])
    possible = possible & ~_split(tx, table, newcomers, known)
    for row, column in np.argwhere(possible & overlap).tolist():
        seen = entities.sightings_since(tx.conn, table.at(int(known[column])).id, int(came[row, 0]), table.shifts)
        possible[row, column] = seen <= STRAYS
    left = np.clip((came - last) / stretch, LEAST, 1.0)
    away = np.where(gone == NEVER, 0, np.maximum(0, came - gone)) / stretch
    way = np.linalg.norm(table.places[newcomers][:, None] - table.places[known], axis=2)
    costs = STRAY_COST * overlap + AWAY_COST * np.minimum(away, MOST_AWAY) - np.log(left) + way / METRES
    return np.where(possible, costs, association.IMPOSSIBLE)


def _split(
    tx: Transaction, table: EntityTable, newcomers: NDArray[np.intp], known: NDArray[np.intp]
) -> NDArray[np.bool_]:
    """Tell (newcomers, known) which of them somebody keeps apart."""
    ids = [[table.at(row).id for row in rows.tolist()] for rows in (newcomers, known)]
    origins = identity.origins(tx.conn, [*ids[0], *ids[1]])
    if all(len(found) == 1 for found in origins.values()):
        return np.zeros((len(newcomers), len(known)), dtype=bool)
    return np.array([[not origins[new].isdisjoint(origins[old]) for old in ids[1]] for new in ids[0]])


def _ground_known(table: EntityTable, new: int, known: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell of each of known whether what is in row new can have come to its place since that one was last seen.

    Where the things around it too were first seen after that, the robot had not been there, and it may have stood there
    all along. With nothing around there is nothing to tell.
    """
    x, y = table.places[new, :2]
    box = (np.abs(table.places[:, 0] - x) <= NEIGHBOURHOOD) & (np.abs(table.places[:, 1] - y) <= NEIGHBOURHOOD)
    near = np.flatnonzero(table.measured & box)
    apart = np.linalg.norm(table.places[near, :2] - (x, y), axis=1)
    around = [(int(table.first_seen[row]), row) for row in near[apart <= NEIGHBOURHOOD].tolist() if row != new]
    # The earliest, and the one after it for the thing that is itself the earliest.
    (earliest, row), (second, _) = [*sorted(around), (NEVER, -1), (NEVER, -1)][:2]
    return np.asarray(np.where(known == row, second, earliest) <= table.last_seen[known])
