"""Rows that say the same at the same place are one answer, with a count and a span of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import Kind
from memory_node.index.view import RowFilter, View

SAME_PLACE = 0.5
"""m: rows of one text nearer to each other than this, or all without a place, are told as one."""


@dataclass(frozen=True)
class Fold:
    """Rows told as one: the newest row's id, how many rows, and their span first..last (ns)."""

    node_id: int
    count: int
    first: int
    last: int


def fold(view: View, rows: RowFilter, text_id: int, most: int) -> list[Fold]:
    """Return the passing rows of one text as at most `most` folds, the newest first.

    Rows of two layers are never one, nor are two entities; an entity is told by the observations at its place.
    """
    slots = view.slots_of_texts(np.array([text_id], dtype=np.int64))
    slots = slots[view.passes(rows, slots)]
    columns = view.columns
    ids, last = columns["id"][slots], columns["last_stamp"][slots]
    things = columns["kind"][slots] == Kind.ENTITY
    order = np.lexsort((-ids, -last, things))
    slots, ids, last, things = slots[order], ids[order], last[order], things[order]
    layers, first = columns["layer"][slots], columns["stamp"][slots]
    around = _Around([columns[name][slots] for name in "xyz"])
    left = np.ones(len(slots), dtype=bool)
    folds: list[Fold] = []
    lead = 0
    while len(folds) < most:
        lead += int(np.argmax(left[lead:]))
        if not left[lead]:
            break
        near = around.near(lead)
        near = near[left[near]]
        if things[lead]:
            same = np.array([lead])
        else:
            same = near[~things[near] & (layers[near] == layers[lead])]
            left[near[things[near]]] = False
        left[same] = False
        folds.append(Fold(int(ids[lead]), len(same), int(first[same].min()), int(last[same].max())))
    return sorted(folds, key=lambda one: -one.last)


class _Around:
    """Which rows are at one place, by x first, so that few of the many rows of one text are compared."""

    def __init__(self, axes: list[NDArray[np.float64]]) -> None:
        self._axes = axes
        self._order = np.argsort(axes[0], kind="stable")  # unknown places, NaN, come last
        self._sorted = axes[0][self._order]

    def near(self, row: int) -> NDArray[np.int64]:
        """Rows within SAME_PLACE of a row, itself among them; all unknown places are one."""
        x = self._axes[0][row]
        low = np.searchsorted(self._sorted, x - SAME_PLACE, side="left")
        if np.isnan(x):
            return self._order[low:]
        candidates = self._order[low : np.searchsorted(self._sorted, x + SAME_PLACE, side="right")]
        squares = sum((axis[candidates] - axis[row]) ** 2 for axis in self._axes)
        return np.asarray(candidates[squares <= SAME_PLACE**2])
