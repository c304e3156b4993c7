"""R-tree of positions: what lies in a box, and what is nearest, without looking at every row."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.int64]

PACK = 32
"""Rows that one entry of the tree stands for."""
FEW = 4096
"""Packs up to which comparing the box of each takes less time than asking the tree for those that meet a box."""
SAMPLE = 1024
"""Rows from which the number of those in a circle is estimated."""


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
        self._count = len(order)
        points = np.column_stack([x[order], y[order]])
        starts = np.arange(0, len(order), PACK)
        # Column by column, as they are compared.
        self._low = np.asfortranarray(np.minimum.reduceat(points, starts) if len(order) else points)
        self._high = np.asfortranarray(np.maximum.reduceat(points, starts) if len(order) else points)
        # One row a pack: what lies together is read together. Behind the last row are places that no circle has.
        self._slots = _packed(slots[order].astype(np.int32), -1)
        self._x, self._y = _packed(points[:, 0], np.nan), _packed(points[:, 1], np.nan)
        self._sample = points[:: max(1, len(order) // SAMPLE)].T.copy()
        self._tree = self._load() if len(order) else None

    def __len__(self) -> int:
        return self._count

    def circle(self, x: float, y: float, radius: float) -> tuple[Slots, NDArray[np.float64]]:
        """Slots within radius (m) of (x, y), in no order, and their distances (m)."""
        packs = self._meeting(x - radius, y - radius, x + radius, y + radius)
        distances = _distances(self._x[packs], self._y[packs], x, y)
        inside = distances <= radius
        return self._slots[packs][inside].astype(np.int64), distances[inside]

    def number_within(self, x: float, y: float, radius: float) -> float:
        """How many slots are within radius (m) of (x, y), estimated from a sample."""
        inside = np.count_nonzero(_distances(self._sample[0], self._sample[1], x, y) <= radius)
        return float(inside) * self._count / max(1, self._sample.shape[1])

    def nearest(self, x: float, y: float, k: int) -> Slots:
        """The k slots nearest to (x, y) on the floor, in no order; all of them when there are fewer."""
        if self._tree is None or k <= 0:
            return np.empty(0, dtype=np.int64)
        point = np.array([[x, y]])
        wanted = 8 + 2 * k // PACK
        while True:
            with self._lock:
                packs, _ = self._tree.nearest_v(point, point, num_results=min(wanted, len(self._low)), strict=True)
            slots = self._slots[packs]
            distances = np.hypot(self._x[packs] - x, self._y[packs] - y)[slots >= 0]
            slots = slots[slots >= 0]
            outside = np.maximum(np.maximum(self._low[packs] - point, point - self._high[packs]), 0.0)
            # No row of another pack is nearer than the farthest of these packs.
            if np.sum(distances <= np.hypot(*outside.T).max()) >= k or len(packs) == len(self._low):
                break
            wanted *= 2
        if k < len(slots):
            slots = slots[np.argpartition(distances, k - 1)[:k]]
        return slots.astype(np.int64)

    def nbytes(self) -> int:
        """Bytes of the packed rows."""
        arrays = (self._slots, self._x, self._y, self._low, self._high, self._sample)
        return sum(array.nbytes for array in arrays)

    def _meeting(self, left: float, low: float, right: float, high: float) -> Slots:
        """The packs whose boxes meet a box."""
        if self._tree is None or len(self._low) <= FEW:
            (lefts, lows), (rights, highs) = self._low.T, self._high.T
            return np.flatnonzero((lefts <= right) & (rights >= left) & (lows <= high) & (highs >= low))
        with self._lock:
            return np.fromiter(self._tree.intersection((left, low, right, high)), dtype=np.int64)

    def _load(self):  # type: ignore[no-untyped-def]
        from rtree import index

        packs = np.arange(len(self._low))
        return index.Index((packs, self._low, self._high), properties=index.Property(dimension=2))


def _packed(values: NDArray[Any], beyond: float) -> NDArray[Any]:
    """One row for each PACK of the values, the last filled up."""
    packs = np.full((-(-len(values) // PACK), PACK), beyond, dtype=values.dtype)
    packs.reshape(-1)[: len(values)] = values
    return packs


def _distances(px: NDArray[np.float64], py: NDArray[np.float64], x: float, y: float) -> NDArray[np.float64]:
    """Metres on the floor, as the table measures them."""
    with np.errstate(over="ignore"):
        found: NDArray[np.float64] = np.sqrt((px - x) ** 2 + (py - y) ** 2)
    return found


def _tiled(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.intp]:
    """Order in which each PACK rows are neighbours: strips by x, each as wide as a column of packs, and y within."""
    by_x = np.argsort(x, kind="stable")
    height = PACK * max(1, round(np.sqrt(len(x) / PACK)))
    strip = np.empty(len(x), dtype=np.int64)
    strip[by_x] = np.arange(len(x)) // height
    return np.lexsort((y, strip))
