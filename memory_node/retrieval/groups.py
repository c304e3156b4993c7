"""The nodes behind distinct texts: those that pass a filter, the newest first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory_node.index.view import RowFilter, View

NEWEST = 16
"""Nodes that a group names; it counts all of them."""


@dataclass(frozen=True)
class Group:
    """Nodes of one text: the newest NEWEST by last_stamp, and the number of all."""

    node_ids: tuple[int, ...]
    total: int


def group(view: View, rows: RowFilter, texts: NDArray[np.int64]) -> dict[int, Group]:
    """Return the passing nodes of each of texts (distinct ids); texts without any are left out."""
    slots = view.slots_of_texts(texts)
    slots = slots[view.passes(rows, slots)]
    owners = view.columns["text"][slots]
    if not len(owners):
        return {}
    order = np.argsort(owners, kind="stable")
    slots, owners = slots[order], owners[order]
    starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]])
    ends = np.append(starts[1:], len(owners))
    ids, stamps = view.columns["id"][slots], view.columns["last_stamp"][slots]
    groups = {}
    for text, start, end in zip(owners[starts].tolist(), starts.tolist(), ends.tolist(), strict=True):
        if end - start == 1:
            groups[text] = Group((int(ids[start]),), 1)
        else:
            newest = _newest(ids[start:end], stamps[start:end])
            groups[text] = Group(tuple(newest.tolist()), end - start)
    return groups


def _newest(ids: NDArray[np.int64], stamps: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(ids) > 4 * NEWEST:
        # All of the newest stamps, however many share the last of them, so that the id decides among equals.
        least = np.partition(stamps, len(stamps) - NEWEST)[len(stamps) - NEWEST]
        ids, stamps = ids[stamps >= least], stamps[stamps >= least]
    return ids[np.lexsort((ids, stamps))[::-1][:NEWEST]]
