"""The entities of one map in memory, with NumPy columns for what every message asks of all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_node.graph import PositionSource
from memory_node.ingest.association import may_be_one
from memory_node.storage.entities import EntityState

if TYPE_CHECKING:
    import sqlite3

    from numpy.typing import NDArray

SECTORS = 16
"""Directions that are told apart when it is remembered where from a thing was seen."""
ELSEWHERE = 1.0
"""m from where an entity was at which it is at another place, and not only estimated anew."""
NEVER = int(np.iinfo(np.int64).min // 2)
COLUMNS: tuple[tuple[str, Any, tuple[int, ...], Any], ...] = (
    ("places", np.float64, (3,), np.nan),
    ("measured", bool, (), False),
    ("there", bool, (), False),
    ("blocking", bool, (), False),
    ("missing", bool, (), False),
    ("first_seen", np.int64, (), NEVER),
    ("last_seen", np.int64, (), NEVER),
    ("here_since", np.int64, (), NEVER),
    ("last_looked", np.int64, (), NEVER),
    ("missing_since", np.int64, (), NEVER),
    ("seen_from", np.float32, (SECTORS,), 0.0),
    ("seen_at", np.float64, (3,), np.nan),
)
"""Name, type, shape of a value and what an empty row holds."""
TIMES = tuple(name for name, type_, _, _ in COLUMNS if type_ is np.int64)
REMEMBERED = ("here_since", "last_looked", "missing_since", "seen_from", "seen_at")
"""Columns that are in no table of SQLite."""


class EntityTable:
    """Rows of entities, by id and by label. A row's number stays the same while it is there.

    Columns, one value a row, empty rows included:
        places: (N, 3) m, NaN where unknown. measured: whether the place is the thing's own.
        there: whether the thing is there for sure; blocking: and measured, so that it may hide others. missing: whether
        it was there, and is gone.
        first_seen, last_seen, here_since: ns of the first sighting, the last, and the first at the present place.
        last_looked: ns of the last look that was counted as a miss.
        missing_since: ns of the look at which it became missing, NEVER while it is not or when that is forgotten.
        seen_from: (N, SECTORS) m, how far away it was seen from at most, by direction; 0 where never.
        seen_at: (N, 3) x, y (m) and yaw (rad) of the robot when it was last seen, NaN where unknown.
    Times are on the clock of the newest session: what happened before a clock jumped has its place before that.
    What SQLite doesn't have (`REMEMBERED`) is unknown after a restart; docs/entities.md says what follows from that.
    """

    def __init__(self, states: Iterable[EntityState] = (), shifts: Mapping[int, int] | None = None) -> None:
        """Make a table; shifts: what to add (ns) to stamps of earlier sessions, see `sessions.shifts`."""
        self.shifts = dict(shifts or {})
        self._states: list[EntityState | None] = []
        self._rows: dict[int, int] = {}
        self._labels: dict[str, set[int]] = {}
        self._sorted: dict[str, NDArray[np.intp]] = {}
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty((0, *shape), dtype=type_) for name, type_, shape, _ in COLUMNS
        }
        for state in states:
            self.add(state)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[EntityState]:
        return (state for state in self._states if state is not None)

    def __contains__(self, id_: int) -> bool:
        return id_ in self._rows

    def __getattr__(self, name: str) -> NDArray[Any]:
        columns = self.__dict__.get("_columns", {})
        if name not in columns:
            raise AttributeError(name)
        column: NDArray[Any] = columns[name]
        return column[: len(self._states)]

    @property
    def labels(self) -> list[str]:
        """Labels that have entities."""
        return list(self._labels)

    def at(self, row: int) -> EntityState:
        """Return the entity of a row."""
        state = self._states[row]
        assert state is not None
        return state

    def row(self, id_: int) -> int:
        """Return the row of an entity."""
        return self._rows[id_]

    def rows_of(self, labels: Iterable[str]) -> NDArray[np.intp]:
        """Return the rows of some labels, the oldest first."""
        found = [rows for label in labels if (rows := self._label_rows(label)) is not None]
        return np.sort(np.concatenate(found)) if found else np.empty(0, dtype=np.intp)

    def add(self, state: EntityState) -> int:
        """Add an entity and return its row."""
        row = len(self._states)
        if row == len(self._columns["places"]):
            self._grow(max(64, 2 * row))
        self._states.append(state)
        self._rows[state.id] = row
        self._labels.setdefault(state.label, set()).add(row)
        self._sorted.pop(state.label, None)
        self.changed(row)
        last = self.last_seen[row]
        self.first_seen[row] = min(last, self.on_clock(state.session_id, state.first_seen))
        self.here_since[row] = last if state.moved else self.first_seen[row]
        return row

    def remove(self, id_: int) -> None:
        """Forget an entity; its row stays empty."""
        row = self._rows.pop(id_)
        state = self.at(row)
        self._labels[state.label].discard(row)
        self._sorted.pop(state.label, None)
        if not self._labels[state.label]:
            del self._labels[state.label]
        self._states[row] = None
        for name, _, _, empty in COLUMNS:
            self._columns[name][row] = empty

    def adopt(self, other: EntityTable) -> None:
        """Take over what another table of the same map knows of the same entities and SQLite doesn't.

        What an entity was seen from, and since when, tells nothing when it is elsewhere now: a split undid its move.
        """
        for id_, row in self._rows.items():
            if id_ in other and not math.dist(self.places[row], other.places[other.row(id_)]) > ELSEWHERE:
                for name in REMEMBERED:
                    self._columns[name][row] = other._columns[name][other.row(id_)]
                self.changed(row)

    def on_clock(self, session_id: int, stamp: int) -> int:
        """Return when a stamp of a session was on the clock of the newest one, ns."""
        return stamp + self.shifts.get(session_id, 0)

    def go_by(self, shifts: Mapping[int, int], before: int, now: int) -> None:
        """Go by the clock of a newer session, which shows now (ns).

        Args:
            shifts: as they are from it. before: session whose clock the table went by.
        """
        shift = shifts.get(before, 0)
        self.shifts = dict(shifts)
        if not shift:
            return
        newest = max(int(self._columns[name].max(initial=NEVER)) for name in TIMES)
        # Looks that saw nothing went on after the last row, by which the session's end is known.
        late = min(0, now - newest - shift)
        self.shifts = {session: known + late for session, known in shifts.items()}
        for name in TIMES:
            column = self._columns[name]
            column[column != NEVER] += shift + late

    def changed(self, row: int) -> None:
        """Bring the columns of a row up to its state."""
        state, columns = self.at(row), self._columns  # not by attribute: this is the hottest place of a message
        sure, measured = state.position is not None and not state.tentative, state.source is PositionSource.MEASURED
        there = sure and not state.missing
        columns["places"][row] = np.nan if state.position is None else state.position
        last_seen = state.last_seen + self.shifts.get(state.session_id, 0)
        columns["measured"][row], columns["last_seen"][row] = measured, last_seen
        columns["there"][row], columns["missing"][row] = there, sure and state.missing
        columns["blocking"][row] = there and measured
        if not state.missing:
            columns["missing_since"][row] = NEVER

    def _label_rows(self, label: str) -> NDArray[np.intp] | None:
        if label not in self._labels:
            return None
        if label not in self._sorted:
            self._sorted[label] = np.array(sorted(self._labels[label]), dtype=np.intp)
        return self._sorted[label]

    def _grow(self, capacity: int) -> None:
        for name, type_, shape, empty in COLUMNS:
            old = self._columns[name]
            self._columns[name] = np.concatenate([old, np.full((capacity - len(old), *shape), empty, dtype=type_)])


def no_names(label: str) -> tuple[str, ...]:
    """Return the other names of a label's thing where no vocabulary tells them: none."""
    return ()


