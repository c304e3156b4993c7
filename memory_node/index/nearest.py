"""The rows nearest to a point, in bounded work whatever lies around it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from memory_node.index.view import WHOLE, RowFilter, Slots, View

_STEPS = 3  # k * 4, * 32 and * 256 rows of the tree, then every row
FEW = 16  # rows in the circle, or of the kinds, for each that is wanted, up to which all of them are looked at
RARE = 1 / 16  # share of rows that pass, wherever they lie, below which the tree would have to give too many


def nearest(
    view: View, rows: RowFilter, center: tuple[float, ...], radius: float | None, k: int
) -> tuple[Slots, NDArray[np.float64]]:
    """Return slots of the k nearest rows that pass, and their distances (m), the nearest first.

    Args:
        center: (x, y) measures on the floor, (x, y, z) in space.
        radius: m, nothing farther is returned; None for no bound.
    """
    slots = _candidates(view, rows, center, radius, k)
    distances = view.distances(center, slots)
    inside = distances <= (np.inf if radius is None else radius)
    slots, distances = slots[inside], distances[inside]
    if len(slots) > k > 0:
        close = np.argpartition(distances, k - 1)[:k]
        slots, distances = slots[close], distances[close]
    order = np.lexsort((view.columns["id"][slots], distances))[:k]
    return slots[order], distances[order]


def _candidates(view: View, rows: RowFilter, center: tuple[float, ...], radius: float | None, k: int) -> Slots:
    """Passing rows among which the k nearest are."""
    of_kinds = view.of_kinds(rows.kinds)
    if of_kinds is not None and len(of_kinds) <= FEW * k:
        return of_kinds[view.passes(rows, of_kinds)]
    circle = rows
    if radius is not None and rows.center is None:
        if view.share_within(center, radius) * view.count <= FEW * k:
            near = view.around(center, radius)
            return near[view.passes(rows, near)]
        circle = replace(rows, center=center, radius=radius)
    based = _from_tree(view, rows, center, radius, k)
    return view.select(circle) if based is None else np.concatenate([based, view.tail[view.passes(rows, view.tail)]])


def _from_tree(
    view: View, rows: RowFilter, center: tuple[float, ...], radius: float | None, k: int
) -> Slots | None:
    """Passing rows of the base among which the k nearest are, or None when the tree would have to give too many."""
    places = view.base.places
    if view.count <= WHOLE or view.share(replace(rows, center=None, radius=None)) < RARE:
        return None
    wanted = 4 * k
    for _ in range(_STEPS):
        near = places.nearest(center[0], center[1], wanted)
        passing = near[view.passes(rows, near)]
        if len(near) >= len(places):
            return passing
        # Whatever the tree did not give lies at least this far away on the floor, and so in space.
        edge = view.distances(center[:2], near).max()
        if (radius is not None and edge > radius) or np.sum(view.distances(center, passing) <= edge) >= k:
            return passing
        wanted *= 8
    return None
