"""Rows that say the same at the same place are one answer, with a count and a span of time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import Kind
from memory_node.index.view import RowFilter, Slots, View

SAME_PLACE = 0.5
"""m: rows of one text nearer to each other than this, or all without a place, are told as one."""

_DONE = np.iinfo(np.int64).max
_UNKNOWN = -1e12  # a coordinate (m) that nothing has


class Fold(NamedTuple):
    """Rows told as one: the id of the one that leads, how many readings they stand for, their span first..last (ns)."""

    node_id: int
    repeats: int
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
    places, said = _told_apart(view, slots)
    folds: list[list[Fold]] = [[] for _ in groups]
    for _ in range(most):
        if not len(slots):
            break
        first_of_group = np.concatenate([[True], of[1:] != of[:-1]])
        firsts = np.flatnonzero(first_of_group)
        alike = _alike(places, said, firsts[np.cumsum(first_of_group) - 1])
        leads, same = slots[firsts], slots[alike]
        begins = np.flatnonzero(first_of_group[alike])  # of as many groups: each lead is like itself
        ids, last = columns["id"][leads].tolist(), columns["last_stamp"][leads].tolist()
        counts = np.add.reduceat(columns["repeats"][same], begins, dtype=np.int64).tolist()
        first = np.minimum.reduceat(columns["stamp"][same], begins).tolist()
        for group, *parts in zip(of[alike][begins].tolist(), ids, counts, first, last, strict=True):
            folds[group].append(Fold(*parts))
        left = ~alike
        slots, of, places, said = slots[left], of[left], places[:, left], said[:, left]
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
        same = close
        if len(close) > 1:
            same = close[_alike(*_told_apart(view, slots[close]), np.searchsorted(close, [lead]))]
        folds.append(_told(view, slots[lead], slots[same]))
        order[same] = _DONE
    return folds


def _told_apart(view: View, slots: Slots) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Places of rows, (3, N) m, all unknown ones far away in one; and the numbers of text, layer and map, (3, N)."""
    columns = view.columns
    places = np.array([columns[name][slots] for name in "xyz"])
    places[np.isnan(places)] = _UNKNOWN
    return places, np.array([columns[name][slots] for name in ("text", "layer", "map")], dtype=np.int64)


def _alike(places: NDArray[np.float64], said: NDArray[np.int64], leads: Slots) -> NDArray[np.bool_]:
    """Whether rows say what others say, one or as many, in the same layer and map, within SAME_PLACE.

    Args:
        places, said: of the rows, see `_told_apart`. leads: which of the rows the others are.
    """
    near = ((places - places[:, leads]) ** 2).sum(axis=0) <= SAME_PLACE**2
    return np.asarray(near & (said == said[:, leads]).all(axis=0))


def _told(view: View, lead: np.int64, slots: Slots) -> Fold:
    columns = view.columns
    if len(slots) == 1:
        return Fold(*(int(columns[name][lead]) for name in ("id", "repeats", "stamp", "last_stamp")))
    span = int(columns["stamp"][slots].min()), int(columns["last_stamp"][slots].max())
    return Fold(int(columns["id"][lead]), int(columns["repeats"][slots].sum()), *span)
