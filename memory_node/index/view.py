"""One unchanging state of the row table, and what can be asked of it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memory_node.graph import Kind
from memory_node.index.columns import Columns
from memory_node.index.places import PlaceIndex

Slots = NDArray[np.int64]
Mask = NDArray[np.bool_]

WHOLE = 4096  # tables up to this are looked at as a whole, whatever the filter
SAMPLE = 1024  # rows from which a share is estimated
RARE_KIND = 1 / 4  # share of rows of one kind, below which its slots are kept
TREE_SHARE = 0.015  # above this share of rows in a circle the tree's answer costs more than looking at every row


@dataclass(frozen=True)
class RowFilter:
    """Predicates over columns; a row passes when it meets all. The default passes every perception row of every map.

    Attributes:
        kinds: Kind values; empty: any.
        layers: layer ids, or None for any. An empty tuple passes nothing.
        after, before: ns; a row passes when [stamp, last_stamp] meets [after, before], both ends included.
        center: (x, y) for a circle of any height or (x, y, z) for a sphere; with radius (m).
        episodes: episode ids, or None for any.
        map_id: or None for any.
        internal: whether rows of interoception pass too.
    """

    kinds: tuple[int, ...] = ()
    layers: tuple[int, ...] | None = None
    after: int | None = None
    before: int | None = None
    center: tuple[float, ...] | None = None
    radius: float | None = None
    episodes: tuple[int, ...] | None = None
    min_confidence: float = 0.0
    map_id: int | None = None
    internal: bool = False


@dataclass(frozen=True)
class Base:
    """Orders over the first count rows of a table, which are sorted by id.

    Attributes:
        by_text, by_start, by_end: slots ordered by text, stamp and last_stamp, int32 (count,).
        starts: where a text's rows begin in by_text, by text id, int32 (largest text id + 2,).
        rare: slots of each kind that few rows are of, or none, by Kind value.
        places: R-tree of the slots.
    """

    count: int
    by_text: NDArray[np.int32]
    starts: NDArray[np.int32]
    by_start: NDArray[np.int32]
    by_end: NDArray[np.int32]
    rare: Mapping[int, NDArray[np.int32]]
    places: PlaceIndex

    @classmethod
    def build(cls, columns: Columns, count: int) -> Base:
        """Sort the first count rows of columns, whose ids ascend."""

        def order(name: str) -> NDArray[np.int32]:
            return np.argsort(columns[name][:count], kind="stable").astype(np.int32)

        texts = columns["text"][:count]
        starts = np.zeros(int(texts.max(initial=0)) + 2, dtype=np.int32)
        np.cumsum(np.bincount(texts, minlength=len(starts) - 1), out=starts[1:])
        kinds = columns["kind"][:count]
        numbers = np.bincount(kinds, minlength=len(Kind) + 1).tolist()
        few = [kind for kind, number in enumerate(numbers) if number <= count * RARE_KIND]
        rare = {kind: np.flatnonzero(kinds == kind).astype(np.int32) for kind in few}
        places = PlaceIndex(np.arange(count), columns["x"][:count], columns["y"][:count])
        return cls(count, order("text"), starts, order("stamp"), order("last_stamp"), rare, places)

    @classmethod
    def empty(cls) -> Base:
        """The base of a table that was never settled."""
        none = np.empty(0, dtype=np.int32)
        nowhere = np.empty(0, dtype=np.float64)
        places = PlaceIndex(np.empty(0, dtype=np.int64), nowhere, nowhere)
        return cls(0, none, np.zeros(2, dtype=np.int32), none, none, {}, places)

    def nbytes(self) -> int:
        """Bytes of the orders."""
        arrays = (self.by_text, self.starts, self.by_start, self.by_end, *self.rare.values())
        return sum(array.nbytes for array in arrays)


class View:
    """Rows [0, count) of a table as of one version. Slots number rows and hold for this view only.

    Attributes:
        columns: `columns["stamp"][slots]` and so on.
    """

    def __init__(self, columns: Columns, count: int, version: int, base: Base) -> None:
        self.columns = columns
        self.count = count
        self.version = version
        self.base = base
        self._last_share: tuple[RowFilter | None, float] = None, 0.0

    def alive(self) -> Slots:
        """Slots of all rows that are not removed."""
        return np.flatnonzero(self.columns["died"][: self.count] > self.version)

    def slots(self, ids: NDArray[np.int64]) -> Slots:
        """Slots of ids, int64 (N,); -1 where there is no such row."""
        found = np.full(len(ids), -1, dtype=np.int64)
        if self.base.count and len(ids):
            known = self.columns["id"][: self.base.count]
            at = np.minimum(np.searchsorted(known, ids), self.base.count - 1)
            found = np.where(known[at] == ids, at, -1)
        order, known = self._tail_ids
        if len(known) and len(ids):
            at = np.searchsorted(known, ids, side="right") - 1
            hit = (at >= 0) & (known[at] == ids)
            found = np.where(hit, order[at], found)
        return np.where((found >= 0) & (self.columns["died"][found] > self.version), found, -1) if self.count else found

    def slots_of_texts(self, texts: NDArray[np.int64]) -> Slots:
        """Slots of all rows that have one of the texts (ids, none twice), in no order; dead ones among them."""
        inside = texts[texts < len(self.base.starts) - 1]
        first, end = self.base.starts[inside], self.base.starts[inside + 1]
        lengths = end - first
        ends = np.cumsum(lengths)
        at = np.repeat(end - ends, lengths)
        based = self.base.by_text[at + np.arange(len(at))].astype(np.int64)
        if self.count == self.base.count:
            return based
        tail = self.columns["text"][self.base.count : self.count]
        flags = np.zeros(max(int(texts.max(initial=0)), int(tail.max(initial=0))) + 1, dtype=bool)
        flags[texts] = True
        return np.concatenate([based, self.base.count + np.flatnonzero(flags[tail])])

    def passes(self, rows: RowFilter, slots: Slots) -> Mask:
        """Whether each of slots passes."""
        return self._dear(rows, slots, self._cheap(rows, slots))

    def select(self, rows: RowFilter) -> Slots:
        """Slots of all rows that pass, found from what promises the least work: kind, place, time or the table."""
        narrow = self._narrow(rows)
        if narrow is not None:
            return narrow[self.passes(rows, narrow)]
        slots = np.flatnonzero(self._cheap(rows, slice(0, self.count)))
        return slots[self._dear(rows, slots, np.ones(len(slots), dtype=bool))]

    def within(self, rows: RowFilter, center: tuple[float, ...], radius: float) -> tuple[Slots, NDArray[np.float64]]:
        """Slots of all rows that pass and lie within radius (m) of center, (x, y), and their distances (m)."""
        if self.count <= WHOLE or self.share_within(center, radius) >= TREE_SHARE:
            slots = self.select(rows)
            distances = self.distances(center, slots)
            inside = distances <= radius
        else:
            based, apart = self.base.places.circle(center[0], center[1], radius)
            slots = np.concatenate([based, self.tail])
            distances = np.concatenate([apart, self.distances(center, self.tail)])
            inside = self.passes(rows, slots) & (distances <= radius)
        return slots[inside], distances[inside]

    def share(self, rows: RowFilter) -> float:
        """Share of rows that pass, exact for small tables, else estimated from a sample."""
        asked, share = self._last_share
        if asked != rows:
            some = slice(0, self.count, max(1, self.count // SAMPLE))
            passes = self._dear(rows, some, self._cheap(rows, some))
            share = np.count_nonzero(passes) / len(passes) if self.count else 0.0
            self._last_share = rows, share  # one query asks several times
        return share

    def share_within(self, center: tuple[float, ...], radius: float) -> float:
        """Share of the base within radius (m) of center on the floor, estimated from a sample; passing or not."""
        return self.base.places.number_within(center[0], center[1], radius) / max(1, self.base.count)

    def around(self, center: tuple[float, ...], radius: float) -> Slots:
        """Slots of the base in a circle (m) on the floor, then the tail; dead ones among them."""
        return np.concatenate([self.base.places.circle(center[0], center[1], radius)[0], self.tail])

    def of_kinds(self, kinds: tuple[int, ...]) -> Slots | None:
        """Slots of the base that are of some kinds, then the tail; dead ones among them. None where many are of one."""
        rare = self.base.rare
        if not kinds or not all(kind in rare for kind in kinds):
            return None
        return np.concatenate([*(rare[kind] for kind in set(kinds)), self.tail])

    def ended_since(self, after: int) -> Slots:
        """Slots that ended at after (ns) or later: of the base by last_stamp, then the tail; dead ones among them."""
        ends = self.columns["last_stamp"]
        first = bisect_left(self.base.by_end, after, key=lambda slot: ends[slot])
        return np.concatenate([self.base.by_end[first:], self.tail])

    def begun_until(self, before: int) -> Slots:
        """Slots that began at before (ns) or earlier: of the base by stamp, then the tail; dead ones among them."""
        stamps = self.columns["stamp"]
        end = bisect_right(self.base.by_start, before, key=lambda slot: stamps[slot])
        return np.concatenate([self.base.by_start[:end], self.tail])

    @cached_property
    def newest(self) -> int:
        """The largest stamp (ns) of any row, dead ones among them; 0 of an empty table."""
        if not self.count:
            return 0
        stamps = self.columns["stamp"]
        ends = [stamps[self.base.count : self.count].max()] if self.count > self.base.count else []
        return int(max(ends + [stamps[slot] for slot in self.base.by_start[-1:]]))

    @cached_property
    def texts(self) -> int:
        """Number of distinct texts."""
        texts, alive = self.columns["text"][: self.count], self.columns["died"][: self.count] > self.version
        base, tail = slice(0, self.base.count), texts[self.base.count :][alive[self.base.count :]]
        left = np.diff(self.base.starts)
        if not alive[base].all():
            left = left - np.bincount(texts[base][~alive[base]], minlength=len(left))
        known = np.zeros(max(len(left), int(tail.max(initial=0)) + 1), dtype=bool)
        known[: len(left)] = left > 0
        known[tail] = True
        return int(np.count_nonzero(known[1:]))  # 0 is none

    @property
    def tail(self) -> Slots:
        """Slots that came after the base was sorted."""
        return np.arange(self.base.count, self.count)

    def distances(self, center: tuple[float, ...], slots: Slots | slice) -> NDArray[np.float64]:
        """Metres from center, (x, y) on the floor or (x, y, z) in space; NaN where the place is unknown."""
        columns = self.columns
        with np.errstate(over="ignore"):
            total: NDArray[np.float64] = (columns["x"][slots] - center[0]) ** 2 + (columns["y"][slots] - center[1]) ** 2
            if len(center) > 2:
                total += (columns["z"][slots] - center[2]) ** 2
        return np.sqrt(total)

    @cached_property
    def _tail_ids(self) -> tuple[Slots, NDArray[np.int64]]:
        """Slots of the tail ordered by id, the newest version of an id last, and their ids."""
        ids = self.columns["id"][self.base.count : self.count]
        order = np.argsort(ids, kind="stable")
        return self.base.count + order, ids[order]

    def _narrow(self, rows: RowFilter) -> Slots | None:
        """Slots among which all that pass are, or None when that is about the whole table."""
        if self.count <= WHOLE:
            return None
        found: list[Slots] = []
        if (of_kinds := self.of_kinds(rows.kinds)) is not None:
            found.append(of_kinds)
        if rows.after is not None:
            found.append(self.ended_since(rows.after))
        if rows.before is not None:
            found.append(self.begun_until(rows.before))
        center, radius = rows.center, rows.radius
        # To find out how many lie there, and then them, is for what is not few by now.
        many = all(len(slots) > WHOLE for slots in found)
        if many and center is not None and radius is not None and self.share_within(center, radius) < TREE_SHARE:
            found.append(self.around(center, radius))
        best = min(found, key=len, default=None)
        return best if best is not None and len(best) < self.count // 4 else None

    def _cheap(self, rows: RowFilter, at: Slots | slice) -> Mask:
        """Predicates over columns of one or two bytes."""
        column = self.columns
        mask: Mask = column["died"][at] > self.version
        for name, allowed in (("kind", rows.kinds or None), ("layer", rows.layers)):
            if allowed is not None:
                mask &= _among(column[name][at], allowed)
        if rows.map_id is not None:
            mask &= column["map"][at] == rows.map_id
        if not rows.internal:
            mask &= ~column["internal"][at]
        return mask

    def _dear(self, rows: RowFilter, at: Slots | slice, mask: Mask) -> Mask:
        """The other predicates, and a mask that is changed."""
        column = self.columns
        if rows.after is not None:
            mask &= column["last_stamp"][at] >= rows.after
        if rows.before is not None:
            mask &= column["stamp"][at] <= rows.before
        if rows.min_confidence > 0.0:
            mask &= column["confidence"][at] >= rows.min_confidence
        if rows.episodes is not None:
            mask &= _among(column["episode"][at], rows.episodes)
        if rows.center is not None and rows.radius is not None:
            mask &= self.distances(rows.center, at) <= rows.radius
        return mask


def _among(values: NDArray[Any], allowed: tuple[int, ...]) -> Mask:
    if len(allowed) > 4:
        return np.isin(values, allowed)
    if not allowed:
        return np.zeros(len(values), dtype=bool)
    mask: Mask = values == allowed[0]
    for value in allowed[1:]:
        mask |= values == value
    return mask
