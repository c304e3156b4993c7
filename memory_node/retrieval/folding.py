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
    places = np.stack([columns[name][slots] for name in "xyz"], axis=1)
    layers, first = columns["layer"][slots], columns["stamp"][slots]
    left = np.ones(len(slots), dtype=bool)
    folds: list[Fold] = []
    while left.any() and len(folds) < most:
        lead = int(np.argmax(left))
        near = left & _near(places, places[lead])
        same = near & ~things & (layers == layers[lead]) if not things[lead] else np.arange(len(slots)) == lead
        folds.append(Fold(int(ids[lead]), int(same.sum()), int(first[same].min()), int(last[same].max())))
        left &= ~(same | (near & things & ~things[lead]))
    return sorted(folds, key=lambda one: -one.last)


def _near(places: NDArray[np.float64], place: NDArray[np.float64]) -> NDArray[np.bool_]:
    if np.isnan(place[0]):
        unknown: NDArray[np.bool_] = np.isnan(places[:, 0])
        return unknown
    near: NDArray[np.bool_] = ((places - place) ** 2).sum(axis=1) <= SAME_PLACE**2
    return near
