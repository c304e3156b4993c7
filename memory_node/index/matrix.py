"""The vectors themselves, quantised, in one matrix that readers look at without a lock."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory_node.index import exact
from memory_node.index.columns import Columns

Slots = NDArray[np.int64]


@dataclass(frozen=True)
class VectorView:
    """Vectors [0, count) as of one version; slots hold for this view only.

    Attributes:
        columns: `matrix` (int16, D a row), `scale`, `id`, `text` and `node` (0: none).
        slot_of: slot by vector id, int32, -1 for none; grown in place by the writer.
        indexed: slots below it are in the graph, or dead.
        numbering: changes whenever slots are renumbered.
    """

    columns: Columns
    count: int
    version: int
    slot_of: NDArray[np.int32]
    indexed: int = 0
    numbering: int = 0

    def alive(self) -> NDArray[np.bool_]:
        """Whether each slot is not removed."""
        return self.columns["died"][: self.count] > self.version

    def slots(self, ids: NDArray[np.int64]) -> Slots:
        """Slots of vector ids, -1 where there is none."""
        inside = (ids >= 0) & (ids < len(self.slot_of))
        found = np.where(inside, self.slot_of[np.where(inside, ids, 0)], -1).astype(np.int64)
        found[found >= self.count] = -1
        known = found >= 0
        found[known] = np.where(self.columns["died"][found[known]] > self.version, found[known], -1)
        return found

    def of_texts(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the text of each slot, dead ones among them, is flagged, by text id; beyond the flags none is."""
        owners = self.columns["text"][: self.count]
        among = np.zeros(max(len(flags), int(owners.max(initial=0)) + 1), dtype=bool)
        among[: len(flags)] = flags
        found: NDArray[np.bool_] = among[owners]
        return found

    def scores(self, query: NDArray[np.float32], slots: Slots) -> NDArray[np.float32]:
        """Inner products of the vectors in slots with a query (D,)."""
        return exact.scores(self.columns["matrix"][slots], self.columns["scale"][slots], query)

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
        nothing = Columns.empty(self._layout(), 0)
        self._view = VectorView(nothing, 0, 0, np.full(1, -1, dtype=np.int32))

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
            total, version = view.count + count, view.version + 1
            self._view = replace(view, columns=columns, count=total, version=version, slot_of=slot_of)
            alive = self._view.alive()
            if total - int(alive.sum()) > 1024 + total // 4:
                self._compact(alive)

    def set_indexed(self, ids: NDArray[np.int64]) -> None:
        """Say which vectors are in the graph: they are moved to the front."""
        with self._lock:
            view = self._view
            inside = np.isin(view.columns["id"][: view.count], ids)
            self._compact(view.alive(), np.argsort(~inside, kind="stable"))
            self._view = replace(self._view, indexed=int((inside & view.alive()).sum()))

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
        slot_of = np.full(len(view.slot_of), -1, dtype=np.int32)
        slot_of[columns["id"]] = np.arange(len(live))
        indexed = int(alive[: view.indexed].sum())
        self._view = VectorView(columns, len(live), view.version, slot_of, indexed, view.numbering + 1)

    def _empty(self, before: VectorView) -> VectorView:
        nothing = Columns.empty(self._layout(), 0)
        return VectorView(nothing, 0, before.version, np.full(1, -1, dtype=np.int32), 0, before.numbering + 1)

    def _layout(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        return {
            "matrix": ("i2", (self.dim,)), "scale": ("f4", ()), "id": ("i8", ()), "text": ("u4", ()),
            "node": ("i8", ()), "died": ("i4", ()),
        }  # fmt: skip


def _with_room(slot_of: NDArray[np.int32], wanted: int) -> NDArray[np.int32]:
    if wanted <= len(slot_of):
        return slot_of
    grown = np.full(max(wanted, len(slot_of) * 3 // 2, 1024), -1, dtype=np.int32)
    grown[: len(slot_of)] = slot_of
    return grown
