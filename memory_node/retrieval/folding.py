"""Rows that say the same at the same place are one answer, with a count and a span of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import Kind
from memory_node.index.view import RowFilter, Slots, View

SAME_PLACE = 0.5
"""m: rows of one text nearer to each other than this, or all without a place, are told as one."""

_DONE = np.iinfo(np.int64).max
_UNKNOWN = -1e300  # an x that nothing has


@dataclass(frozen=True)
class Fold:
    """Rows told as one: the id of the one that leads, how many readings they stand for, their span first..last (ns)."""

    node_id: int
    count: int
    first: int
    last: int


def fold(view: View, rows: RowFilter, text_id: int, most: int) -> list[Fold]:
    """Return the passing rows of one text as folds led by their newest row, the newest first.

    Rows of two layers or maps are never one, nor are two entities. The work is that of looking at each row once a fold.

    Args:
        most: folds of observations and the like, and of entities.
    """
    slots = view.slots_of_texts(np.array([text_id], dtype=np.int64))
    slots = slots[view.passes(rows, slots)]
    ids, last = view.columns["id"], view.columns["last_stamp"]
    is_thing = view.columns["kind"][slots] == Kind.ENTITY
    things, others = slots[is_thing], slots[~is_thing]
    newest = things[np.lexsort((ids[things], last[things]))[::-1][:most]]
    folds = [_told(view, slot, newest[[at]]) for at, slot in enumerate(newest)]
    folds += _folds(view, others, -last[others], most)
    return sorted(folds, key=lambda one: (-one.last, -one.node_id))


def fold_newest(view: View, rows: RowFilter, groups: Sequence[Sequence[int]], most: int) -> list[list[Fold]]:
    """Return of each group of rows those that pass as at most `most` folds led by their newest row, the newest first.

    The work is that of looking at each row once a fold, all groups together.
    """
    slots = view.slots(np.array([id_ for group in groups for id_ in group], dtype=np.int64))
    passing = (slots >= 0) & view.passes(rows, slots)
    slots, of = slots[passing], np.repeat(np.arange(len(groups)), [len(group) for group in groups])[passing]
    columns = view.columns
    order = np.lexsort((-columns["id"][slots], -columns["last_stamp"][slots], of))
    slots, of = slots[order], of[order]
    folds: list[list[Fold]] = [[] for _ in groups]
    for _ in range(most):
        if not len(slots):
            break
        first_of_group = np.concatenate([[True], of[1:] != of[:-1]])
        leads = slots[first_of_group]
        alike = _alike(view, slots, leads[np.cumsum(first_of_group) - 1])
        same = slots[alike]
        begins = np.flatnonzero(first_of_group[alike])  # of as many groups: each lead is like itself
        ids, last = columns["id"][leads].tolist(), columns["last_stamp"][leads].tolist()
        counts = np.add.reduceat(columns["repeats"][same], begins, dtype=np.int64).tolist()
        first = np.minimum.reduceat(columns["stamp"][same], begins).tolist()
        for group, *parts in zip(of[alike][begins].tolist(), ids, counts, first, last, strict=True):
            folds[group].append(Fold(*parts))
        slots, of = slots[~alike], of[~alike]
    return folds


def fold_nearest(view: View, rows: RowFilter, ids: Sequence[int], moment: int, most: int) -> list[Fold]:
    """Return those of some rows that pass as at most `most` folds led by the row nearest to a moment (ns).

    Layers take turns, each with what is nearest in time first, so that a layer of many rows a second leaves room.
    """
    slots = _passing(view, rows, ids)
    columns = view.columns
    apart = np.maximum(np.maximum(columns["stamp"][slots] - moment, moment - columns["last_stamp"][slots]), 0)
    layers = columns["layer"][slots]
    nearest = layers[np.argsort(apart, kind="stable")]
    turns = [_folds(view, slots[of], apart[of], most) for of in (layers == layer for layer in dict.fromkeys(nearest))]
    return list(islice((one for turn in zip_longest(*turns) for one in turn if one is not None), most))


def _passing(view: View, rows: RowFilter, ids: Sequence[int]) -> Slots:
    slots = view.slots(np.array(ids, dtype=np.int64))
    slots = slots[slots >= 0]
    return slots[view.passes(rows, slots)]


def _folds(view: View, slots: Slots, order: NDArray[np.int64], most: int) -> list[Fold]:
    """At most `most` folds of rows, led by their first by order (ns); of equals by the newest id."""
    columns = view.columns
    ids, x, order = columns["id"][slots], columns["x"][slots], order.copy()
    x[np.isnan(x)] = _UNKNOWN
    folds: list[Fold] = []
    while len(slots) and len(folds) < most:
        equal = np.flatnonzero(order == order.min())
        lead = equal[ids[equal].argmax()] if len(equal) > 1 else equal[0]
        if order[lead] == _DONE:
            break
        # By one axis first: few of many rows are left to be looked at in full.
        close = np.flatnonzero(np.abs(x - x[lead]) <= SAME_PLACE)
        close = close[order[close] != _DONE]
        same = close[_alike(view, slots[close], slots[lead])] if len(close) > 1 else close
        folds.append(_told(view, slots[lead], slots[same]))
        order[same] = _DONE
    return folds


def _alike(view: View, slots: Slots, leads: Slots | np.int64) -> NDArray[np.bool_]:
    """Whether rows say what others say, one or as many, in the same layer and map, within SAME_PLACE.

    All unknown places are one.
    """
    columns = view.columns
    near = sum((columns[name][slots] - columns[name][leads]) ** 2 for name in "xyz") <= SAME_PLACE**2
    alike: NDArray[np.bool_] = near | np.isnan(columns["x"][slots]) & np.isnan(columns["x"][leads])
    for name in ("text", "layer", "map"):
        alike &= columns[name][slots] == columns[name][leads]
    return alike


def _told(view: View, lead: np.int64, slots: Slots) -> Fold:
    columns = view.columns
    if len(slots) == 1:
        return Fold(*(int(columns[name][lead]) for name in ("id", "repeats", "stamp", "last_stamp")))
    span = int(columns["stamp"][slots].min()), int(columns["last_stamp"][slots].max())
    return Fold(int(columns["id"][lead]), int(columns["repeats"][slots].sum()), *span)
