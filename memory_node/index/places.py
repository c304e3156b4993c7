"""R-tree of positions: what lies in a box, and what is nearest, without looking at every row."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.int64]

PACK = 32
"""Rows that one entry of the tree stands for."""


class PlaceIndex:
    """2D R-tree over the floor, of packs of neighbouring rows, whose payload is the number of the pack.

    libspatialindex takes some 180 bytes an entry, and more while it loads, so rows are packed first, in 20 bytes each
    (sort-tile-recursive packing, Leutenegger et al. 1997). It is loaded in one go and never changed: rows that came,
    moved or went since are looked at one by one by the table, which builds another tree when they are many. So no entry
    can be deleted with a wrong box or inserted twice. The tree knows x and y only: a circle's box in it is also the
    sphere's, and a distance on the floor is never longer than one in space. libspatialindex is not safe to read from
    two threads at once, so every use takes the lock.

    Args:
        slots: payloads, (N,).
        x, y: positions in metres, (N,). Rows that are not finite (an unknown place) are left out.
    """

    def __init__(self, slots: Slots, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        order = known[_tiled(x[known], y[known])]
        self._lock = threading.Lock()
        self._slots = slots[order].astype(np.int32)
        self._points = np.column_stack([x[order], y[order]])
        starts = np.arange(0, len(order), PACK)
        self._low = np.minimum.reduceat(self._points, starts) if len(order) else self._points
        self._high = np.maximum.reduceat(self._points, starts) if len(order) else self._points
        self._tree = self._load() if len(order) else None

    def __len__(self) -> int:
        return len(self._slots)

    def box(self, x: float, y: float, radius: float) -> Slots:
        """Slots in the square of half width radius (m) around (x, y), in no order."""
        if self._tree is None:
            return np.empty(0, dtype=np.int64)
        west, south, east, north = x - radius, y - radius, x + radius, y + radius
        with self._lock:
            packs = np.fromiter(self._tree.intersection((west, south, east, north)), dtype=np.int64)
        rows = self._rows(packs)
        px, py = self._points[rows].T
        inside = (px >= west) & (px <= east) & (py >= south) & (py <= north)
        return self._slots[rows[inside]].astype(np.int64)

    def nearest(self, x: float, y: float, k: int) -> Slots:
        """The k slots nearest to (x, y) on the floor, in no order; all of them when there are fewer."""
        if self._tree is None or k <= 0:
            return np.empty(0, dtype=np.int64)
        point = np.array([[x, y]])
        wanted = 8 + 2 * k // PACK
        while True:
            with self._lock:
                packs, _ = self._tree.nearest_v(point, point, num_results=min(wanted, len(self._low)), strict=True)
            rows = self._rows(packs)
            distances = np.hypot(*(self._points[rows] - point).T)
            outside = np.maximum(np.maximum(self._low[packs] - point, point - self._high[packs]), 0.0)
            # No row of another pack is nearer than the farthest of these packs.
            if np.sum(distances <= np.hypot(*outside.T).max()) >= k or len(packs) == len(self._low):
                break
            wanted *= 2
        if k < len(rows):
            rows = rows[np.argpartition(distances, k - 1)[:k]]
        return self._slots[rows].astype(np.int64)

    def nbytes(self) -> int:
        """Bytes of the packed rows."""
        return self._slots.nbytes + self._points.nbytes + self._low.nbytes + self._high.nbytes

    def _rows(self, packs: NDArray[np.int64]) -> Slots:
        rows = (np.asarray(packs, dtype=np.int64)[:, None] * PACK + np.arange(PACK)).reshape(-1)
        return rows[rows < len(self._slots)]

    def _load(self):  # type: ignore[no-untyped-def]
        from rtree import index

        packs = np.arange(len(self._low))
        return index.Index((packs, self._low, self._high), properties=index.Property(dimension=2))


def _tiled(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.intp]:
    """Order in which each PACK rows are neighbours: strips by x, each as wide as a column of packs, and y within."""
    by_x = np.argsort(x, kind="stable")
    height = PACK * max(1, round(np.sqrt(len(x) / PACK)))
    strip = np.empty(len(x), dtype=np.int64)
    strip[by_x] = np.arange(len(x)) // height
    return np.lexsort((y, strip))
