"""What many rows say, each text once: the first by nearness or by time, counted over all of them by columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import Kind
from memory_node.index.view import RowFilter, Slots, View


@dataclass(frozen=True)
class Said:
    """Rows of one layer that have one text.

    Attributes:
        node_id: the row that comes first.
        count: how many readings they stand for. first, last: their span (ns).
        distance: m to the first, None where no place was asked for.
    """

    node_id: int
    count: int
    first: int
    last: int
    distance: float | None = None


@dataclass(frozen=True)
class Digest:
    """The first texts, and how many more texts there are.

    Attributes:
        things: ids of the first things (entities) beside them, the nearest first. more_things: how many more there are.
    """

    said: tuple[Said, ...]
    more: int
    things: tuple[int, ...] = ()
    more_things: int = 0


def lately(view: View, rows: RowFilter, most: int) -> Digest:
    """Return what the passing rows say, the newest first, at most `most` texts."""
    slots = view.select(rows)
    return _digest(view, slots, -view.columns["last_stamp"][slots], most)


def near(view: View, rows: RowFilter, center: tuple[float, ...], radius: float, most: int) -> Digest:
    """Return what the passing rows within a circle (m) say, the nearest first, at most `most` texts and `most` things.

    Rows whose text is the name of one of the things there are left out.
    """
    kinds = (*rows.kinds, int(Kind.ENTITY))
    slots = view.select(replace(rows, kinds=kinds, center=center, radius=radius))
    distances = view.distances(center, slots)
    texts, ids = view.columns["text"], view.columns["id"]
    is_thing = view.columns["kind"][slots] == Kind.ENTITY
    things = slots[is_thing]
    first = np.lexsort((ids[things], distances[is_thing]))[:most]
    others = ~is_thing
    if len(things):
        is_name = np.zeros(int(texts[slots].max()) + 1, dtype=bool)
        is_name[texts[things]] = True
        others &= ~is_name[texts[slots]]
    found = _digest(view, slots[others], distances[others], most)
    return replace(found, things=tuple(ids[things[first]].tolist()), more_things=len(things) - len(first))


def _digest(view: View, slots: Slots, order: NDArray[np.int64] | NDArray[np.float64], most: int) -> Digest:
    """The first texts by order, which is a distance (m) or a time (ns); of equals the newest id leads."""
    columns = view.columns
    newest_first = np.argsort(-columns["id"][slots], kind="stable")
    slots, order = slots[newest_first], order[newest_first]
    keys = columns["text"][slots].astype(np.int64) << 16 | columns["layer"][slots]
    by_place = order.dtype.kind == "f"
    never = np.inf if by_place else np.iinfo(np.int64).max
    texts = int(np.count_nonzero(np.diff(np.sort(keys)))) + bool(len(keys))  # a third of the time of np.unique
    leads: list[np.intp] = []
    distances: list[float | None] = []
    groups: list[Slots] = []
    for _ in range(min(most, texts)):
        lead = order.argmin()
        leads.append(lead)
        distances.append(float(order[lead]) if by_place else None)
        same = (keys == keys[lead]).nonzero()[0]
        order[same] = never
        groups.append(slots[same])
    return Digest(_said(view, slots[leads], distances, groups), texts - len(leads))


def _said(view: View, leads: Slots, distances: Sequence[float | None], groups: Sequence[Slots]) -> tuple[Said, ...]:
    """Each group of rows as one, told by the row that leads it."""
    if not groups:
        return ()
    rows = np.concatenate(groups)
    starts = np.cumsum([0, *map(len, groups[:-1])])
    columns = view.columns
    ids = columns["id"][leads].tolist()
    counts = np.add.reduceat(columns["repeats"][rows], starts, dtype=np.int64).tolist()
    begins = np.minimum.reduceat(columns["stamp"][rows], starts).tolist()
    ends = np.maximum.reduceat(columns["last_stamp"][rows], starts).tolist()
    return tuple(Said(*one) for one in zip(ids, counts, begins, ends, distances, strict=True))
