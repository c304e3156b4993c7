"""Rows in the order of time, in bounded work: from the end that is asked for, until enough of them pass."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from memory_node.index.view import RowFilter, Slots, View

_BLOCK = 1024
_MOST = 0.9  # share of the rows within the bound from which walking over the others costs less than sorting all


def in_time(view: View, rows: RowFilter, newest_first: bool, k: int) -> Slots:
    """Return slots of the first k rows that pass: by last_stamp and id downwards, or by stamp and id upwards."""
    slots = view.select(rows) if _is_far(view, rows, newest_first) else _walk(view, rows, newest_first, k)
    stamps = view.columns["last_stamp" if newest_first else "stamp"][slots]
    ids = view.columns["id"][slots]
    order = np.lexsort((ids, stamps))
    return slots[order[::-1] if newest_first else order][:k]


def _is_far(view: View, rows: RowFilter, newest_first: bool) -> bool:
    """Whether a bound at the end that is asked for keeps a good part of the base from passing."""
    base = view.base
    if newest_first:
        stamps = view.columns["stamp"]
        begun = base.count if rows.before is None else bisect_right(base.by_start, rows.before, key=stamps.__getitem__)
        return begun < _MOST * base.count
    ends = view.columns["last_stamp"]
    over = 0 if rows.after is None else bisect_left(base.by_end, rows.after, key=ends.__getitem__)
    return over > (1.0 - _MOST) * base.count


def _walk(view: View, rows: RowFilter, newest_first: bool, k: int) -> Slots:
    """Passing rows of the tail, and of the base from the wanted end until k passed and no equal stamp is left out."""
    base = view.base
    if newest_first:
        order = base.by_end if rows.after is None else view.ended_since(rows.after)[: -len(view.tail) or None]
        order = order[::-1]
    else:
        order = base.by_start if rows.before is None else view.begun_until(rows.before)[: -len(view.tail) or None]
    stamps = view.columns["last_stamp" if newest_first else "stamp"]
    found = [view.tail[view.passes(rows, view.tail)]]
    count, start, size = 0, 0, _BLOCK
    while start < len(order) and count < k:
        end = min(start + size, len(order))
        last = stamps[order[end - 1]]
        while end < len(order) and stamps[order[end]] == last:
            end += 1
        block = order[start:end].astype(np.int64)
        found.append(block[view.passes(rows, block)])
        count += len(found[-1])
        start, size = end, size * 4
    return np.concatenate(found)
