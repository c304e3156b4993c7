"""The vectors themselves, quantised, in one matrix that readers look at without a lock."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory_node.index import exact
from memory_node.index.columns import Columns, room

Slots = NDArray[np.int64]


@dataclass(frozen=True)
class VectorView:
    """Vectors [0, count) as of one version; slots hold for this view only.

    Attributes:
        columns: `matrix` (int16, D a row), `scale`, `id`, `text` and `node` (0: none); `later`: the next slot of a part
            of the same text, -1 for none.
        slot_of: slot by vector id, int32, -1 for none; grown in place by the writer.
        first_of: the first slot by text id, the same.
        indexed: slots below it are in the graph, or dead.
        numbering: changes whenever slots are renumbered.
    """

    columns: Columns
    count: int
    version: int
    slot_of: NDArray[np.int32]
    first_of: NDArray[np.int32]
    indexed: int = 0
    numbering: int = 0

    @cached_property
    def alive(self) -> NDArray[np.bool_]:
        """Whether each slot is not removed; not to be changed."""
        return self.columns["died"][: self.count] > self.version

    def slots(self, ids: NDArray[np.int64]) -> Slots:
        """Slots of vector ids, -1 where there is none."""
        inside = (ids >= 0) & (ids < len(self.slot_of))
        found = np.where(inside, self.slot_of[np.where(inside, ids, 0)], -1).astype(np.int64)
        found[found >= self.count] = -1
        known = found >= 0
        found[known] = np.where(self.columns["died"][found[known]] > self.version, found[known], -1)
        return found

    @cached_property
    def living(self) -> int:
        """How many are not removed."""
        return int(np.count_nonzero(self.alive))

    @cached_property
    def in_graph(self) -> int:
        """How many of the living are in the graph."""
        return int(np.count_nonzero(self.alive[: self.indexed]))

    def of_texts(self, texts: NDArray[np.int64]) -> Slots:
        """Slots of the vectors of texts (ids, none twice), ascending."""
        found = []
        slots = self.first_of[texts[texts < len(self.first_of)]]
        while len(slots):
            # What a newer view has besides comes last; and -1 is beyond it when it has no sign.
            slots = slots[slots.view(np.uint32) < self.count]
            found.append(slots)
            slots = self.columns["later"][slots]
        every = np.sort(np.concatenate(found)).astype(np.int64) if found else np.empty(0, dtype=np.int64)
        return every[self.columns["died"][every] > self.version]

    @cached_property
    def of_nodes(self) -> Slots:
        """Slots of the vectors of nodes, dead ones among them."""
        return np.flatnonzero(self.columns["node"][: self.count])

    def scores(self, query: NDArray[np.float32], slots: Slots) -> NDArray[np.float32]:
        """Inner products of the vectors in slots with a query (D,)."""
        return exact.scores(self.columns["matrix"].take(slots, axis=0), self.columns["scale"][slots], query)

    def scan(self, query: NDArray[np.float32], start: int = 0) -> NDArray[np.float32]:
        """Inner products of the vectors [start, count) with a query (D,), or with (Q, D) as columns; dead ones too."""
        return exact.scores(
            self.columns["matrix"][start : self.count], self.columns["scale"][start : self.count], query
        )

    def vectors(self, slots: Slots) -> NDArray[np.float32]:
        """The vectors in slots, float32 (N, D), to within quantisation."""
        return exact.restore(self.columns["matrix"][slots], self.columns["scale"][slots])


class VectorTable:
    """Unit vectors of dim dimensions by id; one writer at a time, any number of readers. Vectors never change."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self._lock = threading.Lock()
        self._view = VectorView(Columns.empty(self._layout(), 0), 0, 0, _none(1), _none(1))

    @property
    def view(self) -> VectorView:
        """What is stored as of now; never changes."""
        return self._view

    def apply(
        self,
        ids: NDArray[np.int64],
        texts: ArrayLike,
        nodes: ArrayLike,
        vectors: NDArray[np.float32],
        removed: ArrayLike = (),
        complete: bool = False,
    ) -> None:
        """Add vectors and remove others, in one step for every reader.

        Args:
            ids: new and positive, (N,).
            texts, nodes: whose vector it is, (N,); 0: the other's.
            vectors: (N, D), normalised here.
            removed: ids that go; unknown ones are ignored.
            complete: these are all there are; every other goes.
        """
        matrix, scale = exact.quantise(exact.normalise(vectors))
        count = len(ids)
        with self._lock:
            view = self._empty(self._view) if complete else self._view
            gone = view.slots(np.asarray(removed, dtype=np.int64))
            view.columns["died"][gone[gone >= 0]] = view.version + 1
            columns = view.columns.with_room(view.count, view.count + count)
            columns.put(
                view.count, {"matrix": matrix, "scale": scale, "id": ids, "text": texts, "node": nodes}, count
            )
            slot_of = _with_room(view.slot_of, int(ids.max(initial=0)) + 1)
            slot_of[ids] = np.arange(view.count, view.count + count)
            first_of = _with_room(view.first_of, int(np.max(texts, initial=0)) + 1)
            _link(columns, first_of, view.count, count)
            total, version = view.count + count, view.version + 1
            self._view = replace(
                view, columns=columns, count=total, version=version, slot_of=slot_of, first_of=first_of
            )
            if total - self._view.living > 1024 + total // 4:
                self._compact(self._view.alive)

    def set_indexed(self, ids: NDArray[np.int64]) -> None:
        """Say which vectors are in the graph: they are moved to the front."""
        with self._lock:
            view = self._view
            inside = np.isin(view.columns["id"][: view.count], ids)
            self._compact(view.alive, np.argsort(~inside, kind="stable"))
            self._view = replace(self._view, indexed=int((inside & view.alive).sum()))

    def advance(self, before: VectorView, indexed: int) -> bool:
        """Say that slots below indexed of view `before` are in the graph; False when slots were renumbered since."""
        with self._lock:
            view = self._view
            if view.numbering != before.numbering:
                return False
            self._view = replace(view, indexed=indexed)
            return True

    def _compact(self, alive: NDArray[np.bool_], order: Slots | None = None) -> None:
        view = self._view
        order = np.arange(view.count) if order is None else order
        live = order[alive[order]]
        columns = view.columns.take(live)
        slot_of, first_of = _none(len(view.slot_of)), _none(len(view.first_of))
        slot_of[columns["id"][: len(live)]] = np.arange(len(live))
        _link(columns, first_of, 0, len(live))
        indexed = int(alive[: view.indexed].sum())
        self._view = VectorView(columns, len(live), view.version, slot_of, first_of, indexed, view.numbering + 1)

    def _empty(self, before: VectorView) -> VectorView:
        nothing = Columns.empty(self._layout(), 0)
        return VectorView(nothing, 0, before.version, _none(1), _none(1), 0, before.numbering + 1)

    def _layout(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        return {
            "matrix": ("i2", (self.dim,)), "scale": ("f4", ()), "id": ("i8", ()), "text": ("u4", ()),
            "node": ("i8", ()), "later": ("i4", ()), "died": ("i4", ()),
        }  # fmt: skip


def _link(columns: Columns, first_of: NDArray[np.int32], start: int, count: int) -> None:
    """Chain the vectors in slots from start on to those of the same texts before them."""
    later = columns["later"]
    later[start : start + count] = -1
    texts = columns["text"][start : start + count]
    order = np.argsort(texts, kind="stable")
    order = order[texts[order] > 0]
    slots, owners = start + order, texts[order]
    same = owners[1:] == owners[:-1]
    later[slots[:-1][same]] = slots[1:][same]
    begins = np.flatnonzero(np.diff(owners, prepend=0))
    slots, owners = slots[begins], owners[begins]
    known = first_of[owners]
    new = known < 0
    first_of[owners[new]] = slots[new]
    for end, slot in zip(known[~new].tolist(), slots[~new].tolist(), strict=True):
        while later[end] >= 0:
            end = later[end]
        later[end] = slot


def _none(count: int) -> NDArray[np.int32]:
    slots = room((count,), np.int32)
    slots.fill(-1)
    return slots


def _with_room(slots: NDArray[np.int32], wanted: int) -> NDArray[np.int32]:
    if wanted <= len(slots):
        return slots
    grown = _none(max(wanted, len(slots) * 3 // 2, 1024))
    grown[: len(slots)] = slots
    return grown
