"""Columns of every node that is not archived, and exact filters over them without SQL.

The table has a sorted base and an unsorted tail. The base has orders by text and by time and an R-tree; the tail, all
that came since, is looked at row by row, until `settle` makes one new base of both. Readers take a `View` and need no
lock: see columns.py.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory_node.index.columns import Columns
from memory_node.index.view import Base, RowFilter, View

__all__ = ["RowFilter", "RowTable", "View"]

LAYOUT: dict[str, tuple[str, tuple[int, ...]]] = {
    "id": ("i8", ()), "text": ("u4", ()), "stamp": ("i8", ()), "last_stamp": ("i8", ()), "x": ("f8", ()),
    "y": ("f8", ()), "z": ("f8", ()), "confidence": ("f8", ()), "episode": ("u4", ()), "kind": ("i1", ()),
    "layer": ("i2", ()), "map": ("i2", ()), "tier": ("i1", ()), "internal": ("?", ()), "repeats": ("u4", ()),
    "died": ("i4", ()),
}  # fmt: skip
"""79 bytes a row; the base's three orders add 12, 4 more for a row of a rare kind, its packed places 21."""

TAIL_LEAST = 8192  # a tail this long costs a query less than 0.1 ms


class RowTable:
    """The rows of `node`, kept up with `apply`; one writer at a time, any number of readers.

    Columns: id, text (0: none), stamp and last_stamp (ns), x, y, z (m, NaN when unknown), confidence, episode, kind,
    layer, map, tier, internal, repeats (readings that the row stands for).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._view = View(Columns.empty(LAYOUT, 0), 0, 0, Base.empty())
        self._newest = 0

    @property
    def view(self) -> View:
        """What is stored as of now; never changes."""
        return self._view

    def apply(self, rows: Mapping[str, NDArray[Any]], removed: ArrayLike = (), complete: bool = False) -> None:
        """Add or replace rows by id and remove others, in one step for every reader.

        Args:
            rows: one array (N,) a column of the table but `died`; ids are unique. May be empty.
            removed: ids that go; unknown ones are ignored.
            complete: rows are all there are; every other goes.
        """
        ids = np.asarray(rows["id"] if rows else (), dtype=np.int64)
        count = len(ids)
        with self._lock:
            view = View(Columns.empty(LAYOUT, 0), 0, self._view.version, Base.empty()) if complete else self._view
            columns = view.columns.with_room(view.count, view.count + count)
            known = np.concatenate([np.asarray(removed, dtype=np.int64), ids[ids <= self._newest]])
            old = view.slots(known) if len(known) else known
            columns["died"][old[old >= 0]] = view.version + 1
            if count:
                columns.put(view.count, rows, count)
                self._newest = max(self._newest, int(ids.max()))
            self._view = View(columns, view.count + count, view.version + 1, view.base)

    @property
    def unsettled(self) -> bool:
        """Whether so many rows came or went since the last settle that it is worth doing again."""
        view = self._view
        base = view.base
        return view.count - base.count > TAIL_LEAST + base.count // 16

    @property
    def settling(self) -> bool:
        """Whether `settle` is at work, which takes a processor for 25 ms each 100 000 rows."""
        return self._settling.locked()

    def settle(self) -> None:
        """Make one sorted base of all rows, without the dead; writers wait for no more than a copy of the newest."""
        with self._settling:
            before = self._view
            live = before.alive()
            live = live[np.argsort(before.columns["id"][live], kind="stable")]
            columns = before.columns.take(live)
            base = Base.build(columns, len(live))
            with self._lock:
                now = self._view
                if now.base is not before.base:
                    return  # replaced as a whole meanwhile
                newer = now.count - before.count
                columns = columns.with_room(base.count, base.count + newer)
                columns["died"][: base.count] = now.columns["died"][live]
                columns.copy_from(base.count, now.columns, before.count, now.count)
                self._view = View(columns, base.count + newer, now.version, base)

    def __len__(self) -> int:
        return int(self._view.alive().size)

    def mask(self, rows: RowFilter, slots: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
        """Whether each slot (all when None) passes, as of now."""
        view = self._view
        return view.passes(rows, np.arange(view.count) if slots is None else slots)

    def slots(self, ids: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Slots of ids as of now, -1 where there is no such row."""
        return self._view.slots(np.asarray(ids, dtype=np.int64))

    def nbytes(self) -> int:
        """Bytes of the arrays, without the R-tree."""
        return self._view.columns.nbytes(self._view.count) + self._view.base.nbytes()

