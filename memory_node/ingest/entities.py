"""The entity graph, kept up as detections arrive: what is seen again, what is new, what is gone, and what moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from memory_node.graph import NO_ID, EdgeType, Look, PositionSource
from memory_node.ingest import association, looks, moves, presence
from memory_node.ingest.entity_table import EntityTable, Kin, no_names
from memory_node.ingest.presence import Sighting
from memory_node.storage import edges, entities, meta, sessions

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

    from memory_node.config import Settings
    from memory_node.storage.database import Transaction

SECOND = 1_000_000_000
MOST_ENTITIES = 100_000
"""Entities of a map kept in memory, the latest seen first; older ones are history, and a new sighting starts anew."""
TRACK_AGE = 10 * SECOND
"""ns: a track id says nothing about a thing last seen longer ago."""
STEP_AGE = 3 * SECOND // 2
"""ns: without a track id, what walks is sought a step from where it was for this long."""
LOOK_GAP = SECOND // 2
"""ns: looks nearer to each other than this are one look; detectors flicker."""
OCCASION = 30 * SECOND
"""ns: looks that show a place not for certain count once in this time: what hides it in one hides it in the next."""
COMPANIONS = 24
"""How many things of one message a thing co-occurs with, the nearest first."""
OFFSET_GAIN = 0.1
"""How much of the offset comes from one message that matched many things."""
REGISTERED = 0.5
"""Share of the offset that is taken from a position: half is held to be the robot's drift, half the map's."""


class EntityTracker:
    """Matches detections to entities. Lives in the writer thread; every call is inside a transaction.

    Args:
        settings: the settings of this moment.
        label_vectors: unit vectors (D,) of those labels that have one stored, read from SQLite.
        other_names: the other names that a label's thing has, whatever their vectors.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        label_vectors: Callable[[sqlite3.Connection, list[str]], dict[str, NDArray[np.float32]]],
        other_names: Callable[[str], Iterable[str]] = no_names,
    ) -> None:
        self._settings = settings
        self._kin = Kin(label_vectors, other_names)
        self._table: EntityTable | None = None
        self._layers: dict[str, set[str]] = {}
        self._map_id = ""
        self._session = NO_ID
        self._known = (0, 0)
        self._offset = np.zeros(3)

    def observe(self, tx: Transaction, look: Look, types: Sequence[str] = ()) -> None:
        """Take one detection message, whose observations are stored already; an empty one is a look as well.

        Args:
            types: type of each detected thing, where something better than its label is known.
        """
        tx.on_rollback(self.forget)
        self._keep_time(tx, look)
        table = self._open(tx, look.map_id)
        now = table.on_clock(look.session_id, look.stamp)
        seen = presence.sightings(look, self._settings().entity_spatial_radius, types)
        self._kin.learn(tx.conn, {sighting.label for sighting in seen})
        rows = self._associate(table, seen, look)
        new = self._take(tx, table, seen, rows, look, now)
        self._note_layer(tx, {s.label for s in seen} | {table.at(row).label for row in rows}, look.layer)
        self._register(table, seen, rows, new)
        missed = self._miss(table, look, set(rows), now)
        changed = sorted((set(rows) - new) | missed)
        entities.save(tx, [table.at(row) for row in changed])
        self._join(tx, table, seen, rows)
        for label in sorted({table.at(row).label for row in [*rows, *missed]}):
            moves.follow(tx, table, self._like(label), now)

    def forget(self) -> None:
        """Drop what is held in memory; it is read again at the next look."""
        self._table = None

    def _keep_time(self, tx: Transaction, look: Look) -> None:
        """Go by the clock of the newest session from its first look on."""
        before = self._session
        if before == NO_ID:
            latest = sessions.latest(tx.conn)
            self._session = latest.id if latest else NO_ID
        if look.session_id > self._session:
            self._session = look.session_id
        if self._table is not None and self._session != before:
            self._table.go_by(sessions.shifts(tx.conn, self._session), before, look.stamp)

    def _open(self, tx: Transaction, map_id: str) -> EntityTable:
        """Return the table of a map, read anew when another map, a merge, a split or a removal came in between."""
        if self._table is not None and map_id == self._map_id and not self._outdated(tx):
            return self._table
        before = self._table if map_id == self._map_id else None
        if map_id != self._map_id:
            self._offset = np.zeros(3)
        self._map_id = map_id
        shifts = before.shifts if before is not None else sessions.shifts(tx.conn, self._session)
        self._table = EntityTable(reversed(entities.states(tx.conn, map_id, MOST_ENTITIES)), shifts)
        if before is not None:
            self._table.adopt(before)
        self._layers = entities.label_layers(tx.conn)
        self._kin.learn(tx.conn, self._table.labels)
        self._known = (entities.edits(tx.conn), tx.revision)
        return self._table

    def _outdated(self, tx: Transaction) -> bool:
        edits, revision = self._known
        if entities.edits(tx.conn) != edits:
            return True
        # Works of one commit share a revision, so removals of this one are looked at again.
        removed = meta.removed_since(tx.conn, "node", revision - 1)
        self._known = (edits, tx.revision)
        table = self._table
        return removed is None or table is None or any(id_ in table for id_ in removed)

    def _like(self, label: str) -> list[str]:
        return self._kin.of(label, self._settings().entity_similarity_threshold)

    def _associate(self, table: EntityTable, seen: Sequence[Sighting], look: Look) -> list[int]:
        """Return the row of each sighting, -1 where it is of a new thing; labels that are kin are assigned together."""
        rows = [-1] * len(seen)
        for group in self._groups(seen):
            labels = {kin for index in group for kin in self._like(seen[index].label)}
            members = [seen[index] for index in group]
            known = self._within_reach(table, members, table.rows_of(labels))
            if not len(known):
                continue
            costs = self._costs(table, members, known, look)
            for index, column in zip(group, association.assign(costs), strict=True):
                rows[index] = -1 if column < 0 else int(known[column])
        return rows

    def _within_reach(
        self, table: EntityTable, seen: Sequence[Sighting], rows: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        """Return those rows that one of the sightings may be of, as far as place tells."""
        if any(sighting.position is None for sighting in seen):
            return rows
        settings = self._settings()
        reach = max(settings.entity_gate_measured, settings.entity_spatial_radius) + float(np.abs(self._offset).max())
        points = np.array([sighting.position for sighting in seen], dtype=np.float64)[:, :2]
        places = table.places[rows, :2]
        near = (np.abs(points[:, None, :] - places[None, :, :]) <= reach).all(axis=2).any(axis=0)
        return np.asarray(rows[near | np.isnan(places[:, 0])])

    def _groups(self, seen: Sequence[Sighting]) -> list[list[int]]:
        groups: list[tuple[set[str], list[int]]] = []
        for index, sighting in enumerate(seen):
            labels = set(self._like(sighting.label))
            touching = [group for group in groups if group[0] & labels]
            groups = [group for group in groups if group not in touching]
            members = [i for _, indices in touching for i in indices] + [index]
            groups.append((labels.union(*(names for names, _ in touching)), members))
        return [indices for _, indices in groups]

    def _costs(
        self, table: EntityTable, seen: Sequence[Sighting], known: NDArray[np.intp], look: Look
    ) -> NDArray[np.float64]:
        settings = self._settings()
        states = [table.at(int(row)) for row in known]
        points = np.array([s.position or (np.nan,) * 3 for s in seen], dtype=np.float64)
        measured = np.array([s.source is PositionSource.MEASURED for s in seen])
        points[measured] -= self._offset
        places = table.places[known]
        near = association.observer_costs(points, places, settings.entity_spatial_radius)
        exact = association.measured_costs(
            points, np.array([s.variance for s in seen]), places, np.array([s.stddev for s in states]),
            settings.entity_gate_measured,
        )
        both = measured[:, None] & table.measured[known][None, :]
        costs = np.where(both, exact, near)
        tracked = self._tracked(seen, states, look) & both
        if tracked.any():
            step = association.tracked_costs(points, places, settings.entity_gate_measured)
            costs = np.where(tracked, np.minimum(costs, step), costs)
        nowhere = np.isnan(points[:, :1]) | np.isnan(places[:, 0])[None, :]
        latest_first = table.last_seen[known].argsort()[::-1].argsort() * 1e-6
        costs = np.where(nowhere, association.NO_PLACE + latest_first[None, :], costs)
        other_word = np.array([[s.label != state.label for state in states] for s in seen])
        doubt = association.doubt_costs(np.array([state.confidence for state in states]))
        return np.asarray(costs + association.OTHER_WORD * other_word + doubt[None, :])

    @staticmethod
    def _tracked(seen: Sequence[Sighting], states: Sequence[entities.EntityState], look: Look) -> NDArray[np.bool_]:
        tracked = np.zeros((len(seen), len(states)), dtype=bool)
        for row, sighting in enumerate(seen):
            if sighting.track_id or association.walks(sighting.label):
                tracked[row] = [_may_have_stepped(sighting, state, look) for state in states]
        return tracked

    def _take(
        self, tx: Transaction, table: EntityTable, seen: Sequence[Sighting], rows: list[int], look: Look, now: int
    ) -> set[int]:
        """Change the entities that were seen and store those that are new; fills rows, returns the rows of the new."""
        new: set[int] = set()
        offset = REGISTERED * self._offset
        when = look.session_id, look.stamp
        for index, sighting in enumerate(seen):
            if rows[index] >= 0:
                if presence.is_ghost(table.at(rows[index])):
                    table.here_since[rows[index]] = now
                presence.see(table.at(rows[index]), sighting, when, offset)
                table.changed(rows[index])
                continue
            state = presence.born(tx.new_id(), sighting, when, offset)
            entities.insert(tx, state, frame=self._settings().frame, map_id=look.map_id)
            rows[index] = table.add(state)
            new.add(rows[index])
        if look.pose is not None and rows:
            looks.remember(table, rows, look.pose)
        return new

    def _note_layer(self, tx: Transaction, labels: set[str], layer: str) -> None:
        """Note that a layer shows things of labels; those that it calls by another word are among them."""
        for label in sorted(labels):
            layers = self._layers.setdefault(label, set())
            if layer not in layers:
                layers.add(layer)
                entities.add_layers(tx, label, layers)

    def _register(self, table: EntityTable, seen: Sequence[Sighting], rows: Sequence[int], new: set[int]) -> None:
        """Learn how far measured positions lie off the map as a whole: the median of what was seen again."""
        off = [
            np.asarray(sighting.position) - table.places[row]
            for sighting, row in zip(seen, rows, strict=True)
            if row not in new and sighting.source is PositionSource.MEASURED and table.blocking[row]
        ]
        if off:
            gain = OFFSET_GAIN * len(off) / (len(off) + 2.0)
            self._offset = (1.0 - gain) * self._offset + gain * np.median(off, axis=0)

    def _miss(self, table: EntityTable, look: Look, seen: set[int], now: int) -> set[int]:
        """Count the look for what it should have shown and did not; return the rows that changed."""
        rows, certain = looks.in_view(look, table, self._settings().entity_spatial_radius)
        changed: set[int] = set()
        since = (now - np.maximum(table.last_seen[rows], table.last_looked[rows])).tolist()
        for row, sure, passed in zip(rows.tolist(), certain.tolist(), since, strict=True):
            state = table.at(row)
            if row in seen or passed < (LOOK_GAP if sure else OCCASION):
                continue
            if look.layer not in self._layers.get(state.label, ()):
                continue
            table.last_looked[row] = now
            missing = state.missing
            if presence.miss(state, sure):
                table.changed(row)
                changed.add(row)
            if state.missing and not missing:
                table.missing_since[row] = now
        return changed

    def _join(self, tx: Transaction, table: EntityTable, seen: Sequence[Sighting], rows: Sequence[int]) -> None:
        """Write OBSERVED_IN, and COOCCURS_WITH once a message."""
        ids = [table.at(row).id for row in rows]
        edges.add_many(
            tx, [(id_, s.observation_id, EdgeType.OBSERVED_IN) for id_, s in zip(ids, seen, strict=True)]
        )
        together = _companions(ids, table.places[list(rows)])
        edges.add_many(tx, [(*pair, EdgeType.COOCCURS_WITH) for pair in together], accumulate=True)


def _may_have_stepped(sighting: Sighting, state: entities.EntityState, look: Look) -> bool:
    """Tell whether a thing seen shortly before may be this one a step on: by its track id, or because it walks."""
    if state.session_id != look.session_id:
        return False
    if sighting.track_id and state.track_id:
        return sighting.track_id == state.track_id and abs(look.stamp - state.track_stamp) <= TRACK_AGE
    return association.walks(sighting.label) and 0 <= look.stamp - state.last_seen <= STEP_AGE


def _companions(ids: Sequence[int], places: NDArray[np.float64]) -> set[tuple[int, int]]:
    """Return the pairs of ids seen together; in a crowd each with its nearest only, so that pairs stay few."""
    if len(ids) <= COMPANIONS + 1:
        return {(min(a, b), max(a, b)) for i, a in enumerate(ids) for b in ids[i + 1 :]}
    apart = np.nan_to_num(((places[:, None] - places[None]) ** 2).sum(axis=2), nan=1e9)
    nearest = np.argpartition(apart, COMPANIONS, axis=1)[:, : COMPANIONS + 1]
    return {
        (min(ids[i], ids[j]), max(ids[i], ids[j])) for i, row in enumerate(nearest.tolist()) for j in row if i != j
    }
