"""Rows that say the same at the same place are one answer, with a count and a span of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import Kind
from memory_node.index.view import RowFilter, View

SAME_PLACE = 0.5
"""m: rows of one text nearer to each other than this, or all without a place, are told as one."""

_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class Fold:
    """Rows told as one: the newest row's id, how many rows, and their span first..last (ns)."""

    node_id: int
    count: int
    first: int
    last: int


def fold(view: View, rows: RowFilter, text_id: int, most: int) -> list[Fold]:
    """Return the passing rows of one text as at most `most` folds, the newest first.

    Rows of two layers are never one, nor are two entities; an entity is told by the observations at its place. The work
    is that of looking at each row once a fold.
    """
    slots = view.slots_of_texts(np.array([text_id], dtype=np.int64))
    slots = slots[view.passes(rows, slots)]
    columns = view.columns
    ids, first, last = columns["id"][slots], columns["stamp"][slots], columns["last_stamp"][slots]
    layers, axes = columns["layer"][slots], [columns[name][slots] for name in "xyz"]
    things = columns["kind"][slots] == Kind.ENTITY
    folds: list[Fold] = []
    for some in (~things, things):
        left = some.copy()
        while len(folds) < most and left.any():
            lead = _newest(np.where(left, last, _NEVER), ids)
            near = _near(axes, lead)
            # Each thing for itself; of the rest what is here in the same layer, and the things here with it.
            same = left & near & (layers == layers[lead]) if not things[lead] else np.arange(len(slots)) == lead
            folds.append(Fold(int(ids[lead]), int(same.sum()), int(first[same].min()), int(last[lead])))
            left &= ~same
            if not things[lead]:
                things &= ~near
    return sorted(folds, key=lambda one: -one.last)


def _newest(last: NDArray[np.int64], ids: NDArray[np.int64]) -> int:
    equal = np.flatnonzero(last == last.max())
    return int(equal[ids[equal].argmax()])


def _near(axes: list[NDArray[np.float64]], row: int) -> NDArray[np.bool_]:
    """Rows within SAME_PLACE of a row; all unknown places are one."""
    if np.isnan(axes[0][row]):
        unknown: NDArray[np.bool_] = np.isnan(axes[0])
        return unknown
    squares = sum((axis - axis[row]) ** 2 for axis in axes)
    return np.asarray(squares <= SAME_PLACE**2)
