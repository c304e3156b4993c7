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
        points = positions[part]
        low, high = points.min(axis=0), points.max(axis=0)
        axis = int(np.argmax(high - low))
        if low[axis] == high[axis] or radius(points, None if spread is None else spread[part]) <= max_radius:
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


def first_in_cells(positions: NDArray[np.float64], eps: float) -> Indices:
    """Return the index of the first position in each grid cell, ascending; unknown positions (NaN) count as one."""
    return np.sort(np.unique(_cells(np.nan_to_num(positions), eps), axis=0, return_index=True)[1])


def _cells(positions: NDArray[np.float64], eps: float) -> NDArray[np.float64]:
    cells: NDArray[np.float64] = np.floor(positions * (CELLS_PER_EPS / eps))
    return cells


def _dbscan(positions: NDArray[np.float64], eps: float, min_samples: int) -> NDArray[np.intp]:
    if float(np.linalg.norm(np.ptp(positions, axis=0))) <= eps:
        # Everything neighbours everything.
        return np.full(len(positions), 0 if len(positions) >= min_samples else -1, np.intp)
    from sklearn.cluster import DBSCAN

    _, cell_of, weights = np.unique(_cells(positions, eps), axis=0, return_inverse=True, return_counts=True)
    cell_of = cell_of.reshape(-1)
    means = np.stack([np.bincount(cell_of, column) for column in positions.T], axis=1) / weights[:, None]
    labels = DBSCAN(eps=eps, min_samples=min_samples).fit(means, sample_weight=weights).labels_
    return np.asarray(labels, np.intp)[cell_of]


def _groups(labels: NDArray[np.intp]) -> list[Indices]:
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
