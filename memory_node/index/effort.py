"""How hard the graph must be searched: measured, because recall differs widely between sets of vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memory_node.index import exact
from memory_node.index.hnsw import Graph
from memory_node.index.matrix import Slots, VectorView

SCAN = 0
"""Instead of a number of candidates: no effort is enough, compare with every vector."""

LADDER = (50, 100, 200, 400, 800, 1600)
GOAL = 0.985  # mean recall over the sample, a little over what is promised
TOLERANCE = 1e-3  # cosine; an answer this near to the true tenth is as good
QUERIES = 64
NEIGHBOURS = 10
_TOGETHER = 4  # queries compared with every vector at once; what they take is never given back by the allocator
_CHUNK = 8  # asked for at once; about 1 ms, the longest that a search waits for it


def choose_ef(graph: Graph, view: VectorView, least: int) -> int:
    """Return the smallest number of candidates, at least `least`, with which a sample of the graph's own vectors finds
    its true neighbours; SCAN when none does, or when there is no vector in it.
    """
    alive = np.flatnonzero(view.alive[: view.indexed])
    if not len(alive):
        return SCAN
    chosen = np.random.default_rng(len(alive)).choice(alive, min(QUERIES, len(alive)), replace=False)
    queries = exact.normalise(view.vectors(chosen))
    # A sample is its own nearest neighbour and always found, so it is left out of the count.
    k = min(NEIGHBOURS + 1, len(alive))
    floor = np.concatenate([_least(view, queries[i : i + _TOGETHER], alive, k) for i in range(0, QUERIES, _TOGETHER)])
    floor -= TOLERANCE
    for ef in sorted({max(step, least) for step in LADDER}):
        if _recall(graph, queries, floor, k, ef) >= GOAL:
            return ef
    return SCAN


def lost(graph: Graph, view: VectorView, slots: Slots, ef: int) -> NDArray[np.int64]:
    """Return ids of those vectors that the graph does not find when asked for themselves.

    Where thousands are nearly the same, hnswlib prunes the links to the few others, which no random sample shows. They
    are asked for with half the effort of a search, so that one found by a hair counts as lost.
    """
    gone = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(slots), _CHUNK):
        some = slots[start : start + _CHUNK]
        best = graph.best(exact.normalise(view.vectors(some)), max(1, ef // 2))
        gone.append(view.columns["id"][some[best < 1.0 - TOLERANCE]])
    return np.concatenate(gone)


def _least(view: VectorView, queries: NDArray[np.float32], alive: Slots, k: int) -> NDArray[np.float32]:
    """The true k-th largest inner product of each of queries (Q, D)."""
    products = view.scan(queries)[alive]
    products.partition(len(alive) - k, axis=0)
    least: NDArray[np.float32] = products[len(alive) - k].copy()
    return least


def _recall(graph: Graph, queries: NDArray[np.float32], floor: NDArray[np.float32], k: int, ef: int) -> float:
    hits = 0
    for query, least in zip(queries, floor, strict=True):
        answer = graph.search(query, k, ef)
        if answer is not None:
            hits += int(np.sum(answer[1] >= least)) - 1
    return hits / (len(queries) * max(1, k - 1))
