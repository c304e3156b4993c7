"""Search by meaning: which of graph, gathered candidates or whole scan is the cheapest way that is still right."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from memory_node.index import aside, cachefile, exact
from memory_node.index.effort import SCAN, choose_ef, lost
from memory_node.index.hnsw import Graph
from memory_node.index.matrix import Slots, VectorTable, VectorView

logger = logging.getLogger(__name__)

Mask = NDArray[np.bool_]

_NONE = np.empty(0, dtype=np.int64)

EXACT_BELOW = 4096
"""Vectors up to which a scan is as quick as the graph, and never wrong: no graph is built."""

CHUNK = 8  # vectors a turn of the indexer inserts; some 2 ms, the longest that a search waits for it

LOST_MOST = 0.01  # share of vectors that the graph may lose before it is not used any more

SAME = 0.9999  # cosine; a vector comes back as it was, but for rounding

# Microseconds on 2 cores, 384 dimensions: one of HNSW's candidates, a row gathered, a row scanned in place.
GRAPH_COST, GATHER_COST, SCAN_COST = 2.0, 0.8, 0.12


@dataclass(frozen=True)
class Found:
    """Answer of a search: slots of the view searched, inner products (the best first), and how they were found.

    Attributes:
        path: "none", "gather" (products with the candidates), "scan" (with every vector) or "graph".
        compared: vectors compared, at most.
    """

    slots: Slots
    similarities: NDArray[np.float32]
    path: str
    compared: int

    def first(self, k: int) -> Found:
        """The k best of them."""
        return self if len(self.slots) <= k else replace(self, slots=self.slots[:k], similarities=self.similarities[:k])


class VectorIndex:
    """Vectors by id with a graph over most of them; those not inserted yet are searched exactly.

    `apply` is for one writer, `index_some` for one indexer thread, the rest for any number of threads.

    Args:
        dim: dimensions; 0 for a memory without a model, which never holds a vector.
        links, ef_construction, ef_search: of hnswlib; ef_search is raised where a measurement of recall asks for it.
    """

    def __init__(self, dim: int, links: int = 16, ef_construction: int = 200, ef_search: int = 50) -> None:
        self.table = VectorTable(dim)
        self.dim = dim
        self._links, self._ef_construction, self._ef_least = links, ef_construction, ef_search
        self._graph: Graph | None = None
        self._ef = SCAN  # until recall was measured
        self._measured = 0  # how many were in the graph then
        self._since = 0  # how many were inserted since
        self._lost = _NONE  # ids of those the graph does not find, searched exactly for ever
        self.unsaved = 0

    @property
    def view(self) -> VectorView:
        """The vectors as of now."""
        return self.table.view

    def __len__(self) -> int:
        return self.view.living

    @property
    def waiting(self) -> int:
        """Vectors that will be inserted into the graph and are searched exactly until then."""
        view = self.view
        late = view.living - view.in_graph
        return late if self._graph is not None or len(self) >= EXACT_BELOW else 0

    @property
    def settled(self) -> bool:
        """Whether nothing waits for the graph, and its recall was measured since it changed."""
        graph = self._graph
        return not self.waiting and (graph is None or not self._measure_due(pending=False))

    @property
    def state(self) -> dict[str, int]:
        """Figures for the status: vectors, in the graph, deleted there, candidates while searching (0: scans)."""
        graph = self._graph
        return {
            "vectors": len(self),
            "in_graph": len(graph) if graph else 0,
            "deleted": graph.deleted if graph else 0,
            "ef": self._ef,
        }

    def apply(
        self,
        ids: NDArray[np.int64],
        texts: ArrayLike,
        nodes: ArrayLike,
        vectors: NDArray[np.float32],
        removed: ArrayLike = (),
        complete: bool = False,
    ) -> None:
        """Add and remove vectors; see `VectorTable.apply`. They are found, or not, from now on."""
        if complete:
            self._forget_graph()
        self.table.apply(ids, texts, nodes, vectors, removed, complete)
        if self._graph is not None:
            self._graph.delete(np.asarray(removed, dtype=np.int64))

    def search(
        self, vector: NDArray[np.float32], k: int, allowed: Slots | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return ids and cosines of the k best vectors, the best first; fewer when there are fewer.

        Args:
            vector: (dim,), of any length but zero.
            allowed: slots of `view`, ascending, none of a dead one; None for all.
        """
        view = self.view
        found = self.find(view, vector, k, allowed)
        return view.columns["id"][found.slots], found.similarities

    def find(self, view: VectorView, vector: NDArray[np.float32], k: int, allowed: Slots | None = None) -> Found:
        """Search one view; see `search`."""
        query = exact.normalise(np.asarray(vector, dtype=np.float32))
        candidates = view.living if allowed is None else len(allowed)
        if k <= 0 or not candidates:
            return Found(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32), "none", 0)
        return self._by_graph(view, query, k, allowed, candidates) or _exactly(view, query, k, allowed, candidates)

    def get(self, ids: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors of ids, float32 (N, dim); zeros where there is none."""
        view = self.view
        slots = view.slots(np.asarray(ids, dtype=np.int64))
        result = np.zeros((len(slots), self.dim), dtype=np.float32)
        result[slots >= 0] = view.vectors(slots[slots >= 0])
        return result

    def text_of(self, ids: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Text that each vector belongs to; 0 for none."""
        return self._owner(ids, "text")

    def node_of(self, ids: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Node that each vector belongs to; 0 for none."""
        return self._owner(ids, "node")

    def index_some(self) -> bool:
        """Insert a few of the vectors that are not in the graph yet; whether there is more to do."""
        view = self.view
        live = view.living
        graph = self._graph
        if graph is not None and (live < EXACT_BELOW // 2 or graph.deleted > 2 * live):
            self._drop_graph()
            return True
        if graph is None:
            if live < EXACT_BELOW:
                return False
            graph = self._graph = Graph(self.dim, self._links, self._ef_construction)
        pending = view.indexed < view.count
        if self._measure_due(pending):
            self._measure(graph, view)
        elif pending:
            self._insert(graph, view)
        else:
            return False
        return True

    def save(self, path: Path, watermark: Any) -> None:
        """Write the graph to path in a child process, or remove path when there is none worth keeping.

        Args:
            watermark: what the caller needs to tell a fitting file at `load`; plain JSON values.
        """
        graph = self._graph
        self.unsaved = 0
        if graph is None:
            path.unlink(missing_ok=True)
        else:
            with graph.still():
                child = aside.begin(lambda: self._write(graph, path, watermark))
            aside.finish(child)

    def load(self, path: Path, watermark: Any) -> str:
        """Take the graph from path for the vectors that are here already; return why not, or "" when all is well.

        Vectors that the file lacks are searched exactly until they are inserted, those it has too many are deleted.
        """
        try:
            header, arrays = cachefile.read(path)
        except FileNotFoundError:
            return "is missing"
        except (cachefile.DamagedFile, OSError, ValueError) as error:
            return str(error)
        if header["dim"] != self.dim or header["watermark"] != watermark:
            return "belongs to another database or model"
        view = self.view
        if not _same(view, Graph.saved_vectors(header["graph"], arrays)):
            return "holds other vectors"
        graph = Graph(self.dim, self._links, self._ef_construction)
        graph.restore(header["graph"], arrays)
        inside = graph.labels()
        dead = np.setdiff1d(arrays["label_lookup_external"].astype(np.int64), inside)
        if (view.slots(dead) >= 0).any():
            return "has deleted vectors that are here"
        ours = view.slots(inside) >= 0
        graph.delete(inside[~ours])
        self.table.set_indexed(inside[ours])
        self._lost = np.array(header["lost"], dtype=np.int64)
        self._graph, self._ef = graph, header["ef"]
        self._measured, self._since = header["measured"], header["since"]
        return ""

    def _write(self, graph: Graph, path: Path, watermark: Any) -> None:
        values, arrays = graph.state()
        header = {"watermark": watermark, "dim": self.dim, "ef": self._ef, "measured": self._measured}
        header.update(graph=values, lost=self._lost.tolist(), since=self._since)
        cachefile.write(path, header, arrays)

    def _by_graph(
        self, view: VectorView, query: NDArray[np.float32], k: int, allowed: Slots | None, candidates: int
    ) -> Found | None:
        """Search the graph for so many that enough pass, and the rest exactly; None when that is no good way."""
        graph, ef = self._graph, self._ef
        indexed = view.in_graph if allowed is None else int(np.count_nonzero(allowed < view.indexed))
        if graph is None or ef == SCAN or not indexed:
            return None
        tail = view.count - view.indexed
        wanted = int(np.ceil(2 * k * view.indexed / indexed))
        ef = max(ef, wanted)
        if GRAPH_COST * ef + SCAN_COST * tail > min(GATHER_COST * candidates, SCAN_COST * view.count):
            return None
        answer = graph.search(query, wanted, ef)
        if answer is None:
            return None
        mask = _mask(view, allowed)
        slots = view.slots(answer[0])
        good = (slots >= 0) & (slots < view.indexed)
        good[good] = mask[slots[good]]
        if int(good.sum()) < min(k, indexed):
            return None
        slots, similarities = slots[good], answer[1][good]
        if len(self._lost):
            missed = _without(slots, view.slots(self._lost))
            missed = missed[(missed >= 0) & (missed < view.indexed)]
            missed = missed[mask[missed]]
            slots = np.concatenate([slots, missed])
            similarities = np.concatenate([similarities, view.scores(query, missed)])
        if tail:
            late = np.where(mask[view.indexed :], view.scan(query, view.indexed), -np.inf)
            best = exact.top(late, k)
            best = best[late[best] > -np.inf]
            slots = np.concatenate([slots, best + view.indexed])
            similarities = np.concatenate([similarities, late[best]])
        order = exact.top(similarities, k)
        return Found(slots[order], similarities[order], "graph", ef + len(self._lost) + tail)

    def _insert(self, graph: Graph, view: VectorView) -> None:
        end = min(view.indexed + CHUNK, view.count)
        slots = view.indexed + np.flatnonzero(view.alive[view.indexed : end])
        ids = view.columns["id"][slots]
        graph.add(ids, exact.normalise(view.vectors(slots)))
        if self._ef != SCAN:
            self._lost = np.union1d(self._lost, lost(graph, view, slots, self._ef))
        self.table.advance(view, end)
        self.unsaved += len(ids)
        self._since += len(ids)
        # What was removed after `view` was taken was not in the graph yet when `apply` looked.
        graph.delete(ids[self.view.slots(ids) < 0])

    def _measure_due(self, pending: bool) -> bool:
        return self._since >= (self._measured * (1.0 if pending else 0.25) or EXACT_BELOW // 2)

    def _measure(self, graph: Graph, view: VectorView) -> None:
        ef = choose_ef(graph, view, self._ef_least)
        inside = np.flatnonzero(view.alive[: view.indexed])
        missed = lost(graph, view, inside, ef) if ef != SCAN else _NONE
        missed = missed[self.view.slots(missed) >= 0]  # others were removed meanwhile
        self._lost, self._ef = missed, ef if len(missed) <= LOST_MOST * len(inside) else SCAN
        self._measured, self._since = len(graph), 0
        logger.debug("recall measured over %d vectors: ef %d (0: exact scan)", self._measured, self._ef)

    def _drop_graph(self) -> None:
        self._forget_graph()
        self.table.set_indexed(_NONE)

    def _forget_graph(self) -> None:
        self._graph, self._ef, self._lost = None, SCAN, _NONE
        self._measured = self._since = 0

    def _owner(self, ids: Sequence[int] | NDArray[np.int64], column: str) -> NDArray[np.int64]:
        view = self.view
        slots = view.slots(np.asarray(ids, dtype=np.int64))
        return np.where(slots >= 0, view.columns[column][slots], 0).astype(np.int64) if view.count else slots * 0


def _without(known: Slots, slots: Slots) -> Slots:
    """Slots that are not among the known; of so few a set tells it in a third of the time of `np.isin`."""
    among = set(known.tolist())
    return np.array([slot for slot in slots.tolist() if slot not in among], dtype=np.int64)


def _same(view: VectorView, saved: Iterable[tuple[NDArray[np.int64], NDArray[np.float32]]]) -> bool:
    """Whether the vectors of a saved graph are those of the table, every one: it may be of another future."""
    for labels, vectors in saved:
        slots = view.slots(labels)
        ours = slots >= 0
        cosines = np.einsum("ij,ij->i", vectors[ours], view.vectors(slots[ours]))
        if float(cosines.min(initial=1.0)) < SAME:
            return False
    return True


def _exactly(
    view: VectorView, query: NDArray[np.float32], k: int, allowed: Slots | None, candidates: int
) -> Found:
    if GATHER_COST * candidates < SCAN_COST * view.count:
        slots = np.flatnonzero(view.alive) if allowed is None else allowed
        similarities = view.scores(query, slots)
        best = exact.top(similarities, k)
        return Found(slots[best], similarities[best], "gather", candidates)
    similarities = np.where(_mask(view, allowed), view.scan(query), -np.inf)
    best = exact.top(similarities, min(k, candidates))
    return Found(best.astype(np.int64), similarities[best], "scan", view.count)


def _mask(view: VectorView, allowed: Slots | None) -> Mask:
    """Whether each slot is allowed; None: all that are not dead."""
    if allowed is None:
        return view.alive
    mask = np.zeros(view.count, dtype=bool)
    mask[allowed] = True
    return mask
