"""Arrays of a column table that only ever grows at its end, so that readers need no lock."""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

ALIVE = np.iinfo(np.int32).max
"""Value of `died` of a row that is not dead."""


_HUGE = 4 * 1024 * 1024
"""Bytes from which on an array is worth pages of 2 MB, as NumPy has it."""


def room(shape: tuple[int, ...], kind: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros in pages of its own, each of which takes memory once it is written to.

    They go back to the system with the array. The C library would keep what arrays leave behind as they grow, in holes
    between what is still used.
    """
    dtype = np.dtype(kind)
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype=dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel may be built without them: those of real time are
            pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, dtype=dtype).reshape(shape)


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
        return cls({name: room((capacity, *shape), kind) for name, (kind, shape) in layout.items()})

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    @property
    def capacity(self) -> int:
        """Rows that fit."""
        return len(self._arrays["died"])

    def with_room(self, count: int, wanted: int) -> Columns:
        """Return self when wanted rows fit, else a copy of the first count rows with as much room again."""
        if wanted <= self.capacity:
            return self
        grown = self._like(max(wanted, 2 * count, 1024))
        grown.copy_from(0, self, 0, count)
        return grown

    def take(self, slots: NDArray[np.int64]) -> Columns:
        """Return a table of copies of these rows, with as much room again."""
        taken = self._like(2 * len(slots))
        for name, array in self._arrays.items():
            # NumPy would make a second copy to see first whether all slots are there.
            np.take(array, slots, axis=0, out=taken[name][: len(slots)], mode="clip")
        return taken

    def _like(self, capacity: int) -> Columns:
        return Columns({name: room((capacity, *a.shape[1:]), a.dtype) for name, a in self._arrays.items()})

    def put(self, start: int, rows: Mapping[str, Any], count: int) -> None:
        """Write count rows from start on; they are alive."""
        for name, values in rows.items():
            self._arrays[name][start : start + count] = values
        self._arrays["died"][start : start + count] = ALIVE

    def copy_from(self, start: int, other: Columns, low: int, high: int) -> None:
        """Copy rows [low, high) of another table to start."""
        for name, array in self._arrays.items():
            array[start : start + high - low] = other[name][low:high]

    def nbytes(self, count: int) -> int:
        """Bytes of the first count rows; room takes none."""
        return sum(array[:count].nbytes for array in self._arrays.values())
