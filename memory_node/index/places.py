"""R-tree of positions: what lies in a box, and what is nearest, without looking at every row."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.int64]


class PlaceIndex:
    """Packed 2D R-tree over the floor; its payload is the row's slot, never an object.

    It is loaded in one go and never changed: rows that came, moved or went since are looked at one by one by the table,
    which builds another tree when they are many. So no entry can be deleted with a wrong box or inserted twice.
    The tree knows x and y only: a circle's box in it is also the sphere's, and a distance on the floor is never longer
    than one in space. libspatialindex is not safe to read from two threads at once, so every use takes the lock.

    Args:
        slots: payloads, (N,).
        x, y: positions in metres, (N,). Rows that are not finite (an unknown place) are left out.
    """

    def __init__(self, slots: Slots, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        known = np.isfinite(x) & np.isfinite(y)
        self._lock = threading.Lock()
        self._count = int(known.sum())
        self._tree = self._load(slots[known], x[known], y[known]) if self._count else None

    def __len__(self) -> int:
        return self._count

    def box(self, x: float, y: float, radius: float) -> Slots:
        """Slots in the square of half width radius (m) around (x, y), in no order."""
        if self._tree is None:
            return np.empty(0, dtype=np.int64)
        low, high = np.array([[x - radius, y - radius]]), np.array([[x + radius, y + radius]])
        with self._lock:
            slots, _ = self._tree.intersection_v(low, high)
        return slots

    def nearest(self, x: float, y: float, k: int) -> Slots:
        """The k slots nearest to (x, y) on the floor, in no order; all of them when there are fewer."""
        if self._tree is None or k <= 0:
            return np.empty(0, dtype=np.int64)
        point = np.array([[x, y]])
        with self._lock:
            slots, _ = self._tree.nearest_v(point, point, num_results=min(k, self._count), strict=True)
        return slots

    @staticmethod
    def _load(slots: Slots, x: NDArray[np.float64], y: NDArray[np.float64]):  # type: ignore[no-untyped-def]
        from rtree import index

        corners = np.column_stack([x, y])
        return index.Index((slots.astype(np.int64), corners, corners), properties=index.Property(dimension=2))
