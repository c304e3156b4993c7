"""Clusters of positions: DBSCAN over weighed grid cells, and clusters too wide divided.

A parked robot's rows fall into one cell, so neither time nor memory grows with the square of them (DBSCAN in
scikit-learn keeps the neighbours of every sample).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

CELLS_PER_EPS = 5
"""Grid cells along eps: a cell's rows are clustered as one sample at their mean, at most sqrt(3) eps / 5 from any."""

Indices = NDArray[np.intp]


def cluster(
    positions: NDArray[np.float64], eps: float, min_samples: int, max_radius: float
) -> tuple[list[Indices], Indices]:
    """Divide positions into clusters no wider than max_radius, and noise.

    Args:
        positions: (N, 3) m, finite.
        eps, min_samples: as in DBSCAN (Ester et al. 1996), m and samples.
        max_radius: m, from the mean of a cluster to its farthest member.

    Returns:
        Indices of each cluster's members, ascending, the cluster with the first member first; and those of noise.
    """
    if not len(positions):
        return [], np.empty(0, np.intp)
    labels = _dbscan(positions, eps, min_samples)
    found = [
        part
        for members in _groups(labels)
        if labels[members[0]] >= 0
        for part in divide(positions, members, max_radius)
    ]
    return sorted(found, key=lambda members: int(members[0])), np.flatnonzero(labels < 0)


def divide(
    positions: NDArray[np.float64], members: Indices, max_radius: float, spread: NDArray[np.float64] | None = None
) -> Iterator[Indices]:
    """Halve a set of members across its longest side until every part lies within max_radius of its mean.

    Args:
        spread: (N,) m, how far each position itself reaches; None: not at all. One that reaches too far stays alone.
    """
    open_ = [members]
    while open_:
        part = open_.pop()
        if len(part) == 1:
            yield part
            continue
        points = positions[part]
        low, high = points.min(axis=0), points.max(axis=0)
        axis = int(np.argmax(high - low))
        # The farthest from the mean is never nearer to it than half of the longest side.
        narrow = high[axis] - low[axis] <= 2.0 * max_radius
        if low[axis] == high[axis] or (
            narrow and radius(points, None if spread is None else spread[part]) <= max_radius
        ):
            yield part
            continue
        upper = points[:, axis] > (low[axis] + high[axis]) / 2
        if not upper.any():
            # The middle of two neighbouring floats is the upper one.
            yield part
            continue
        open_ += [part[upper], part[~upper]]


def radius(points: NDArray[np.float64], spread: NDArray[np.float64] | None = None) -> float:
    """Return the distance (m) from the mean of points (N, 3) to the farthest of them, or to the end of its spread."""
    apart = points - points.mean(axis=0)
    distances = np.sqrt(np.einsum("ij,ij->i", apart, apart))
    return float((distances if spread is None else distances + spread).max())


class CellCount:
    """Tells of positions that are taken in piece by piece which are the first in their grid cell."""

    def __init__(self, eps: float) -> None:
        """eps: see `cluster`, m."""
        self._eps = eps
        self._known: set[tuple[float, ...]] = set()

    def take(self, positions: NDArray[np.float64]) -> list[int]:
        """Return the indices, ascending, of those that lie in new cells; unknown positions (NaN) lie at the origin."""
        cells = _cells(np.nan_to_num(positions), self._eps)
        first = np.sort(np.unique(_numbers(cells), return_index=True)[1])
        new = [
            index
            for index, cell in zip(first.tolist(), map(tuple, cells[first].tolist()), strict=True)
            if cell not in self._known
        ]
        self._known.update(map(tuple, cells[new].tolist()))
        return new


def _cells(positions: NDArray[np.float64], eps: float) -> NDArray[np.float64]:
    cells: NDArray[np.float64] = np.floor(positions * (CELLS_PER_EPS / eps))
    return cells


def _numbers(cells: NDArray[np.float64]) -> NDArray[np.int64]:
    """Number cells (N, 3) in the order of x, y and z; much quicker to compare than rows of an array."""
    numbers = np.zeros(len(cells), np.int64)
    for column in cells.T:
        values, places = np.unique(column, return_inverse=True)
        numbers = numbers * len(values) + places
    return numbers


def _dbscan(positions: NDArray[np.float64], eps: float, min_samples: int) -> NDArray[np.intp]:
    if float(np.linalg.norm(np.ptp(positions, axis=0))) <= eps:
        # Everything neighbours everything.
        return np.full(len(positions), 0 if len(positions) >= min_samples else -1, np.intp)
    from sklearn.cluster import DBSCAN

    _, cell_of, weights = np.unique(_numbers(_cells(positions, eps)), return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(cell_of, column) for column in positions.T], axis=1) / weights[:, None]
    labels = DBSCAN(eps=eps, min_samples=min_samples).fit(means, sample_weight=weights).labels_
    return np.asarray(labels, np.intp)[cell_of]


def _groups(labels: NDArray[np.intp]) -> list[Indices]:
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
