"""The nodes behind distinct texts: those that pass a filter, the newest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_node.index.view import RowFilter, View

NEWEST = 16
"""Nodes that a group names; it counts all of them."""


class Group(NamedTuple):
    """Nodes of one text: the newest NEWEST by last_stamp, the number of all, and the kind of the newest."""

    node_ids: tuple[int, ...]
    total: int
    kind: int


def group(view: View, rows: RowFilter, texts: NDArray[np.int64]) -> dict[int, Group]:
    """Return the passing nodes of each of texts (distinct ids); texts without any are left out."""
    slots = view.slots_of_texts(texts)
    slots = slots[view.passes(rows, slots)]
    owners = view.columns["text"][slots]
    order = np.argsort(owners, kind="stable")
    slots, owners = slots[order], owners[order]
    is_first = np.ones(len(owners), dtype=bool)
    is_first[1:] = owners[1:] != owners[:-1]
    starts = np.flatnonzero(is_first).tolist()
    ids, kinds = view.columns["id"][slots], view.columns["kind"][slots]
    if len(starts) == len(owners):  # as where each row says something else
        alone = zip(owners.tolist(), ids.tolist(), kinds.tolist(), strict=True)
        return {text: Group((id_,), 1, kind) for text, id_, kind in alone}
    firsts = zip(owners[starts].tolist(), starts, [*starts[1:], len(owners)], strict=False)
    singles = zip(ids[starts].tolist(), kinds[starts].tolist(), strict=True)
    groups = {}
    for (text, start, end), (id_, kind) in zip(firsts, singles, strict=True):
        if end - start == 1:
            groups[text] = Group((id_,), 1, kind)
        else:
            newest = _newest(ids[start:end], view.columns["last_stamp"][slots[start:end]])
            groups[text] = Group(tuple(ids[start:end][newest].tolist()), end - start, int(kinds[start + newest[0]]))
    return groups


def _newest(ids: NDArray[np.int64], stamps: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the newest are, the newest first; of equals the largest id."""
    among = np.arange(len(ids))
    if len(ids) > 4 * NEWEST:
        # All of the newest stamps, however many share the last of them, so that the id decides among equals.
        among = np.flatnonzero(stamps >= np.partition(stamps, len(stamps) - NEWEST)[len(stamps) - NEWEST])
    return among[np.lexsort((ids[among], stamps[among]))[::-1][:NEWEST]]
