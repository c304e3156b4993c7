"""Arrays of a column table that only ever grows at its end, so that readers need no lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ALIVE = np.iinfo(np.int32).max
"""Value of `died` of a row that is not dead."""


class Columns:
    """Named arrays of one length. Rows [0, count) of a published table never change, but for `died`.

    `died` is the version of the table in which a row went; a reader of version v sees the rows with died > v.
    So a batch that adds, changes (old row dies, new row is added) and removes is seen whole or not at all.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = dict(arrays)

    @classmethod
    def empty(cls, layout: Mapping[str, tuple[str, tuple[int, ...]]], capacity: int) -> Columns:
        """Return a table of a layout: name to dtype and shape of one row."""
        return cls({name: np.empty((capacity, *shape), dtype=kind) for name, (kind, shape) in layout.items()})

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    @property
    def capacity(self) -> int:
        """Rows that fit."""
        return len(self._arrays["died"])

    def with_room(self, count: int, wanted: int) -> Columns:
        """Return self when wanted rows fit, else a copy of the first count rows with half as much room again."""
        if wanted <= self.capacity:
            return self
        capacity = max(wanted, count + count // 2, 1024)
        grown = {name: np.empty((capacity, *a.shape[1:]), dtype=a.dtype) for name, a in self._arrays.items()}
        for name, array in grown.items():
            array[:count] = self._arrays[name][:count]
        return Columns(grown)

    def take(self, slots: NDArray[np.int64]) -> Columns:
        """Return a table of copies of these rows."""
        return Columns({name: array[slots] for name, array in self._arrays.items()})

    def put(self, start: int, rows: Mapping[str, Any], count: int) -> None:
        """Write count rows from start on; they are alive."""
        for name, values in rows.items():
            self._arrays[name][start : start + count] = values
        self._arrays["died"][start : start + count] = ALIVE

    def copy_from(self, start: int, other: Columns, low: int, high: int) -> None:
        """Copy rows [low, high) of another table to start."""
        for name, array in self._arrays.items():
            array[start : start + high - low] = other[name][low:high]

    def nbytes(self) -> int:
        """Bytes of all arrays, room included."""
        return sum(array.nbytes for array in self._arrays.values())