class Kin:
    """Which labels may name one thing: by the cosine of their vectors, or because they are names of the same.

    Args:
        names: the other names that a label's thing has, whatever their vectors.
    """

    def __init__(
        self,
        read: Callable[[sqlite3.Connection, list[str]], dict[str, NDArray[np.float32]]],
        names: Callable[[str], Iterable[str]],
    ) -> None:
        self._read = read
        self._names = names
        self._labels: set[str] = set()
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._found: dict[tuple[str, float], list[str]] = {}

    def learn(self, conn: sqlite3.Connection, labels: Iterable[str]) -> None:
        """Read the vectors of labels that have none yet."""
        unknown = [label for label in labels if label not in self._vectors]
        if not self._labels.issuperset(unknown):
            self._labels.update(unknown)
            self._found.clear()
        if unknown and (vectors := self._read(conn, unknown)):
            self._vectors.update(vectors)
            self._found.clear()

    def of(self, label: str, threshold: float) -> list[str]:
        """Return the labels that may name the same thing, by name or with a cosine of at least threshold, itself first.
        """
        known = self._found.get((label, threshold))
        if known is None:
            known = self._found[label, threshold] = [label, *self._near(label, threshold)]
        return known

    def _near(self, label: str, threshold: float) -> list[str]:
        near = self._labels.intersection(self._names(label))
        if label in self._vectors:
            names = list(self._vectors)
            cosines = np.stack([self._vectors[name] for name in names]) @ self._vectors[label]
            near.update(name for name, cosine in zip(names, cosines, strict=True) if cosine >= threshold)
        return sorted(name for name in near if name != label and may_be_one(label, name))
