"""Entities as columns, to be ranked and counted by the thousand; only the best of them are read."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import Kind
from memory_node.index.columns import Columns
from memory_node.index.view import RowFilter, Slots, View
from memory_node.storage.seen import last_seen

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Things:
    """Entities, one a place of every array; a column is read when it is asked for.

    Attributes:
        columns, slots: of the row table, and where in it each is.
        fits: how well the label names what is asked for, 0..1.
        seen: when each was last seen (ns), where it is not what the table says.
    """

    columns: Columns
    slots: Slots
    fits: NDArray[np.float64]
    seen: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.slots)

    def where(self, wanted: Flags | NDArray[np.int64]) -> Things:
        """Those that are wanted: flags (N,), or places in the order that is wanted."""
        seen = None if self.seen is None else self.seen[wanted]
        return Things(self.columns, self.slots[wanted], self.fits[wanted], seen)

    def placed(self) -> Things:
        """Those whose place is known."""
        unknown = np.isnan(self.columns["x"][self.slots])
        return self.where(~unknown) if unknown.any() else self

    def as_of(self, conn: sqlite3.Connection, by: int | None) -> Things:
        """As they were last seen no later than a time (ns), without those never seen by then; None: as they are."""
        late = np.zeros(0, dtype=bool) if by is None else self.last_seen > by
        if by is None or not late.any():
            return self
        times = last_seen(conn, self.ids[late].tolist(), by)
        never = by + 1
        seen = self.last_seen.copy()
        seen[late] = [times.get(id_, never) for id_ in self.ids[late].tolist()]
        return replace(self, seen=seen).where(seen <= by)

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """Ids of the entities."""
        return self.columns["id"][self.slots]

    @cached_property
    def last_seen(self) -> NDArray[np.int64]:
        """When each was last seen (ns)."""
        return self.seen if self.seen is not None else self.columns["last_stamp"][self.slots]

    @cached_property
    def confidence(self) -> NDArray[np.float64]:
        """How sure each is, 0..1."""
        return self.columns["confidence"][self.slots]

    @cached_property
    def positions(self) -> NDArray[np.float64]:
        """(N, 2) m, on the floor; NaN where unknown."""
        return np.stack([self.columns[axis][self.slots] for axis in "xy"], axis=1)

    @cached_property
    def maps(self) -> NDArray[np.int16]:
        """Ids of their maps."""
        return self.columns["map"][self.slots]

    @cached_property
    def sightings(self) -> NDArray[np.uint32]:
        """How often each was seen."""
        return self.columns["repeats"][self.slots]


def select(view: View, rows: RowFilter, fits: Mapping[int, float] | None) -> Things:
    """Return the entities that pass a filter, in no order.

    Args:
        fits: by text id of their label, those of other labels are left out; None: all, and all fit.
    """
    columns = view.columns
    slots = view.select(rows) if fits is None else view.slots_of_texts(np.fromiter(fits, np.int64, len(fits)))
    slots = slots[columns["kind"][slots] == Kind.ENTITY]
    if fits is None:
        return Things(columns, slots, np.ones(len(slots)))
    slots = slots[view.passes(rows, slots)]
    known = sorted(fits)
    names = np.searchsorted(known, columns["text"][slots])
    return Things(columns, slots, np.array([fits[name] for name in known], dtype=np.float64)[names])
